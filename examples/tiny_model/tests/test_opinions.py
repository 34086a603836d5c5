"""Opinions: the label decides what is said, and mixed ones say both."""

import pytest
from spoken import is_spoken, ways
from tiny_model.corpus.opinions import (
    ASPECTS,
    FRAMES,
    JUDGEMENTS,
    OPINIONS,
    domain,
    judgement,
    mixed,
    verdict,
)
from tiny_model.corpus.phrases import Phrases, is_held, say
from tiny_model.corpus.words import Draw, Split

LABELS = ("positive", "negative", "neutral")


def test_every_label_has_sixty_phrases() -> None:
    assert all(len(OPINIONS[label].known) + len(OPINIONS[label].held) >= 60 for label in LABELS)


@pytest.mark.parametrize("listed", [OPINIONS, FRAMES, JUDGEMENTS], ids=["phrases", "frames", "judgements"])
def test_no_phrase_serves_two_labels(listed: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
    said = {label: {text for part in listed[label] for phrase in part for text in ways(phrase)} for label in LABELS}
    assert not said["positive"] & said["negative"]
    assert not said["neutral"] & (said["positive"] | said["negative"])


@pytest.mark.parametrize("listed", [OPINIONS, FRAMES, JUDGEMENTS], ids=["phrases", "frames", "judgements"])
def test_training_never_says_a_held_phrase(listed: dict[str, Phrases]) -> None:
    draw = Draw(2)
    for label in LABELS:
        said = {say(draw, listed[label]) for _ in range(2000)}
        assert len(said) > 15
        assert not [text for text in said for held in listed[label].held if held in text]


@pytest.mark.parametrize("label", LABELS)
def test_a_judgement_uses_words_of_its_label_alone(label: str) -> None:
    draw = Draw(3)
    ends = tuple(way for phrase in JUDGEMENTS[label].known for way in ways(phrase))
    for _ in range(300):
        text = judgement(draw, label, "product")
        is_whole = is_spoken(text, OPINIONS[label].known)
        is_frame = is_spoken(text, FRAMES[label].known)
        assert is_whole or is_frame or text.endswith(ends), text
        assert "[" not in text


@pytest.mark.parametrize("split", ["train", "test"])
def test_composed_judgements_are_held_back_by_their_text(split: Split) -> None:
    draw, num_composed = Draw(4, split), 0
    listed = {*OPINIONS["positive"].known, *OPINIONS["positive"].held}
    for _ in range(400):
        text = judgement(draw, "positive", "place")
        aspect, joint, end = [*text.removeprefix("the ").split(" ", 2), "", ""][:3]
        if aspect in ASPECTS["place"] and joint in ("is", "was") and end in JUDGEMENTS["positive"].known:
            num_composed += 1
            assert text in listed or is_held(text) == (split == "test"), text
    assert num_composed > 80


def test_a_verdict_ends_with_its_own_side() -> None:
    draw, num_granted = Draw(5), 0
    for _ in range(2000):
        text = verdict(draw, "positive", "app")
        if ", but in the end " in text:
            num_granted += 1
            assert text.split(", but in the end ")[1] not in OPINIONS["negative"].known
    assert num_granted > 3


def test_a_mixed_opinion_has_two_sides_and_a_thing_its_kind() -> None:
    draw = Draw(6)
    for _ in range(100):
        kind, name = domain(draw)
        assert name
        text = mixed(draw, kind)
        assert any(joint in text for joint in (", but ", " but ", ", however, ", ". On the other hand "))
