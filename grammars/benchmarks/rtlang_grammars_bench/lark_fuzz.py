"""Random Lark grammars against `lark`: `python -m rtlang_grammars_bench.lark_fuzz --grammars 2000`.

Each grammar has terminals that overlap, with priorities, flags, look-around and ignored text. Its texts are judged by three pairs:

- `lexer="lark"` and lark's LALR parser with the contextual lexer, where the grammar has no conflicts;
- `lexer="longest"` and the same parser behind a lexer of a few lines, which tries every terminal and every length with Python's `re`;
- `lexer="anywhere"` and lark's Earley parser with the `dynamic_complete` lexer, where the grammar has conflicts. Left out are
  look-around, which sees the terminal alone under `anywhere`, expressions whose preferred match is not the longest (lark tries prefixes
  of that only), and ignored comments (lark ignores the preferred match only, `anywhere` also its prefixes).

Grammars that either side refuses are counted. A difference is printed with its grammar, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from typing import Any

import lark
from lark.lexer import PatternStr, TerminalDef, Token

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Limits
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.random_lark_grammars import random_grammar, random_texts, rich_grammar

_END = 256
_BEYOND_ANYWHERE = ("(?=", "(?!", "(?<", r"\b", "+?", "*?", "/a|ab/", "x(ab|a)", "%ignore /#")
_NUM_TEXTS = 40


def byte_backend() -> RtlangBackend:
    """A backend whose tokens are single bytes."""
    tokens = (*(bytes([byte]) for byte in range(256)), b"")
    vocabulary = Vocabulary(tokens, frozenset([_END]), frozenset([_END]), _END + 1)
    return RtlangBackend.create(vocabulary, limits=Limits(max_seconds=20.0))


def accepts(grammar: RtlangGrammar, text: str) -> bool:
    """Whether a text is complete."""
    matcher = grammar.matcher()
    return all(matcher.accept_token(byte) for byte in text.encode()) and matcher.is_accepting


def parses(parser: lark.Lark, text: str) -> bool | None:
    """Whether lark's parser takes a text; None where its Earley parser reports a fault of its own."""
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    except RuntimeError:
        return None
    return True


class LongestMatch:
    """lark's LALR parser behind a lexer that takes the longest match."""

    def __init__(self, parser: lark.Lark) -> None:
        self._parser = parser
        by_lark = sorted(
            parser.terminals, key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name)
        )
        self._terminals = sorted(by_lark, key=lambda t: (-t.priority, not isinstance(t.pattern, PatternStr)))
        self._ignored = set(parser.ignore_tokens)

    def parses(self, text: str) -> bool:
        """Whether the text belongs to the grammar."""
        state = self._parser.parse_interactive("")
        at = 0
        while at < len(text):
            expected = {*state.choices(), *self._ignored}
            found = self._longest(text, at, [each for each in self._terminals if each.name in expected])
            if found is None:
                return False
            name, end = found
            try:
                if name not in self._ignored:
                    state.feed_token(Token(name, text[at:end]))
            except lark.exceptions.UnexpectedToken:
                return False
            at = end
        try:
            state.feed_eof()
        except lark.exceptions.UnexpectedToken:
            return False
        return True

    def _longest(self, text: str, at: int, terminals: list[TerminalDef]) -> tuple[str, int] | None:
        for end in range(len(text), at, -1):
            for terminal in terminals:
                if end in self._ends(terminal.pattern.to_regexp(), text, at):
                    return terminal.name, end
        return None

    def _ends(self, pattern: str, text: str, at: int) -> set[int]:
        """Where matches from a place may end; with lazy quantifiers only where Python's order has it end."""
        if re.search(r"[*+?]\?", pattern):
            found = re.compile(pattern).match(text, at)
            return set() if found is None else {found.end()}
        return {
            end
            for end in range(at + 1, len(text) + 1)
            if re.compile(rf"(?:{pattern})(?<=\A[\s\S]{{{end}}})").match(text, at)
        }


def compiled(backend: RtlangBackend, source: str, lexer: Lexer) -> RtlangGrammar | str:
    """A grammar, or why it is refused."""
    try:
        return backend.compile(Constraint(ConstraintKind.LARK, source, lexer=lexer))
    except GrammarError as error:
        return str(error)


def compare(backend: RtlangBackend, seed: int, counts: Counter[str], *, is_rich: bool = False) -> list[str]:
    """Differences of one grammar."""
    rng = random.Random(seed)
    source = rich_grammar(rng) if is_rich else random_grammar(rng)
    texts = random_texts(rng, source, _NUM_TEXTS)
    pairs: list[tuple[Lexer, Any]] = []
    try:
        parser = lark.Lark(source, parser="lalr", lexer="contextual", strict=False)
        counts["grammars without conflicts"] += 1
        pairs = [(Lexer.LARK, lambda text: parses(parser, text)), (Lexer.LONGEST, LongestMatch(parser).parses)]
    except lark.exceptions.LarkError:
        if any(each in source for each in _BEYOND_ANYWHERE):
            counts["grammars with conflicts, left out"] += 1
            return []
        try:
            earley = lark.Lark(source, parser="earley", lexer="dynamic_complete")
        except lark.exceptions.LarkError:
            counts["grammars that lark refuses"] += 1
            return []
        counts["grammars with conflicts"] += 1
        pairs = [(Lexer.ANYWHERE, lambda text: parses(earley, text))]
    found = []
    for lexer, oracle in pairs:
        grammar = compiled(backend, source, lexer)
        if isinstance(grammar, str):
            counts[f"{lexer.value}: refused"] += 1
            if "matches no string" in grammar and any(oracle(text) for text in texts):
                found.append(f"seed {seed}, lexer={lexer.value}: refused as empty\n{source}")
            continue
        if lexer is not Lexer.ANYWHERE and grammar.machine.tables.rules.num_conflicts:  # type: ignore[union-attr]
            counts[f"{lexer.value}: has conflicts that lark decides"] += 1
            continue
        for text in texts:
            expected = oracle(text)
            if expected is None:
                counts[f"{lexer.value}: texts at which lark fails"] += 1
                continue
            counts[f"{lexer.value}: texts"] += 1
            counts[f"{lexer.value}: accepted"] += expected
            if accepts(grammar, text) != expected:
                found.append(f"seed {seed}, lexer={lexer.value}: {text!r} should be {expected}\n{source}")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print differences and counts; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grammars", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--rich", action="store_true", help="grammars with templates, repeats, imports, aliases and groups"
    )
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after this time")
    options = parser.parse_args(arguments)
    backend, counts = byte_backend(), Counter[str]()
    until, num_differences = time.monotonic() + options.seconds, 0
    for seed in range(options.first, options.first + options.grammars):
        differences = compare(backend, seed, counts, is_rich=options.rich)
        num_differences += len(differences)
        for each in differences[:1]:
            print(each, flush=True)
        counts["grammars"] += 1
        if time.monotonic() > until:
            break
    for name, count in sorted(counts.items()):
        print(f"{count:9} {name}")
    print(f"{num_differences:9} differences")
    return 1 if num_differences else 0


if __name__ == "__main__":
    sys.exit(main())
