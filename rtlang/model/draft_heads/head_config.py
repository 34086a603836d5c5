"""Recognizes draft heads in checkpoints, and reads what they compute.

A head is in a directory of its own (EAGLE, EAGLE-3, the `speculators` layout of either), or beside the layers of the model in the model's
checkpoint (MTP). Its layers are those of a native family; whether they have biases and norms of q and k is read from the names of the
tensors, since configurations of heads often repeat those of another model.

Sources: Li et al. 2024 (EAGLE), Li et al. 2025 (EAGLE-3), DeepSeek-V3 technical report (MTP), published checkpoints of Qwen3-Next.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.layer_table import AttentionConfig, LayerNorms, QkNorm
from rtlang.model.loading.model_config import ModelConfig

MTP = "mtp"
"""The value of `draft_model` that names the head in the checkpoint of the model itself."""

_BASES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
_PREFIX = "model."
_MIDDLE = "midlayer."  # the only layer, as EAGLE-3 names it


class HeadKind(Enum):
    """How a head takes states of the model."""

    EAGLE = "EAGLE"  # the last ones, joined with embeddings in front of its first layer
    EAGLE_3 = "EAGLE-3"  # those of three layers, joined with embeddings inside of its first layer
    MTP = "MTP"  # the last ones, normed as embeddings are, joined with them in front of its layer


@dataclass(frozen=True, slots=True)
class HeadConfig:
    """A draft head.

    Attributes:
        kind: how it takes states of the model.
        layers: sizes and table of its layers; `native` is set.
        tapped_layers: the layers of the model whose inputs it takes; empty if it takes the model's last states.
        num_outputs: width of its logits, which are those of the first so many tokens, or of as many others that a table lists.
        names: tensors of its checkpoint by the names that `DraftHead` uses.
        norms_residual: whether the residual of the first layer of EAGLE-3 begins with normed states.
    """

    kind: HeadKind
    layers: ModelConfig
    tapped_layers: tuple[int, ...]
    num_outputs: int
    names: Mapping[str, str]
    norms_residual: bool = False


def is_head(entries: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether a checkpoint is a draft head.

    Args:
        entries: the content of its config.json.
        names: of its tensors.
    """
    architectures = entries.get("architectures")
    is_named = isinstance(architectures, list) and any("eagle" in str(name).lower() for name in architectures)
    return is_named or "speculators_model_type" in entries or {"fc.weight", "model.fc.weight"} & set(names) != set()


def read_head(directory: Path, names: Collection[str], target: ModelConfig) -> HeadConfig:
    """Read the configuration of a head that has a directory of its own.

    Args:
        names: of its tensors.
        target: the model for which it drafts.
    Raises:
        ModelLoadError: config.json is damaged, or describes a head that is not supported or not for this model.
    """
    raw = read_entries(directory)
    entries = _layer_entries(directory, raw)
    plain = {_plain_name(name): name for name in names}
    is_third = any(name.endswith(".hidden_norm.weight") for name in plain)
    kind = HeadKind.EAGLE_3 if is_third else HeadKind.EAGLE
    layers = _with_parts_of(ModelConfig.from_entries(entries, directory), plain)
    if layers.vocab_size != target.vocab_size:
        raise _failure(directory, f"vocab_size = {layers.vocab_size}: expected {target.vocab_size}, that of the model")
    native = layers.native
    if native is None:
        raise _failure(directory, f"draft heads of this kind are not supported: {layers.native_obstacle}")
    if kind is HeadKind.EAGLE:
        first = replace(native.layers[0], norms=LayerNorms(before_attention=None))
        native = replace(native, layers=(first, *native.layers[1:]))
        num_outputs, tapped = layers.vocab_size, tuple[int, ...]()
    else:
        num_outputs = _number(directory, raw, "draft_vocab_size", layers.vocab_size)
        tapped = _tapped_layers(directory, raw, target.num_layers)
    return HeadConfig(
        kind,
        replace(layers, native=native),
        tapped,
        num_outputs,
        plain,
        norms_residual=bool(raw.get("norm_before_residual", False)),
    )


