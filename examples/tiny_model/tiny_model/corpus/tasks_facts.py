"""Corpus task: a few facts about people, things and places, and questions about them.

A question is about a value (of a subject by its name or by a pronoun), about who or what has it, asks for yes or no, or
asks for what was not told (`I do not know.`). Every subject has a relation at most once; a value that is asked for by its owner is unique.
"""

from dataclasses import dataclass

from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.lexicon import ANIMALS, words
from tiny_model.corpus.relations import PEOPLE, PLACES, THINGS, Relation
from tiny_model.corpus.tasks_lookup import distinct
from tiny_model.corpus.words import Draw, Messages, article

TEMPLATES = sections_of("tasks_facts")

UNKNOWN = "I do not know."
MALE = frozenset(words(TEMPLATES["MALE"]))
"""First names that are always spoken of as `he`. Of all others, made-up ones among them, one in ten is."""
OPENINGS = (
    TEMPLATES['OPENINGS'], "{facts} {ask}", TEMPLATES['OPENINGS 2'], TEMPLATES['OPENINGS 3'],
    TEMPLATES['OPENINGS 4'], TEMPLATES['OPENINGS 5'],
    TEMPLATES['OPENINGS 6'],
)  # fmt: skip
HELD_OPENINGS = (
    TEMPLATES["HELD_OPENINGS"],
    TEMPLATES["HELD_OPENINGS 2"],
    TEMPLATES["HELD_OPENINGS 3"],
)
CHECKS = (
    "{ask} [Explain, then answer./Say the fact first./Quote the fact, then yes or no.]",
    "[First the fact, then yes or no/Say why, then answer]: {ask}",
)
HELD_CHECKS = ("Explain, then say yes or no: {ask}",)
SYSTEMS = (
    "{facts}",
    "Facts: {facts}",
    "Answer from these facts. {facts}",
    "[Known/You know]: {facts}",
    "{facts} [Answer questions about this./Be brief.]",
)


KINDS = (
    (PEOPLE, Draw.first_name),
    (PEOPLE, Draw.first_name),
    (PEOPLE, Draw.first_name),
    (THINGS, lambda draw: draw.item(0)),
    (PLACES, Draw.city),
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One told fact, with the words that its wordings need."""

    relation: Relation
    slots: dict[str, str]

    def fill(self, template: str, **other: str) -> str:
        """A spoken wording of the relation with the words of this fact, `other` ones in their place where given."""
        text = template.format(**(self.slots | other))
        return text[0].upper() + text[1:] if template.startswith("{v}") else text


def fact(draw: Draw, relation: Relation, subject: str, he: str) -> Fact:
    """A fact about the subject with a value drawn for it; `he` is the pronoun that stands for the subject."""
    value, pet = relation.value(draw), draw.pick(ANIMALS)
    while value == subject:
        value = relation.value(draw)
    his = {"he": "his", "she": "her", "it": "its"}[he]
    slots = {"s": subject, "v": value, "a": article(value), "k": article(pet), "n": pet, "he": he, "his": his}
    return Fact(relation, slots)


def told_facts(draw: Draw) -> list[Fact]:
    """Two to nine facts about one to four subjects of one kind."""
    relations, name = draw.pick(KINDS)
    subjects = distinct(draw, name, draw.pick((1, 2, 2, 3, 3, 4)))
    shared = draw.sample(relations, draw.number(2, 3)) if draw.chance(0.5) else None
    found = []
    for subject in subjects:
        he = "it" if relations is not PEOPLE else "he" if subject in MALE or draw.chance(0.1) else "she"
        for relation in shared or draw.sample(relations, draw.number(1 if len(subjects) > 1 else 2, 3)):
            found.append(fact(draw, relation, subject, he))
    return found


def ask_whether(draw: Draw, each: Fact, facts: list[Fact]) -> tuple[str, bool]:
    """A question for yes or no, and whether it is so; what is not so is mostly the value of another subject."""
    is_so, value = draw.chance(0.5), each.slots["v"]
    others = [other.slots["v"] for other in facts if other.relation is each.relation and other.slots["v"] != value]
    claimed = value
    while not is_so and claimed == value:
        claimed = draw.pick(others) if others and draw.chance(0.6) else each.relation.value(draw)
    return each.fill(draw.spoken(draw.pick(each.relation.ask_whether)), v=claimed, a=article(claimed)), is_so


def question(draw: Draw, facts: list[Fact], last: str | None) -> tuple[str, str, str | None]:
    """A question, its answer, and the subject that a pronoun would mean afterwards."""
    each, kind = draw.pick(facts), draw.random.random()
    relation, subject, value = each.relation, each.slots["s"], each.slots["v"]
    if last is not None and draw.chance(0.35):
        each = draw.pick([other for other in facts if other.slots["s"] == last])
        return each.fill(draw.spoken(draw.pick(each.relation.ask_pronoun))), each.slots["v"], last
    if kind < 0.22 and [other.slots["v"] for other in facts].count(value) == 1:
        return each.fill(draw.spoken(draw.pick(relation.ask_owner))), subject, subject
    if kind < 0.45:
        ask, is_so = ask_whether(draw, each, facts)
        return ask, "yes" if is_so else "no", subject
    if kind < 0.55:
        absent = draw.pick(next(kinds for kinds in (PEOPLE, THINGS, PLACES) if relation in kinds))
        if absent not in [other.relation for other in facts if other.slots["s"] == subject]:
            return Fact(absent, each.slots).fill(draw.wording(absent.ask, absent.held_ask)), UNKNOWN, subject
    return each.fill(draw.wording(relation.ask, relation.held_ask)), value, subject


def facts(draw: Draw) -> Messages:
    """A few facts and one to seven questions about them; in a part of the chats, all for yes or no."""
    known = told_facts(draw)
    text = [each.fill(draw.spoken(draw.pick(each.relation.told))) for each in known]
    told = dict(zip(known_keys(known), text, strict=True))
    if draw.chance(0.4):
        text = draw.shuffled(text)
    story = " ".join(text)
    turns: Messages = []
    asked: set[str] = set()
    last: str | None = None
    is_checking, is_explained = draw.chance(0.3), draw.chance(0.4)
    for _ in range(draw.pick((3, 5, 7, 9)) if is_checking else draw.pick((1, 2, 3, 4, 5, 6, 7))):
        if is_checking:
            each = draw.pick(known)
            ask, is_so = ask_whether(draw, each, known)
            answer = "yes" if is_so else "no"
            if is_explained:
                ask = draw.wording(CHECKS, HELD_CHECKS).format(ask=ask)
                answer = f"{told[known_keys([each])[0]]} {answer}"
        else:
            ask, answer, last = question(draw, known, last)
        if ask in asked:
            last = None
            continue
        asked.add(ask)
        turns += [("user", ask), ("assistant", answer)]
    if draw.chance(0.05):
        return [("text", f"{story}\nQuestion: {turns[0][1]}\nAnswer: {turns[1][1]}\n")]
    if draw.chance(0.35):
        return [("system", draw.spoken(draw.pick(SYSTEMS)).format(facts=story)), *turns]
    return [("user", draw.wording(OPENINGS, HELD_OPENINGS).format(facts=story, ask=turns[0][1])), *turns[1:]]


def known_keys(facts: list[Fact]) -> list[tuple[str, str]]:
    """What tells the facts apart: the subject, and the first wording of the relation."""
    return [(each.slots["s"], each.relation.told[0]) for each in facts]
