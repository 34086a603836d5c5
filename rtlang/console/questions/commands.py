"""`rtlang questions` lists the open questions of durable runs, or serves a page for them; `rtlang answer` answers one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rtlang.cassette.questions import OpenQuestion, give_answer, open_questions
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.questions.prompt import hint
from rtlang.console.source import CommandError
from rtlang.contract.errors import QuestionError
from rtlang.contract.process.terminal_text import terminal_text


def questions(
    place: Annotated[Path, typer.Argument(metavar="JOURNAL_OR_DIRECTORY", help="A journal, or a folder of journals.")],
    is_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve a page and an API for the questions on this port of 127.0.0.1."),
    ] = None,
) -> None:
    """List the questions of programs that wait for a person: those of rt.ask, and calls whose outcome is unknown."""
    with one_line_errors():
        if port is not None:
            from rtlang.console.questions.page import serve_questions

            if is_json:
                raise CommandError("--json cannot be combined with --port; the page has the list at /questions")
            serve_questions(place, port)
            return
        found = _found(place)
        if is_json:
            typer.echo(json.dumps([each.to_plain() for each in found], indent=2))
            return
        for each in found:
            state = "answered, waits for the run" if each.is_answered else hint(each.schema, each.is_unknown)
            typer.echo(terminal_text(f"{each.journal} {each.path}\n  {each.text}\n  {state}"))
            if each.refused is not None:
                typer.echo(terminal_text(f"  refused: {each.refused}"))
        if not found:
            typer.echo("no open questions")


def answer(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal.")],
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="[PATH] VALUE", help="The path of the question, if several are open, and the answer: JSON or text."
        ),
    ],
) -> None:
    """Answer a question of a durable run. A process that waits takes the answer at once, else the next run does."""
    with one_line_errors():
        if len(given) > 2:
            raise CommandError(f"expected [PATH] VALUE, not {len(given)} arguments; put quotes around the answer")
        found = _found(journal)
        question = _chosen(found, given[0] if len(given) == 2 else None)
        try:
            give_answer(question, question.read(given[-1]))
        except QuestionError as error:
            raise CommandError(error.message) from None
        typer.echo(terminal_text(f"answered {question.path}"))


def _found(place: Path) -> list[OpenQuestion]:
    try:
        return open_questions(place)
    except OSError as error:
        raise CommandError(f"{place}: {error.strerror or error}") from None


def _chosen(found: list[OpenQuestion], path: str | None) -> OpenQuestion:
    paths = ", ".join(repr(each.path) for each in found) or "none"
    if path is None:
        if not found:
            raise CommandError("no question is open; run the program again, which asks those that follow")
        waiting = [each for each in found if not each.is_answered] or found
        if len(waiting) != 1:
            raise CommandError(f"expected the path of the question; open questions: {paths}")
        return waiting[0]
    chosen = next((each for each in found if each.path == path), None)
    if chosen is None:
        raise CommandError(f"no open question has the path {path!r}; open questions: {paths}")
    return chosen
