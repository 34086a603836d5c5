"""Terms that allow every plain prefix, checked against a search over strings."""

from __future__ import annotations

import itertools

import pytest

from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE
from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.spec.limits import Budget

ALLOWS_PLAIN_PREFIXES = [
    "(?=.*a)(?=.*b).*",
    ".*",
    ".+",
    "(?=.*[0-9])(?=[^]*x[a-c]+.*).{3,}",
    r"(?=.*a)(?=.*b)(?=.*c)[^\n]*",
    "(?:x|.*ab.*)",
]
REJECTS_SOME = [
    "(?=.*a).{0,5}",
    "(?=.*a)[ab]*",
    "a.*",
    ".*a",
    "(?=.*\n).*",
    "(?!.*a).*",
    r"(?=.*a\n).*b.*",
    "(?=a)(?=.*b).*",
]
ALPHABET = "ab0x c"


@pytest.mark.parametrize("pattern", [*ALLOWS_PLAIN_PREFIXES, *REJECTS_SOME])
def test_a_term_with_all_plain_prefixes_rejects_no_plain_string(pattern: str) -> None:
    language = compile_regex(pattern)
    automaton = language._code_point_automaton(Budget())
    allows_all = (
        automaton._dead_ends.has_all_plain_prefixes(automaton._configurations[automaton.start][0])
        if automaton.start != NO_STATE
        else False
    )
    assert allows_all is (pattern in ALLOWS_PLAIN_PREFIXES)
    if not allows_all:
        return
    assert automaton.free_length(automaton.start, 4, Budget()) is None
    for text in map("".join, itertools.chain.from_iterable(itertools.product(ALPHABET, repeat=n) for n in range(4))):
        ends = ("", "a", "b", "ab", "abc", "aab0x a", "cba0xcc", "xabc0")
        assert any(language.accepts(text + end) for end in ends), text


def test_many_lookaheads_create_few_states() -> None:
    language = compile_regex("".join(f"(?=.*{letter})" for letter in "abcdefghijklmnop") + ".*")
    automaton = language._code_point_automaton(Budget())
    assert automaton.free_length(automaton.start, 16, Budget()) is None
    assert automaton.num_states < 20
    assert language.accepts("ponmlkjihgfedcba")
    assert not language.accepts("ponmlkjihgfedcb")
