"""Measures the inputs of linear layers over a text, and scales channels so that rounding spares the large ones.

The squared error of an output is the sum of the squared errors of the weights times the squares of their inputs. So the mean square of each
input is its importance when scales are searched (`rounding`). Beyond that, the inputs of layers after a norm can be divided by factors that
the weights are multiplied with: the norm takes them up, the model stays the same, and the weights of large inputs are rounded more finely
relative to their size. The exponent of the factors is searched for each norm, over a sample of inputs.

Source: Lin et al. 2024, AWQ: Activation-aware Weight Quantization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rtlang.model.decoders.low_bit_loading import load_weights
from rtlang.model.layers.weight_source import CheckpointWeights
from rtlang.model.loading.published import quiet, read_config
from rtlang.model.quantization.rounding import Rounding, rounded
from rtlang_kernels.reference.low_bit import exact_weight

_MAX_SAMPLE = 128  # rows of inputs that are kept of a layer
_EXPONENTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_TEXT_TOKENS = 512  # of a sequence
_PLAIN_NORMS = ("llama", "mistral", "qwen2", "qwen3")  # of which weights are factors
_GROUPS = (
    ("input_layernorm", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")),
    ("post_attention_layernorm", ("mlp.gate_proj", "mlp.up_proj")),
)


@dataclass(slots=True)
class InputStatistics:
    """The inputs of one linear layer.

    Attributes:
        squares: float64 [in], sums of squares.  num_rows: how many inputs they are of.
        sample: some of the inputs, float32 [any, in].
    """

    squares: Tensor
    num_rows: int = 0
    sample: list[Tensor] = field(default_factory=list)

    def add(self, x: Tensor) -> None:
        """Add inputs [n, in]."""
        self.squares += x.double().square().sum(0)
        self.num_rows += len(x)
        left = _MAX_SAMPLE - sum(map(len, self.sample))
        if left > 0:
            step = max(1, len(x) // left)
            self.sample.append(x[::step][:left].clone())

    @property
    def importance(self) -> Tensor:
        """The mean square of each input, float32 [in]."""
        return (self.squares / max(1, self.num_rows)).float()


def measured_inputs(
    directory: Path, weights: CheckpointWeights, token_ids: Sequence[int], dtype: torch.dtype
) -> dict[str, InputStatistics]:
    """The inputs of all linear layers of a checkpoint, with its weights as floats, over a text, by the names of the weights.

    Raises:
        ModelLoadError: transformers cannot load the model.
    """
    with quiet():
        loaded = load_weights(directory, weights, read_config(directory), dtype, None, keeps_codes=False)
    model = loaded.eval()
    found: dict[str, InputStatistics] = {}

    def watch(name: str) -> Callable[[Any, tuple[Any, ...]], None]:
        def note(module: Any, args: tuple[Any, ...]) -> None:
            x = args[0].detach().float().reshape(-1, args[0].shape[-1])
            if name not in found:
                found[name] = InputStatistics(torch.zeros(x.shape[1], dtype=torch.float64))
            found[name].add(x)

        return note

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(watch(f"{name}.weight"))
    with torch.inference_mode():
        for start in range(0, len(token_ids), _TEXT_TOKENS):
            model(input_ids=torch.tensor([list(token_ids[start : start + _TEXT_TOKENS])]), use_cache=False)
    return found


class ChannelScaling:
    """Factors of the inputs of layers after a norm, for the weights of a model of the Llama family.

    Args:
        read: reads a weight of the float checkpoint as float32.
        inputs: of `measured_inputs`.
    """

    def __init__(
        self, read: Callable[[str], Tensor], inputs: Mapping[str, InputStatistics], rounding: Rounding, num_layers: int
    ) -> None:
        self._factors: dict[str, Tensor] = {}  # of the inputs of a matrix
        self._norms: dict[str, Tensor] = {}  # by which a norm's weight is divided
        self.exponents: list[float] = []
        for layer in range(num_layers):
            for norm, parts in _GROUPS:
                prefix = f"model.layers.{layer}."
                names = [f"{prefix}{part}.weight" for part in parts]
                if all(name in inputs for name in names):
                    exponent, factors = _best_factors([read(name) for name in names], inputs[names[0]], rounding)
                    self.exponents.append(exponent)
                    self._factors.update(dict.fromkeys(names, factors))
                    self._norms[f"{prefix}{norm}.weight"] = factors

    @staticmethod
    def covers(model_type: str) -> bool:
        """Whether the norms of this model type take factors up as they are."""
        return model_type in _PLAIN_NORMS

    def adjust(self, name: str, weight: Tensor) -> Tensor:
        """The weight with the factors of its inputs, or the norm without them."""
        if name in self._factors:
            return weight * self._factors[name]
        if name in self._norms:
            return (weight.float() / self._norms[name]).to(weight.dtype)
        return weight

    def importance(self, name: str, importance: Tensor) -> Tensor:
        """The mean squares of the inputs of a matrix, which are divided by its factors."""
        return importance / self._factors[name].square() if name in self._factors else importance


def _best_factors(weights: Sequence[Tensor], inputs: InputStatistics, rounding: Rounding) -> tuple[float, Tensor]:
    """The exponent and the factors with the least error of the outputs of some layers over a sample of their inputs."""
    sample, importance = torch.cat(inputs.sample), inputs.importance
    size = importance.sqrt().clamp(min=1e-4)
    best: tuple[float, float, Tensor] | None = None
    for exponent in _EXPONENTS:
        factors = size.pow(exponent)
        factors = factors / (factors.max() * factors.min()).sqrt()
        error = 0.0
        for weight in weights:
            exact = exact_weight(rounded(weight * factors, rounding, importance / factors.square())).float() / factors
            error += float((sample @ (exact - weight).T).square().sum())
        if best is None or error < best[0]:
            best = error, exponent, factors
    assert best is not None
    return best[1], best[2]
