"""Loads models of `transformers` whose matrices have few bits, without a float copy of one.

The library constructs the model without memory. Matrices that the checkpoint stores in few bits, and that a linear layer, an embedding or
experts use, are taken out of it; the library then loads the other tensors as it loads any checkpoint: with its conversions of names, its
dtypes and its tied weights. Last, the matrices are packed one at a time into layers that stand in for the modules.

Names of published checkpoints work as they do with the library. Experts are matrices of their own, see `CheckpointWeights`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rtlang.cache.system_memory import trim_heap
from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.expert_parts import ExpertParts, expert_name
from rtlang.model.decoders.transformers_loading import check_found, forget_quantization, renamed_class, text_half
from rtlang.model.layers.linear import Linear, PackedEmbedding, own_memory
from rtlang.model.layers.low_bit_modules import LowBitModule
from rtlang.model.layers.packed_experts import is_experts
from rtlang.model.layers.weight_source import CheckpointWeights
from rtlang.model.loading.published import first_line, media, model_class
from rtlang_kernels.contract.low_bit import LinearInputs, LowBitWeight

_TRIM_BYTES = 128 << 20  # of weights that are packed until the C library gives freed memory back


def load_weights(
    directory: Path,
    weights: CheckpointWeights,
    config: Any,
    dtype: torch.dtype,
    device: torch.device | None,
    on_progress: Callable[[float], None] = lambda fraction: None,
    *,
    keeps_codes: bool = True,
    inputs: LinearInputs = LinearInputs.INT8,
) -> Any:
    """Construct the `transformers` model with its stock attention and with the weights of a checkpoint as they are stored.

    Args:
        weights: they are read from several threads, one at a time.
        dtype: of inputs, and of weights that are floats.
        device: of the packed layers; the other tensors are on the CPU. Default: the CPU.
        on_progress: called with the fraction of bytes read so far, from the thread that has read them.
        keeps_codes: otherwise all weights are multiplied out.
        inputs: see `Linear.of_parts`; float8 is not for experts, whose inputs stay floats then.
    Raises:
        ModelLoadError: the library cannot construct the model, the checkpoint lacks tensors, or a tensor has another shape than the
            model's; names the tensor.
    """
    forget_quantization(config)
    plan = _LowBitPlan(_Reader(weights, on_progress, keeps_codes=keeps_codes), dtype)
    try:
        kind = text_half(model_class(config)) if media(config) else model_class(config)
        model, found = plan.class_without(kind).from_pretrained(
            None,
            config=config,
            state_dict=plan.floats,
            dtype=dtype,
            attn_implementation="eager",
            trust_remote_code=False,
            output_loading_info=True,
        )
        check_found(directory, found)
        plan.pack(model, device or torch.device("cpu"), inputs)
        return model
    except ModelLoadError:
        raise
    except _PlanError as error:
        raise ModelLoadError(str(directory), str(error)) from None
    except Exception as error:  # third-party code of any model type may raise anything
        raise ModelLoadError(
            str(directory), f"transformers cannot load model type {config.model_type!r}: {first_line(error)}"
        ) from error


class _PlanError(Exception):
    """The checkpoint does not fit the model."""


class _Reader:
    """The weights of a checkpoint, which are read by one thread at a time, and what has been read of them.

    Attributes:
        keeps_codes: whether layers compute with the codes of weights of few bits.
        code_shapes: the shapes of these, by name.
    """

    def __init__(self, weights: CheckpointWeights, on_progress: Callable[[float], None], *, keeps_codes: bool) -> None:
        self._weights, self._on_progress, self.keeps_codes = weights, on_progress, keeps_codes
        # asked here, since the library constructs models with another default device and dtype
        found = {name: self.low_bit(name) for name in weights.names()} if keeps_codes else {}
        self.code_shapes = {name: tuple(weight.shape) for name, weight in found.items() if weight is not None}
        self._total, self._done, self._lock = max(1, sum(map(weights.num_bytes, weights.names()))), 0, threading.Lock()
        self._num_packed = 0  # bytes since freed memory was given back

    def names(self) -> Collection[str]:
        """See `CheckpointWeights`."""
        return self._weights.names()

    def low_bit(self, name: str) -> LowBitWeight | None:
        """See `CheckpointWeights`; None if all weights are multiplied out."""
        return self._weights.low_bit(name) if self.keeps_codes else None

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        """See `CheckpointWeights`."""
        with self._lock:
            return self._weights.tensor(name, dtype)

    def note(self, name: str) -> None:
        """Account for a weight that has been read."""
        with self._lock:
            self._done += self._weights.num_bytes(name)
            self._on_progress(min(1.0, self._done / self._total))

    def note_packed(self, name: str) -> None:
        """Account for a weight that has been packed, and give freed memory back now and then."""
        self.note(name)
        self._num_packed += self._weights.num_bytes(name)
        if self._num_packed >= _TRIM_BYTES:
            trim_heap()
            self._num_packed = 0


class _LazyTensor:
    """A float tensor of a checkpoint that is read when the library indexes it."""

    def __init__(self, reader: _Reader, name: str, dtype: torch.dtype) -> None:
        self._reader, self._name, self._dtype = reader, name, dtype

    def __getitem__(self, index: Any) -> Tensor:
        found = self._reader.tensor(self._name, self._dtype)[index]
        self._reader.note(self._name)
        return found


class _LowBitPlan:
    """Which weights of a checkpoint stay as they are stored, by their places in the model.

    Attributes:
        floats: tensors for the library to load, by their names in the checkpoint; filled when the model is constructed.
    """

    def __init__(self, reader: _Reader, dtype: torch.dtype) -> None:
        self._reader, self._dtype = reader, dtype
        self.floats: dict[str, _LazyTensor] = {}
        self._matrices: dict[str, tuple[str, torch.dtype]] = {}  # by parameter: name in the checkpoint, dtype of inputs
        self._tied: dict[str, str] = {}  # parameter to the one whose matrix it uses
        self._experts: dict[str, ExpertParts] = {}  # by module

    def class_without(self, kind: Any) -> Any:
        """A class of `transformers` whose only instance lacks the matrices of few bits; constructing it fills `floats`."""
        plans = [self]  # taken from it: the class lives as long as the model, but a plan holds the files

        class WithoutLowBit(kind):  # type: ignore[misc]
            def __init__(self, config: Any, *args: Any, **options: Any) -> None:
                super().__init__(config, *args, **options)
                plans.pop()._take_out(self)

        return renamed_class(WithoutLowBit, kind)

    def _take_out(self, model: Any) -> None:
        state: dict[str, Tensor] = model.state_dict(keep_vars=True)
        modules = {path: module for path, module in model.named_modules() if is_experts(module)}
        target_of, experts = self._targets(model, state, modules)
        dtypes = _Dtypes(model, self._dtype, state)
        self._take_experts(model, experts, target_of)
        for name, target in target_of.items():
            if target in state and _accepts_codes(model, target) and self._has_few_bits(name, state[target].shape):
                if target in self._matrices:
                    raise _PlanError(f"tensors {self._matrices[target][0]} and {name} are the same weight of the model")
                self._matrices[target] = name, dtypes.of(target)
        for target in self._matrices:
            _remove(model, target)
        taken = {name for name, _ in self._matrices.values()}
        self._take_tied(model, {target for name, target in target_of.items() if name not in taken})
        for parts in self._experts.values():
            taken.update(parts.names())
        for name in self._reader.names():
            if name not in taken:
                dtype = dtypes.of(target_of.get(name, ""))
                self.floats[name] = _LazyTensor(self._reader, name, dtype)

    def _targets(
        self, model: Any, state: dict[str, Tensor], modules: dict[str, Any]
    ) -> tuple[dict[str, str], dict[str, ExpertParts]]:
        """The parameters of the weights that the library only renames, by name, and the matrices of experts by module."""
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import WeightConverter, WeightRenaming, apply_renamings, rename_source_key

        conversions = get_model_conversion_mapping(model)
        renamings = [each for each in conversions if isinstance(each, WeightRenaming)]
        converters = [each for each in conversions if isinstance(each, WeightConverter)]
        prefix = model.base_model_prefix
        target_of: dict[str, str] = {}
        experts: dict[str, ExpertParts] = {}
        for name in sorted(self._reader.names()):
            target, pattern = rename_source_key(name, renamings, converters, prefix, state)
            if target not in state and name in state:
                target, pattern = name, None
            if pattern is None or target not in state:
                target_of[name] = target
            found = expert_name(apply_renamings(name, renamings)) if expert_name(name) else None
            if found is None:
                continue
            for path in (found[0], f"{prefix}.{found[0]}"):
                if path in modules:
                    if path not in experts:
                        experts[path] = ExpertParts(path, modules[path])
                    _checked(experts[path].add, *found[1:], name)
                    break
        return target_of, experts

    def _has_few_bits(self, name: str, shape: torch.Size) -> bool:
        found = self._reader.code_shapes.get(name)
        if found is not None and found != tuple(shape):
            raise _PlanError(f"tensor {name} has shape {list(found)}, but config.json implies {list(shape)}")
        return found is not None

    def _take_experts(self, model: Any, experts: dict[str, ExpertParts], target_of: dict[str, str]) -> None:
        """Take out the matrices of experts one of which has few bits, or a name that the library does not know."""
        name_of = {target: name for name, target in target_of.items()}
        for path, parts in experts.items():
            is_unknown = any(name in target_of for name in parts.matrices())
            if not is_unknown and not any(name in self._reader.code_shapes for name in parts.matrices()):
                continue
            if not self._reader.keeps_codes:
                raise _PlanError(f"ranks cannot divide the experts {path}, which have names of their own in the files")
            for parameter in parts.parameters:
                if f"{path}.{parameter}" in name_of:
                    parts.add_stacked(parameter, name_of[f"{path}.{parameter}"])
            _checked(parts.check)
            self._experts[path] = parts
            for parameter in parts.parameters:
                _remove(model, f"{path}.{parameter}")

    def _take_tied(self, model: Any, floats: set[str]) -> None:
        """Take out parameters that are tied to a matrix of few bits; a checkpoint that has both is not tied.

        Args:
            floats: parameters that the checkpoint has as floats.
        """
        ties: dict[str, str] = model.all_tied_weights_keys
        while True:
            held = self._matrices.keys() | self._tied.keys()
            target = next((target for target, source in ties.items() if held & {target, source}), None)
            if target is None:
                return
            pair = {target, ties.pop(target)}
            (owner, *_) = sorted(self._tied.get(each, each) for each in pair & held)
            for other in pair - held - floats:
                if not _accepts_codes(model, other):
                    raise _PlanError(f"weight {other} is tied to one of few bits, with which its module cannot compute")
                self._tied[other] = owner
                _remove(model, other)

    def pack(self, model: Any, device: torch.device, inputs: LinearInputs) -> None:
        """Put packed layers in the places of the matrices that were taken out.

        Raises:
            ModelLoadError: a weight cannot be read.
        """
        for target, (name, dtype) in self._matrices.items():
            weight = self._reader.low_bit(name)
            assert weight is not None
            layers: dict[str, Linear] = {}  # one for all tied weights without a bias
            for place in (target, *(each for each, owner in self._tied.items() if owner == target)):
                bias = _bias_of(model, place, device)
                key = "" if bias is None else place
                try:
                    if key not in layers:
                        layers[key] = Linear.of_parts([weight], bias, dtype=dtype, device=device, inputs=inputs)
                except ValueError as error:
                    raise _PlanError(f"tensor {name}: {error}") from None
                _put(model, place, layers[key], dtype, bias, device)
            self._reader.note_packed(name)
        for path, parts in self._experts.items():
            stock = model.get_submodule(path)
            for parameter in parts.parameters:
                delattr(stock, parameter)
            made = _checked(
                partial(parts.pack, has_float_inputs=inputs is not LinearInputs.INT8),
                stock,
                self._reader,
                self._dtype,
                device,
            )
            parent, _, leaf = path.rpartition(".")
            setattr(model.get_submodule(parent), leaf, made)
        trim_heap()


class _Dtypes:
    """The dtypes in which a model keeps its tensors, as the library decides."""

    def __init__(self, model: Any, dtype: torch.dtype, state: dict[str, Tensor]) -> None:
        self._dtype, self._state = dtype, state
        plan: dict[str, torch.dtype] = model._get_dtype_plan(dtype)
        self._plan = [(re.compile(pattern.replace("*", ".*")), planned) for pattern, planned in plan.items()]

    def of(self, target: str) -> torch.dtype:
        """The dtype of a parameter or buffer, or of what becomes one."""
        for pattern, planned in self._plan:
            if pattern.search(target):
                return planned
        return self._state[target].dtype if target in self._state else self._dtype


def _checked(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except ValueError as error:
        raise _PlanError(str(error)) from None


def _accepts_codes(model: Any, parameter: str) -> bool:
    """Whether a parameter is the matrix of a module that packed layers can stand in for."""
    path, _, leaf = parameter.rpartition(".")
    module = model.get_submodule(path)
    is_embedding = isinstance(module, torch.nn.Embedding) and module.max_norm is None
    return leaf == "weight" and (type(module) is torch.nn.Linear or is_embedding)


def _remove(model: Any, parameter: str) -> None:
    """Leave a parameter without memory, which the library neither expects in the checkpoint nor initializes.

    The module is initialized nevertheless, since it may have buffers that no checkpoint has.
    """
    path, _, leaf = parameter.rpartition(".")
    module = model.get_submodule(path)
    module.get_parameter(leaf)._is_hf_initialized = True

    def hide(_: Any, state: dict[str, Tensor], prefix: str, __: Any) -> None:
        state.pop(prefix + leaf, None)

    module.register_state_dict_post_hook(hide)


def _bias_of(model: Any, parameter: str, device: torch.device) -> Tensor | None:
    bias = getattr(model.get_submodule(parameter.rpartition(".")[0]), "bias", None)
    return None if bias is None else own_memory(bias.detach()).to(device)


def _put(
    model: Any, parameter: str, linear: Linear, dtype: torch.dtype, bias: Tensor | None, device: torch.device
) -> None:
    """Let the module of `parameter` compute with a packed layer."""
    path = parameter.rpartition(".")[0]
    module = model.get_submodule(path)
    if isinstance(module, torch.nn.Embedding):
        del module.weight
        module.weight = PackedEmbedding.of(linear, dtype, device)
        return
    parent, _, leaf = path.rpartition(".")
    setattr(model.get_submodule(parent), leaf, LowBitModule(linear, dtype, bias))
