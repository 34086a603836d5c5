"""Patterns of terminals against Python's `re`, and look-around that cannot be held."""

from __future__ import annotations

import random
import re

import pytest

from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar

PATTERNS = [
    r"a(b|c)*d?",
    r"[^a-c]+",
    r"\w+",
    r"\d{2,3}",
    r"(?i:straße|k)",
    r"(a|é|日){1,2}",
    r"a*?b",
    r"[à-ÿ]x|.\n",
    r"(?s:.)b",
    r"\"(\\.|[^\"\\])*\"",
    r"\*(a|\*(?!/))*\*/",
    r"\"[^\"]*(?<!\\)\"",
    r"(?a:\w)\w",
    r"x(?!ab)(a|b)+c",
    r"[\U0001F600-\U0001F64F]|\u00e9",
]
LETTERS = 'abcdxé日ßſK12 \n"\\*/😀İ'


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_terminal_matches_what_its_pattern_matches_in_full(pattern: str) -> None:
    grammar = lexed_grammar(f"start: A\nA: /{pattern.replace('/', chr(92) + '/')}/")
    rng = random.Random(pattern)
    texts = {"".join(rng.choice(LETTERS) for _ in range(rng.randint(1, 4))) for _ in range(400)}
    texts |= {
        "abcd",
        "ab",
        "12",
        "straße",
        "STRASSE",
        "éa",
        '"a"',
        '"\\""',
        "*a**/",
        "**/",
        "xbc",
        "xaac",
        "xabc",
        "😀",
        "K",
    }
    for text in sorted(texts):
        expected = re.fullmatch(pattern, text) is not None
        if expected and "?" in pattern and (found := re.match(pattern, text)) and found.group() != text:
            continue  # a lazy pattern ends earlier
        assert accepts(grammar, text) == expected, text


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(?<=a)b", "look-behind at the start of a terminal"),
        ("^a", "beginning"),
        ("a$", r"\$ is not supported"),
        ("(a)\\1", "a back-reference is not supported"),
        ("a(?=b+)", "look-ahead over at most 8 characters"),
        ("a??", "empty string"),
        ("a|.\\b", "may or may not be a word character"),
        ("(?:){4000000000}a", "counts to more than 10000"),
        ('"(?!"{9}).+?"{10}', "together with a lazy quantifier"),
    ],
)
def test_what_cannot_be_held_is_refused_by_name(pattern: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        lexed_grammar(f"start: A\nA: /{pattern}/")
    assert "terminal A" in str(caught.value)


@pytest.mark.parametrize(
    "members", ["0-9a-z_", "[", "\\x80-\\U0010ffff", "à-ÿ0-9", "\\u4e00-\\u9fff日a", "^ \\n", "\\U0001F600-\\U0001F64F"]
)
def test_look_ahead_at_a_character_beyond_ascii_is_that_of_re(members: str) -> None:
    after = "a0[_ \n\x7f\x80éàÿŀ߿ࠀ一日鿿ꀀ퟿\ue000😀🙏\U0010ffff"
    for sign in "!=":
        pattern = f"a(?{sign}[{members.replace('[', chr(92) + '[')}])"
        grammar = lexed_grammar(f"start: A B?\nA: /{pattern}/\nB: /(?s:.)/")
        for character in after:
            assert accepts(grammar, "a" + character) == (re.match(pattern, "a" + character) is not None), character


def test_look_ahead_sees_one_byte_where_the_first_byte_decides() -> None:
    lexed = lexed_grammar("start: A B\nA: /a(?![a-z_])/\nB: /é|[0-9]/")
    assert not any(lexed.tables.automaton.pending)
    lexed = lexed_grammar("start: A B\nA: /a(?![\\u0800-\\u0fff])/\nB: /é|ༀ|က/")
    assert not any(lexed.tables.automaton.pending)
    assert accepts(lexed, "aက")
    assert not accepts(lexed, "aༀ")
    lexed = lexed_grammar("start: A B\nA: /a(?!é)/\nB: /é|è/")
    assert any(lexed.tables.automaton.pending)
    assert accepts(lexed, "aè")
    assert not accepts(lexed, "aé")


def test_branches_with_equal_loops_share_the_states_after_them() -> None:
    branches = "|".join(f"{letter}[0-9a-z_]*" for letter in "abcdefgh")
    lexed = lexed_grammar(f"start: A\nA: /{branches}/")
    assert lexed.tables.automaton.is_start.count(False) == 1
    nested = lexed_grammar("start: A B\nA: /(ab*|cb*)+/\nB: /[0-9]/")
    assert accepts(nested, "abbcb1")
    assert not accepts(nested, "b1")
