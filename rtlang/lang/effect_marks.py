"""Marks of functions: whether calling one has an effect, and what happens if it is unknown whether the effect took place.

Every function that a program calls through the graph is an effect, unless it is said to be pure. A durable run (`rt.journal`) makes an
effect with a recorded outcome never again. If the process died between the beginning of a call and its outcome, the policy decides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.nodes import Policy

OnUnknown = Literal["once", "retry", "ask"]
_F = TypeVar("_F", bound=Callable[..., Any])
_MARK = "_rt_policy"
_STRICTEST: tuple[Policy, ...] = ("once", "ask", "retry", "pure")


def pure(function: _F) -> _F:
    """Mark a function as pure, for `rt.call` and as a tool: a run may call it early, again, or not at all."""
    _mark(function, "pure")
    return function


def effect(*, on_unknown: OnUnknown = "once") -> Callable[[_F], _F]:
    """Decorator for a function whose effects need care after a crash, for `rt.call` and as a tool.

    Args:
        on_unknown: what a durable run does that finds the beginning of a call, but no outcome: "once" fails with `UnknownOutcomeError`;
            "retry" calls again, with the same `rt.idempotency_key()`; "ask" lets a person decide, as `rt.ask` does.
    Raises:
        ParameterError: on_unknown is none of these.
    """
    policy = policy_of(None, None, on_unknown)

    def mark(function: _F) -> _F:
        _mark(function, policy)
        return function

    return mark


def policy_of(function: Callable[..., Any] | None, is_pure: bool | None, on_unknown: OnUnknown | None) -> Policy:
    """The policy of a call: that of its options, else of the mark of its function, else "once".

    Raises:
        ParameterError: an option is invalid, or both are given.
    """
    if is_pure is not None and not isinstance(is_pure, bool):
        raise ParameterError("pure", is_pure, "expected True or False")
    if on_unknown is not None and on_unknown not in ("once", "retry", "ask"):
        raise ParameterError("on_unknown", on_unknown, 'expected "once", "retry" or "ask"')
    if is_pure and on_unknown is not None:
        raise ParameterError("on_unknown", on_unknown, "a pure call has no effect; leave out pure= or on_unknown=")
    if is_pure:
        return "pure"
    if on_unknown is not None:
        return on_unknown
    found: Policy = "once" if function is None else getattr(_owner(function), _MARK, "once")
    return "once" if found == "pure" and is_pure is False else found


def strictest(functions: Iterable[Callable[..., Any] | None]) -> Policy:
    """The policy of a call that may be one of several functions."""
    found = {policy_of(each, None, None) for each in functions}
    return next((each for each in _STRICTEST if each in found), "once")


def _mark(function: Callable[..., Any], policy: Policy) -> None:
    try:
        setattr(_owner(function), _MARK, policy)
    except (AttributeError, TypeError):
        raise ParameterError("function", function, "expected a function of Python, which can be marked") from None


def _owner(function: Callable[..., Any]) -> Any:
    """The object that holds the mark: the function of a method or of a partial one."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__func__", function)
