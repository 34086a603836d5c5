"""Whether a function only launches work on a device, so that a graph of it can be captured: found by running it once under watch.

What stands in the way is a value that comes back to the host (a condition on a tensor, a shape that depends on values), or a tensor that
is copied from or to the host. A graph would hold the value of the moment, or cannot be captured at all.
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
_WAITS = "synchronizing CUDA operation"  # torch's words, where its sync debug mode is "error"


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, notes every operator that keeps a graph from being captured. Operators run as they would otherwise.

    Attributes:
        found: for people, each operator with the place in the code that called it.
        last: the operator that ran last.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[str] = []
        self.last = ""
        self._device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See `TorchDispatchMode`."""
        options = kwargs or {}
        with self:  # what is made of other operators is looked into: under inference_mode it comes whole
            result = func.decompose(*args, **options)
        if result is not NotImplemented:
            return result
        self.last = func.name()
        if _reads_back(func, args, self._device) or _crosses(func, args, options, self._device):
            self.found.append(f"{self.last} ({_caller()})")
        return func(*args, **options)


def obstacle(function: Callable[[], object], device: torch.device) -> str | None:
    """Run a function; what keeps a graph of it from being captured, for people; None if nothing does."""
    watch = Watch(device)
    try:
        with watch:
            function()
    except RuntimeError as error:
        if _WAITS not in str(error):
            raise
        watch.found.append(f"{watch.last} waits for the device")
    more = f" and {len(watch.found) - 1} more" if len(watch.found) > 1 else ""
    return watch.found[0] + more if watch.found else None


def _reads_back(func: Any, args: Any, device: torch.device) -> bool:
    if not any(tensor.device.type == device.type for tensor in _tensors(args)):
        return False  # the host's own numbers
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
    """The line of code, outside torch, that led here."""
    folder = str(Path(torch.__file__).parent)
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith(folder) and frame.filename != __file__:
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "?"
