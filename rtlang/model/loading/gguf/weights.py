"""The weights of a GGUF file by the names of transformers; implements `CheckpointWeights`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.architectures import Architecture
from rtlang.model.loading.gguf.configs import architecture_of, fields_of, num_blocks
from rtlang.model.loading.gguf.container import GgufFile
from rtlang.model.loading.gguf.rope_entries import FACTORS, LONG_FACTORS, SHORT_FACTORS
from rtlang_kernels.contract.low_bit import LowBitWeight
from rtlang_kernels.reference.low_bit import exact_rows

_IN_A_LAYER = re.compile(r"blk\.(\d{1,5})\.(.+)")
_OF_ONE_EXPERT = re.compile(r"(ffn_(?:gate|up|down))\.(\d{1,5})\.weight")  # in files of 2023
_NOT_WEIGHTS = frozenset((FACTORS, LONG_FACTORS, SHORT_FACTORS))
_ROTATIONS = "attn_rot_embd.weight"  # of a layer, in files of 2023
_NORM = re.compile(r"norm\d?\.weight")
_MAX_STACK = 1 << 16
_ELEMENTS = 1 << 20  # that are multiplied out at a time


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a weight comes from.

    Attributes:
        tensors: names in the file; more than one only with `join`.
        shape: of the weight.
        part: of a stack, which one.
        rows: int64: row i is row rows[i] of the tensor; None where it is row i.
        subtracted: from all elements.
        join: makes the weight from all tensors, in float32.
    """

    tensors: tuple[str, ...]
    shape: tuple[int, ...]
    part: int | None = None
    rows: NDArray[np.int64] | None = None
    subtracted: float = 0.0
    join: Callable[[Sequence[Tensor]], Tensor] | None = None


class GgufWeights:
    """The weights of a model in a GGUF file.

    Args:
        file: stays open.
        config: the entries that `config_entries` makes of its metadata.
    Raises:
        ModelLoadError: a tensor has no place in a model of the architecture, or a stack has another number of parts than metadata say.
    """

    def __init__(self, file: GgufFile, config: Mapping[str, Any]) -> None:
        self._file, self._path = file, str(file.paths[0])
        self._origins = _Origins(file, architecture_of(fields_of(file)), config).found

    def names(self) -> Collection[str]:
        """See `CheckpointWeights`."""
        return self._origins.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """See `CheckpointWeights`."""
        return self._origin(name).shape

    def num_bytes(self, name: str) -> int:
        """See `CheckpointWeights`."""
        origin = self._origin(name)
        found = sum(self._file.tensors[each].num_bytes for each in origin.tensors)
        return found if origin.part is None else found // self._file.tensors[origin.tensors[0]].shape[0]

    def low_bit(self, name: str) -> LowBitWeight | None:
        """See `CheckpointWeights`."""
        origin = self._origin(name)
        is_whole = origin.join is None and not origin.subtracted and len(origin.shape) == 2
        tensor = origin.tensors[0]
        entry = self._file.tensors[tensor]
        if not is_whole or entry.kind.format is None or len(entry.shape) - (origin.part is not None) != 2:
            return None
        return self._file.weight(tensor, expert=origin.part, rows=origin.rows)

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        """See `CheckpointWeights`."""
        origin = self._origin(name)
        if origin.join is not None:
            found = origin.join([self._floats(each, None, None).float() for each in origin.tensors])
        else:
            found = self._floats(origin.tensors[0], origin.part, origin.rows)
        if origin.subtracted:
            found = found.float() - origin.subtracted
        return found.view(origin.shape).to(dtype)

    def _floats(self, name: str, part: int | None, rows: NDArray[np.int64] | None) -> Tensor:
        """A tensor of the file, or one part of it, with its rows in order."""
        entry = self._file.tensors[name]
        is_matrix = entry.kind.format is not None and len(entry.shape) - (part is not None) == 2
        if is_matrix and (part is not None or rows is not None):
            return multiplied_out(self._file.weight(name, expert=part, rows=rows))
        found = self._file.tensor(name)
        if not found.is_floating_point():
            raise ModelLoadError(
                entry.path, f"tensor {name} is {entry.kind.name}: expected floats or quantized weights"
            )
        if part is not None:
            found = found[part]
        return found if rows is None else found[torch.from_numpy(rows)]

    def _origin(self, name: str) -> _Origin:
        found = self._origins.get(name)
        if found is None:
            raise ModelLoadError(self._path, f"the weights do not contain tensor {name}")
        return found


