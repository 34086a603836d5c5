"""Checkpoints of few bits made from tiny random models: in memory, with the same model of dequantized floats beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.layers.attention import PagedKV
from rtlang.model.layers.packed_experts import is_experts
from rtlang.model.loading.published import model_class
from rtlang_kernels import ops
from rtlang_kernels.contract.low_bit import GroupedRows, HeldWeight, LowBitWeight, ScaleType, WeightFormat
from rtlang_kernels.reference.low_bit import ReferenceLowBitLinear, exact_weight
from tests.support.models.families import Family, make_config
from tests.support.models.low_bit_weights import FORMATS
from tests.support.models.model_steps import StepRunner, ragged_logits
from tests.support.models.tiny_models import random_model, save_checkpoint

Q4_0, Q8_0 = FORMATS["q4_0"], FORMATS["q8_0"]
INT4_32 = WeightFormat(4, 32, ScaleType.BFLOAT16, zero=8)
_STACKED = ("gate_up_proj", "down_proj", "input_linear.weight", "output_linear.weight", "fc1.weight", "fc2.weight")
# Relative error of one layer that rounds its inputs to int8 in groups (definition A), with outliers among them; layers of a block that
# follow one another; and by how much errors of tiny random models may exceed those that add up independently.
_LAYER_ERROR, _LAYERS_OF_A_BLOCK, _GROWTH = 0.013, 4, 1.5
_FLOAT_ERROR = 1e-4


def rounded(weight: Tensor, fmt: WeightFormat) -> HeldWeight:
    """A matrix [out, in] rounded to the nearest codes of a symmetric format, each group with the scale of its largest weight."""
    rows, columns = weight.shape
    grouped = weight.float().view(rows, columns // fmt.group, fmt.group)
    largest = (1 << fmt.bits - 1) - 1
    scales = (grouped.abs().amax(2) / largest).clamp_min(1e-6).to(getattr(torch, fmt.scales.value))
    codes = (grouped / scales.float()[..., None]).round().clamp(-largest - 1, largest) + fmt.zero
    return HeldWeight(fmt, GroupedRows(codes.view(rows, columns).to(torch.uint8), scales))


@dataclass
class MemoryWeights:
    """A `CheckpointWeights` in memory.

    Attributes:
        codes, floats: the weights by name.
        reads: names of the tensors that were read as floats.
    """

    codes: dict[str, LowBitWeight]
    floats: dict[str, Tensor]
    reads: list[str] = field(default_factory=list)

    def names(self) -> Collection[str]:
        """See `CheckpointWeights`."""
        return [*self.codes, *self.floats]

    def shape(self, name: str) -> tuple[int, ...]:
        """See `CheckpointWeights`."""
        return self.codes[name].shape if name in self.codes else tuple(self.floats[name].shape)

    def num_bytes(self, name: str) -> int:
        """See `CheckpointWeights`; without scales."""
        if name in self.codes:
            rows, columns = self.codes[name].shape
            return rows * columns * self.codes[name].format.bits // 8
        return self.floats[name].nbytes

    def low_bit(self, name: str) -> LowBitWeight | None:
        """See `CheckpointWeights`."""
        return self.codes.get(name)

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        """See `CheckpointWeights`."""
        self.reads.append(name)
        if name in self.codes:
            return exact_weight(self.codes[name]).to(dtype)
        if name not in self.floats:
            raise ModelLoadError("memory", f"no tensor {name}")
        return self.floats[name].to(dtype)


def quantize_model(
    model: Any, path: Path, choose: Callable[[str], WeightFormat | None] = lambda name: Q4_0
) -> tuple[MemoryWeights, Any]:
    """Save a float32 model into the folder `path`, round its matrices, and load what they stand for into another one.

    Args:
        choose: the format of a matrix by its name in the checkpoint; None leaves it a float. Matrices whose inputs are no multiple of the
            format's groups stay floats.
    Returns:
        The weights as they are stored, experts as matrices of their own, and a model of `transformers` with the same weights in float32.
    """
    save_checkpoint(model, path)
    saved = safetensors.torch.load_file(path / "model.safetensors")
    quantizable, has_experts = _matrices_of(model), any(map(is_experts, model.modules()))
    codes: dict[str, LowBitWeight] = {}
    floats: dict[str, Tensor] = {}
    for name, tensor in saved.items():
        is_stacked = has_experts and tensor.ndim == 3 and name.endswith(_STACKED)
        fmt = choose(name) if is_stacked or (tensor.ndim == 2 and quantizable(name)) else None
        if fmt is None:
            floats[name] = tensor
        elif is_stacked:
            saved[name] = _split(model, name, tensor, fmt, codes, floats)
        elif tensor.shape[1] % fmt.group:
            floats[name] = tensor
        else:
            codes[name] = rounded(tensor, fmt)
            saved[name] = exact_weight(codes[name]).float()
    stock = model_class(model.config).from_pretrained(
        None, config=model.config, state_dict=saved, dtype=torch.float32, attn_implementation="eager"
    )
    return MemoryWeights(codes, floats), stock.eval()


def check_low_bit(family: Family, variant: str | None, path: Path) -> MemoryWeights:
    """Hold a tiny model of the family with int4 weights, in ragged steps, to `transformers` with the dequantized weights.

    Returns:
        The weights, which know what was read of them.
    Raises:
        ModelLoadError: it is refused.
        AssertionError: logits differ by more than the definition of the layers allows, or a greedy token although the margin is larger.
    """
    model = random_model(make_config(family, variant))
    weights, stock = quantize_model(model, path)
    decoder = TransformersDecoder.load(path, torch.float32, dummy_seed=None, weights=weights)
    text = model.config.get_text_config(decoder=True)
    bound = error_bound(text.num_hidden_layers)
    errors = []
    kv = PagedKV(decoder.geometries, 64, 4, torch.float32)
    for ids, logits in ragged_logits(StepRunner(decoder, kv), text.vocab_size):
        with torch.inference_mode():
            expected = stock(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -len(logits) :].float()
        spread = (expected - expected.mean(-1, keepdim=True)).norm(dim=-1)
        errors.append((logits - expected).norm(dim=-1) / spread)
        best = expected.topk(2, -1).values
        is_clear = best[:, 0] - best[:, 1] > 6 * bound * spread / text.vocab_size**0.5  # six times the error of a logit
        is_equal = logits.argmax(-1) == expected.argmax(-1)
        assert bool((is_equal | ~is_clear).all()), (
            f"greedy tokens differ at {(~is_equal & is_clear).nonzero().tolist()}"
        )
    # a router may choose another expert where two are nearly equal, which moves some tokens by more
    error = float(torch.cat(errors).median())
    assert error < bound, f"relative error {error:.2g} of the logits, expected at most {bound:.2g}"
    return weights


def error_bound(num_blocks: int) -> float:
    """The largest relative error of logits that the layers of few bits of this machine may cause."""
    if ops.backend_for(torch.device("cpu"), torch.float32).low_bit_linear is ReferenceLowBitLinear:
        return _FLOAT_ERROR
    return _GROWTH * _LAYER_ERROR * (_LAYERS_OF_A_BLOCK * num_blocks + 1) ** 0.5


def _matrices_of(model: Any) -> Callable[[str], bool]:
    """Whether a name in a checkpoint belongs to a matrix of the text half that layers of few bits can compute with."""
    decoder = next((path for path, module in model.named_modules() if module is model.get_decoder()), "")
    found = {
        _tail(f"{path}.weight")
        for path, module in model.named_modules()
        if (path.startswith(decoder) or path == "lm_head")
        and (type(module) is torch.nn.Linear or isinstance(module, torch.nn.Embedding))
    }
    expert, other = re.compile(r"experts\.\d+\.\w+\.weight$"), re.compile("vision|projector")
    return lambda name: (_tail(name) in found and not other.search(name)) or expert.search(name) is not None


def _tail(name: str) -> str:
    """What names of one weight have in common, whichever prefixes a checkpoint gives it."""
    name = name.replace("embed_out.", "lm_head.")
    return name[name.index("layers.") :] if "layers." in name else ".".join(name.split(".")[-2:])


def _split(
    model: Any, name: str, tensor: Tensor, fmt: WeightFormat, codes: dict[str, LowBitWeight], floats: dict[str, Tensor]
) -> Tensor:
    """Round the matrices of stacked experts, under names of their own; returns the tensor that they stand for."""
    path, module = next((path, each) for path, each in model.named_modules() if is_experts(each))
    leaf = path.rpartition(".")[2]
    home = name[: name.index(f".{leaf}.")] if f".{leaf}." in name else name.rpartition(".")[0].rpartition(".")[0]
    role = "down_proj" if name.endswith(("down_proj", "output_linear.weight", "fc2.weight")) else "gate_up_proj"
    parts = []
    for expert, part in enumerate(tensor):
        matrix = part.T if module.is_transposed else part
        own = f"{home}.{leaf}.{expert}.{role}.weight"
        if matrix.shape[1] % fmt.group:
            floats[own] = matrix.contiguous()
            parts.append(part)
            continue
        codes[own] = rounded(matrix.contiguous(), fmt)
        exact = exact_weight(codes[own]).float()
        parts.append(exact.T if module.is_transposed else exact)
    return torch.stack(parts)
