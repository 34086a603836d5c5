"""Rounds a model's checkpoint to 4 or 8 bits, and reports what that costs: see `quantized_checkpoint`."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.model.loader import model_directory, pick_dtype
from rtlang.model.loading.checkpoint_files import weight_files
from rtlang.model.loading.gguf.model_files import is_gguf
from rtlang.model.loading.hub import download_weights
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.loading.model_names import HubName
from rtlang.model.loading.safetensors_weights import SafetensorsWeights
from rtlang.model.quantization.calibration import ChannelScaling, InputStatistics, measured_inputs
from rtlang.model.quantization.checkpoint import MatrixReport, copy_other_files, write_config, write_rounded
from rtlang.model.quantization.comparison import Difference, difference
from rtlang.model.quantization.rounding import Rounding
from rtlang.model.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

MAX_CALIBRATION_TOKENS = 4096
MAX_COMPARED_TOKENS = 512


@dataclass(frozen=True, slots=True)
class QuantizationReport:
    """What was written, and how far it is from the source.

    Attributes:
        matrices: what was rounded.
        num_bytes, source_bytes: of the weights written, and of those read.
        predictions: how the predictions after each token of a text differ from those of the source; None without a text.
        is_scaled: whether norms took up factors of channels.
    """

    matrices: tuple[MatrixReport, ...]
    num_bytes: int
    source_bytes: int
    predictions: Difference | None
    is_scaled: bool

    def to_plain(self) -> dict[str, Any]:
        """The report as plain data."""
        predictions = self.predictions
        shown = None
        if predictions is not None:
            shown = {name: getattr(predictions, name) for name in Difference.__slots__}
        matrices = [{name: getattr(each, name) for name in MatrixReport.__slots__} for each in self.matrices]
        sizes = {"num_bytes": self.num_bytes, "source_bytes": self.source_bytes}
        return {**sizes, "is_scaled": self.is_scaled, "predictions": shown, "matrices": matrices}


def quantized_checkpoint(
    source: str,
    out: Path,
    rounding: Rounding,
    *,
    calibration: str | None = None,
    text: str | None = None,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> QuantizationReport:
    """Round the weights of a model and write them as a model directory of their own.

    Args:
        source: a model directory, a name on a hub, or the embedded model.
        out: must not exist or be empty. It appears when everything is written.
        calibration: a text over which the inputs of layers are measured, which takes memory for the whole model: the errors of large
            inputs count more, and models of the Llama family get factors of channels.
        text: a text over which predictions are compared with the source's; both models are loaded, one after the other.
        on_progress: called with the fraction of the weights that has been read.
    Raises:
        ModelLoadError: the source cannot be read.
        ConfigError: `out` has files, or a text has too few tokens.
        OSError: a file cannot be written.
    """
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise ConfigError("out", str(out), "expected a directory that does not exist or is empty, and no link")
    directory = model_directory(source)
    if is_gguf(directory):
        raise ModelLoadError(source, "a GGUF file cannot be rounded again; pass a directory of safetensors")
    if (name := HubName.parse(source)) is not None:
        download_weights(name, directory)
    model_config, tokenizer = ModelConfig.from_pretrained(directory), Tokenizer.from_pretrained(directory)
    raw = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    for entries in (raw, raw.get("text_config")):  # described anew
        if isinstance(entries, dict):
            entries.pop("quantization_config", None)
    weights = SafetensorsWeights(directory, weight_files(directory), model_config.quantization)
    compared_ids = _tokens(tokenizer, text, "text", MAX_COMPARED_TOKENS)
    inputs: dict[str, InputStatistics] = {}
    if calibration is not None:
        token_ids = _tokens(tokenizer, calibration, "calibration", MAX_CALIBRATION_TOKENS)
        inputs = measured_inputs(directory, weights, token_ids, pick_dtype("auto"))
        logger.info("measured the inputs of %d layers over %d tokens", len(inputs), len(token_ids))
    scaling = None
    if inputs and ChannelScaling.covers(model_config.model_type):
        scaling = ChannelScaling(
            lambda name: weights.tensor(name, torch.float32), inputs, rounding, model_config.num_layers
        )
    importance = {name: each.importance for name, each in inputs.items()}
    if scaling is not None:
        importance = {name: scaling.importance(name, each) for name, each in importance.items()}
    source_bytes, num_read = sum(map(weights.num_bytes, weights.names())), 0

    def note(num_bytes: int) -> None:
        nonlocal num_read
        num_read += num_bytes
        on_progress(num_read / max(1, source_bytes))

    out.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        matrices = write_rounded(
            weights,
            made,
            rounding,
            importance=importance,
            adjust=None if scaling is None else scaling.adjust,
            on_progress=note,
        )
        if not matrices:
            raise ModelLoadError(source, f"no matrix has inputs in groups of {rounding.group}; choose a smaller group")
        copy_other_files(directory, made)
        write_config(raw, made, rounding, weights)
        num_bytes = sum(path.stat().st_size for path in made.glob("*.safetensors"))
        if out.exists():
            out.rmdir()
        made.chmod(0o755)
        made.rename(out)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    found = difference(str(out), source, compared_ids) if compared_ids else None
    return QuantizationReport(tuple(matrices), num_bytes, source_bytes, found, scaling is not None)


def _tokens(tokenizer: Tokenizer, text: str | None, field: str, most: int) -> Sequence[int]:
    """The first tokens of a text, after the start tokens."""
    if text is None:
        return ()
    token_ids = [*tokenizer.start_ids(), *tokenizer.encode(text, is_start=True)]
    if len(token_ids) < 2:
        raise ConfigError(field, text, "expected a text of several tokens")
    return token_ids[:most]