class _Origins:
    """Finds the origin of each weight of a model."""

    def __init__(self, file: GgufFile, architecture: Architecture, config: Mapping[str, Any]) -> None:
        self._file, self._architecture, self._config = file, architecture, config
        self._path, self._left = str(file.paths[0]), dict.fromkeys(file.tensors)
        self._num_blocks = num_blocks(fields_of(file))
        self.found: dict[str, _Origin] = {}
        self._join()
        for name in self._left:
            self._place(name)

    def _place(self, name: str) -> None:
        """Find the weights that a tensor holds."""
        if name in _NOT_WEIGHTS:
            return
        match = _IN_A_LAYER.fullmatch(name)
        if match is None:
            self._add(self._named(self._architecture.outer, name, name), name, name)
            return
        layer, rest = int(match[1]), match[2]
        if layer >= self._num_blocks:
            raise ModelLoadError(
                self._path,
                f"tensor {name} is unexpected: the file has {self._num_blocks} layers according to its metadata",
            )
        if layer >= self._config["num_hidden_layers"] or rest == _ROTATIONS:
            return
        single = _OF_ONE_EXPERT.fullmatch(rest)
        if single is not None:
            stacked = self._named(self._architecture.stems, f"{single[1]}_exps.weight", name)
            self._add(f"model.layers.{layer}.{stacked.replace('@', str(int(single[2])))}", name, rest)
            return
        self._add(f"model.layers.{layer}.{self._named(self._architecture.stems, rest, name)}", name, rest)

    def _named(self, table: Mapping[str, str], rest: str, name: str) -> str:
        """The name in transformers of what `rest` names in the file."""
        stem, _, suffix = rest.rpartition(".")
        if rest in table:
            return table[rest]
        if stem not in table or suffix not in ("weight", "bias"):
            raise self._unexpected(name)
        return f"{table[stem]}.{suffix}"

    def _add(self, target: str, name: str, rest: str) -> None:
        shape = self._file.tensors[name].shape
        subtracted = 1.0 if self._architecture.has_norms_plus_one and _NORM.search(rest) else 0.0
        if "@" not in target:
            if target.endswith("shared_expert_gate.weight") and len(shape) == 1:
                shape = (1, *shape)
            self._put(target, _Origin((name,), shape, rows=self._rows(rest, shape), subtracted=subtracted))
            return
        expected = self._stack_size(target)
        if len(shape) < 2 or shape[0] != expected or expected > _MAX_STACK:
            raise ModelLoadError(
                self._path, f"tensor {name} has shape {list(shape)}: expected {expected} parts, the first dimension"
            )
        for part in range(expected):
            self._put(target.replace("@", str(part)), _Origin((name,), shape[1:], part, subtracted=subtracted))

    def _put(self, target: str, origin: _Origin) -> None:
        if target in self.found:
            raise ModelLoadError(
                self._path,
                f"tensors {self.found[target].tensors[0]} and {origin.tensors[0]} are the same weight of the model",
            )
        self.found[target] = origin

    def _stack_size(self, target: str) -> int:
        """Number of parts in the stack of a weight."""
        config = self._config
        if ".q_layernorm." in target:
            return int(config["num_attention_heads"])
        if ".k_layernorm." in target:
            return int(config["num_key_value_heads"])
        names = ("num_experts", "num_local_experts", "n_routed_experts")
        return next((int(config[name]) for name in names if name in config), 0)

    def _rows(self, rest: str, shape: tuple[int, ...]) -> NDArray[np.int64] | None:
        """The order in which a tensor has the rows of q or k."""
        heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}.get(rest.partition(".")[0])
        if not self._architecture.has_interleaved_heads or heads is None:
            return None
        num_heads = int(self._config[heads])
        if shape[0] % (2 * num_heads):
            raise ModelLoadError(
                self._path, f"tensor {rest} has shape {list(shape)}: expected outputs of {num_heads} heads of even size"
            )
        # [head, place, half] in the file
        order = np.arange(shape[0], dtype=np.int64).reshape(num_heads, -1, 2)
        return np.ascontiguousarray(order.transpose(0, 2, 1)).reshape(-1)

    def _join(self) -> None:
        """Find the weights that are made from two tensors."""
        for layer in range(self._config["num_hidden_layers"]):
            block, own = f"blk.{layer}.", f"model.layers.{layer}."
            keys, values = block + "attn_k_b.weight", block + "attn_v_b.weight"
            if self._has(keys, values, num_dims=3):
                (num_heads, rank, key_size), value_shape = (self._file.tensors[each].shape for each in (keys, values))
                if value_shape[0] != num_heads or value_shape[2] != rank:
                    raise ModelLoadError(
                        self._path,
                        f"tensor {values} has shape {list(value_shape)}: expected [{num_heads}, sizes, {rank}]",
                    )
                shape = num_heads * (key_size + value_shape[1]), rank
                self._put(own + "self_attn.kv_b_proj.weight", _Origin((keys, values), shape, join=_joined_latent))
                self._take(keys, values)
            gates, ups = block + "ffn_gate_exps.bias", block + "ffn_up_exps.bias"
            if self._architecture.model_type != "gpt_oss" or not self._has(gates, ups, num_dims=2):
                continue
            count, size = self._file.tensors[gates].shape
            if self._file.tensors[ups].shape != (count, size):
                raise ModelLoadError(self._path, f"tensor {ups}: expected the shape of {gates}, {[count, size]}")
            experts = own + "mlp.experts."
            self._put(experts + "gate_up_proj_bias", _Origin((gates, ups), (count, 2 * size), join=_in_turns))
            down = block + "ffn_down_exps.bias"
            if self._has(down, num_dims=2):
                self._put(experts + "down_proj_bias", _Origin((down,), self._file.tensors[down].shape))
                self._take(down)
            self._take(gates, ups)

    def _has(self, *names: str, num_dims: int) -> bool:
        return all(each in self._file.tensors and len(self._file.tensors[each].shape) == num_dims for each in names)

    def _take(self, *names: str) -> None:
        for name in names:
            del self._left[name]

    def _unexpected(self, name: str) -> ModelLoadError:
        shown = repr(name[:80]) if not name.isprintable() or len(name) > 80 else name
        return ModelLoadError(
            self._path,
            f"tensor {shown} is unexpected in a model of architecture {self._file.metadata['general.architecture']}",
        )


def multiplied_out(weight: LowBitWeight) -> Tensor:
    """All elements of a weight: float32 [out, in]."""
    num_outputs, num_inputs = weight.shape
    found = torch.empty(num_outputs, num_inputs)
    step = max(1, _ELEMENTS // num_inputs)
    for first in range(0, num_outputs, step):
        last = min(first + step, num_outputs)
        found[first:last] = exact_rows(weight.format, weight.rows(first, last))
    return found


def _joined_latent(parts: Sequence[Tensor]) -> Tensor:
    """kv_b [heads * (key size + value size), rank] from its keys [heads, rank, key size] and values [heads, value size, rank]."""
    keys, values = parts
    return torch.cat([keys.transpose(1, 2), values], 1).reshape(-1, values.shape[-1])


def _in_turns(parts: Sequence[Tensor]) -> Tensor:
    """[experts, 2 * size] from two [experts, size], whose elements alternate."""
    return torch.stack(list(parts), -1).flatten(1)
