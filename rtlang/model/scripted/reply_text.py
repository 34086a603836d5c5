"""How the scripted model writes: a reply as text in a format, and the chat template that writes the same for messages of a history.

Both are made from the description of the format. The messages are framed as in ChatML, with two control tokens that no text can contain, so
that `prompt_reading` finds the messages in the tokens of a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from rtlang.contract.errors import ConfigError
from rtlang.model.scripted.script import Reply
from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.formats.description import ArgumentStyle, Json, Pieces, Slot, Span, ToolFormat
from rtlang_grammars.formats.reasoning import detect_reply_format
from rtlang_grammars.formats.rendering import rendered_calls

BEGIN, END = "<|im_start|>", "<|im_end|>"
TOOLS_ROLE = "tools"
"""The role of the message with the descriptions of the tools, one in a line."""
_CONTENT = "message.content"
_CALLS = "message.tool_calls"
_THOUGHT = "message.reasoning_content"


@dataclass(frozen=True, slots=True)
class ReplyText:
    """A written reply. `num_thought_chars`: the length of its thought with the marks around it."""

    text: str
    num_thought_chars: int
    end_of_thought: int


def reply_text(found: ToolFormat, reply: Reply) -> ReplyText:
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
        ConfigError: the marks of the format cannot be told from such a template.
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
    plain = "{{ value if value is string else value | tojson }}"
    match found.arguments:
        case ArgumentStyle.JSON:
            yield "{{ " + f"{given} if {given} is string else {given} | tojson" + " }}"
        case ArgumentStyle.PYTHON:
            yield "{% for name, value in " + given + ".items() %}{% if not loop.first %}, {% endif %}"
            yield "{{ name }}={{ value | tojson }}{% endfor %}"
        case ArgumentStyle.TAGGED:
            tagged = found.tagged
            assert tagged is not None
            yield "{% for name, value in " + given + ".items() %}" + _literal(tagged.before_name) + "{{ name }}"
            yield _literal(tagged.before_value) + plain + _literal(tagged.behind_value) + "{% endfor %}"


def _fixed(pieces: Pieces) -> str:
    """Fixed pieces as `rendered_calls` writes them."""
    texts = ("\n" if piece is Slot.BLANKS else str(piece) + " " * _ends_json(piece) for piece in pieces)
    return _literal("".join(texts))


def _ends_json(piece: object) -> bool:
    return isinstance(piece, Json) and piece.endswith(",")


def _literal(text: str) -> str:
    return "{{ " + json.dumps(text, ensure_ascii=False) + " }}" if text else ""
