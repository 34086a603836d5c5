"""Tokens of a reply by section, while the text arrives: nothing is lost, and the tokens of content spell the content."""

from __future__ import annotations

import random

import pytest

from rtlang.contract.events import TokenLogprob
from rtlang.serve.openai.sections import SectionedTokens, Sections, num_thought_tokens
from rtlang.serve.openai.structured import read_structured
from rtlang.serve.openai.tools import ReplyReader, plan_reply, read_tool_request

PIECES = ("<think>", "Ü", "ber", " \U0001f600", "\n", "</think>", "\n\n", '{"', "é", '":', " 1", "}")


def data_of(ids: object) -> list[bytes]:
    return [PIECES[each].encode() for each in ids]  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(8))
def test_the_tokens_of_content_spell_it_however_the_text_arrives(seed: int) -> None:
    rng = random.Random(seed)
    plan = plan_reply(read_tool_request({}), read_structured({"response_format": {"type": "json_object"}}), "hermes")
    reader, divided = ReplyReader(plan, lambda: "id"), SectionedTokens(data_of)
    thought: list[int] = []
    content: list[int] = []
    at = 0
    while at < len(PIECES):
        size = rng.randrange(1, 5)
        ids = range(at, min(at + size, len(PIECES)))
        reader.push("".join(PIECES[each] for each in ids))
        found = divided.push([TokenLogprob(each, -1.0) for each in ids], reader.sections)
        at += size
        thought += [each.token_id for each in found[0]]
        content += [each.token_id for each in found[1]]
    reader.finish()
    found = divided.push((), reader.sections, is_last=True)
    thought += [each.token_id for each in found[0]]
    content += [each.token_id for each in found[1]]
    assert "".join(PIECES[each] for each in content) == reader.content == '{"é": 1}'
    assert [*thought, *content] == list(range(len(PIECES)))
    assert num_thought_tokens(range(len(PIECES)), 12, reader.sections, data_of) == 3  # the line break is none of it


def test_without_tokens_the_thought_is_estimated_from_the_text() -> None:
    sections = Sections("<t>abcd</t>x", start=11, thought=(3, 7))
    assert num_thought_tokens((), 24, sections, None) == 8
    assert num_thought_tokens((), 24, sections, lambda ids: []) == 8
    assert num_thought_tokens((), 24, Sections("abc"), None) == 0
