"""The format of a model from its template: of the catalogue as long as it reads what the template writes, else measured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.reply_format import reply_format
from rtlang_grammars.formats.catalogue import format_named
from tests.grammars.formats.measuring.test_measurement import CONVERSATION, UNKNOWN
from tests.support.schemas.tool_templates import TEMPLATES


class NoTokens:
    """An encoder of nothing: templates are only rendered here."""

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]:
        return []

    def start_ids(self) -> list[int]:
        return []

    def special_names(self, text: str) -> Iterator[tuple[int, int]]:
        return iter(())


def chat_of(template: str | None) -> ChatTemplate:
    return ChatTemplate(NoTokens(), template, {})


def test_a_variant_of_a_known_format_is_told_by_what_the_template_writes() -> None:
    template = CONVERSATION.replace("ANSWER", TEMPLATES["mimo"])  # its marks are those of qwen-coder, its lines are not
    found = reply_format(chat_of(template), ())
    assert found is not None
    assert found.name == "mimo"
    strange = CONVERSATION.replace("ANSWER", UNKNOWN["an array with other keys"][0].replace("USES]", "TOOL_CALLS]"))
    found = reply_format(chat_of(strange), ())
    assert found is not None
    assert found.name.startswith("measured:"), "its mark is that of mistral, its calls are not"
    assert format_named(found.name) == found


@pytest.mark.parametrize(
    ("template", "names", "expected"),
    [
        (None, (), None),
        (None, ("<|tool_calls_section_begin|>",), "kimi-k2"),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", (), None),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", ("<|tool_call_start|>",), "lfm2"),
        ("{% for m in messages %}<think></think>{{ m.content }}{% endfor %}", (), "json+think"),
        ("{{ raise_exception('never') }}<tool_call></tool_call>", (), "hermes"),
        ("{% broken", (), None),
    ],
)
def test_without_calls_in_the_template_its_marks_and_special_tokens_decide(
    template: str | None, names: tuple[str, ...], expected: str | None
) -> None:
    found = reply_format(chat_of(template), names)
    assert (found.name if found else None) == expected


def test_a_measured_format_keeps_the_marks_of_thought_that_the_template_shows() -> None:
    answer = UNKNOWN["an array with other keys"][0]
    template = CONVERSATION.replace("ANSWER", answer) + "{# <think> #}"
    found = reply_format(chat_of(template), ())
    assert found is not None
    assert found.reasoning is not None
    assert found.reasoning.begin == "<think>"
    assert format_named(found.name) == found
