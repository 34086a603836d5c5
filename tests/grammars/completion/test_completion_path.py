"""Costs of suffixes, against a plain dynamic program per suffix."""

from __future__ import annotations

import random

from rtlang_grammars.completion.completion_path import UNREACHABLE, CompletionPath, TokenTable
from rtlang_grammars.spec.tokens import spelling
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.vocabularies import small_vocabulary

VOCABULARY = small_vocabulary()
TABLE = TokenTable(VOCABULARY)


def test_costs_are_the_fewest_tokens_for_every_suffix() -> None:
    rng = random.Random(5)
    ids = VOCABULARY.ids_by_bytes()

    def fewest(data: bytes) -> int:
        best = [0] + [UNREACHABLE] * len(data)
        for end in range(1, len(data) + 1):
            best[end] = 1 + min(best[start] for start in range(end) if data[start:end] in ids)
        return best[-1]

    for _ in range(30):
        data = b"".join(VOCABULARY.token_bytes[rng.randrange(len(VOCABULARY.token_bytes) - 4)] for _ in range(6))
        path = CompletionPath(data, TABLE)
        for offset in range(len(data) + 1):
            assert path.cost(offset) == fewest(data[offset:])
            assert len(path.token_ids(offset)) == path.cost(offset)
            assert VOCABULARY.text_of(path.token_ids(offset)) == data[offset:]
        longer = CompletionPath(b'{"k": ' + data[3:], TABLE, (path, min(3, len(data))))
        assert [longer.cost(i) for i in range(len(longer.data))] == [
            fewest(longer.data[i:]) for i in range(len(longer.data))
        ]


def test_special_tokens_cost_one_token_each() -> None:
    start, tool = (VOCABULARY.tokens.names[name] for name in ("<|start|>", "<|tool|>"))
    data = b"ab" + spelling(start) + spelling(tool) + b"c"
    path = CompletionPath(data, TABLE)
    (ab, c) = (TABLE.ids[text] for text in (b"ab", b"c"))
    assert path.token_ids() == [ab, start, tool, c]
    assert path.cost(2) == 3
    assert path.token_ids(7) == [tool, c]
    assert [path.num_first_bytes(offset) for offset in (0, 2, 12)] == [2, 5, 1]
    assert path.fits(4)
    assert not path.fits(3)
    assert CompletionPath(data[:-2], TABLE).cost() >= UNREACHABLE  # cut off: the bytes of a spelling are no text
    assert CompletionPath(b"\xff", TABLE).cost() >= UNREACHABLE


def test_bytes_that_no_token_spells_cost_more_than_any_budget() -> None:
    table = TokenTable(Vocabulary((b"a", b"b"), frozenset(), frozenset(), 2))
    path = CompletionPath(b"acb", table)
    assert [path.cost(offset) >= UNREACHABLE for offset in range(4)] == [True, True, False, False]


def test_what_fits_is_what_the_cost_says() -> None:
    rng = random.Random(6)
    poor = TokenTable(Vocabulary((b"a", b"b", b"ab"), frozenset(), frozenset(), 3))
    assert TABLE.has_every_byte
    assert not poor.has_every_byte
    for table, letters in ((TABLE, b"the name"), (poor, b"abc")):
        for _ in range(20):
            data = bytes(rng.choice(letters) for _ in range(rng.randrange(12)))
            for offset in range(len(data) + 1):
                limit = rng.randrange(14)
                assert CompletionPath(data, table).fits(limit, offset) == (
                    CompletionPath(data, table).cost(offset) <= limit
                )
