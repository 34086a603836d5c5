"""Finds the recurrent modules of a model of `transformers` and puts them on the states of a step.

A module is recurrent if its code writes states into the library's cache. If it computes them with functions that have an equal over state
slots (`primitives`), it becomes an instance of a private subclass that calls these. A cache that holds nothing is passed to it, so that it
asks for a state by its functions only. Others are refused by the name of the function or state that has no equal.
"""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rtlang.model.decoders.recurrent import lightning
from rtlang.model.decoders.recurrent.primitives import MixerStates, RecurrentStep
from rtlang.model.decoders.recurrent.private_class import methods_of, names_used, weights_read, with_functions
from rtlang.model.layers.low_bit_modules import LowBitModule
from rtlang.model.layers.states import StateShape

_CACHES = "cache", "cache_params", "past_key_values"
_WRITES = {"update_conv_state": ("causal_conv1d_fn",), "update_recurrent_state": ()}
_SCANS = "torch_chunk_gated_delta_rule", "chunk_kimi_delta_attention", "mamba2_chunk_scan", "mamba_selective_scan"


class EmptyCache:
    """Stands in for the library's cache: it has no state, and what is written goes nowhere."""

    def get_conv_state(self, *_: Any, **__: Any) -> None:
        """No state: the function that follows has it."""

    def get_recurrent_state(self, *_: Any, **__: Any) -> None:
        """No state: the function that follows has it."""

    def update_conv_state(self, conv_states: Tensor, *_: Any, **__: Any) -> Tensor:
        """The new inputs alone."""
        return conv_states

    def update_recurrent_state(self, recurrent_states: Tensor, *_: Any, **__: Any) -> Tensor:
        """Nothing is kept."""
        return recurrent_states

    def is_recording_past(self, *_: Any) -> bool:
        """Never."""
        return False


_EMPTY = EmptyCache()


class Mixers:
    """The recurrent modules of one model, in their order in the model."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.step = RecurrentStep()
        self._modules = recurrent_modules(model)
        self._states = [MixerStates(layer) for layer in range(len(self._modules))]

    def __bool__(self) -> bool:
        return bool(self._modules)

    @property
    def shapes(self) -> tuple[StateShape, ...]:
        """The tensors of a state, after a pass without a step."""
        return tuple(shape for states in self._states for shape in states.shapes.values())

    def obstacle(self) -> str | None:
        """Why the modules cannot be put on state slots; None if they can."""
        for module in self._modules:
            missing = _missing_function(type(module))
            if missing is not None:
                return f"{type(module).__name__} {missing}"
        return None

    def unpackable(self) -> list[torch.nn.Module]:
        """The linear layers inside of the modules whose weights their code reads."""
        children = (getattr(module, name, None) for module, name in self._reads())
        return [child for child in children if isinstance(child, torch.nn.Linear)]

    def multiply_out(self) -> None:
        """Replace layers of few bits whose weights the code of a module reads by float layers."""
        for module, name in self._reads():
            child = getattr(module, name, None)
            if isinstance(child, LowBitModule):
                setattr(module, name, child.multiplied_out())

    def _reads(self) -> list[tuple[torch.nn.Module, str]]:
        return [(module, name) for module in self._modules for name in sorted(weights_read(type(module)))]

    def exact_constants(self) -> AbstractContextManager[None]:
        """A context in which constants of the modules are in float32, whatever the dtype of the model."""
        return lightning.exact_decays(self._lightning())

    def _lightning(self) -> list[torch.nn.Module]:
        return [module for module in self._modules if lightning.is_lightning(type(module))]

    def take_over(self) -> None:
        """Put the modules on the states of `step`, in place."""
        lightning.keep_exact_slopes(self._lightning())
        made: dict[type, type] = {}
        for module, states in zip(self._modules, self._states, strict=True):
            kind = type(module)
            if kind not in made:
                made[kind] = _over_states(kind, self.step)
            module.__class__ = made[kind]
            module.rtlang_states = states  # type: ignore[assignment]


def recurrent_modules(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The modules of a model whose code writes states into a cache."""
    kinds: dict[type, bool] = {}
    found = []
    for module in model.modules():
        kind = type(module)
        if kind not in kinds:
            kinds[kind] = lightning.is_lightning(kind) or (
                not hasattr(kind, "prepare_inputs_for_generation") and bool(names_used(kind) & set(_WRITES))
            )
        if kinds[kind]:
            found.append(module)
    return found


def in_dtype(shapes: tuple[StateShape, ...], dtype: torch.dtype) -> tuple[StateShape, ...]:
    """The shapes of the same states with inputs of convolutions in `dtype`; matrices are float32 in any case."""
    return tuple(each if each.dtype is torch.float32 else replace(each, dtype=dtype) for each in shapes)


def _missing_function(kind: type) -> str | None:
    if lightning.is_lightning(kind):
        return None
    names = names_used(kind)
    if "update_conv_state" in names and "causal_conv1d_fn" not in names:
        return "keeps inputs for something else than a short convolution"
    if "update_recurrent_state" in names and not names.intersection(_SCANS):
        return "computes its state by a function that has no equal over state slots"
    return None


def _over_states(kind: type, step: RecurrentStep) -> type:
    """The private subclass of a recurrent module's class."""
    if lightning.is_lightning(kind):
        return with_functions(kind, {}, forward=lightning.forward_over(step))
    stock = dict(methods_of(kind))["forward"]
    parameters = inspect.signature(stock).parameters
    names = [name for name in parameters if name != "self"]
    (cache_name,) = (name for name in _CACHES if name in parameters)
    dropped = {cache_name, "attention_mask"}
    known = {name for name in names if parameters[name].kind is not inspect.Parameter.VAR_KEYWORD} - dropped

    def forward(self: Any, *args: Any, **options: Any) -> Any:
        given = {**dict(zip(names, args, strict=False)), **options}
        given = {name: given[name] for name in given if name in known}
        given[cache_name] = _EMPTY
        return step.run(self.rtlang_states, lambda: self.stock_forward(**given))

    return with_functions(kind, step.functions, forward=forward)
