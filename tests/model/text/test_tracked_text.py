"""Tracked text behaves as `str` does, and knows where its characters come from.

Texts of messages are small letters here and texts of templates are capitals, so the origin of a character can be read from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtlang.model.text.tracked_text import (
    TextSource,
    TrackedText,
    covered,
    first_source,
    formatted,
    joined,
    plain,
    tracked,
)

CONTENT = TextSource(0, "content")
PIECES = st.lists(st.tuples(st.booleans(), st.text(" \nab-", max_size=6)), max_size=5)


def made(pieces: list[tuple[bool, str]]) -> TrackedText:
    """Text of which some pieces come from a message."""
    return joined(
        TrackedText.whole(text, CONTENT) if is_content else TrackedText.whole(text.upper(), None)
        for is_content, text in pieces
    )


def check(text: str) -> None:
    """Letters come from where their case says; text that is not tracked has no small letters."""
    if not isinstance(text, TrackedText):
        assert text == text.upper()
        return
    assert sum(num_chars for num_chars, _ in text.runs) == len(text)
    at = 0
    for num_chars, source in text.runs:
        letters = [letter for letter in plain(text)[at : at + num_chars] if letter.isalpha()]
        assert all(letter.islower() == (source is not None) for letter in letters)
        at += num_chars


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "strip": lambda text: text.strip(),
    "strip of": lambda text: text.strip("a-"),
    "lstrip": lambda text: text.lstrip(),
    "rstrip": lambda text: text.rstrip("\n"),
    "slice": lambda text: text[1:4],
    "from the end": lambda text: text[-3:],
    "empty slice": lambda text: text[5:2],
    "characters": list,
    "split": lambda text: text.split(),
    "split at": lambda text: text.split("-"),
    "split at many": lambda text: text.split("a-"),
    "split once": lambda text: text.split(None, 1),
    "split at once": lambda text: text.split("-", 1),
    "rsplit": lambda text: text.rsplit(None, 1),
    "rsplit at": lambda text: text.rsplit("-", 1),
    "lines": lambda text: text.splitlines(),
    "whole lines": lambda text: text.splitlines(True),
    "partition": lambda text: text.partition("-"),
    "rpartition": lambda text: text.rpartition("-"),
    "prefix": lambda text: text.removeprefix("a"),
    "suffix": lambda text: text.removesuffix("b"),
    "replace": lambda text: text.replace("-", "+"),
    "replace once": lambda text: text.replace("a", "", 1),
    "add": lambda text: "X" + text + "Y",
    "repeat": lambda text: text * 2,
    "join": lambda text: text.join(["X", "Y", "Z"]),
    "str": str,
}


@given(PIECES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_strings_and_keep_sources(name: str, pieces: list[tuple[bool, str]]) -> None:
    text = made(pieces)
    got, expected = OPERATIONS[name](text), OPERATIONS[name](plain(text))
    assert list(got) == list(expected)
    for piece in [got] if isinstance(got, str) else got:
        assert isinstance(piece, TrackedText)
        check(piece)


@pytest.mark.parametrize("name", ["upper", "lower", "title", "capitalize", "reversed"])
def test_other_forms_of_letters_come_from_where_the_letters_do(name: str) -> None:
    def change(text: str) -> Any:
        return text[::-1] if name == "reversed" else getattr(text, name)()

    text = "X" + TrackedText.whole("ab", CONTENT)
    got = change(text)
    assert got == change("Xab")
    assert first_source(got) == CONTENT
    sharp = change(TrackedText.whole("ß", CONTENT))  # capitals of another length
    assert first_source(sharp) == CONTENT


def test_text_of_an_operation_that_is_not_followed_comes_from_the_message() -> None:
    text = TrackedText.whole("a", CONTENT)
    for used in (text, [text], {"k": [text]}, {text: 1}, ("x", (text,))):
        found = covered("XaY", used)
        assert found.runs == ((3, CONTENT),)
    assert type(covered("XY", "Z")) is str


@pytest.mark.parametrize("template", ["X{}Y{}", "{1}{0}", "{0!r}", "{0:>5}", "{{}}{0}"])
def test_formatting_keeps_the_sources_of_texts_written_as_they_are(template: str) -> None:
    values = (TrackedText.whole("ab", CONTENT), "C")
    found = formatted(lambda args, named: template.format(*args, **named), values, {})
    assert found == template.format("ab", "C")
    if "!" in template or ">" in template:
        assert found.runs == ((len(found), CONTENT),)  # type: ignore[attr-defined]
    else:
        check(found)


def test_data_is_copied_with_all_its_texts_tracked() -> None:
    data = {"k": ["x", 1, None, {"y": 2.5}], "t": ("z",)}
    found = tracked(data, CONTENT)
    assert found == {"k": ["x", 1, None, {"y": 2.5}], "t": ["z"]}
    assert json.dumps(found) == json.dumps(data)
    assert all(first_source(key) == CONTENT for key in found)
    assert first_source(found["k"][3]) == CONTENT
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    tracked(deep, CONTENT)  # no recursion without end