def mtp_head(directory: Path, names: Collection[str], target: ModelConfig) -> HeadConfig:
    """The head in the checkpoint of a model.

    Args:
        names: of the tensors of the checkpoint.
    Raises:
        ModelLoadError: there is none, or one that is not supported.
    """
    prefix = f"{MTP}."
    own = [name for name in names if name.startswith(prefix)]
    native = target.native
    if native is None:
        raise ModelLoadError(str(directory), f"the head of this model is not supported: {target.native_obstacle}")
    if f"{prefix}fc.weight" not in own:
        raise ModelLoadError(
            str(directory),
            "the checkpoint has no multi-token prediction layer (tensors mtp.*), which draft_model = mtp needs",
        )
    num_layers = len({name.split(".")[2] for name in own if name.startswith(f"{prefix}layers.")})
    like = next((layer for layer in reversed(native.layers) if isinstance(layer.attention, AttentionConfig)), None)
    if like is None or num_layers != 1:
        raise ModelLoadError(str(directory), f"{num_layers} multi-token prediction layers: expected 1 with attention")
    plain = {
        f"{_PREFIX}{name.removeprefix(prefix)}" if ".layers." in name else name.removeprefix(prefix): name
        for name in own
    }
    layers = replace(target, num_layers=1, native=replace(native, layers=(like,)), quantization=target.quantization)
    return HeadConfig(HeadKind.MTP, layers, (), target.vocab_size, plain)


def read_entries(directory: Path) -> dict[str, Any]:
    """The content of config.json. Raises ModelLoadError if it is missing or damaged."""
    try:
        entries = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _failure(directory, f"it cannot be read: {error}") from None
    if not isinstance(entries, dict):
        raise _failure(directory, "expected a JSON object")
    return entries


def _layer_entries(directory: Path, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that describe the head's layers, as those of a model of their family."""
    inner = raw.get("transformer_layer_config") or raw.get("model")
    found = {**raw, **inner} if isinstance(inner, dict) else dict(raw)
    kind = found.get("model_type")
    if isinstance(inner, dict):
        kind = inner.get("model_type", kind)
        found["num_hidden_layers"] = raw.get("num_hidden_layers", raw.get("num_layers", 1))
    if not isinstance(kind, str) or kind not in _BASES:
        kind = next((base for base in _BASES if str(kind).startswith(base)), None)
    if kind is None:
        raise _failure(
            directory,
            f"model_type = {raw.get('model_type')!r}: expected {', '.join(_BASES)}, the layers of supported heads",
        )
    return {**found, "model_type": kind, "architectures": [_BASES[kind]]}


def _with_parts_of(layers: ModelConfig, plain: Collection[str]) -> ModelConfig:
    """The configuration with the biases and norms for which there are tensors."""
    native, part = layers.native, f"{_PREFIX}layers.0.self_attn."
    if native is None:
        return layers
    made = tuple(
        replace(
            layer,
            attention=replace(
                layer.attention,
                has_qkv_bias=f"{part}q_proj.bias" in plain,
                has_output_bias=f"{part}o_proj.bias" in plain,
                qk_norm=QkNorm.HEADS if f"{part}q_norm.weight" in plain else QkNorm.NONE,
                sliding_window=None,
            ),
        )
        for layer in native.layers
        if isinstance(layer.attention, AttentionConfig)
    )
    return replace(layers, native=replace(native, layers=made))


def _tapped_layers(directory: Path, raw: Mapping[str, Any], num_layers: int) -> tuple[int, ...]:
    inner = raw.get("eagle_config")
    given = raw.get("eagle_aux_hidden_state_layer_ids")
    if given is None and isinstance(inner, dict):
        given = inner.get("eagle_aux_hidden_state_layer_ids")
    if given is None:  # as its authors take them
        given = [2, num_layers // 2, num_layers - 3]
    if (
        not isinstance(given, list)
        or not given
        or not all(type(each) is int and 0 <= each < num_layers for each in given)  # True is none
    ):
        raise _failure(
            directory,
            f"eagle_aux_hidden_state_layer_ids = {given!r}: expected layers of the model, 0 to {num_layers - 1}",
        )
    return tuple(sorted(set(given)))


def _number(directory: Path, raw: Mapping[str, Any], name: str, most: int) -> int:
    value = raw.get(name)
    if value is None:
        return most
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
        raise _failure(directory, f"{name} = {value!r}: expected 1 to {most}")
    return value


def _plain_name(name: str) -> str:
    """The name that `DraftHead` uses: layers as in a model, everything else without a prefix."""
    plain = name.removeprefix(_PREFIX)
    if plain.startswith(_MIDDLE):
        plain = f"layers.0.{plain.removeprefix(_MIDDLE)}"
    return f"{_PREFIX}{plain}" if plain.startswith("layers.") else plain


def _failure(directory: Path, reason: str) -> ModelLoadError:
    return ModelLoadError(str(directory), f"config.json: {reason}")
