"""Finds expressions that a program makes and throws away, because `s +=` before them was forgotten.

An expression is lost if the code that makes it drops it on every path: it is a statement of its own, or is stored in a variable that is
never read, or is returned by a function whose call is such a statement. Expressions that a path may use are left alone, and so are those
made outside of programs. The code is read once for each place (`value_flow`); later expressions of a place cost a look-up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TypeVar

from rtlang.contract.errors import TraceError
from rtlang.lang.lazy_values.value_flow import MAX_CODES, calls_by_name, fate_of
from rtlang.lang.program_state.current_body import running

_T = TypeVar("_T")
_kept: dict[int, tuple[CodeType, set[int]]] = {}
"""The places whose expressions may be used: offsets by the id of the code, which is kept with it."""


def check_kept(made: _T, described: Callable[[_T], str]) -> None:
    """Refuse an expression that the code which calls the caller of this function makes in a program and throws away.

    Raises:
        TraceError: names the expression, the line and what to write.
    """
    frame = sys._getframe(2)
    kept = _kept.get(id(frame.f_code))
    if kept is None or frame.f_lasti not in kept[1]:
        _look(made, described, frame)


def _look(made: _T, described: Callable[[_T], str], frame: FrameType) -> None:
    code = frame.f_code
    fate = fate_of(code, frame.f_lasti)
    if fate.is_used or frame.f_globals.get("__name__", "").partition(".")[0] == "rtlang":
        if id(code) not in _kept:
            if len(_kept) >= MAX_CODES:
                _kept.clear()
            _kept[id(code)] = code, set()
        _kept[id(code)][1].add(frame.f_lasti)
    elif running.get() is not None and (lost := _lost_at(frame)) is not None:
        name = described(made)
        handle = name.replace("rt.", "s.", 1) if name.startswith(("rt.gen", "rt.select")) else None
        also = "" if handle is None else f", or {handle}, which returns its value"
        raise TraceError(f"{name} is not part of a sequence and is never used: write s += {name}{also}", lost)


def _lost_at(frame: FrameType | None) -> str | None:
    """The place that throws away what the current instruction of a frame makes; None if it may be used."""
    while frame is not None:
        fate = fate_of(frame.f_code, frame.f_lasti)
        if fate.is_lost:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        caller = frame.f_back
        if fate.is_used or caller is None or not calls_by_name(caller.f_code, caller.f_lasti, frame.f_code.co_name):
            return None
        frame = caller
    return None
