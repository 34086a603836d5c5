"""Texts of sentences that are put together from clauses, in many orders.

A core is a main clause ("{guest} checks in"), an adjunct a phrase that may stand before it, behind it or in brackets
("on {check_in}", ", a guest from {city}"). Few of each make very many sentences, so that a reader has to go by the words
around a value and not by its place.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.lexicon import lines
from tiny_model.corpus.words import Draw

TEMPLATES = sections_of("clauses")

FRONT_SHARE, BRACKETS_SHARE, COMMA_SHARE = 0.3, 0.06, 0.25
ALL_SHARE = 0.45  # of the sentences that tell as much as they can
MAX_ADJUNCTS = 4


@dataclass(frozen=True)
class Clauses:
    """What sentences about one kind of records are made of.

    Attributes:
        cores: main clauses without a full stop, as they stand inside a sentence. Those that tell no field, or a name only
            ("the trip", "{guest} arrives"), carry the adjuncts of others.
        adjuncts: phrases that tell one field or more. One that starts with ", " always has a comma before it and
            stands behind the core only; one that ends with "," stands before it only.
    """

    cores: tuple[str, ...]
    adjuncts: tuple[str, ...]


def sentence_of(draw: Draw, core: str, adjuncts: list[str]) -> str:
    """One sentence without its full stop: some of the adjuncts in front, the others behind, all in the order given."""
    front, behind = [], []
    for adjunct in adjuncts:
        if adjunct.endswith(","):
            front.append(adjunct[:-1])
        elif not adjunct.startswith(",") and len(front) < 2 and draw.chance(FRONT_SHARE):
            front.append(adjunct)
        else:
            behind.append(adjunct)
    text = front[0] if front else core
    for part in [*front[1:], core] if front else []:
        joints = (", ", ", ", ", ", " ") if part is core else (" ", " ", " and ", ", ")
        meets = text[-1] == "}" and part.lstrip('"').startswith("{")  # two values, which need a mark between them
        text += (", " if meets else draw.pick(joints)) + part
    for adjunct in behind:
        shape = draw.random.random()
        if adjunct.startswith(","):
            text += adjunct + ("," if adjunct is not behind[-1] else "")
        elif shape < BRACKETS_SHARE:
            text += f" ({adjunct})"
        else:
            text += f"{',' if shape < BRACKETS_SHARE + COMMA_SHARE else ''} {adjunct}"
    return text.replace(",,", ",") if text[0] == "{" else text[0].upper() + text[1:].replace(",,", ",")


def composed(
    draw: Draw, clauses: Clauses, sentences: tuple[str, ...], fields: set[str], told_by: Callable[[str], set[str]]
) -> list[str]:
    """Templates of sentences that together tell every field once.

    Args:
        draw: gives the order and the choices.
        clauses: what the sentences are made of.
        sentences: each tells a field or a few; they tell what the clauses leave.
        fields: names of all fields.
        told_by: the fields that a template tells.

    Returns:
        the sentences in order, each with its full stop if it has one.
    """
    left, told = set(fields), list[str]()
    while left and len(told) < 3:
        adjuncts: list[str] = []
        core = next(line for line in map(draw.spoken, draw.shuffled(clauses.cores)) if told_by(line) <= left)
        left -= told_by(core)
        most = MAX_ADJUNCTS + 2 if draw.chance(ALL_SHARE) else draw.number(0 if told_by(core) else 1, MAX_ADJUNCTS)
        for line in map(draw.spoken, draw.shuffled(clauses.adjuncts)):
            if len(adjuncts) < most and told_by(line) and told_by(line) <= left:
                left -= told_by(line)
                adjuncts.append(line)
        if not told_by(core) and not adjuncts:
            break
        told.append(sentence_of(draw, core, adjuncts) + ".")
    for line in map(draw.spoken, draw.shuffled(sentences)):
        if told_by(line) and told_by(line) <= left:
            left -= told_by(line)
            told.insert(draw.number(0, len(told)), line)
    assert not left, f"no sentence tells {left} alone"
    return told


def clauses_of(kind: str) -> Clauses:
    """The clauses of a kind of records, from its sections of the templates."""
    return Clauses(lines(TEMPLATES[f"{kind}.cores"]), lines(TEMPLATES[f"{kind}.adjuncts"]))
