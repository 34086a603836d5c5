"""Asks a person in the terminal of a run."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import typer

from rtlang.cassette.questions import OpenQuestion
from rtlang.contract.errors import QuestionError, UnansweredError
from rtlang.contract.process.call_context import Handler, Question
from rtlang.contract.process.terminal_text import terminal_text


def terminal_handler() -> Handler | None:
    """A function that asks in the terminal; None if standard input or standard error is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    lock = threading.Lock()  # one question at a time

    def ask(question: Question) -> Any:
        with lock:
            return asked(question)

    return ask


def asked(question: Question) -> Any:
    """Ask until an answer fits.

    Raises:
        UnansweredError: standard input has ended.
    """
    shown = OpenQuestion(
        "", question.path, question.text, question.schema, question.is_unknown, question.asked_at, None, False, None
    )
    typer.echo(
        f"\n{terminal_text(question.text)}\n{terminal_text(hint(question.schema, question.is_unknown))}", err=True
    )
    while True:
        typer.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            raise UnansweredError(question.path, question.text, "standard input has ended")
        try:
            answer = shown.read(line.rstrip("\n"))
            question.check(answer)
        except (QuestionError, ValueError, TypeError) as error:
            reason = error.reason if isinstance(error, QuestionError) else str(error)
            typer.echo(terminal_text(reason), err=True)
        else:
            return answer


def hint(schema: Any, is_unknown: bool) -> str:
    """What a person may type."""
    if is_unknown:
        return 'done, retry, fail, or {"outcome": "done", "value": ...} with the value that the call returned'
    if schema is None:
        return "text"
    match schema:
        case {"type": "boolean"}:
            return "yes or no"
        case {"enum": list(items)}:
            return "one of " + ", ".join(map(json.dumps, items))
        case {"type": "integer"}:
            return "a whole number"
        case {"type": "number"}:
            return "a number"
        case {"type": "string"}:
            return "text"
    return f"JSON of the schema {json.dumps(schema)}"
