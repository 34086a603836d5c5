"""Shown text never holds part of a stop, and ends where a search over the whole text would end it."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.engine.constraints.stop_search import compile_stop_patterns
from rtlang.engine.requests.detokenizer import IncrementalDetokenizer, longest_token_prefix
from rtlang.model.text.tokenizer import IncrementalDecoder
from tests.support.engine.fake_runner import FakeTokenizer
from tests.support.long_tests import sized

TOKENIZER = FakeTokenizer()


def stream(text: str, params: SamplingParams) -> tuple[list[str], IncrementalDetokenizer, str | None]:
    """Push the bytes of `text` one by one; returns what was shown, the object, and the stop."""
    patterns = compile_stop_patterns(params.stop_regex)
    output = IncrementalDetokenizer(TOKENIZER, params, patterns=patterns)  # type: ignore[arg-type]
    shown = []
    for token in TOKENIZER.encode(text, is_start=False):
        piece, stop = output.push(token, may_stop=True)
        shown.append(piece)
        if stop is not None:
            return shown, output, stop.match
    piece, stop = output.finish()
    return [*shown, piece], output, stop.match if stop else None


@pytest.mark.parametrize("seed", range(sized(200)))
def test_stops_cut_where_a_search_token_by_token_would(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choice("abé漢\n") for _ in range(rng.randint(0, 40)))
    stops = tuple({"".join(rng.choice("abé\n") for _ in range(rng.randint(1, 4))) for _ in range(rng.randint(1, 3))})
    expected, match = text, None
    for end in range(len(text) + 1):  # the first prefix that holds a stop is the moment of stopping
        found = [(text[:end].find(stop), stop) for stop in stops if stop in text[:end]]
        if found:
            at, match = min(found)
            expected = text[:at]
            break
    shown, output, stop = stream(text, SamplingParams(stop=stops))
    assert "".join(shown) == output.text == expected
    assert (stop is None) == (match is None)
    assert TOKENIZER.decode(output.token_ids) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"\d+ apples", "we ate 12 apples", "we ate "),
        (r"\n\s*\n", "one\n  two\n\nthree", "one\n  two"),
        (r"(?i)stop", "do StOp it", "do "),
        (r"x{3}", "axxbxxxc", "axxb"),
        (r"never", "nothing to see", "nothing to see"),
        (r"\bfor\b", "the forest is for us", "the forest is "),
        (r"\bsle\b", "a sleepy wolf", "a sleepy wolf"),
        (r"\bwolf\b", "a sleepy wolf", "a sleepy "),
        (r"foo(?!bar)", "foobar, foobaz", "foobar, "),
        (r"foo(?!bar)", "foobar", "foobar"),
        (r"foo(?=bar)", "foobaz foobar", "foobaz "),
        (r"\.$", "3.5 and 4.", "3.5 and 4"),
        (r"a\Z", "banana", "banan"),
    ],
)
def test_patterns_hold_back_what_may_still_match(pattern: str, text: str, expected: str) -> None:
    shown, output, stop = stream(text, SamplingParams(stop_regex=(pattern,)))
    assert "".join(shown) == output.text == expected
    assert (stop == pattern) == bool(re.search(pattern, text))


@pytest.mark.parametrize(
    ("params", "text", "expected", "stop"),
    [
        (SamplingParams(stop=("\n",), stop_regex=(r"\bEND\b",)), "abc END\ndef", "abc ", r"\bEND\b"),
        (SamplingParams(stop=("\n",), stop_regex=(r"\bEND\b",)), "abc ENDED\nEND", "abc ENDED", "\n"),
        (SamplingParams(stop_regex=(r"\bEND\b", r"\.")), "abc END. def", "abc ", r"\bEND\b"),
        (SamplingParams(stop_regex=(r"\bEND\b", r"\.")), "abc ENDED. def", "abc ENDED", r"\."),
        (SamplingParams(stop=("c E",), stop_regex=(r"\bEND\b",)), "abc END", "ab", "c E"),
    ],
)
def test_of_the_stops_that_one_character_makes_certain_the_first_wins(
    params: SamplingParams, text: str, expected: str, stop: str
) -> None:
    shown, output, found = stream(text, params)
    assert ("".join(shown), output.text, found) == (expected, expected, stop)


def test_text_without_stops_is_shown_at_once() -> None:
    shown, _, _ = stream("abc", SamplingParams())
    assert shown == ["a", "b", "c", ""]


def test_a_held_end_is_shown_when_nothing_follows() -> None:
    shown, output, stop = stream("abc END", SamplingParams(stop=("END.",)))
    assert shown[-1] == "END"
    assert (output.text, stop) == ("abc END", None)


def test_patterns_that_are_compiled_later_are_searched() -> None:
    output = IncrementalDetokenizer(TOKENIZER, SamplingParams(stop=("x",), stop_regex=("b+c",)))  # type: ignore[arg-type]
    output.search_for(compile_stop_patterns(("b+c",)))
    found = [output.push(token, may_stop=True) for token in TOKENIZER.encode("abbc", is_start=False)]
    assert [text for text, _ in found] == ["a", "", "", ""]
    assert found[-1][1] is not None
    assert (found[-1][1].match, output.text) == ("b+c", "a")


def test_text_before_min_tokens_has_no_stop_but_is_looked_back_at() -> None:
    patterns = compile_stop_patterns((r"(?<=ab)c", r"abc"))
    output = IncrementalDetokenizer(TOKENIZER, SamplingParams(), patterns=patterns)  # type: ignore[arg-type]
    tokens = TOKENIZER.encode("abc", is_start=False)
    shown = [output.push(token, may_stop=index == 2) for index, token in enumerate(tokens)]
    assert [text for text, _ in shown] == ["a", "b", ""]
    assert output.text == "ab"


def test_longest_token_prefix_ends_on_whole_characters() -> None:
    tokens = TOKENIZER.encode("aé漢b", is_start=False)
    assert longest_token_prefix(TOKENIZER.token_bytes, tokens, "aé") == 3
    assert longest_token_prefix(TOKENIZER.token_bytes, tokens, "aéx") == 3
    assert longest_token_prefix(TOKENIZER.token_bytes, [259 - 1, *tokens], "\ufffda") in (0, 1, 2)


class NamingTokenizer(FakeTokenizer):
    """Shows the start token as `<s>` where special tokens are shown."""

    def named_bytes(self, token_id: int) -> bytes:
        return b"<s>" if token_id == 1 else self.token_bytes(token_id)

    def decoder(self, *, shows_special: bool = False) -> Any:
        table = map(self.named_bytes if shows_special else self.token_bytes, range(self.vocab_size))
        return IncrementalDecoder(tuple(table))


@pytest.mark.parametrize("shows_special", [False, True])
@pytest.mark.parametrize("includes", [False, True])
def test_a_cut_keeps_special_tokens_before_it(shows_special: bool, includes: bool) -> None:
    tokenizer: Any = NamingTokenizer()
    params = SamplingParams(stop=(",c",), include_stop_str_in_output=includes)
    output = IncrementalDetokenizer(tokenizer, params, shows_special=shows_special)
    tokens = [*TOKENIZER.encode("é", is_start=False), 1, *TOKENIZER.encode("ab,cd", is_start=False)]
    shown, stop = "", None
    for token_id in tokens:
        piece, stop = output.push(token_id, may_stop=True)
        shown += piece
        if stop is not None:
            break
    name = "<s>" if shows_special else ""
    assert stop is not None
    assert shown == output.text == f"é{name}ab" + (",c" if includes else "")
    assert output.token_ids == tokens[: 7 if includes else 5]
