"""Paths: readable, unambiguous, short, and independent of what is in other places."""

from __future__ import annotations

import random

import pytest

from rtlang.contract.graph.node_paths import (
    ANY_TURN,
    MAX_PATH_CHARS,
    at_turn,
    attempted_name,
    first_of,
    is_named_by,
    joined,
    mixed_seed,
    segment,
    sequence_of,
    site_of,
    tells_more,
    without_name,
)


def test_names_that_are_identifiers_stay_as_they_are() -> None:
    assert segment("answer") == "answer"
    assert segment("größe") == "größe"
    assert segment("a/b[0]#2") == "a%2Fb%5B0%5D%232"


def test_different_places_have_different_paths() -> None:
    names = ["a", "a/b", "b", "a#2", "a[0]", "%", "a%2Fb", "~", "[*]", "a:thought", "f()"]
    paths = {joined(segment(outer), segment(inner)) for outer in names for inner in names}
    assert len(paths) == len(names) ** 2


def test_long_places_are_shortened_and_stay_different() -> None:
    rng = random.Random(1)
    seen: set[str] = set()
    for _ in range(20):
        place = ""
        for _ in range(2_000):
            place = joined(place, "fork") + f"[{rng.randrange(3)}]"
            assert len(place) < MAX_PATH_CHARS
        seen.add(place)
    assert len(seen) == 20


def test_turns_are_resolved_from_the_outside_in_long_places_too() -> None:
    path = "repeat[*]/x/repeat[*]/y"
    assert at_turn(at_turn(path, 3), 0) == "repeat[3]/x/repeat[0]/y"
    long = joined("a" * 2_000 + f"{ANY_TURN}/b{ANY_TURN}", "y")
    assert at_turn(at_turn(long, 3), 0).endswith("[3][0]/y")


def test_the_site_has_no_indices_and_the_first_of_a_name_no_ordinal() -> None:
    assert site_of("fork#2[3]/step#4") == "fork[]/step"
    assert first_of("fork#2[3]/step#4") == "fork#2[3]/step"
    assert first_of("step") == "step"


def test_seeds_of_places_differ() -> None:
    found = {mixed_seed(run, place) for run in range(20) for place in ("x", "x#2", "fork[0]/x", "fork[1]/x")}
    assert len(found) == 80
    assert mixed_seed(7, "\ud800") == mixed_seed(7, "\ud800")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("answer#2", "answer"),
        ("fork[1]/tip", "fork[1]/tip"),
        ("repeat[3]/step", "repeat[*]/step"),
        ("fork[1]/repeat#2[0]/step#3", "fork[1]/repeat#2[*]/step"),
        ("repeat[1]", "repeat[1]"),  # a completion of a variable with this name
        ("unrepeat[1]/x", "unrepeat[1]/x"),
    ],
)
def test_what_follows_one_another_has_one_sequence(path: str, expected: str) -> None:
    assert sequence_of(path) == expected


@pytest.mark.parametrize(
    ("path", "asked", "expected"),
    [
        ("fork[1]/tip", "fork[1]/tip", True),
        ("fork[1]/tip", "fork[1]", True),
        ("fork[1]/tip", "fork", False),
        ("fork[1]/tip", "fork[10]", False),
        ("fork[1]/tip", "tip", False),
        ("draft/name", "draft", True),
        ("drafts/name", "draft", False),
        ("answer", "answer[1]", True),
        ("answer", "answer#2", False),
        ("repeat[*]/step", "repeat[2]/step", True),
        ("repeat[*]/step", "repeat[2]", True),
        ("repeat[*]/fork[1]/step", "repeat[2]/fork[0]", False),
        ("repeat[*]/repeat[*]/x", "repeat[2]/repeat[0]/x", True),
        ("repeat[2]/step", "repeat[1]/step", False),
    ],
)
def test_paths_and_places_name_nodes(path: str, asked: str, expected: bool) -> None:
    assert is_named_by(path, asked) is expected


def test_forks_turns_and_ordinals_tell_more_than_names() -> None:
    assert all(map(tells_more, ("fork[0]/x", "x#2", "repeat[*]/x")))
    assert not any(map(tells_more, ("x", "draft/name", "summary/gen", "search()")))


def test_a_renamed_variable_leaves_the_rest_of_its_path() -> None:
    assert without_name("fork[1]/tip#2") == without_name("fork[1]/hint#2") == ("fork[1]/", "#2")
    assert without_name("tip[1]:thought") == ("", "[1]:thought")


def test_attempts_have_the_name_of_their_generation() -> None:
    for path in ("a", "a#2", "x/a[1]", "x/a#2[1]:repair[1]", "a:repair[2]"):
        assert attempted_name(path) == "a"
    assert attempted_name(segment("a/b c")) == "a/b c"
    assert attempted_name("a:thought") is None
    assert attempted_name("search()") == "search()"
