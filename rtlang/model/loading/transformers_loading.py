"""Models of `transformers` as they come: their configuration, refusals by name, loading with progress.

Nothing of a checkpoint is run: its own code is never imported, its weights are safetensors. What the library says while it loads
(advice, progress bars) is kept from the terminal.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.quantized import float_state, is_beside_a_weight, quantization_obstacle

logger = logging.getLogger(__name__)

# Wrong in ways that a short check does not reach, or may only reach by chance.
_REFUSED = {
    "falcon_h1": "its layers keep a state that pages cannot hold",
    "llama4": "its chunked attention counts positions in its own way",
    "llama4_text": "its chunked attention counts positions in its own way",
    "phimoe": "its rotary embedding depends on the longest sequence of the batch",
}
_ATTENTION_LAYERS = ("full_attention", "sliding_attention", "chunked_attention", "attention")


def transformers_bytes(directory: Path, dtype: torch.dtype) -> int:
    """Bytes of the parameters that config.json implies.

    Raises:
        ModelLoadError: transformers does not know the model type or cannot make the model.
    """
    with torch.device("meta"), quiet():
        model = load_model(directory, (), read_config(directory), dtype, 0)
    return sum(parameter.numel() * dtype.itemsize for parameter in model.parameters())


def read_config(directory: Path) -> Any:
    """The library's configuration of a checkpoint.

    Raises:
        ModelLoadError: it does not know the model type, or the configuration makes no sense to it.
    """
    from transformers import CONFIG_MAPPING, AutoConfig

    try:
        with quiet():
            return AutoConfig.from_pretrained(directory, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # foreign code of any model type; none of its errors may pass for ours
        raw = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        reason = "it comes with code of its own, which is never run" if "auto_map" in raw else _first_line(error)
        is_known = "auto_map" not in raw and raw.get("model_type") in CONFIG_MAPPING
        what = "cannot read the config.json of" if is_known else "does not know"
        raise ModelLoadError(
            str(directory), f"transformers {what} model type {raw.get('model_type')!r}: {reason}"
        ) from None


def load_model(directory: Path, files: Sequence[Path], config: Any, dtype: torch.dtype, dummy_seed: int | None) -> Any:
    """The library's model with its own attention, from the checkpoint or, with `dummy_seed`, of seeded noise.

    The library reads a checkpoint of floats itself; one of int8 is given to it as floats, read from `files`.

    Raises:
        ModelLoadError: the library cannot load it, or the checkpoint has not all of its tensors.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoModelForCausalLM

    options: dict[str, Any] = {"dtype": dtype, "attn_implementation": "eager", "trust_remote_code": False}
    is_quantized = getattr(config, "quantization_config", None) is not None
    try:
        if is_quantized:
            del config.quantization_config
        if dummy_seed is None:
            options["output_loading_info"] = True
            if is_quantized:  # the Auto class takes no weights without a place
                loader: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
                state = float_state(files, dtype)
                model, found = loader.from_pretrained(None, config=config, state_dict=state, **options)
            else:
                options.update(use_safetensors=True, local_files_only=True)
                model, found = AutoModelForCausalLM.from_pretrained(directory, config=config, **options)
            _check_found(directory, found)
            return model
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(dummy_seed)
            return AutoModelForCausalLM.from_config(config, **options)
    except ModelLoadError:
        raise
    except Exception as error:  # foreign code, as above
        raise ModelLoadError(
            str(directory), f"transformers cannot load model type {config.model_type!r}: {_first_line(error)}"
        ) from error


def _check_found(directory: Path, found: dict[str, Any]) -> None:
    """Refuse a checkpoint that lacks tensors, where the library would go on with noise, or whose weights are not what they seem; mention
    tensors that have no place."""
    missing = sorted(found["missing_keys"])
    if missing:
        raise ModelLoadError(
            str(directory),
            f"the weights have no tensor {missing[0]}; {len(missing)} that config.json implies are missing",
        )
    left = sorted(found["unexpected_keys"])
    for name in filter(is_beside_a_weight, left):
        raise ModelLoadError(str(directory), f"tensor {name} has no place: config.json does not say how to use it")
    if left:
        logger.warning("%d tensors of %s are not used, %s among them", len(left), directory, left[0])


def refuse_known(config: Any, path: str, max_len: int) -> None:
    """Refuse what its configuration shows to be unfit, before weights are read.

    Args:
        max_len: longest sequence in tokens that will be computed.
    Raises:
        ModelLoadError: names the model type or the field.
    """
    model_type = str(config.model_type)
    if model_type in _REFUSED:
        raise ModelLoadError(path, f"model type {model_type!r} is not supported: {_REFUSED[model_type]}")
    quantization = getattr(config, "quantization_config", None)
    if quantization is not None and (obstacle := quantization_obstacle(quantization)):
        raise ModelLoadError(path, obstacle)
    text = config.get_text_config()
    kinds = getattr(text, "layer_types", None) or getattr(text, "layers_block_type", None) or ()
    for kind in kinds:
        if kind not in _ATTENTION_LAYERS:
            raise ModelLoadError(
                path,
                f"model type {model_type!r} is not supported: "
                f"layers of kind {kind!r} are not attention over all keys, a window or a chunk",
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
def quiet() -> Iterator[None]:
    """No progress bars and no advice from the library while it loads."""
    from transformers.utils import logging as library_logging

    had_bars, verbosity = library_logging.is_progress_bar_enabled(), library_logging.get_verbosity()
    library_logging.disable_progress_bar()
    library_logging.set_verbosity_error()
    try:
        yield
    finally:
        library_logging.set_verbosity(verbosity)
        if had_bars:
            library_logging.enable_progress_bar()


@contextmanager
def watched(on_progress: Callable[[float], None]) -> Iterator[None]:
    """Tell how far the library is with the weights, by what it would show as a progress bar."""
    from transformers.utils import logging as library_logging

    if not hasattr(library_logging, "set_tqdm_hook"):  # since 5.2
        yield
        return

    def watch(make: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        bar = make(*arguments, **options)
        items = arguments[0] if arguments else options.get("iterable")
        return _Watched(bar, len(items), on_progress) if isinstance(items, Sized) else bar

    before = library_logging.set_tqdm_hook(watch)
    try:
        yield
    finally:
        library_logging.set_tqdm_hook(before)


class _Watched:
    """A progress bar whose iteration is told to `on_progress`; all else is the bar's."""

    def __init__(self, bar: Any, total: int, on_progress: Callable[[float], None]) -> None:
        self._bar, self._total, self._on_progress = bar, total, on_progress

    def __iter__(self) -> Iterator[Any]:
        for count, item in enumerate(self._bar, start=1):
            yield item
            self._on_progress(count / self._total)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bar, name)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else repr(error)
