"""Texts for evaluation alone: they tell the whole record, and none is close to a text of the corpus."""

import re

import pytest
from spoken import some_ways
from tiny_model.corpus.kinds import Kind
from tiny_model.corpus.words import Draw
from tiny_model.evaluation.everyday_texts import KINDS

NEAREST = 0.5  # the largest share of a text's runs of four words and fields that one text of the corpus may have


def runs(text: str) -> set[tuple[str, ...]]:
    tokens = re.findall(r"\{\w+\}|\w+", text.lower())
    return {tuple(tokens[at : at + 4]) for at in range(len(tokens) - 3)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.known[0][:30])
def test_every_text_tells_the_whole_record(kind: Kind) -> None:
    assert len(set(kind.held)) == 16
    for line in kind.held:
        assert kind.told_by(line) == set(kind.draw(Draw(1))[0]), line


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.known[0][:30])
def test_no_known_text_is_close(kind: Kind) -> None:
    known = (*kind.known, *kind.sentences, *kind.first_person)
    theirs = [set[tuple[str, ...]]().union(*map(runs, some_ways(line, 20))) for line in known]
    for line in kind.held:
        ours = runs(line)
        nearest = max(range(len(theirs)), key=lambda index: len(ours & theirs[index]))
        assert len(ours & theirs[nearest]) / len(ours) < NEAREST, (line, known[nearest])
