"""Permission to use matrix tiles, through a pretended system."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable

import pytest

from rtlang_kernels.host import tile_permission
from rtlang_kernels.host.processor import processor
from rtlang_kernels.host.tile_permission import tile_refusal

REQUEST, GET = 0x1023, 0x1022


def system(request: int = 0, get: int = 0, granted: int = 1 << 18) -> tuple[Callable[..., int], list[tuple[int, ...]]]:
    """A syscall function whose two operations end with these errors or 0, and its calls."""
    calls: list[tuple[int, ...]] = []

    def syscall(number: ctypes.c_long, operation: ctypes.c_ulong, argument: object) -> int:
        assert number.value == 158
        error = {REQUEST: request, GET: get}[operation.value]
        if operation.value == REQUEST:
            assert isinstance(argument, ctypes.c_ulong)
            assert argument.value == 18
        else:
            ctypes.cast(argument, ctypes.POINTER(ctypes.c_uint64))[0] = granted  # type: ignore[arg-type]
        calls.append((operation.value, error))
        ctypes.set_errno(error)
        return -1 if error else 0

    return syscall, calls


def test_permission_is_requested_and_confirmed() -> None:
    syscall, calls = system()
    assert tile_permission._refusal(syscall) is None
    assert [operation for operation, _ in calls] == [REQUEST, GET]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"request": errno.EPERM}, "Linux refused permission: Operation not permitted"),
        ({"request": errno.EOPNOTSUPP}, "Linux refused permission: Operation not supported"),
        ({"get": errno.EINVAL}, "Linux did not confirm permission: Invalid argument"),
        ({"granted": 1 << 17}, "Linux did not confirm permission"),
    ],
    ids=str,
)
def test_a_refusal_says_why(answers: dict[str, int], reason: str) -> None:
    assert tile_permission._refusal(system(**answers)[0]) == reason


def test_other_systems_have_no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_permission.sys, "platform", "darwin")
    assert tile_refusal.__wrapped__() == "tiles are used on Linux for x86-64 only"


def test_a_processor_without_tiles_gets_no_permission() -> None:
    if not processor().has_amx:
        assert tile_refusal()
