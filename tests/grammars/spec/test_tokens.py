"""Tokens by name and id: how they are read, found in a vocabulary, and spelled."""

from __future__ import annotations

import random

import pytest

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.tokens import (
    AnyTokens,
    SpecialTokens,
    SpellingAutomaton,
    TokenSet,
    normalized,
    read_token,
    segments_of,
    spelling,
    token_at,
)
from tests.support.grammars.vocabularies import small_vocabulary

TOKENS = SpecialTokens((b"a", b"<|x|>", b"", b"<|x|>y", b"<b>", b"<|end|>"), (1, 3, 5), (5,))


def test_a_spelling_is_no_text_and_is_read_back() -> None:
    for token_id in (0, 1, 63, 64, 4095, 4096, 151_643, (1 << 20) - 1):
        data = spelling(token_id)
        assert token_at(data, 0) == token_id
        assert token_at(data[:-1], 0) is None
        with pytest.raises(UnicodeDecodeError):
            data.decode()
    data = b"a" + spelling(7) + spelling(8) + "é".encode() + spelling(9)
    assert segments_of(data) == [b"a", 7, 8, "é".encode(), 9]
    assert segments_of(data[:-2]) == [b"a", 7, 8, "é".encode()]
    assert segments_of(b"") == []


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("<|x|>", TokenSet(names=("<|x|>",))),
        ("<[5]>", TokenSet(ranges=((5, 5),))),
        ("<[1, 5,10-20 ]>", TokenSet(ranges=((1, 1), (5, 5), (10, 20)))),
        ("<[^5]>", TokenSet(ranges=((5, 5),), is_negated=True)),
        ("<[*]>", TokenSet(is_negated=True)),
    ],
)
def test_tokens_are_read(written: str, expected: TokenSet) -> None:
    found = read_token(written)
    assert (found.names, found.ranges, found.is_negated) == (expected.names, expected.ranges, expected.is_negated)


@pytest.mark.parametrize("written", ["<[]>", "<[a]>", "<[1,]>", "<[3-1]>", "<[^]>", "<[-1]>"])
def test_malformed_ids_are_refused(written: str) -> None:
    with pytest.raises(GrammarError, match=r"expected token ids|out of order"):
        read_token(written)


def test_names_and_ids_are_found_in_the_vocabulary() -> None:
    assert TOKENS.resolve(read_token("<|x|>")) == ((1, 1),)
    assert TOKENS.resolve(read_token("<b>")) == ((4, 4),)  # text whose bytes are the name
    assert TOKENS.resolve(read_token("<[0-4]>")) == ((0, 1), (3, 4))  # 2 is no token
    assert TOKENS.resolve(read_token("<[^1]>")) == ((0, 0), (3, 4))  # end tokens must be named
    assert TOKENS.resolve(read_token("<[*]>")) == ((0, 1), (3, 4))
    assert TOKENS.resolve(read_token("<[4-5]>")) == ((4, 5),)


def test_unknown_tokens_are_refused_with_what_is_known() -> None:
    with pytest.raises(GrammarError, match=r"no token <\|xx\|>; did you mean <\|x\|>"):
        TOKENS.resolve(read_token("<|xx|>"))
    with pytest.raises(GrammarError, match=r"no token <tool_call>; its special tokens: <\|end\|>, <\|x\|>, <\|x\|>y"):
        TOKENS.resolve(read_token("<tool_call>"))
    with pytest.raises(GrammarError, match="no token 6; its ids go from 0 to 5"):
        TOKENS.resolve(read_token("<[3-6]>"))
    with pytest.raises(GrammarError, match="no token of the vocabulary is left"):
        TOKENS.resolve(read_token("<[2]>"))
    with pytest.raises(GrammarError, match=r"<\[\^0-4\]>: no token of the vocabulary is left"):
        TOKENS.resolve(read_token("<[^0-4]>"))
    with pytest.raises(GrammarError, match="no special tokens"):
        SpecialTokens((b"a",)).resolve(read_token("<|x|>"))


def test_the_longest_name_in_a_text_stands_for_its_token() -> None:
    assert TOKENS.segments("a<|x|>b<|x|>y<|end|>") == ("a", 1, "b", 3, 5)
    assert TOKENS.segments("<|x|") == ("<|x|",)
    assert TOKENS.segments("") == ()
    assert TOKENS.spell("é<|x|>") == "é".encode() + spelling(1)
    assert TOKENS.name_in("a<|x|>y<|end|>") == "<|x|>y"
    assert TOKENS.name_in("plain <b>") is None
    with pytest.raises(GrammarError, match="surrogate"):
        TOKENS.spell("\ud800")


def test_blanks_and_single_characters_are_no_names_within_texts() -> None:
    tokens = SpecialTokens((b" ", b"\n\n", b"x", b"<s>"), (0, 1, 2, 3))
    assert tokens.segments("x  \n\n<s>") == ("x  \n\n", 3)
    assert tokens.resolve(TokenSet(names=("x",))) == ((2, 2),)


def test_without_a_vocabulary_every_name_is_a_token_of_its_own() -> None:
    tokens = AnyTokens()
    first, second = (tokens.resolve(read_token(f"<{name}>")) for name in "ab")
    assert first != second
    assert tokens.resolve(read_token("<a>")) == first
    assert tokens.resolve(read_token("<[5]>")) == ((5, 5),)
    assert tokens.segments("<a>") == ("<a>",)


def test_the_digest_tells_vocabularies_apart() -> None:
    texts = (b"a", b"<x>", b"b")
    digests = {
        SpecialTokens(*each).digest for each in ((texts, (1,)), (texts, (1, 2)), (texts[:2], (1,)), (texts[::-1], (1,)))
    }
    assert len(digests) == 4
    assert SpecialTokens(texts, (1,)).digest == SpecialTokens(texts, (1,)).digest


@pytest.mark.parametrize("seed", range(8))
def test_the_automaton_takes_the_spellings_of_its_tokens_and_no_others(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.choice([70, 5000, 300_000])
    ends = [sorted(rng.randrange(count) for _ in range(2)) for _ in range(rng.randint(1, 5))]
    ranges = normalized((first, last) for first, last in ends)
    states = SpellingAutomaton.of(ranges).states

    def takes(data: bytes) -> bool:
        state = 0
        for byte in data:
            found = [to for first, last, to in states[state] if first <= byte <= last]
            if not found:
                return False
            (state,) = found
        return not states[state]

    near = {max(0, each + by) for pair in ranges for each in pair for by in range(-66, 67)}
    for token_id in (*near, *(rng.randrange(count + 100) for _ in range(300))):
        assert takes(spelling(token_id)) == any(first <= token_id <= last for first, last in ranges)


def test_a_vocabulary_spells_special_tokens_and_shows_their_names() -> None:
    vocabulary = small_vocabulary()
    tool = vocabulary.tokens.names["<|tool|>"]
    assert vocabulary.spelled(tool) == spelling(tool)
    assert vocabulary.spelled(97) == b"a"
    assert vocabulary.spelled(-1) == vocabulary.spelled(10_000) == b""
    assert vocabulary.shown([97, tool]) == b"a<|tool|>"
    assert vocabulary.text_of([97, tool]) == b"a"
