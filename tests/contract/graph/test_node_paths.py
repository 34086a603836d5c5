"""Paths: readable, unambiguous, short, and independent of what is in other places."""

from __future__ import annotations

import random

from rtlang.contract.graph.node_paths import (
    ANY_TURN,
    MAX_PATH_CHARS,
    at_turn,
    first_of,
    joined,
    mixed_seed,
    segment,
    site_of,
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
