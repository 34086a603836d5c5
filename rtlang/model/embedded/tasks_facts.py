"""Corpus task: a few facts about people, things and places, and questions about them.

A question is about a value (of a subject by its name or by a pronoun), about who or what has it, asks for yes or no, or
asks for what was not told (`I do not know.`). Every subject has a relation at most once; a value that is asked for by its owner is unique.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rtlang.model.embedded.lexicon import ANIMALS, COLORS, HOBBIES, JOBS, VENUES, words
from rtlang.model.embedded.tasks_arithmetic import wording
from rtlang.model.embedded.tasks_lookup import distinct
from rtlang.model.embedded.words import Draw, Messages, article

UNKNOWN = "I do not know."
MALE = frozenset(
    words("""
Amir Ben Bruno David Erik Felix Hugo Ivan Jack James Kai Karim Leo Lucas Max Noah Omar Oscar Pedro Sam Tariq Theo
Tom Victor Adam Bob Daniel Frank John Liam Nils Otto Quinn Simon Vikram Will Yusuf Zeno Cedric Dmitri Gideon Joel
Lorenzo Nikhil
""")
)
"""First names that are always spoken of as `he`. Of all others, made-up ones among them, one in ten is."""
OPENINGS = ("{facts}\n{ask}", "{facts} {ask}", "Facts: {facts}\nQuestion: {ask}", "Read: {facts}\n{ask}")
HELD_OPENINGS = ("Read these facts: {facts}\n{ask}", "{facts}\nQuestion: {ask}")
SYSTEMS = ("{facts}", "Facts: {facts}", "Answer from these facts. {facts}")


@dataclass(frozen=True, slots=True)
class Relation:
    """How a fact is told and asked for. `{s}` is the subject, `{v}` the value, `{he}` and `{his}` pronouns.

    `{a}` is the value with its article; `{n}` is an animal, and `{k}` that with its article.
    """

    told: tuple[str, ...]
    ask: tuple[str, ...]
    held_ask: tuple[str, ...]
    ask_pronoun: str
    ask_owner: tuple[str, ...]
    ask_whether: str
    value: Callable[[Draw], str]


PEOPLE = (
    Relation(
        ("{s} lives in {v}.", "{s} lives in {v}.", "The home of {s} is {v}."),
        ("Where does {s} live?", "In which city does {s} live?"),
        ("Which city does {s} live in?",),
        "Where does {he} live?",
        ("Who lives in {v}?",),
        "Does {s} live in {v}?",
        Draw.city,
    ),
    Relation(
        ("{s} is {a}.", "{s} works as {a}."),
        ("What is the job of {s}?", "What does {s} work as?"),
        ("Which job does {s} have?",),
        "What is {his} job?",
        ("Who is {a}?", "Who works as {a}?"),
        "Is {s} {a}?",
        lambda draw: draw.pick(JOBS),
    ),
    Relation(
        ("{s} has {k} called {v}.",),
        ("What is the {n} of {s} called?",),
        ("What is the name of the {n} of {s}?",),
        "What is {his} {n} called?",
        ("Who has {k} called {v}?",),
        "Does {s} have {k} called {v}?",
        Draw.first_name,
    ),
    Relation(
        ("{s} is {v} years old.", "The age of {s} is {v}."),
        ("How old is {s}?", "What is the age of {s}?"),
        ("What age is {s}?",),
        "How old is {he}?",
        ("Who is {v} years old?",),
        "Is {s} {v} years old?",
        lambda draw: str(draw.number(18, 80)),
    ),
    Relation(
        ("{s} likes {v}.", "The hobby of {s} is {v}."),
        ("What does {s} like?", "What is the hobby of {s}?"),
        ("Which hobby does {s} have?",),
        "What does {he} like?",
        ("Who likes {v}?",),
        "Does {s} like {v}?",
        lambda draw: draw.pick(HOBBIES),
    ),
    Relation(
        ("The favorite color of {s} is {v}.",),
        ("What is the favorite color of {s}?",),
        ("Which color is the favorite of {s}?",),
        "What is {his} favorite color?",
        ("Whose favorite color is {v}?",),
        "Is {v} the favorite color of {s}?",
        lambda draw: draw.pick(COLORS),
    ),
    Relation(
        ("{s} works at the {v}.",),
        ("Where does {s} work?",),
        ("At which place does {s} work?",),
        "Where does {he} work?",
        ("Who works at the {v}?",),
        "Does {s} work at the {v}?",
        lambda draw: draw.pick(VENUES),
    ),
    Relation(
        ("The best friend of {s} is {v}.",),
        ("Who is the best friend of {s}?",),
        ("What is the best friend of {s} called?",),
        "Who is {his} best friend?",
        ("Whose best friend is {v}?",),
        "Is {v} the best friend of {s}?",
        Draw.first_name,
    ),
    Relation(
        ("{s} is in room {v}.",),
        ("In which room is {s}?", "Which room is {s} in?"),
        ("What room is {s} in?",),
        "In which room is {he}?",
        ("Who is in room {v}?",),
        "Is {s} in room {v}?",
        Draw.code,
    ),
    Relation(
        ("{s} was born on {v}.",),
        ("When was {s} born?",),
        ("On which day was {s} born?",),
        "When was {he} born?",
        ("Who was born on {v}?",),
        "Was {s} born on {v}?",
        Draw.date,
    ),
)
THINGS = (
    Relation(
        ("The {s} belongs to {v}.", "{v} owns the {s}."),
        ("Who owns the {s}?", "To whom does the {s} belong?"),
        ("Who does the {s} belong to?",),
        "Who owns it?",
        ("What belongs to {v}?", "What does {v} own?"),
        "Does the {s} belong to {v}?",
        Draw.first_name,
    ),
    Relation(
        ("The {s} is {v}.", "The color of the {s} is {v}."),
        ("What color is the {s}?", "What is the color of the {s}?"),
        ("Which color does the {s} have?",),
        "What color is it?",
        ("What is {v}?", "Which thing is {v}?"),
        "Is the {s} {v}?",
        lambda draw: draw.pick(COLORS),
    ),
    Relation(
        ("The {s} costs {v} dollars.", "The price of the {s} is {v} dollars."),
        ("How much is the {s}?", "What does the {s} cost?"),
        ("What is the price of the {s}?",),
        "What does it cost?",
        ("What costs {v} dollars?",),
        "Does the {s} cost {v} dollars?",
        lambda draw: str(draw.number(1, 99)),
    ),
    Relation(
        ("The {s} is in the {v}.", "In the {v} there is the {s}."),
        ("Where is the {s}?",),
        ("In which place is the {s}?",),
        "Where is it?",
        ("What is in the {v}?",),
        "Is the {s} in the {v}?",
        lambda draw: draw.pick(VENUES),
    ),
    Relation(
        ("The {s} weighs {v} kilos.",),
        ("How much does the {s} weigh?",),
        ("How many kilos does the {s} weigh?",),
        "How much does it weigh?",
        ("What weighs {v} kilos?",),
        "Does the {s} weigh {v} kilos?",
        lambda draw: str(draw.number(1, 99)),
    ),
)
PLACES = (
    Relation(
        ("The mayor of {s} is {v}.", "{v} is the mayor of {s}."),
        ("Who is the mayor of {s}?",),
        ("What is the mayor of {s} called?",),
        "Who is its mayor?",
        ("Of which city is {v} the mayor?",),
        "Is {v} the mayor of {s}?",
        Draw.first_name,
    ),
    Relation(
        ("{s} has {v} bridges.", "There are {v} bridges in {s}."),
        ("How many bridges does {s} have?", "How many bridges are in {s}?"),
        ("How many bridges are there in {s}?",),
        "How many bridges does it have?",
        ("Which city has {v} bridges?",),
        "Does {s} have {v} bridges?",
        lambda draw: str(draw.number(2, 99)),
    ),
    Relation(
        ("{s} is known for {v}.",),
        ("What is {s} known for?",),
        ("For what is {s} known?",),
        "What is it known for?",
        ("Which city is known for {v}?",),
        "Is {s} known for {v}?",
        lambda draw: draw.pick(HOBBIES),
    ),
    Relation(
        ("The river in {s} is called {v}.",),
        ("What is the river in {s} called?",),
        ("What is the name of the river in {s}?",),
        "What is its river called?",
        ("Which city has the river {v}?",),
        "Is the river in {s} called {v}?",
        lambda draw: draw.made_up().capitalize(),
    ),
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
        """A wording of the relation with the words of this fact, `other` ones in their place where given."""
        return template.format(**(self.slots | other))


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


def question(draw: Draw, facts: list[Fact], last: str | None) -> tuple[str, str, str | None]:
    """A question, its answer, and the subject that a pronoun would mean afterwards."""
    each, kind = draw.pick(facts), draw.random.random()
    relation, subject, value = each.relation, each.slots["s"], each.slots["v"]
    of_relation = [other for other in facts if other.relation is relation]
    if last is not None and draw.chance(0.4):
        each = draw.pick([other for other in facts if other.slots["s"] == last])
        return each.fill(each.relation.ask_pronoun), each.slots["v"], last
    if kind < 0.22 and [other.slots["v"] for other in facts].count(value) == 1:
        return each.fill(draw.pick(relation.ask_owner)), subject, subject
    if kind < 0.4:
        is_so = draw.chance(0.5)
        others = [other.slots["v"] for other in of_relation if other.slots["v"] != value]
        claimed = value
        while not is_so and claimed == value:
            claimed = draw.pick(others) if others and draw.chance(0.6) else relation.value(draw)
        return each.fill(relation.ask_whether, v=claimed, a=article(claimed)), "yes" if is_so else "no", subject
    if kind < 0.52:
        family = next(kinds for kinds in (PEOPLE, THINGS, PLACES) if relation in kinds)
        absent = draw.pick(family)
        known = {other.relation.ask_pronoun for other in facts if other.slots["s"] == subject}
        if absent.ask_pronoun not in known:
            ask = Fact(absent, each.slots).fill(wording(draw, absent.ask, absent.held_ask))
            return ask, UNKNOWN, subject
    return each.fill(wording(draw, relation.ask, relation.held_ask)), value, subject


def facts(draw: Draw) -> Messages:
    """A few facts and one to seven questions about them."""
    known = told_facts(draw)
    text = [each.fill(draw.pick(each.relation.told)) for each in known]
    if draw.chance(0.4):
        text = draw.shuffled(text)
    story = " ".join(text)
    turns: Messages = []
    asked: set[str] = set()
    last: str | None = None
    for _ in range(draw.pick((1, 2, 3, 4, 5, 6, 7))):
        ask, answer, last = question(draw, known, last)
        if ask in asked and asked:
            last = None
            continue
        asked.add(ask)
        turns += [("user", ask), ("assistant", answer)]
    if draw.chance(0.05):
        return [("text", f"{story}\nQuestion: {turns[0][1]}\nAnswer: {turns[1][1]}\n")]
    if draw.chance(0.35):
        return [("system", draw.pick(SYSTEMS).format(facts=story)), *turns]
    return [("user", wording(draw, OPENINGS, HELD_OPENINGS).format(facts=story, ask=turns[0][1])), *turns[1:]]
