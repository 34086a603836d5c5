"""A format of tool calls as text: the name of a measured format, from which every process builds the same format."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rtlang_grammars.formats.description import (
    ArgumentStyle,
    Calls,
    Json,
    Literals,
    Piece,
    Pieces,
    Slot,
    Span,
    TaggedArguments,
    ToolFormat,
)
from rtlang_grammars.spec.constraint import Whitespace

PREFIX = "measured:"
"""Begins the names of measured formats; JSON follows."""
_MAX_CHARS = 8000


def written_name(found: ToolFormat) -> str:
    """The name of a measured format. `format_from_name` reads it."""
    plain: dict[str, Any] = {
        "call": [_plain_pieces(each) for each in found.call],
        "around": [[_plain_pieces(each.opening), _plain_pieces(each.closing)] for each in found.around],
        "between": None if found.between is None else _plain_pieces(found.between),
        "arguments": found.arguments.name,
    }
    if found.tagged is not None:
        plain["tagged"] = asdict(found.tagged)
    if found.literals != Literals():
        plain["literals"] = asdict(found.literals)
    if found.whitespace is not Whitespace.LINE:
        plain["whitespace"] = str(found.whitespace)
    if found.id_pattern:
        plain["ids"] = [found.id_pattern, found.first_id]
    if found.joint:
        plain["joint"] = found.joint
    for key in ("reasoning", "content", "preamble"):
        span = getattr(found, key)
        if span is not None:
            plain[key] = [span.begin, span.end]
    return PREFIX + json.dumps(plain, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def format_from_name(name: str) -> ToolFormat:
    """The format of a name that `written_name` made.

    Raises:
        ValueError: the name is malformed.
    """
    if len(name) > _MAX_CHARS:
        raise ValueError(f"the name has {len(name)} characters, at most {_MAX_CHARS} are allowed")
    try:
        plain = json.loads(name.removeprefix(PREFIX))
        pattern, first = plain.get("ids", ["", 0])
        tagged, literals = plain.get("tagged"), plain.get("literals")
        if tagged is not None:
            tagged = TaggedArguments(**{**tagged, "excludes": tuple(map(_text, tagged["excludes"]))})
        if literals is not None:
            true, false, null = map(_text, literals["constants"])
            literals = Literals(**{**literals, "constants": (true, false, null)})
        spans = {key: Span(*map(_text, plain[key])) for key in ("reasoning", "content", "preamble") if key in plain}
        found = ToolFormat(
            name,
            tuple(_pieces(each) for each in plain["call"]),
            tuple(Calls(_pieces(opening), _pieces(closing)) for opening, closing in plain["around"]),
            None if plain["between"] is None else _pieces(plain["between"]),
            arguments=ArgumentStyle[plain["arguments"]],
            tagged=tagged,
            literals=literals or Literals(),
            whitespace=Whitespace(plain.get("whitespace", Whitespace.LINE)),
            id_pattern=_text(pattern),
            first_id=int(first),
            joint=_text(plain.get("joint", "")),
            reasoning=spans.get("reasoning"),
            content=spans.get("content"),
            preamble=spans.get("preamble"),
        )
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the name is malformed: {type(error).__name__}: {error}") from None
    if not found.call or any(each.count(Slot.NAME) != 1 or each.count(Slot.ARGUMENTS) != 1 for each in found.call):
        raise ValueError("the name is malformed: a call has one name and one place for arguments")
    return found


def _plain_pieces(pieces: Pieces) -> list[str | dict[str, str]]:
    return [
        {"slot": each.name} if isinstance(each, Slot) else {"json": str(each)} if isinstance(each, Json) else each
        for each in pieces
    ]


def _pieces(plain: Any) -> Pieces:
    return tuple(_piece(each) for each in plain)


def _piece(plain: Any) -> Piece:
    if isinstance(plain, dict):
        return Slot[plain["slot"]] if "slot" in plain else Json(_text(plain["json"]))
    return _text(plain)


def _text(plain: Any) -> str:
    if not isinstance(plain, str):
        raise TypeError(f"expected a string, not {plain!r}")
    return plain
