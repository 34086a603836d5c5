"""Answers of people to the questions of a durable run: a file beside its journal, to which anybody may append.

    {"path": "ask", "answer": true, "at": 1700000000.5}
    {"path": "ask", "refused": 0, "reason": "the answer does not fit: ..."}

A line answers the question at a path. A run that waits reads the file several times a second; a run that begins later reads it once. An
answer that does not fit is marked as refused with its number, and the question stays open.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import threading
import time
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import QuestionError, UnansweredError
from rtlang.contract.process.call_context import Asking, Handler, Question, checked, late

SUFFIX = ".answers"
POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer in the file; `refused` is why it did not fit."""

    answer: Any
    refused: str | None = None


class AnswersFile:
    """The answers beside a journal. Thread-safe; several processes may write.

    Args:
        journal: the path of the journal.
    """

    def __init__(self, journal: str) -> None:
        self.path = journal + SUFFIX
        self._lock = threading.Lock()
        self._size = 0
        self._rest = b""
        self._given: dict[str, list[GivenAnswer]] = {}

    def of(self, path: str) -> list[GivenAnswer]:
        """The answers to the question at a path so far."""
        with self._lock:
            self._read()
            return list(self._given.get(path, ()))

    def add(self, path: str, answer: Any) -> None:
        """Append an answer, and wait until it is on the disk.

        Raises:
            OSError: it cannot be written. ValueError, TypeError: JSON cannot hold the answer.
        """
        self._write({"path": path, "answer": answer, "at": time.time()})

    def refuse(self, path: str, number: int, reason: str) -> None:
        """Mark an answer as one that does not fit. Nothing happens if the file cannot be written: the next run tries it again."""
        with contextlib.suppress(OSError):
            self._write({"path": path, "refused": number, "reason": reason})

    def _write(self, line: dict[str, Any]) -> None:
        data = json.dumps(line, allow_nan=False).encode() + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # One call: lines of several processes do not mix. The newline before it ends what a killed process may have left.
            os.write(descriptor, b"\n" + data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _read(self) -> None:
        try:
            with open(self.path, "rb") as file:
                if os.fstat(file.fileno()).st_size == self._size:
                    return
                file.seek(self._size)
                data = file.read()
        except FileNotFoundError:
            return
        self._size += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            found = json.loads(line)
        except ValueError:  # of a process that was killed while it wrote
            return
        match found:
            case {"path": str(path), "answer": answer}:
                self._given.setdefault(path, []).append(GivenAnswer(answer))
            case {"path": str(path), "refused": int(number), "reason": str(reason)}:
                given = self._given.get(path, [])
                if 0 <= number < len(given):
                    given[number] = GivenAnswer(given[number].answer, reason)


class JournalDesk:
    """Where the questions of a durable run lie: see `rtlang.contract.process.call_context.Desk`.

    Args:
        journal: the path of the journal.
        wait_s: seconds that a run waits for an answer; None for any time.
    """

    def __init__(self, journal: str, wait_s: float | None) -> None:
        self._journal, self._wait_s = journal, wait_s
        self._file = AnswersFile(journal)
        self._is_closed = threading.Event()

    def has_answer(self, path: str) -> bool:
        """Whether somebody has answered at this path."""
        return any(each.refused is None for each in self._file.of(path))

    def answer(self, question: Question, handler: Handler | None) -> Any:
        """See `Desk`."""
        asking = None if handler is None else Asking(handler, question)
        started = time.monotonic()
        while True:
            for number, given in enumerate(self._file.of(question.path)):
                if given.refused is None:
                    try:
                        return checked(question, given.answer)
                    except QuestionError as error:
                        self._file.refuse(question.path, number, error.reason)
            if asking is not None and asking.is_done:
                try:
                    return asking.outcome()
                except UnansweredError:  # the handler leaves the question to others
                    asking = None
                    started = time.monotonic()
            wait_s = POLL_S
            if question.timeout_s is not None:
                left = question.left_s()
                if left <= 0:
                    raise late(question)
                wait_s = min(wait_s, left)
            has_waited = self._wait_s is not None and time.monotonic() - started >= self._wait_s and asking is None
            if has_waited or self._is_closed.wait(wait_s):
                raise UnansweredError(question.path, question.text, how_to_answer(self._journal, question.path))

    def close(self) -> None:
        """Let all that wait end with UnansweredError."""
        self._is_closed.set()


def how_to_answer(journal: str, path: str) -> str:
    """What a person does to answer a question."""
    words = f"{shlex.quote(journal)} {shlex.quote(path)}"
    return f"nobody has answered yet; write `rtlang answer {words} VALUE`, and run the program again"
