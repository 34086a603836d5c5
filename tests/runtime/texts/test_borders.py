"""Ends of messages in tokens, against the text that the templates write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from rtlang.contract.request_graph import RoleEnd, RoleStart, TokenIds
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.texts.borders import MessageEnds, chosen_ends, message_ends_of
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text
from tests.model.text.test_chat_tools import GRANITE, LLAMA, QWEN
from tests.support.engine.fake_runner import FakeTokenizer
from tests.support.models.tokenizer_kinds import tokenizer_json, write_tokenizer_kind

# SmolLM2 begins every conversation with a system message of its own.
SMOLLM = """{% for message in messages %}
{%- if loop.first and message.role != 'system' %}{{ '<|im_start|>system\\nYou are a helpful AI assistant.<|im_end|>\\n' }}{% endif %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
# Qwen3: a thought is dropped from answers before the last question, and the prompt of an answer may begin one.
THINKING = """{%- set last = namespace(at=-1) %}
{%- for message in messages %}{% if message.role == 'user' %}{% set last.at = loop.index0 %}{% endif %}{% endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and loop.index0 < last.at %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}"""
CLOSED_BY = {
    "smollm2": (SMOLLM, "<|im_end|>"),
    "qwen3": (THINKING, "<|im_end|>"),
    "hermes": (QWEN, "<|im_end|>"),
    "llama-3": (LLAMA, "<|eot_id|>"),
    "granite-3": (GRANITE, "<|end_of_text|>"),
}
_NAMES = [
    "<|im_start|>",
    "<|im_end|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|role|>",
    "<|end_role|>",
]
SPECIAL_NAMES = [*_NAMES, "<|end_of_text|>"]


def chat_tokenizer(path: Path, template: str) -> Tokenizer:
    """A byte-level tokenizer with the special tokens of these templates."""
    library = tokenizers.Tokenizer.from_str(tokenizer_json("byte_level", adds_bos=False))
    library.add_special_tokens(SPECIAL_NAMES)
    write_tokenizer_kind(path, "byte_level", adds_bos=False, chat_template=template)
    (path / "tokenizer.json").write_text(library.to_str(), encoding="utf-8")
    return Tokenizer.from_pretrained(path)


CHAT = (
    *(RoleStart("system"), "Be brief and say <|im_end|> or <|eot_id|> as text.", RoleEnd()),
    *(RoleStart("user"), "Who wrote this?", RoleEnd()),
    *(RoleStart("assistant"), "<think>\nhm\n</think>\n\nAda.", RoleEnd()),
    *(RoleStart("user"), "And when?\n", RoleEnd(), RoleStart("assistant")),
)


def sequence_of(tokenizer: Tokenizer, parts: Any, before: TokenSequence | None = None) -> TokenSequence:
    before = TokenSequence() if before is None else before
    ends = message_ends_of(tokenizer)
    return append_text(before, parts, tokenizer, {}, lambda ref: "", 10_000, message_ends=ends)


@pytest.mark.parametrize("name", CLOSED_BY)
def test_each_message_ends_after_the_token_that_closes_it(name: str, tmp_path: Path) -> None:
    template, closing = CLOSED_BY[name]
    tokenizer = chat_tokenizer(tmp_path, template)
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    closing_id = library.token_to_id(closing)
    assert message_ends_of(tokenizer).closing_ids == {closing_id}
    found = sequence_of(tokenizer, CHAT)
    texts = [library.decode(found.token_ids[:end], skip_special_tokens=False) for end in found.ends]
    contents = ["as text.", "this?", "Ada.", "when?\n"]
    assert len(texts) == len(contents)  # the names that the first message spells close nothing
    for index, (text, content) in enumerate(zip(texts, contents, strict=True)):
        assert text.endswith(content + closing)
        assert sum(each in text for each in contents) == index + 1


def test_ends_are_the_same_for_tokens_of_a_client_and_for_text_that_grows(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer(tmp_path, SMOLLM)
    whole = sequence_of(tokenizer, CHAT)
    assert sequence_of(tokenizer, [TokenIds(whole.token_ids)]).ends == whole.ends
    grown = TokenSequence()
    for start in range(0, len(CHAT), 3):
        grown = sequence_of(tokenizer, CHAT[start : start + 3], grown)
    assert grown.token_ids == whole.token_ids[: len(grown)]
    assert grown.ends == whole.ends


def test_an_end_that_the_template_rewrites_is_gone(tmp_path: Path) -> None:
    """The tokens of the text that was written anew have ends of their own."""
    tokenizer = chat_tokenizer(tmp_path, THINKING)
    first = sequence_of(tokenizer, CHAT[:9])
    assert len(first.ends) == 3
    later = sequence_of(tokenizer, CHAT[9:], first)
    assert later.ends == sequence_of(tokenizer, CHAT).ends
    assert first.ends[:2] == later.ends[:2]
    assert first.ends[2] > later.ends[2], "the thought is dropped from the answer"


def test_the_next_turn_of_a_chat_begins_with_the_last_end_although_the_prompt_of_an_answer_is_rewritten(
    tmp_path: Path,
) -> None:
    tokenizer = chat_tokenizer(tmp_path, THINKING)
    turn = sequence_of(tokenizer, (*CHAT[:6], RoleStart("assistant")))
    later = sequence_of(tokenizer, CHAT)
    assert later.token_ids[: len(turn)] != turn.token_ids, "the template writes no thought into earlier answers"
    last = max(chosen_ends(turn.ends))
    assert last == turn.ends[-1] == later.ends[1]
    assert later.token_ids[:last] == turn.token_ids[:last]


def test_the_first_and_the_last_ends_are_chosen() -> None:
    assert chosen_ends(()) == set()
    assert chosen_ends((4,)) == {4}
    assert chosen_ends((4, 9, 12, 30)) == {4, 12, 30}


def test_a_template_without_special_tokens_has_no_ends() -> None:
    tokenizer: Any = FakeTokenizer()
    found = MessageEnds(tokenizer)
    assert found.closing_ids == frozenset()
    assert found.find([1, 5, 6]) == ()


def test_a_template_that_refuses_everything_has_no_ends(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer(tmp_path, "{{ raise_exception('no') }}")
    assert message_ends_of(tokenizer).closing_ids == frozenset()
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["chat_template"]
