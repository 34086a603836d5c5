"""Sequences grow by token ids; text is encoded where it enters. (Chat templates: tests/model/text/test_chat.py.)"""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ContextLengthError, ParameterError, RequestError
from rtlang.contract.request_graph import Arg, Ref, RoleEnd, RoleStart, TokenIds
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text
from tests.support.engine.fake_runner import FakeTokenizer

TOKENIZER: Any = FakeTokenizer()
EMPTY = TokenSequence()
LIMIT = 100


def grow(before: TokenSequence, *parts: Any) -> TokenSequence:
    return append_text(before, parts, TOKENIZER, {"who": "you"}, lambda ref: f"text {ref.node_id}/{ref.choice}", LIMIT)


def ids(text: str) -> tuple[int, ...]:
    return tuple(TOKENIZER.encode(text, is_start=False))


def test_a_sequence_begins_with_the_start_token_once() -> None:
    first = grow(EMPTY, "a")
    assert first.token_ids == (1, *ids("a"))
    assert grow(first, "b").token_ids == (1, *ids("ab"))
    assert grow(EMPTY).token_ids == ()


def test_references_and_inputs_are_text() -> None:
    assert grow(EMPTY, "x ", Ref(3, 1), " ", Arg("who")).token_ids == (1, *ids("x text 3/1 you"))


def test_token_ids_are_appended_without_a_start_token() -> None:
    assert grow(EMPTY, TokenIds((7, 0)), "a").token_ids == (7, 0, *ids("a"))
    assert grow(EMPTY, "a", TokenIds((1,)), "b").token_ids == (1, *ids("a"), 1, *ids("b"))
    with pytest.raises(ParameterError, match="token_ids = 259: expected ids from 0 to 258"):
        grow(EMPTY, TokenIds((259,)))
    with pytest.raises(ContextLengthError):
        grow(EMPTY, TokenIds((7,) * (LIMIT + 1)))


def test_messages_are_framed_and_remembered() -> None:
    asked = grow(EMPTY, RoleStart("user"), "hi", RoleEnd(), RoleStart("assistant"))
    assert asked.token_ids == (1, *ids("<user>hi</user><assistant>"))
    assert asked.conversation.messages == (("user", "hi"), ("assistant", ""))
    assert asked.conversation.is_open
    assert grow(asked, "yes", RoleEnd()).token_ids == (1, *ids("<user>hi</user><assistant>yes</assistant>"))


def test_a_conversation_after_text_has_no_start_token_of_its_own() -> None:
    assert grow(EMPTY, "a", RoleStart("user"), RoleEnd()).token_ids == (1, *ids("a<user></user>"))


def test_messages_do_not_nest() -> None:
    with pytest.raises(RequestError, match="inside a user message"):
        grow(EMPTY, RoleStart("user"), RoleStart("system"))
    with pytest.raises(RequestError, match="never opened"):
        grow(EMPTY, RoleEnd())


def test_what_was_there_is_never_changed() -> None:
    before = TokenSequence((7, 8, 9))
    assert grow(before, "a").token_ids[:3] == (7, 8, 9)
    assert before.token_ids == (7, 8, 9)


def test_what_is_too_long_is_refused_before_it_is_put_together() -> None:
    class Encoding(FakeTokenizer):
        def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]:
            raise AssertionError("a text that cannot fit is not encoded")

    for part in ("x" * 50, Arg("long"), Ref(0)):
        with pytest.raises(ContextLengthError) as caught:
            append_text(EMPTY, [part] * 100_000, Encoding(), {"long": "x" * 50}, lambda ref: "x" * 50, LIMIT)  # type: ignore[arg-type]
        assert caught.value.num_prompt_tokens == 150  # looked at no further than it had to
    with pytest.raises(ContextLengthError):
        grow(EMPTY, *[RoleStart("user"), RoleEnd()] * 100_000)


def test_a_sequence_may_be_exactly_as_long_as_the_model_takes() -> None:
    full = grow(grow(EMPTY, "x" * 50), "x" * 49)
    assert len(full) == len(full.token_ids) == LIMIT
    assert grow(full).token_ids == full.token_ids
    with pytest.raises(ContextLengthError, match="has at least 101 tokens; the context length"):
        grow(full, "x")


def test_a_long_chain_holds_every_token_once() -> None:
    chain = grow(EMPTY, "start")
    for _ in range(20_000):  # folding would make them one; what comes over the wire need not be folded
        chain = grow(chain)
    assert chain.token_ids == (1, *ids("start"))
    assert len(grow(chain, "x").own_ids) == 1
    del chain  # neither does letting go of it recurse
