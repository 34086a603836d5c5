"""The circumstances of a host call: its identity, and where people answer questions.

A function that runs as a host call finds them with `current_call`. A journal attaches a context to the `CallRequested` events that it
hands on, because only it knows whether a call has begun before.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, Protocol

from rtlang.contract.errors import QuestionError, TraceError, UnansweredError
from rtlang.contract.process.coroutines import run_coroutine

ASK = "rt.ask"
EMIT = "rt.emit"
NOW = "rt.now"
RANDOM = "rt.random"
"""Names of the calls of rtlang itself."""

_KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a person.

    Attributes:
        text: the question.
        path: the path of the node that waits for the answer.
        schema: the JSON schema of the answer; None for any text.
        timeout_s: seconds after `asked_at` within which it must be answered; None for any time.
        asked_at: when it was asked first, in seconds since 1970.
        is_unknown: whether it is about a call whose outcome is unknown, see `UNKNOWN_SCHEMA`; `call` names it with its arguments.
        check: the answer as plain data for an answer as plain data; raises ValueError if it does not fit.
    """

    text: str
    path: str
    schema: Any = None
    timeout_s: float | None = None
    asked_at: float = field(default_factory=time.time)
    is_unknown: bool = False
    call: str | None = None
    check: Callable[[Any], Any] = field(default=lambda answer: answer, compare=False, repr=False)

    def left_s(self) -> float:
        """The seconds that are left for an answer."""
        return math.inf if self.timeout_s is None else self.asked_at + self.timeout_s - time.time()


UNKNOWN_SCHEMA: dict[str, Any] = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"outcome": {"const": "done"}, "value": {}},
            "required": ["outcome"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"outcome": {"enum": ["retry", "fail"]}},
            "required": ["outcome"],
            "additionalProperties": False,
        },
    ]
}
"""What a person says of a call whose outcome is unknown: it is done and returned a value, or is to be made again, or has failed."""

Handler = Callable[[Question], Any]
"""Answers a question in code; may return a coroutine."""


class Desk(Protocol):
    """Where questions lie until a person answers them."""

    def answer(self, question: Question, handler: Handler | None) -> Any:
        """Wait for an answer that fits; from `handler` if it is given, or from a person.

        Raises:
            QuestionError: there is none in time. UnansweredError: there may be one in a later run.
        """


@dataclass(frozen=True, slots=True)
class CallContext:
    """The circumstances of one call.

    Attributes:
        path: the path of its node in the run.
        idempotency_key: the same for every attempt of this call in this run, also in later processes, and of no other call.
        seed: the seed of the run, if it is known.
        begun_at: when the call began first, in seconds since 1970, if that was in an earlier process.
        is_unknown: whether an earlier attempt has no known outcome, and a person decides what happens.
        handler: answers questions in code.
        desk: where people answer them.
    """

    path: str
    idempotency_key: str
    seed: int | None = None
    begun_at: float | None = None
    is_unknown: bool = False
    handler: Handler | None = field(default=None, compare=False)
    desk: Desk | None = field(default=None, compare=False)

    def ask(self, question: Question) -> Any:
        """The answer to a question, from the handler or from the desk.

        Raises:
            UnansweredError: nobody is there to answer. QuestionError: nobody answered in time, or the answer does not fit.
        """
        if self.desk is not None:
            return self.desk.answer(question, self.handler)
        if self.handler is None:
            raise UnansweredError(
                question.path,
                question.text,
                "nobody can answer it; pass ask= to the run, or use a journal (rt.journal, rtlang run --journal)",
            )
        if question.timeout_s is None:
            return answer_of(self.handler, question)
        asking = Asking(self.handler, question)
        if not asking.wait(question.left_s()):
            raise late(question)
        return asking.outcome()


_current: ContextVar[CallContext | None] = ContextVar("rtlang_call", default=None)


def current_call() -> CallContext:
    """The circumstances of the call that runs in this thread.

    Raises:
        TraceError: none does.
    """
    found = _current.get()
    if found is None:
        raise TraceError("expected to run inside a call: rt.call, or a tool of a program that runs")
    return found


def current_call_or_none() -> CallContext | None:
    """The circumstances of the call that runs in this thread; None if none does."""
    return _current.get()


@contextmanager
def within_call(context: CallContext | None) -> Iterator[None]:
    """Make a context the current one."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def idempotency_key() -> str:
    """A key for the call that runs now: give it to the service that has the effect, so that it drops a second attempt.

    It depends on the run and on the path of the call only: every attempt of this call has the same key, in later processes too, and no
    other call has it.

    Raises:
        TraceError: outside of a function that a program calls.
    """
    return current_call().idempotency_key


def idempotency_key_of(run_id: str, path: str) -> str:
    """The key of a call: a digest of the identity of its run and of its path."""
    return hashlib.blake2b(f"{run_id}:{path}".encode(errors="surrogatepass"), digest_size=_KEY_BYTES).hexdigest()


def answer_of(handler: Handler, question: Question) -> Any:
    """The checked answer of a handler, which may be a coroutine.

    Raises:
        QuestionError: it does not fit.
    """
    answer = handler(question)
    if inspect.isawaitable(answer):
        answer = run_coroutine(lambda: _awaited(answer))
    return checked(question, answer)


class Asking:
    """A handler that answers in a thread of its own, so that whoever waits can stop waiting."""

    def __init__(self, handler: Handler, question: Question) -> None:
        self._found: list[Any] = []
        self._error: BaseException | None = None
        self._ended = threading.Event()

        def work() -> None:
            try:
                self._found.append(answer_of(handler, question))
            except BaseException as error:
                self._error = error
            self._ended.set()

        context = copy_context()
        threading.Thread(target=context.run, args=(work,), name="rtlang-ask", daemon=True).start()

    @property
    def is_done(self) -> bool:
        """Whether the handler has ended."""
        return self._ended.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the handler has ended, at most so many seconds; returns whether it has."""
        return self._ended.wait(max(0.0, min(timeout_s, threading.TIMEOUT_MAX)))

    def outcome(self) -> Any:
        """The answer. Raises as the handler did."""
        if self._error is not None:
            raise self._error
        return self._found[0]


def late(question: Question) -> QuestionError:
    """The error of a question that nobody has answered in time."""
    return QuestionError(
        question.path, question.text, f"nobody answered within timeout_s = {question.timeout_s or 0.0:g}"
    )


def checked(question: Question, answer: Any) -> Any:
    """The answer as plain data.

    Raises:
        QuestionError: it does not fit the schema.
    """
    try:
        return question.check(answer)
    except (ValueError, TypeError) as error:
        raise QuestionError(
            question.path, question.text, f"the answer {answer!r:.200} does not fit: {error}"
        ) from error


async def _awaited(value: Any) -> Any:
    return await value
