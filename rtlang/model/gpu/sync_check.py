"""Detects host synchronization that would prevent CUDA graph capture.

A function cannot be captured if a value is read back by the host (a condition on a tensor, a data-dependent shape) or a tensor is copied
from or to the host: a graph would freeze the current value, or capturing fails. The function is run once under a dispatch mode that
records such operators.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_BY_INDEX = ("aten::index", "aten::_unsafe_index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")
_COPIES = ("aten::_to_copy", "aten::copy_")
_WAITS = "synchronizing CUDA operation"  # torch's message in sync debug mode "error"


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode that records every operator that prevents capture. Operators run normally.

    Attributes:
        found: descriptions of operators with their call sites.
        last: the most recent operator.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[str] = []
        self.last = ""
        self._device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See `TorchDispatchMode`."""
        options = kwargs or {}
        with self:  # decompose composite operators, which inference_mode dispatches as a whole
            result = func.decompose(*args, **options)
        if result is not NotImplemented:
            return result
        self.last = func.name()
        if _reads_back(func, args, self._device) or _crosses(func, args, options, self._device):
            self.found.append(f"{self.last} ({_caller()})")
        return func(*args, **options)


def obstacle(function: Callable[[], object], device: torch.device) -> str | None:
    """Run a function; returns a description of what prevents capturing it, or None."""
    watch = Watch(device)
    try:
        with watch:
            function()
    except RuntimeError as error:
        if _WAITS not in str(error):
            raise
        watch.found.append(f"{watch.last} synchronizes with the device")
    more = f" and {len(watch.found) - 1} more" if len(watch.found) > 1 else ""
    return watch.found[0] + more if watch.found else None


def _reads_back(func: Any, args: Any, device: torch.device) -> bool:
    if not any(tensor.device.type == device.type for tensor in _tensors(args)):
        return False  # host scalars
    name = func.name().partition(".")[0]
    if name in _BY_INDEX:
        return any(index.dtype in (torch.bool, torch.uint8) for index in _tensors(args[1]))
    return any(tag in func.tags for tag in (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape))


def _crosses(func: Any, args: Any, kwargs: Any, device: torch.device) -> bool:
    if device.type == "cpu" or func.name().partition(".")[0] not in _COPIES:
        return False
    target = kwargs.get("device") if kwargs.get("device") is not None else args[0].device
    source = args[1] if func.name().startswith("aten::copy_") else args[0]
    return bool(torch.device(target).type != source.device.type)


def _tensors(found: Any) -> Iterator[Tensor]:
    if isinstance(found, Tensor):
        yield found
    elif isinstance(found, Iterable) and not isinstance(found, str):
        for part in found:
            yield from _tensors(part)


def _caller() -> str:
    """File and line of the innermost caller outside torch."""
    folder = str(Path(torch.__file__).parent)
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith(folder) and frame.filename != __file__:
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "?"
