"""Graphs as a GPU captures them, on CPU tensors: what a function launched is recorded, and a replay does just that again.

No Python of the function runs in a replay, so a number that it worked out, or a tensor that it made elsewhere, stays what it was; memory
that it only allocated holds NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from triton.runtime.interpreter import GridExecutor

from rtlang.model.gpu.accelerator import InterpretedAccelerator

Action = Callable[[], None]


class RecordedGraphs(InterpretedAccelerator):
    """The interpreter with graphs that are recorded. `num_actions` is how many operators and kernels they hold."""

    num_actions = 0

    def capture(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """See `Accelerator`."""
        tape = _Tape()
        with tape:
            result = function()
        actions = tape.actions
        self.num_actions += len(actions)

        def replay() -> Tensor:
            for action in actions:
                action()
            return result

        return replay


class _Tape(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.actions: list[Action] = []
        self._launch = GridExecutor.__call__

    def __enter__(self) -> _Tape:
        tape, launch = self, self._launch

        def recorded(executor: Any, *args: Any, **options: Any) -> None:
            def again() -> None:
                launch(executor, *args, **options)

            tape.actions.append(again)
            with _disable_current_modes():  # what the interpreter does itself is not part of the graph
                again()

        GridExecutor.__call__ = recorded
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        GridExecutor.__call__ = self._launch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        result = func(*args, **options)
        known = {tensor.untyped_storage().data_ptr() for tensor in _tensors((args, options))}
        made = [tensor for tensor in _tensors(result) if tensor.untyped_storage().data_ptr() not in known]
        is_empty = "empty" in func.name()
        if not made and not func._schema.is_mutable:
            return result  # a view of what is there

        def again() -> None:
            if is_empty:
                for tensor in made:
                    tensor.fill_(torch.nan if tensor.is_floating_point() else 0)
                return
            found = list(_tensors(func(*args, **options)))
            if made:
                for target, source in zip(made, found, strict=True):
                    target.copy_(source)

        self.actions.append(again)
        return result


def _tensors(found: Any) -> Iterator[Tensor]:
    if isinstance(found, Tensor):
        yield found
    elif isinstance(found, (tuple, list)):
        for part in found:
            yield from _tensors(part)
    elif isinstance(found, dict):
        yield from _tensors(list(found.values()))
