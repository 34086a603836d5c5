"""Other verbs beside values: forms, what is left as it is, and that held-out texts keep theirs."""

import dataclasses
import re
from collections.abc import Iterable

import pytest
from spoken import some_ways
from tiny_model.corpus import lexicon
from tiny_model.corpus.kinds import SLOT
from tiny_model.corpus.other_verbs import (
    ADVERBS,
    MODALS,
    PASTS,
    THIRD_PERSONS,
    VERB_AFTER_VALUE,
    past_of_regular,
    third_person,
    with_other_verbs,
)
from tiny_model.corpus.tasks_extraction import PROSE, SHORT
from tiny_model.corpus.words import Draw


@pytest.mark.parametrize(
    ("base", "third", "past"),
    [
        ("ask", "asks", "asked"),
        ("push", "pushes", "pushed"),
        ("carry", "carries", "carried"),
        ("play", "plays", "played"),
        ("stop", "stops", "stopped"),
        ("love", "loves", "loved"),
        ("employ", "employs", "employed"),
        ("prefer", "prefers", "preferred"),
        ("fix", "fixes", "fixed"),
    ],
)
def test_forms(base: str, third: str, past: str) -> None:
    assert (third_person(base), past_of_regular(base)) == (third, past)


def test_a_verb_after_a_value_becomes_another_in_the_same_form() -> None:
    draw = Draw(1)
    seen = {with_other_verbs(draw, "On {date} the {event} starts in the {place}, says {host}.") for _ in range(2000)}
    after = {re.fullmatch(r"On {date} the {event} (.+) in the {place}, says {host}\.", line)[1] for line in seen}  # type: ignore[index]
    assert len(after) > 300
    assert {text.split()[-1] for text in after} <= set(THIRD_PERSONS)
    assert {text.split()[0] for text in after if " " in text} <= set(ADVERBS)


@pytest.mark.parametrize(
    "line",
    [
        "Who asked? {name} of {city}!",
        "{name}: {age}",
    ],
)
def test_what_is_left_as_it_is(line: str) -> None:
    draw = Draw(2)
    assert {with_other_verbs(draw, line) for _ in range(100)} == {line}


@pytest.mark.parametrize(
    ("before", "verb", "after"),
    [
        ("{dish}", "serves", "{servings}"),  # may be what tells that number from another
        ("{customer}", "is", "in {city}."),  # a participle may follow
    ],
)
def test_what_gets_an_adverb_alone(before: str, verb: str, after: str) -> None:
    draw = Draw(2)
    seen = {with_other_verbs(draw, f"{before} {verb} {after}") for _ in range(1000)}
    assert seen <= {f"{before} {verb} {after}", *(f"{before} {adverb} {verb} {after}" for adverb in ADVERBS)}
    assert len(seen) > 50


def test_a_modal_verb_becomes_another() -> None:
    draw = Draw(2)
    seen = {with_other_verbs(draw, "{dish} should be cooked.").split()[-3] for _ in range(1000)}
    assert seen == set(MODALS)


def test_slots_stay() -> None:
    draw = Draw(3)
    for kind in PROSE:
        for line in kind.known:
            assert SLOT.findall(with_other_verbs(draw, line)) == SLOT.findall(line)


def test_irregular_pasts() -> None:
    assert {"grew", "led", "shook", "won", "wrote"} <= set(PASTS)
    assert not {"growed", "leaded", "shaked", "wined", "occured", "regreted"} & set(PASTS)


def verbs_after_values(lines: Iterable[str]) -> set[str]:
    return {match[1] for line in lines for way in some_ways(line, 20) for match in VERB_AFTER_VALUE.finditer(way)}


def test_no_verb_is_swapped_in_that_a_held_out_text_of_the_six_short_kinds_has_after_a_value() -> None:
    held = verbs_after_values(line for kind in SHORT for line in kind.held)
    known = verbs_after_values(line for kind in SHORT for line in kind.known)
    assert len(held) > 8
    assert "will" in held
    assert held & set(MODALS) <= known  # these are after values in known texts as well
    assert not held & {*PASTS, *THIRD_PERSONS}


def test_no_adverb_ends_a_value_of_a_list() -> None:
    listed = (value for name, value in vars(lexicon).items() if name.isupper() and isinstance(value, tuple))
    ends = {word.split()[-1] for words in listed for word in words}
    assert "loudly" in ends
    assert not ends & set(ADVERBS)


def test_held_out_texts_and_kinds_whose_verbs_tell_roles_keep_their_verbs() -> None:
    draw = Draw(5, templates="test")
    line = "{dish} boils for long, and {name} laughed."
    assert {with_other_verbs(draw, line) for _ in range(200)} == {line}
    assert len({with_other_verbs(Draw(seed), line) for seed in range(200)}) > 50
    telling = [kind for kind in PROSE if kind.verbs_tell_roles]
    assert len(telling) == 4
    for kind in telling:
        field = next(iter(kind.draw(Draw(1))[0]))
        plain = dataclasses.replace(kind, clauses=None, sentences=(), known=(f"{{{field}}} boils it all.",))
        draw = Draw(6)
        assert all(plain(draw)[1].endswith(" boils it all.") for _ in range(100))
