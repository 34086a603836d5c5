"""Random walks through the masks of random Lark grammars: `python -m rtlang_grammars_bench.lark_walks --grammars 2000`.

A walk takes allowed tokens at random. Counted are, for each lexer:

- dead ends: no token is allowed and the text is not complete;
- tokens that a mask allows although their bytes, one after another, are refused, or the other way round;
- walks after which no completion was found, which may be a fault of the search.

The grammars are plain, rich (templates, counted repeats, imports, special tokens), or have indented lines. The vocabulary is every byte,
and all texts of two and some of three letters over the letters that the grammars mention. Faults are printed with their grammars, and the
exit status is 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from itertools import product

import numpy as np

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Indentation, Lexer
from rtlang_grammars.spec.errors import EmptyMaskError, GrammarError
from rtlang_grammars.spec.limits import Limits
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.random_indented_grammars import random_indented_grammar
from rtlang_grammars_bench.random_lark_grammars import LETTERS, random_grammar, rich_grammar

_MAX_TOKENS = 12
SPECIAL = (b"<|user|>", b"<|tool|>")
KINDS = ("plain", "rich", "indented")


def grammar_of(kind: str, rng: random.Random) -> tuple[str, Indentation | None]:
    """A random grammar of one of KINDS."""
    if kind == "indented":
        return random_indented_grammar(rng)
    if kind == "plain":
        return random_grammar(rng), None
    return rich_grammar(rng, tokens=rng.choice([(), ("<|user|>",), ("<|user|>", "<|tool|>")])), None


def small_vocabulary() -> Vocabulary:
    """All bytes, texts of two letters and some of three, and an end token."""
    letters = sorted(set(LETTERS))
    texts = [a + b for a, b in product(letters, repeat=2)]
    texts += ["if ", "1.1", " if", "1..", "a a", "''a", '"a"', "é= ", "=é1", "..a", "- -", "\n a", "abé"]
    texts += ["\n  ", "\n\t", ":\n    ", "a\n", "\n\n  a", "(\n"]
    tokens = (*(bytes([byte]) for byte in range(256)), *(each.encode() for each in texts), *SPECIAL, b"")
    end = len(tokens) - 1
    return Vocabulary(tokens, frozenset([end]), frozenset(range(end - len(SPECIAL), end + 1)), len(tokens))


class Walker:
    """Walks through one grammar after another."""

    def __init__(self, vocabulary: Vocabulary, counts: Counter[str]) -> None:
        self._vocabulary, self._counts = vocabulary, counts
        self._row = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.int32)
        self._likely = [each for each, data in enumerate(vocabulary.token_bytes) if 32 <= min(data, default=0) < 127]

    def walk(self, grammar: RtlangGrammar, lexer: str, rng: random.Random, *, checks_tokens: bool) -> str | None:
        """One walk; returns the fault that it met."""
        matcher, text, counts = grammar.matcher(), b"", self._counts
        counts[f"{lexer}: walks"] += 1
        for _ in range(_MAX_TOKENS):
            try:
                matcher.fill_bitmask(self._row)
            except EmptyMaskError:
                counts[f"{lexer}: dead ends"] += 1
                return f"dead end after {text!r}"
            bits = np.unpackbits(self._row.view(np.uint8), bitorder="little")
            allowed = np.flatnonzero(bits).tolist()
            if checks_tokens:
                fault = self._fault(matcher, bits, rng)
                if fault is not None:
                    counts[f"{lexer}: tokens that differ from their bytes"] += 1
                    return f"after {text!r}: {fault}"
            token = rng.choice(allowed)
            data = self._vocabulary.token_bytes[token]
            if not data:
                return None
            if not matcher.accept_token(token):
                counts[f"{lexer}: allowed tokens that are refused"] += 1
                return f"after {text!r}: {data!r} is allowed and refused"
            text += data
        if matcher.closing_bytes() is None:
            counts[f"{lexer}: walks without a completion"] += 1
            return f"no completion after {text!r}"
        return None

    def _fault(self, matcher, bits, rng: random.Random) -> str | None:  # type: ignore[no-untyped-def]
        for token in rng.sample(range(256, self._vocabulary.vocab_size - 1 - len(SPECIAL)), 40):
            data, fork = self._vocabulary.token_bytes[token], matcher.fork()
            if all(fork.accept_token(byte) for byte in data) != bits[token]:
                return f"{data!r} is {'allowed' if bits[token] else 'refused'}, its bytes are not"
        return None


def main(arguments: list[str] | None = None) -> int:
    """Print faults and counts; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grammars", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kind", choices=KINDS, default="plain")
    parser.add_argument("--walks", type=int, default=3, help="walks through each grammar")
    parser.add_argument("--lexer", choices=[each.value for each in Lexer], action="append")
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after this time")
    parser.add_argument("--show", type=int, default=5, help="faults that are printed")
    options = parser.parse_args(arguments)
    vocabulary, counts = small_vocabulary(), Counter[str]()
    backend = RtlangBackend.create(vocabulary, limits=Limits(max_seconds=20.0))
    walker, num_faults = Walker(vocabulary, counts), 0
    until = time.monotonic() + options.seconds
    for seed in range(options.first, options.first + options.grammars):
        rng = random.Random(seed)
        source, indentation = grammar_of(options.kind, rng)
        for lexer in options.lexer or ["longest", "lark"]:
            try:
                constraint = Constraint(ConstraintKind.LARK, source, lexer=Lexer(lexer), indentation=indentation)
                grammar = backend.compile(constraint)
            except GrammarError as error:
                counts[f"{lexer}: refused: {' '.join(str(error).split()[:9])}"] += 1
                continue
            counts[f"{lexer}: grammars"] += 1
            for number in range(options.walks):
                fault = walker.walk(grammar, lexer, rng, checks_tokens=number == 0)
                if fault is not None:
                    num_faults += 1
                    if num_faults <= options.show:
                        print(f"seed {seed}, lexer={lexer}: {fault}\n{source}", flush=True)
        if time.monotonic() > until:
            break
    for name, count in sorted(counts.items()):
        print(f"{count:9} {name}")
    return 1 if num_faults else 0


if __name__ == "__main__":
    sys.exit(main())
