"""How the scripted model writes: a reply as text in a format, and the chat template that writes the same for messages of a history.

Both are made from the description of the format. The messages are framed as in ChatML, with two control tokens that no text can contain, so
that `prompt_reading` finds the messages in the tokens of a prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rtlang.contract.errors import ConfigError
from rtlang.model.scripted.script import ScriptedReply
from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.formats.description import (
    CDATA,
    ArgumentStyle,
    Json,
    Literals,
    Pieces,
    Slot,
    Span,
    TaggedArguments,
    ToolFormat,
)
from rtlang_grammars.formats.reasoning import detect_reply_format
from rtlang_grammars.formats.rendering import rendered_calls

BEGIN, END = "<|im_start|>", "<|im_end|>"
TOOLS_ROLE = "tools"
"""The role of the message with the descriptions of the tools, one in a line."""
_CONTENT = "message.content"
_CALLS = "message.tool_calls"
_THOUGHT = "message.reasoning_content"
_TYPE = (
    "'string' if value is string else 'boolean' if value is boolean else 'null' if value is none else 'number' if value is number "
    "else 'object' if value is mapping else 'array'"
)
_FILLED = {"{name}": "name", "{type}": _TYPE, "{is_string}": "'true' if value is string else 'false'"}
"""Expressions for the fields of `TaggedArguments`."""


@dataclass(frozen=True, slots=True)
class ReplyText:
    """A written reply. `num_thought_chars`: the length of its thought with the marks around it."""

    text: str
    num_thought_chars: int
    end_of_thought: int


def reply_text(found: ToolFormat, reply: ScriptedReply) -> ReplyText:
    """The text of a reply in a format.

    Returns:
        `num_thought_chars` is where the text after the thought begins, `end_of_thought` where the mark that ends the thought does.
    """
    thought, end = "", 0
    if reply.thought:
        span, line = _thought_span(found)
        head = f"{span.begin}{line}{reply.thought}{line}"
        end = len(head)
        thought = f"{head}{span.end}{line * 2}"
    rest = thought + (found.joint if thought and (reply.content or reply.calls) else "")
    num_thought_chars = len(rest)
    if reply.content:
        before, after = _content_span(found, has_calls=bool(reply.calls))
        rest += f"{before}{reply.content}{after}"
    if reply.calls:
        rest += _joint(found) if reply.content else ""
        rest += "".join(piece for piece, _ in rendered_calls(found, reply.calls))
    return ReplyText(rest, num_thought_chars, end)


def template_of(name: str) -> str:
    """The chat template of a scripted model that writes in the format.

    Raises:
        ConfigError: the format has no marks of its own in such a template.
    """
    found = format_named(name)
    source = "".join(_template(found))
    shown = detect_reply_format(source)
    if shown is None or shown.name != found.name:
        raise ConfigError("format", name, "expected a format whose marks show in the template of a scripted model")
    return source


def _thought_span(found: ToolFormat) -> tuple[Span, str]:
    """The marks around a thought, and the line break inside them."""
    assert found.reasoning is not None
    return found.reasoning, "\n" if found.content is None and not found.reasoning.begin.endswith("\n") else ""


def _content_span(found: ToolFormat, *, has_calls: bool) -> tuple[str, str]:
    span = found.preamble if has_calls and found.preamble is not None else found.content
    return ("", "") if span is None else (span.begin, span.end)


def _joint(found: ToolFormat) -> str:
    """The text between content and calls."""
    return found.joint if found.content is not None else "\n"


def _template(found: ToolFormat) -> Iterator[str]:
    # Jinja drops line breaks after its marks, so every fixed text is a literal.
    yield "{% if tools %}" + _literal(f"{BEGIN}{TOOLS_ROLE}\n")
    yield "{% for tool in tools %}{{ tool | tojson }}" + _literal("\n") + "{% endfor %}"
    yield _literal(f"{END}\n") + "{% endif %}"
    yield from _macro(found)
    yield "{% for message in messages %}" + _literal(BEGIN) + "{{ message.role }}" + _literal("\n")
    yield "{% if message.role == 'assistant' %}"
    if found.reasoning is not None:
        span, line = _thought_span(found)
        yield "{% if " + _THOUGHT + " %}" + _literal(span.begin + line) + "{{ " + _THOUGHT + " }}"
        yield _literal(f"{line}{span.end}{line * 2}")
        if found.joint:
            yield "{% if " + f"{_CONTENT} or {_CALLS}" + " %}" + _literal(found.joint) + "{% endif %}"
        yield "{% endif %}"
    yield "{% if " + _CONTENT + " %}{% if " + _CALLS + " %}"
    before, after = _content_span(found, has_calls=True)
    yield _literal(before) + "{{ " + _CONTENT + " }}" + _literal(after + _joint(found)) + "{% else %}"
    before, after = _content_span(found, has_calls=False)
    yield _literal(before) + "{{ " + _CONTENT + " }}" + _literal(after) + "{% endif %}{% endif %}"
    yield "{% if " + _CALLS + " %}" + "".join(_calls(found)) + "{% endif %}"
    yield "{% else %}{{ " + _CONTENT + " }}{% endif %}" + _literal(f"{END}\n") + "{% endfor %}"
    yield "{% if add_generation_prompt %}" + _literal(f"{BEGIN}assistant\n")
    if found.reasoning is not None and found.content is None:
        span, line = _thought_span(found)
        empty = _literal(f"{span.begin}{line * 2}{span.end}{line * 2}")
        yield "{% if enable_thinking is defined and not enable_thinking %}" + empty + "{% endif %}"
    yield "{% endif %}"


def _calls(found: ToolFormat) -> Iterator[str]:
    around = found.around[0]
    yield _fixed(around.opening)
    yield "{% for call in message.tool_calls %}"
    if found.between:
        yield "{% if not loop.first %}" + _fixed(found.between) + "{% endif %}"
    for piece in found.call[0]:
        match piece:
            case Slot.NAME:
                yield "{{ call.function.name }}"
            case Slot.ID:
                yield "{{ call.id }}"
            case Slot.ARGUMENTS:
                yield from _arguments(found)
            case _:
                yield _fixed((piece,))
    yield "{% endfor %}"
    if not found.closing_is_optional:
        yield _fixed(around.closing)


def _arguments(found: ToolFormat) -> Iterator[str]:
    given = "call.function.arguments"
    match found.arguments:
        case ArgumentStyle.JSON:
            yield "{{ " + f"{given} if {given} is string else {given} | tojson" + " }}"
        case ArgumentStyle.PYTHON | ArgumentStyle.MARKED:
            yield "{% for name, value in " + given + ".items() %}" + _unless_first(found.literals.separator)
            yield "{{ name }}" + _literal(found.literals.assign) + "{{ literal(value) }}{% endfor %}"
        case ArgumentStyle.TAGGED:
            yield "{% for name, value in " + given + ".items() %}{{ element(name, value) }}{% endfor %}"


def _macro(found: ToolFormat) -> Iterator[str]:
    """The macro that writes an argument, or the value of one, as `rendered_calls` does."""
    match found.arguments:
        case ArgumentStyle.PYTHON | ArgumentStyle.MARKED:
            yield from _literal_macro(found.literals)
        case ArgumentStyle.TAGGED:
            assert found.tagged is not None
            yield from _element_macro(found.tagged)


def _literal_macro(literals: Literals) -> Iterator[str]:
    true, false, null = map(_literal, literals.constants)
    text = "{{ '%r' | format(value) }}"
    string, key = (
        (_literal(literals.quote) + "{{ value }}" + _literal(literals.quote), "{{ key }}")
        if literals.quote
        else (text, "{{ '%r' | format(key) }}")
    )
    others = _unless_first(literals.separator)
    yield "{% macro literal(value) %}{% if value is none %}" + null
    yield "{% elif value is true %}" + true + "{% elif value is false %}" + false
    yield "{% elif value is string %}" + string + "{% elif value is number %}" + text
    yield "{% elif value is mapping %}" + _literal("{") + "{% for key, inner in value.items() %}" + others + key
    yield _literal(literals.colon) + "{{ literal(inner) }}{% endfor %}" + _literal("}")
    yield "{% else %}" + _literal("[") + "{% for inner in value %}" + others + "{{ literal(inner) }}{% endfor %}"
    yield _literal("]") + "{% endif %}{% endmacro %}"


def _element_macro(tagged: TaggedArguments) -> Iterator[str]:
    yield (
        "{% macro element(name, value) %}"
        + _literal(tagged.before_name)
        + "{{ name }}"
        + _with_fields(tagged.before_value)
    )
    yield "{% if value is string %}"
    if tagged.cdata:
        yield "{% if " + " or ".join(f"{json.dumps(each)} in value" for each in tagged.cdata) + " %}"
        yield _literal(CDATA.begin) + "{{ value }}" + _literal(CDATA.end) + "{% else %}{{ value }}{% endif %}"
    else:
        yield "{{ value }}"
    if tagged.item:
        yield "{% elif value is mapping %}{% for key, inner in value.items() %}{{ element(key, inner) }}{% endfor %}"
        yield "{% elif value is iterable %}{% for inner in value %}{{ element(" + json.dumps(tagged.item)
        yield ", inner) }}{% endfor %}"
    yield "{% else %}{{ value | tojson }}{% endif %}" + _with_fields(tagged.behind_value) + "{% endmacro %}"


def _with_fields(text: str) -> str:
    """A text of `TaggedArguments` with its fields filled."""
    parts = re.split("(" + "|".join(map(re.escape, _FILLED)) + ")", text)
    return "".join("{{ " + _FILLED[part] + " }}" if part in _FILLED else _literal(part) for part in parts)


def _unless_first(text: str) -> str:
    return "{% if not loop.first %}" + _literal(text) + "{% endif %}"


def _fixed(pieces: Pieces) -> str:
    """Fixed pieces as `rendered_calls` writes them."""
    texts = ("\n" if piece is Slot.BLANKS else str(piece) + " " * _ends_json(piece) for piece in pieces)
    return _literal("".join(texts))


def _ends_json(piece: object) -> bool:
    return isinstance(piece, Json) and piece.endswith(",")


def _literal(text: str) -> str:
    return "{{ " + json.dumps(text, ensure_ascii=False) + " }}" if text else ""
