"""The open questions of journals, for people: those of `rt.ask`, and calls whose outcome is unknown. And their answers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtlang.cassette.answers import AnswersFile
from rtlang.cassette.journal_file import MAGIC, JournalFile, is_in_use
from rtlang.contract.errors import JournalError, QuestionError
from rtlang.contract.graph.host_calls import call_text, checked_decision, unknown_text
from rtlang.contract.graph.value_text import shown
from rtlang.contract.process.call_context import ASK, UNKNOWN_SCHEMA
from rtlang.protocol.plain_values import value_from_wire
from rtlang_grammars.schema.value_checks import value_check

_WORDS = {"yes": True, "y": True, "no": False, "n": False}


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for a person.

    Attributes:
        journal: the path of the journal.
        path: the path of the node in its run.
        text: the question.
        schema: the JSON schema of the answer; None for text.
        is_unknown: whether it asks for the outcome of a call, see `UNKNOWN_SCHEMA`.
        asked_at, timeout_s: when it was asked first, in seconds since 1970, and for how long it is open.
        is_answered: whether an answer waits for the run to go on.
        refused: why the last answer did not fit.
    """

    journal: str
    path: str
    text: str
    schema: Any
    is_unknown: bool
    asked_at: float
    timeout_s: float | None
    is_answered: bool
    refused: str | None

    def to_plain(self) -> dict[str, Any]:
        """The question as a JSON object."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def read(self, text: str) -> Any:
        """The answer that a person has typed: JSON, or text where the schema allows text only.

        For the outcome of a call also `retry`, `fail`, or `done`, which stands for a call that returned nothing.

        Raises:
            QuestionError: it does not fit.
        """
        if self.is_unknown and text.strip() in ("done", "retry", "fail"):
            return {"outcome": text.strip()}
        if self.schema is None:
            return text
        try:
            answer = json.loads(text)
        except ValueError:
            answer = text
        if self.schema == {"type": "boolean"}:
            answer = _WORDS.get(text.strip().lower(), answer)
        if not isinstance(answer, str) and isinstance(self.schema, dict) and self.schema.get("type") == "string":
            answer = text
        return self.check(answer)

    def check(self, answer: Any) -> Any:
        """The answer, if it fits the schema.

        Raises:
            QuestionError: it does not.
        """
        try:
            if self.is_unknown:
                return checked_decision(answer)
            if self.schema is None:
                if not isinstance(answer, str):
                    raise ValueError("expected text")
                return answer
            problem = value_check(self.schema).error_in(json.dumps(answer, allow_nan=False))
            if problem is not None:
                raise ValueError(problem)
        except (ValueError, TypeError) as error:
            raise QuestionError(self.path, self.text, f"the answer {shown(answer)} does not fit: {error}") from None
        return answer


def open_questions(place: str | os.PathLike[str]) -> list[OpenQuestion]:
    """The open questions of a journal, or of all journals in a directory, the oldest first. Runs may go on meanwhile.

    Raises:
        JournalError: the file is no journal, or damaged. OSError: it cannot be read.
    """
    if not Path(place).is_dir():
        return sorted(_of_journal(os.fspath(place)), key=lambda each: each.asked_at)
    found: list[OpenQuestion] = []
    for path in sorted(Path(place).rglob("*")):
        if path.is_file() and _is_journal(path):
            with contextlib.suppress(JournalError, OSError):  # it was removed, or is of another version
                found += _of_journal(str(path))
    return sorted(found, key=lambda each: each.asked_at)


def give_answer(question: OpenQuestion, answer: Any) -> None:
    """Answer a question: a run that waits takes the answer at once, others when they go on.

    Raises:
        QuestionError: the answer does not fit, or the question has an answer. OSError: it cannot be written.
    """
    checked = question.check(answer)
    if question.is_answered:
        raise QuestionError(question.path, question.text, "it has an answer already; run the program again")
    AnswersFile(question.journal).add(question.path, checked)


def _of_journal(journal: str) -> Iterator[OpenQuestion]:
    with contextlib.closing(JournalFile(journal, is_written=False)) as file:
        given = AnswersFile(journal)
        runs = is_in_use(journal)
        for path, intent in file.intents.items():
            if path in file.answers or file.is_finished:
                continue
            args = value_from_wire(list(intent["args"]), "args")
            answers = given.of(path)
            common: dict[str, Any] = {
                "journal": journal,
                "path": path,
                "asked_at": float(intent["at"]),
                "is_answered": any(each.refused is None for each in answers),
                "refused": answers[-1].refused if answers else None,
            }
            if intent["function"] == ASK:
                text, schema, timeout_s = args
                yield OpenQuestion(text=str(text), schema=schema, is_unknown=False, timeout_s=timeout_s, **common)
            elif path in file.unknown or (not runs and intent["policy"] != "retry"):
                yield OpenQuestion(
                    text=unknown_text(call_text(intent["function"], args)),
                    schema=UNKNOWN_SCHEMA,
                    is_unknown=True,
                    timeout_s=None,
                    **common,
                )


def _is_journal(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
