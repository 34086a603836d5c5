"""All families together: enough labels, and no phrase with two meanings among labels that are offered together."""

import pytest
from spoken import ways
from tiny_model.corpus.classes import Family
from tiny_model.corpus.classes_of_text import FAMILIES, INTENTS, TEAMS, TOPICS


def test_there_are_many_families_and_labels() -> None:
    assert len(FAMILIES) >= 10
    assert sum(len(family.labels) for family in FAMILIES) >= 60
    assert (TEAMS.noun, INTENTS.noun, TOPICS.noun) == ("team", "intent", "topic")


@pytest.mark.parametrize("family", FAMILIES, ids=[family.noun for family in FAMILIES])
def test_a_phrase_has_one_label_in_its_family_and_is_known_or_held(family: Family) -> None:
    every = [phrase for options in family.labels.values() for part in options for phrase in part]
    assert len(every) == len(set(every))
    spoken = [
        text
        for options in family.labels.values()
        for text in {way for part in options for phrase in part for way in ways(phrase)}
    ]
    assert len(spoken) == len(set(spoken))


@pytest.mark.parametrize("family", FAMILIES, ids=[family.noun for family in FAMILIES])
def test_a_held_phrase_is_made_of_words_that_training_has_seen(family: Family) -> None:
    """So that a miss says something about the reading, and not about the vocabulary."""
    seen = {
        word.strip(",.'")
        for options in family.labels.values()
        for phrase in options.known
        for way in ways(phrase)
        for word in way.lower().split()
    }
    for label, options in family.labels.items():
        words = [word.strip(",.'") for phrase in options.held for word in phrase.lower().split()]
        assert sum(word in seen for word in words) / len(words) > 0.8, label
