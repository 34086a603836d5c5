"""Runs the functions of host calls, each in a thread of its own, and answers the graph."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from rtlang.contract.errors import (
    CallError,
    CheckError,
    EffectError,
    ParameterError,
    RtlangError,
    ToolError,
    ValueParseError,
    described,
)
from rtlang.contract.events import CallRequested
from rtlang.contract.graph.value_size import Measured, measured
from rtlang.contract.graph.value_text import shown
from rtlang.contract.process.call_context import UNKNOWN_SCHEMA, CallContext, Question, within_call


class Answerable(Protocol):
    """The part of a `GraphRun` that host calls need."""

    def resolve(self, node_id: int, value: Any) -> None:
        """See `GraphRun.resolve`."""

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        """See `GraphRun.reject`."""


HostFunction = Callable[[tuple[Any, ...]], Any]
"""Computes the value of a host call from the plain values of its operands; may return a coroutine."""


def answer_call(
    event: CallRequested,
    function: HostFunction | None,
    run: Callable[[], Answerable],
    *,
    unknown: str = "the program has no function for this call",
    context: CallContext | None = None,
) -> None:
    """Start a thread that calls `function` and resolves or rejects the call, whatever the function returns or raises.

    Args:
        function: None if there is none for this call; `unknown` is the reason.
        run: returns the running graph.
        context: the circumstances of the call, for the function.
    """

    def work() -> None:
        try:
            with within_call(context):
                _answer(event, function, run(), unknown, context)
        except RtlangError:  # the graph has ended
            return

    threading.Thread(target=work, name=f"rtlang-call-{event.function[:40]}", daemon=True).start()


def _answer(
    event: CallRequested, function: HostFunction | None, run: Answerable, unknown: str, context: CallContext | None
) -> None:
    if function is None:
        run.reject(event.node_id, "call", unknown)
        return
    try:
        if context is not None and context.is_unknown:
            found = _decided(event, context)
            if found is not None:
                run.resolve(event.node_id, found[0])
                return
        value = function(event.args)
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except (CheckError, ToolError, ValueParseError, EffectError) as error:
        run.reject(event.node_id, error.code, error.message, error.facts)
        return
    except CallError as error:
        run.reject(event.node_id, "call", error.reason)
        return
    except BaseException as error:
        run.reject(event.node_id, "call", f"{described(error)}{_place(error)}")
        return
    try:
        plain = checked_answer(to_plain(value))
    except Exception as error:  # a value that contains itself, or a model that cannot be written
        reason = error.allowed if isinstance(error, ParameterError) else described(error)
        run.reject(event.node_id, "call", f"expected plain data as its return value: {reason}")
        return
    run.resolve(event.node_id, plain)


def _decided(event: CallRequested, context: CallContext) -> tuple[Any] | None:
    """What a person says that a call has returned; None if it is to be made again.

    Raises:
        CallError: the person lets it fail. UnansweredError: nobody has decided.
    """
    call = call_text(event.function, event.args)
    question = Question(
        unknown_text(call), context.path, UNKNOWN_SCHEMA, is_unknown=True, call=call, check=checked_decision
    )
    decision = context.ask(question)
    if decision["outcome"] == "fail":
        raise CallError(event.function, "its outcome was unknown, and a person let it fail")
    return (decision.get("value"),) if decision["outcome"] == "done" else None


def call_text(function: str, args: Iterable[Any]) -> str:
    """A call with its arguments, for people."""
    return f"{function}({', '.join(map(shown, args))})"


def unknown_text(call: str) -> str:
    """The question to a person for the outcome of a call."""
    return f"It is unknown whether {call} took place: the process ended after the call had begun. What is its outcome?"


def checked_decision(answer: Any) -> dict[str, Any]:
    """A decision about a call whose outcome is unknown, as `UNKNOWN_SCHEMA` describes it.

    Raises:
        ValueError: it is none.
    """
    match answer:
        case {"outcome": "done", **others} if not others.keys() - {"value"}:
            return {"outcome": "done", "value": checked_answer(others.get("value"))}
        case {"outcome": "retry" | "fail", **others} if not others:
            return dict(answer)
    raise ValueError('expected {"outcome": "done", "value": ...}, {"outcome": "retry"} or {"outcome": "fail"}')


async def _awaited(value: Any) -> Any:
    return await value


def _place(error: BaseException) -> str:
    """` (at file:line)` of the innermost frame outside of this package that raised; empty if the call itself was wrong."""
    package = __file__.rpartition("/contract/")[0]
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(package)]
    return f" (at {frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def checked_answer(value: Any) -> Any:
    """The value of a host call. Raises like `measured_answer`."""
    return measured_answer(value).value


def measured_answer(value: Any) -> Measured:
    """The value of a host call with its size.

    Raises:
        ParameterError: it is not plain data, or too large.
    """
    try:
        return measured(value)
    except (ValueError, TypeError) as error:
        raise ParameterError("value", shown(value), str(error)) from None


def to_plain(item: Any) -> Any:
    """Dataclasses, pydantic models, enums and tuples as plain data; other objects as they are."""
    if isinstance(item, enum.Enum):
        return to_plain(item.value)
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {field.name: to_plain(getattr(item, field.name)) for field in dataclasses.fields(item)}
    models = sys.modules.get("pydantic")
    if models is not None and isinstance(item, models.BaseModel):
        return item.model_dump(mode="json")
    if isinstance(item, (list, tuple)):
        return [to_plain(each) for each in item]
    if isinstance(item, dict):
        return {key: to_plain(each) for key, each in item.items()}
    return item
