"""Random walks through the masks of a grammar with a lexer, completed."""

from __future__ import annotations

import functools
import random

import numpy as np

from rtlang_grammars.context_free.lark_library import library_constraint
from rtlang_grammars.lowering.lexed_tables import LexedTables
from rtlang_grammars.machine.lexed.lexed_completion import LexedCompletion
from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.lexed_grammars import place_after

_PIECES = ("\n", "\n    ", "    ", "\n\n", ":\n    ", "  ", ", ", " = ", "é")


@functools.cache
def walked_grammar(name: str, words: str) -> tuple[LexedGrammar, LexedCompletion]:
    """A grammar of the library, bound to a vocabulary of all bytes and of words, each with and without a blank before."""
    tokens = {bytes([byte]) for byte in range(1, 256)} | {piece.encode() for piece in _PIECES}
    for word in words.split():
        tokens |= {word.encode(), b" " + word.encode()}
    end = len(tokens)
    vocabulary = Vocabulary((*sorted(tokens), b""), frozenset([end]), frozenset([end]), end + 1)
    constraint = library_constraint(name)
    budget = Budget(Limits(max_seconds=60.0))
    grammar = LexedGrammar(
        VocabularyIndex(vocabulary), LexedTables(constraint.source, budget, indentation=constraint.indentation)
    )
    return grammar, LexedCompletion(grammar)


def in_grammar(name: str, text: str) -> bool:
    """Whether a text is complete under a grammar of the library."""
    reached = place_after(walked_grammar(name, "")[0], text.encode())
    return reached is not None and reached.is_complete


def random_walk(name: str, words: str, rng: random.Random, max_steps: int) -> str:
    """A text of tokens that the masks allow, half of them chosen by their first byte, and the shortest way found to complete it."""
    grammar, completion = walked_grammar(name, words)
    token_bytes, ends = grammar.index.vocabulary.token_bytes, grammar.index.vocabulary.eos_token_ids
    place, text = grammar.start_place, b""
    for _ in range(rng.randint(1, max_steps)):
        mask = grammar.mask(place.configuration).base
        ids = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
        ids = [each for each in ids if each not in ends]
        if not ids:
            break
        if rng.random() < 0.6:
            first = rng.choice(sorted({token_bytes[each][0] for each in ids}))
            ids = [each for each in ids if token_bytes[each][0] == first]
        token = rng.choice(ids)
        following = place_after(grammar, token_bytes[token], place.configuration)
        assert following is not None, (text, token_bytes[token])
        place, text = following, text + token_bytes[token]
    found, _ = completion.find(place.configuration)
    assert found is not None, text
    return (text + found).decode()
