"""The walk that docs/design/lexer.md draws: what the columns hold, from the trie to the mask."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.lowering.lexed_tables import LexedTables
from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar
from rtlang_grammars.machine.lexer_run.lexer_layout import (
    BYTES,
    CROSSINGS,
    END_WIN,
    ENDS,
    FIRST_KID,
    ITEM_AT,
    ITEMS,
    KID_STATE,
    KIDS,
    NODES,
    NUM_ITEMS,
    NUM_RANGES,
    NUM_TOKENS,
    RANGES,
    ROW,
    TAILS,
    TERMINAL,
)
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.lexed_grammars import place_after

GRAMMAR = 'start: N [DOTS N]\nN: /[0-9]+(\\.[0-9]+)?/\nDOTS: ".."'
TOKENS = (b"1", b"2", b".", b"..", b"..2", b".5", b" ", b"x")


def test_the_walk_of_the_design_note() -> None:
    end = len(TOKENS)
    vocabulary = Vocabulary((*TOKENS, b""), frozenset([end]), frozenset([end]), end + 1)
    tables = LexedTables(GRAMMAR, Budget(Limits(max_seconds=60.0)))
    grammar = LexedGrammar(VocabularyIndex(vocabulary), tables)
    assert tables.names == ["DOTS", "N"]
    place = place_after(grammar, b"1")
    assert place is not None
    assert (place.configuration.state, place.configuration.last, place.configuration.stacks) == (3, -1, 0)

    mask = grammar.mask(place.configuration).base
    allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
    assert allowed == [0, 1, 2, 3, 4, 5, end]

    tree = grammar.masks.tree

    def used(array: NDArray[np.int32], place: int, *columns: int) -> list[list[int]]:
        found: list[list[int]] = array[: tree.counts[place], list(columns)].tolist()
        return found

    assert tree.counts[NODES] == 3
    assert used(tree.ends, ENDS, END_WIN, NUM_RANGES, NUM_TOKENS, ROW) == [[0, 3, 4, -1], [1, 1, 1, -1], [0, 1, 1, -1]]
    assert used(tree.ranges, RANGES, 0, 1) == [[1, 2], [4, 5], [5, 7], [2, 3], [3, 4]]
    assert tree.counts[TAILS] == 0
    assert used(tree.crossings, CROSSINGS, TERMINAL, ITEM_AT, NUM_ITEMS, FIRST_KID) == [[1, 0, 4, 0], [0, 4, 1, 1]]
    assert used(tree.items, ITEMS, 0, 1, 3) == [[0, 1, 0], [2, 4, 1], [7, 8, 0], [8, 13, 0], [3, 4, 0]]
    assert used(tree.kids, KIDS, KID_STATE) == [[1], [0]]
    assert tree.data[: tree.counts[BYTES]].tobytes() == b"."


def test_parts_after_a_match() -> None:
    """After a name, 512 characters begin with one byte: half of them go on with it, half of them end it one byte ago."""
    characters = [chr(each) for each in range(0x4E00, 0x5000)]
    texts = ["a", "m", "match", "ma", *characters, *(each + "a" for each in characters[::7])]
    texts += [each + characters[-1] for each in characters[::5]]
    tokens = tuple(text.encode() for text in texts)
    vocabulary = Vocabulary((*tokens, b""), frozenset([len(tokens)]), frozenset([len(tokens)]), len(tokens) + 1)
    source = 'start: ("match" | NAME) MARK?\nNAME: /[a-z\\u4e00-\\u4eff]+/\nMARK: /[\\u4f00-\\u4fff]/'
    grammar = LexedGrammar(
        VocabularyIndex(vocabulary), LexedTables(source, Budget(Limits(max_seconds=60.0)), is_lark=True)
    )
    for prefix in ("", "a", "m", "ma", "match", "m\u4e00"):
        place = place_after(grammar, prefix.encode())
        assert place is not None
        mask = grammar.mask(place.configuration).base
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        expected = {text for text in texts if re.fullmatch(r"[a-z\u4e00-\u4eff]+[\u4f00-\u4fff]?", prefix + text)}
        assert {texts[each] for each in allowed.tolist() if each < len(texts)} == expected, prefix
    crossings = grammar.masks.tree.crossings[: int(grammar.masks.tree.counts[CROSSINGS])]
    assert (crossings[:, TERMINAL] < -1).any(), "no part follows a match"
