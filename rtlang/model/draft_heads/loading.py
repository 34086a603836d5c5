"""Loads the draft head that `draft_model` names, if it names one and not a model."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import safetensors
import torch
from torch import Tensor

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.model.decoders.native_decoder import Decoder, NativeDecoder
from rtlang.model.draft_heads.draft_head import DraftHead
from rtlang.model.draft_heads.head_config import MTP, HeadConfig, HeadKind, is_head, mtp_head, read_entries, read_head
from rtlang.model.layers.checkpoint_source import CheckpointSource
from rtlang.model.loader import model_directory, open_checkpoint
from rtlang.model.loading.gguf.model_files import is_gguf
from rtlang.model.loading.model_config import ModelConfig

logger = logging.getLogger(__name__)

_OFFSETS = "d2t"  # of EAGLE-3: what is added to the number of a logit to get its token


def names_head(config: RuntimeConfig) -> bool:
    """Whether `draft_model` names a head; the weights of one on a hub are downloaded.

    Raises:
        ModelLoadError: what it names cannot be read.
    """
    name = config.draft_model
    if name is None or name == MTP:
        return name == MTP
    directory = model_directory(os.fspath(name))
    if is_gguf(directory) or not _may_be_head(directory):
        return False
    return is_head(read_entries(directory), open_checkpoint(_settings(config), directory)[0].names())


def load_draft_head(config: RuntimeConfig, decoder: Decoder, target: ModelConfig) -> DraftHead | None:
    """Load the head of the settings; None if `draft_model` is None or names a model.

    Args:
        decoder, target: the loaded model.
    Raises:
        ModelLoadError: the head cannot be read, is not supported, or has other sizes than the model.
        ConfigError: this model cannot have a head.
    """
    name = config.draft_model
    if config.speculation == "off" or not names_head(config):
        return None
    is_own = name == MTP
    settings = _settings(config)
    directory = model_directory(settings.model)
    if is_gguf(directory):
        raise ConfigError("draft_model", name, "expected a checkpoint of safetensors; heads of GGUF files are not read")
    if not isinstance(decoder, NativeDecoder):
        raise ConfigError(
            "draft_model",
            name,
            f"draft heads require a model of the native decoder: {target.native_obstacle or 'decoder is transformers'}",
        )
    weights, files = open_checkpoint(settings, directory, target.quantization if is_own else None)
    names = weights.names()
    head_config = mtp_head(directory, names, target) if is_own else read_head(directory, names, target)
    source = CheckpointSource(weights, directory, decoder.dtype, None, decoder.device, files=files)
    head = DraftHead.load(head_config, decoder, source, _token_ids(directory, files, head_config, decoder.device))
    logger.info("loaded the %s draft head of %s", head_config.kind.value, directory)
    return head


def _settings(config: RuntimeConfig) -> RuntimeConfig:
    """The settings as if the checkpoint of the head was that of the model."""
    name = config.draft_model
    assert name is not None
    return config if name == MTP else replace(config, model=os.fspath(name), draft_model=None)


def _may_be_head(directory: Path) -> bool:
    """Whether config.json may be that of a head: one of a model has layers and a tokenizer beside it."""
    entries = read_entries(directory)
    return (
        is_head(entries, ()) or entries.get("num_hidden_layers", 1) == 1 or not (directory / "tokenizer.json").is_file()
    )


def _token_ids(directory: Path, files: list[Path], config: HeadConfig, device: torch.device) -> Tensor | None:
    """The token of each logit; the offsets are integers, which sources of weights do not hand out."""
    if config.kind is not HeadKind.EAGLE_3 or _OFFSETS not in config.names:
        return None
    for path in files:
        with safetensors.safe_open(str(path), framework="pt") as reader:
            if config.names[_OFFSETS] in reader.keys():  # noqa: SIM118 - not a mapping
                offsets: Tensor = reader.get_tensor(config.names[_OFFSETS])
                break
    else:  # its name is that of a tensor of these files
        raise AssertionError(config.names[_OFFSETS])
    is_list = offsets.shape == (config.num_outputs,) and not (offsets.is_floating_point() or offsets.is_complex())
    token_ids = torch.arange(config.num_outputs) + offsets.long() if is_list else offsets
    num_tokens = config.layers.vocab_size
    if (
        not is_list
        or len(set(token_ids.tolist())) != len(offsets)
        or not 0 <= int(token_ids.min()) <= int(token_ids.max()) < num_tokens
    ):
        raise ModelLoadError(
            str(directory), f"tensor {_OFFSETS}: expected {config.num_outputs} different tokens of {num_tokens}"
        )
    return token_ids.to(device)
