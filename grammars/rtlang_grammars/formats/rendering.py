"""Writes tool calls as a model of a format writes them, for messages of a history."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.formats.description import (
    CDATA,
    ArgumentStyle,
    Json,
    Literals,
    Pieces,
    Slot,
    TaggedArguments,
    ToolFormat,
)
from rtlang_grammars.formats.parsing import ToolCall
from rtlang_grammars.formats.schemas import type_of

_MARK = re.compile(r"(\]<\]minimax\[>\[|<[^<>\s]+>|｜[^｜\s]+｜|\[/?[A-Z_]+\])")


def rendered_calls(tool_format: ToolFormat | str, calls: Sequence[ToolCall]) -> list[tuple[str, bool]]:
    """The text of calls, in pieces: (text, whether the text is a mark of the format and may name a special token).

    Args:
        calls: at least one. `text`, if given, is written for arguments in JSON as it is.
    Raises:
        GrammarError: the format is unknown.
    """
    found = format_named(tool_format) if isinstance(tool_format, str) else tool_format
    around, between = found.around[0], found.between or ()
    pieces: list[tuple[str, bool]] = list(_fixed(around.opening))
    for number, call in enumerate(calls):
        if number:
            pieces += _fixed(between)
        pieces += _call(found, call, number)
    if not found.closing_is_optional:
        pieces += _fixed(around.closing)
    return _merged(pieces)


def _call(found: ToolFormat, call: ToolCall, number: int) -> Iterator[tuple[str, bool]]:
    for piece in found.call[0]:
        match piece:
            case Slot.NAME:
                yield call.name, False
            case Slot.ARGUMENTS:
                yield from _arguments(found, call)
            case Slot.ID:
                yield _id(found, call, number), False
            case Slot.BLANKS:
                yield "\n", False
            case str():
                yield from _fixed((piece,))


def _id(found: ToolFormat, call: ToolCall, number: int) -> str:
    """The id of the call if the format allows it, else one made from it."""
    if call.id is not None and re.fullmatch(found.id_pattern, call.id):
        return call.id
    if re.fullmatch(found.id_pattern, str(number + found.first_id)):
        return str(number + found.first_id)
    letters = re.sub(r"[^a-zA-Z0-9]", "", call.id or "")[-9:]
    return f"{letters:0>9}"


def _arguments(found: ToolFormat, call: ToolCall) -> Iterator[tuple[str, bool]]:
    match found.arguments:
        case ArgumentStyle.JSON:
            yield call.text or _json(call.arguments), False
        case ArgumentStyle.PYTHON | ArgumentStyle.MARKED:
            literals = found.literals
            for number, (name, value) in enumerate(call.arguments.items()):
                yield literals.separator * bool(number) + name + literals.assign, False
                yield from _literal(literals, value)
        case ArgumentStyle.TAGGED:
            assert found.tagged is not None
            for name, value in call.arguments.items():
                yield from _element(found.tagged, name, value)


def _element(tagged: TaggedArguments, name: str, value: Any) -> Iterator[tuple[str, bool]]:
    yield from _fixed((tagged.before_name,))
    yield name, False
    yield from _fixed((tagged.value_begin(type_of(value)),))
    match value:
        case str() if set(value) & set(tagged.cdata):
            yield f"{CDATA.begin}{value}{CDATA.end}", False
        case str():
            yield value, False
        case dict() if tagged.item:
            for key, inner in value.items():
                yield from _element(tagged, key, inner)
        case list() if tagged.item:
            for inner in value:
                yield from _element(tagged, tagged.item, inner)
        case _:
            yield _json(value), False
    yield from _fixed((tagged.value_end(name),))


def _literal(literals: Literals, value: Any) -> Iterator[tuple[str, bool]]:
    true, false, null = literals.constants
    match value:
        case bool() | None:
            yield null if value is None else true if value else false, False
        case str() if literals.quote:
            yield from ((literals.quote, True), (value, False), (literals.quote, True))
        case dict():
            yield "{", False
            for number, (key, inner) in enumerate(value.items()):
                yield literals.separator * bool(number) + (key if literals.quote else repr(key)) + literals.colon, False
                yield from _literal(literals, inner)
            yield "}", False
        case list():
            yield "[", False
            for number, inner in enumerate(value):
                yield literals.separator * bool(number), False
                yield from _literal(literals, inner)
            yield "]", False
        case _:
            yield repr(value), False


def _json(value: Mapping[str, Any] | Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fixed(pieces: Pieces) -> Iterator[tuple[str, bool]]:
    for piece in pieces:
        if piece is Slot.BLANKS:
            yield "\n", False
        elif isinstance(piece, str):
            text = str(piece)
            if isinstance(piece, Json):
                yield text + " " * text.endswith(","), False
            else:
                yield from ((part, bool(_MARK.fullmatch(part))) for part in _MARK.split(text) if part)


def _merged(pieces: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for text, is_mark in pieces:
        if found and not is_mark and not found[-1][1]:
            found[-1] = found[-1][0] + text, False
        elif text:
            found.append((text, is_mark))
    return found
