"""Small vocabularies for grammar tests: every byte, many pieces that cross JSON's joints, and the oddities of real ones."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.completion.token_budget import TokenBudget
from rtlang_grammars.spec.protocols import GrammarMatcher
from rtlang_grammars.spec.vocabulary import Vocabulary

_WORDS = """
true false null tr ue fal se nu ll 00 10 12 123 2024 -1 0. .5 e1 1e na me name age tags id value kind the and or ab abc abcd hello world
SELECT FROM WHERE ORDER BY select from * = ( ) () , ;
"""
_JOINTS = ('{"', '"}', '"]', '",', '":', "[]", "{}", "[]", '""', '""', '["', '"]}', "}}", "}]", "]]")
_MORE = (
    ", ",
    ": ",
    '", "',
    '": ',
    '": "',
    '": [',
    '": {',
    "{\n",
    "\n",
    "\n\n",
    "  ",
    "    ",
    "a b",
    " a",
    " the",
    "é",
    "ü",
    "日本",
    "本",
    "😀",
)


@functools.cache
def small_vocabulary(*, has_end: bool = True, padding: int = 13) -> Vocabulary:
    """Ids 0-255 are the bytes; then pieces (some twice), an id without text, two special tokens, two end tokens and padding."""
    texts = [bytes([byte]) for byte in range(256)]
    texts += [piece.encode() for piece in (*_WORDS.split(), *_JOINTS, *_MORE)]
    texts += ["日".encode()[:2], "日".encode()[1:], "😀".encode()[:3], b"\x80\x80", b'\xe6"', b"{", b'"']
    texts.append(b"")
    specials = [len(texts), len(texts) + 1]
    texts += [b"<|start|>", b"<|tool|>"]
    ends = [len(texts), len(texts) + 1] if has_end else []
    texts += [b"<|end|>", b"<|stop|>"] if has_end else []
    return Vocabulary(tuple(texts), frozenset(ends), frozenset([*specials, *ends[:1]]), len(texts) + padding)


def without_letter(vocabulary: Vocabulary, letter: bytes) -> Vocabulary:
    """The vocabulary without the tokens that have a letter: texts that need it have no way on."""
    texts = tuple(b"" if letter in text else text for text in vocabulary.token_bytes)
    return replace(vocabulary, token_bytes=texts)


def spell(vocabulary: Vocabulary, text: str | bytes, rng: random.Random | None = None) -> list[int]:
    """Tokens that spell `text`: the longest that fit, or with `rng` any that fit."""
    data = text.encode() if isinstance(text, str) else text
    ids = vocabulary.ids_by_bytes()
    result: list[int] = []
    at = 0
    while at < len(data):
        fitting = [length for length in range(min(16, len(data) - at), 0, -1) if data[at : at + length] in ids]
        length = fitting[0] if rng is None else rng.choice(fitting)
        result.append(ids[data[at : at + length]])
        at += length
    return result


def allowed_ids(row: NDArray[np.int32]) -> list[int]:
    """The tokens whose bits are set."""
    return [int(i) for i in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))]


def random_text(
    vocabulary: Vocabulary,
    matcher: GrammarMatcher,
    keeper: TokenBudget,
    max_tokens: int,
    rng: random.Random,
    *,
    end_chance: float = 0.3,
) -> str:
    """A random walk through the masks under a keeper, up to `max_tokens` tokens. Advances both; the text is complete."""
    row = np.empty(vocabulary.num_mask_words, dtype=np.int32)
    tokens: list[int] = []
    ends_early = rng.random() < end_chance
    while len(tokens) < max_tokens and not matcher.is_terminated:
        matcher.fill_bitmask(row)
        choices = allowed_ids(row)
        assert choices, "no token is allowed"
        ends = [token for token in choices if token in vocabulary.eos_token_ids]
        if ends and (ends_early or len(ends) == len(choices)):
            break
        token = rng.choice([token for token in choices if token not in ends])
        taken = keeper.advance(matcher, token, max_tokens - len(tokens))
        if taken is None:
            break
        tokens.append(taken)
        assert keeper.num_tokens_needed <= max_tokens - len(tokens)
    assert matcher.is_accepting
    assert len(tokens) <= max_tokens
    return vocabulary.text_of(tokens).decode()
