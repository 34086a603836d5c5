"""Errors of lark's grammar loader as `GrammarError`s with `line:column`.

lark gives positions of syntax errors only. Of what its loader finds later, it names the rule or terminal, which is then looked up in the
source: its first use, or its last definition where a definition is at fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lark.exceptions import LarkError, VisitError

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.places import deepest_bracket, line_and_column

_POSITION = re.compile(r",? at line (\d+),? col(?:umn)? (\d+)(?: in <grammar>)?:?")
_NAME = re.compile(
    r"(?:'|defined: |parameters: |Cannot override a nonexisting \w+ |Can't extend \w+ |conflicts with rule |used for "
    r"|unknown grammar |inside terminals \()([\w$.]*[\w$])"
)
_NO_BRACKETS = r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/(?:[^/\\\n]|\\.)+/'
"""Strings, comments and patterns."""
_OF_DEFINITION = re.compile(r"more than once|Cannot override|Can't extend|Cannot extend|conflicts with rule")


@contextmanager
def lark_errors(text: str) -> Iterator[None]:
    """Raise what lark raises for a grammar as GrammarError.

    Args:
        text: the source of the grammar.
    """
    try:
        yield
    except GrammarError:
        raise
    except RecursionError:
        raise GrammarError("Lark grammar: nested too deeply", deepest_bracket(text, _NO_BRACKETS)) from None
    except VisitError as error:
        if error.rule == "template_usage" and not isinstance(error.orig_exc, LarkError):
            raise GrammarError("Lark grammar: a part that is not a template is given arguments") from None
        raise _located(error.orig_exc, text) from None
    except (LarkError, OSError, AssertionError, ValueError, OverflowError) as error:
        raise _located(error, text) from None


@contextmanager
def errors_of(name: str, text: str) -> Iterator[None]:
    """Raise a GrammarError without a location again, with the location of a terminal or rule.

    Args:
        name: the terminal or rule.
        text: the source of the grammar.
    """
    try:
        yield
    except GrammarError as error:
        if error.location is not None:
            raise
        raise GrammarError(error.reason, location_of(name, text)) from None


def first_line(error: BaseException) -> str:
    """The first line of an error's message, at most 300 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def location_of(name: str, text: str, pattern: str | None = None) -> str | None:
    """Where a terminal or rule is defined or, if it is nowhere, first used.

    Args:
        pattern: of an anonymous terminal.
    Returns:
        `line:column`, or None if the source does not contain it.
    """
    if pattern is not None and name.startswith("__"):
        found = re.search(f"/{re.escape(pattern)}/", text)
    else:
        found = re.search(rf"^[?!]*{re.escape(name)}\b", text, re.MULTILINE) or re.search(
            rf"(?<![\w$]){re.escape(name)}(?![\w$])", text
        )
    return None if found is None else line_and_column(text, found.start())


def _located(error: BaseException, text: str) -> GrammarError:
    reason = first_line(error)
    if (position := _POSITION.search(reason)) is not None:
        location = f"{position.group(1)}:{position.group(2)}"
        return GrammarError(f"Lark grammar: {reason.replace(position.group(), '')}", location)
    if (name := _NAME.search(reason)) is None:
        return GrammarError(f"Lark grammar: {reason}")
    uses = re.finditer(rf"(?<![\w$]){re.escape(name.group(1))}(?![\w$])", text)
    if _OF_DEFINITION.search(reason):
        uses = re.finditer(rf"^(?:%override |%extend )?[?!]*{re.escape(name.group(1))}\b", text, re.MULTILINE)
    starts = [use.start() for use in uses] or [0]
    at = starts[-1] if _OF_DEFINITION.search(reason) else starts[0]
    return GrammarError(f"Lark grammar: {reason}", line_and_column(text, at))
