"""Families of requests and topics: enough phrases, each of one label, in sentences that are whole."""

import pytest
from tiny_model.corpus.classes import ASSISTANT, TEAM, TOPIC, Family
from tiny_model.corpus.classes_of_text import FAMILIES

IDS = [family.noun for family in FAMILIES]


@pytest.mark.parametrize("labels", [TEAM, ASSISTANT, TOPIC], ids=["team", "assistant", "topic"])
def test_a_label_has_ten_phrasings_or_more(labels: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
    assert len(labels) >= 8
    for known, held in labels.values():
        assert len(known) + len(held) >= 10
        assert len(held) >= 2


@pytest.mark.parametrize("family", FAMILIES, ids=IDS)
def test_a_frame_keeps_the_phrase_whole(family: Family) -> None:
    for frame in (*family.frames.known, *family.frames.held):
        made = frame.format("the phrase", cap="The phrase", name="Ada")
        assert "the phrase" in made.lower()
        assert "{" not in made
