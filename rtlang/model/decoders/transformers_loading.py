"""Loads models with `transformers`: refusal of unsupported configurations, the half that writes text, weights with progress.

No code of a checkpoint is run, and weights are safetensors only. The library's progress bars and advice are kept off the terminal. The
towers of a multimodal model, which read images or sound, are neither read nor kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.model.decoders.recurrent.mixers import recurrent_modules
from rtlang.model.loading.published import first_line, media, model_class, quiet, read_config
from rtlang.model.loading.safetensors_weights import is_beside_a_weight
from rtlang.model.parallel.plan_table import kept_numel, read_plan

logger = logging.getLogger(__name__)

_ATTENTION_LAYERS = ("full_attention", "sliding_attention", "chunked_attention", "attention")
_RECURRENT_LAYERS = (
    "linear_attention",
    "mamba",
    "conv",
    "hybrid",
    "hybrid_sliding",
)  # with attention beside it in the last two
_OTHER_LAYERS = ("moe", "mlp")


def transformers_bytes(directory: Path, dtype: torch.dtype, num_ranks: int = 1) -> int:
    """Bytes of the parameters that config.json implies; of those that one of `num_ranks` ranks keeps.

    Raises:
        ModelLoadError: transformers does not know the model type or cannot construct the model.
        ConfigError: the model cannot be divided among the ranks.
    """
    with torch.device("meta"), quiet():
        model = load_model(directory, read_config(directory), dtype, 0)
    if num_ranks > 1 and recurrent_modules(model):
        kind = f"expected 1 for model type {model.config.model_type!r}"
        raise ConfigError("tensor_parallel", num_ranks, f"{kind}: layers with recurrent states are not divided")
    return dtype.itemsize * kept_numel(model, read_plan(model, 0, num_ranks) if num_ranks > 1 else ())


def load_model(directory: Path, config: Any, dtype: torch.dtype, dummy_seed: int | None) -> Any:
    """Construct the `transformers` model with its stock attention, from a float checkpoint or, with `dummy_seed`, from seeded noise.

    Raises:
        ModelLoadError: the library cannot load the model, or the checkpoint lacks tensors.
    """
    options: dict[str, Any] = {"dtype": dtype, "attn_implementation": "eager", "trust_remote_code": False}
    forget_quantization(config)
    try:
        kind = text_half(model_class(config)) if media(config) else model_class(config)
        if dummy_seed is None:
            options.update(output_loading_info=True, use_safetensors=True, local_files_only=True)
            model, found = kind.from_pretrained(directory, config=config, **options)
            check_found(directory, found)
            return model
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(dummy_seed)
            del options["trust_remote_code"]
            return kind._from_config(config, **options)
    except ModelLoadError:
        raise
    except Exception as error:  # third-party code of any model type may raise anything
        raise ModelLoadError(
            str(directory), f"transformers cannot load model type {config.model_type!r}: {first_line(error)}"
        ) from error


def forget_quantization(config: Any) -> None:
    """Remove what a configuration says of quantized weights: the library is given floats, or no weights."""
    for each in (config, config.get_text_config(decoder=True)):
        if getattr(each, "quantization_config", None) is not None:
            del each.quantization_config


def text_half(kind: Any) -> Any:
    """A class of `transformers` without its towers: every model inside it that the text does not pass through."""
    from transformers import PreTrainedModel

    class TextHalf(kind):  # type: ignore[misc]
        def __init__(self, config: Any, *args: Any, **options: Any) -> None:
            super().__init__(config, *args, **options)
            decoder = self.get_decoder()
            (path,) = (name for name, module in self.named_modules() if module is decoder)
            dropped: list[str] = []
            for name, module in list(self.named_modules()):
                is_on_path = name in ("", path) or path.startswith(f"{name}.")
                if is_on_path or not isinstance(module, PreTrainedModel) or name.startswith(tuple(dropped)):
                    continue
                parent, _, leaf = name.rpartition(".")
                setattr(self.get_submodule(parent), leaf, None)
                dropped.append(f"{name}.")
            self.all_tied_weights_keys = self.get_expanded_tied_weights_keys(all_submodels=True)
            # the dropped towers' tensors, under the names that files of any age give them
            left = {rf"(^|\.){name.split('.')[-2]}\." for name in dropped}
            ignored = getattr(self, "_keys_to_ignore_on_load_unexpected", None) or ()
            self._keys_to_ignore_on_load_unexpected = {*ignored, *left}

    return renamed_class(TextHalf, kind)


def renamed_class(made: Any, kind: Any) -> Any:
    """`made`, a subclass of `kind`, under the name of it, by which the library finds what it knows of a class."""
    made.__name__, made.__qualname__, made.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return made


def check_found(directory: Path, found: dict[str, Any]) -> None:
    """Refuse a checkpoint with missing tensors (the library would use noise) or with tensors that modify weights in unknown ways; log
    other unused tensors."""
    missing = sorted(found["missing_keys"])
    if missing:
        raise ModelLoadError(
            str(directory),
            f"the weights lack {len(missing)} tensors that config.json implies, such as {missing[0]}",
        )
    left = sorted(found["unexpected_keys"])
    for name in filter(is_beside_a_weight, left):
        raise ModelLoadError(str(directory), f"tensor {name} is unexpected: config.json does not describe its use")
    if left:
        logger.warning("%d tensors of %s are unused, such as %s", len(left), directory, left[0])


def refuse_known(config: Any, path: str, max_len: int) -> None:
    """Refuse models that their configuration shows to be unsupported, before reading weights.

    Args:
        max_len: maximum sequence length in tokens.
    Raises:
        ModelLoadError: names the model type or the configuration field.
    """
    model_type, text = str(config.model_type), config.get_text_config(decoder=True)
    kinds = getattr(text, "layer_types", None) or getattr(text, "layers_block_type", None) or ()
    for kind in kinds:
        if kind not in (*_ATTENTION_LAYERS, *_RECURRENT_LAYERS, *_OTHER_LAYERS):
            raise ModelLoadError(
                path,
                f"model type {model_type!r} is not supported: layers of type {kind!r} are neither recurrent nor full, sliding-window or "
                "chunked attention; choose a model with full attention",
            )
    rope = getattr(text, "rope_parameters", None) or {}
    for entries in (rope, *(value for value in rope.values() if isinstance(value, dict))):
        if entries.get("rope_type") not in ("dynamic", "longrope"):
            continue
        original = entries.get("original_max_position_embeddings") or getattr(
            text, "original_max_position_embeddings", None
        )
        limit = int(original or text.max_position_embeddings)
        if max_len > limit:
            raise ModelLoadError(
                path,
                f"its {entries['rope_type']} rotary embedding depends on the longest sequence of a batch beyond {limit} tokens; "
                f"set max_model_len to {limit} or less",
            )


@contextmanager
def progress_reported(on_progress: Callable[[float], None]) -> Iterator[None]:
    """Report loading progress by intercepting the progress bars of `transformers`."""
    from transformers.utils import logging as library_logging

    if not hasattr(library_logging, "set_tqdm_hook"):  # since 5.2
        yield
        return

    def watch(make: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        bar = make(*arguments, **options)
        items = arguments[0] if arguments else options.get("iterable")
        return _ReportingBar(bar, len(items), on_progress) if isinstance(items, Sized) else bar

    before = library_logging.set_tqdm_hook(watch)
    try:
        yield
    finally:
        library_logging.set_tqdm_hook(before)


class _ReportingBar:
    """Wraps a progress bar and reports its iteration to `on_progress`."""

    def __init__(self, bar: Any, total: int, on_progress: Callable[[float], None]) -> None:
        self._bar, self._total, self._on_progress = bar, total, on_progress

    def __iter__(self) -> Iterator[Any]:
        for count, item in enumerate(self._bar, start=1):
            yield item
            self._on_progress(count / self._total)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bar, name)
