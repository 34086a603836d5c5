"""Claims about people that a few sentences decide: each is what a sentence says, or differs from it in the value or the person."""

from collections.abc import Sequence

from tiny_model.corpus.corpus_data import sections_of
from tiny_model.corpus.lexicon import HOBBIES, JOBS
from tiny_model.corpus.phrases import phrases, say_wording
from tiny_model.corpus.words import Draw, Messages, article, sentence

TEMPLATES = sections_of("tasks_claims")

NEXT_ASKS = phrases(TEMPLATES["NEXT_ASKS"])
EXPLAIN_ASKS = phrases(TEMPLATES["EXPLAIN_ASKS"])
EACH_ASKS = phrases(TEMPLATES["EACH_ASKS"])


def claims(draw: Draw, name: str, kind: int | None = None) -> tuple[str, str]:
    """A claim about a person, and one of the same kind that differs."""
    kind = draw.number(0, 4) if kind is None else kind
    if kind == 0:
        first = draw.city()
        second = next(city for city in iter(draw.city, "") if city != first)
        verb = draw.pick(("lives in", "comes from", "works in"))
        return f"{name} {verb} {first}", f"{name} {verb} {second}"
    if kind == 1:
        jobs = draw.sample(JOBS, 2)
        return f"{name} is {article(jobs[0])}", f"{name} is {article(jobs[1])}"
    if kind == 2:
        hobbies, verb = draw.sample(HOBBIES, 2), draw.pick(("likes", "loves"))
        return f"{name} {verb} {hobbies[0]}", f"{name} {verb} {hobbies[1]}"
    if kind == 3:
        ages = draw.sample(range(18, 80), 2)
        return f"{name} is {ages[0]} years old", f"{name} is {ages[1]} years old"
    first = draw.item()
    items = first, next(item for item in iter(draw.item, "") if item != first)
    return f"{name} has {article(items[0])}", f"{name} has {article(items[1])}"


def claimed(draw: Draw, given: Sequence[tuple[str, tuple[str, str]]]) -> tuple[str, str, bool]:
    """A claim about one of the named people, the fact that decides it, and whether it holds.

    A wrong claim changes the value, or says of one person what is true of another.
    """
    index = draw.number(0, len(given) - 1)
    name, (fact, other) = given[index]
    claim = fact if draw.chance(0.5) else other
    if claim == other and len(given) > 1 and draw.chance(0.5):
        who, (told, _) = given[index - 1]
        claim = name + told.removeprefix(who)
    return claim, fact, claim in [told for _, (told, _) in given]


def people(draw: Draw, counts: Sequence[int]) -> list[tuple[str, tuple[str, str]]]:
    """So many different people, each with a true and a wrong claim; at times all claims are of one kind."""
    kind = draw.number(0, 4) if draw.chance(0.4) else None
    names = list(dict.fromkeys(draw.first_name() for _ in range(draw.pick(counts))))
    return [(name, claims(draw, name, kind)) for name in names]


def claims_in_a_row(draw: Draw) -> Messages:
    """Several claims about the same sentences: in turn, as a list, or each with the sentence that decides it."""
    given = people(draw, (2, 3, 4))
    facts = " ".join(f"{fact}." for _, (fact, _) in given)
    decided: dict[tuple[str, str, bool], None] = {}
    count = draw.number(2, 8)
    for _ in range(20):
        if len(decided) < count:
            decided[claimed(draw, given)] = None
    chance = draw.random.random()
    if chance < 0.25:
        lines = "\n".join(f"{sentence(claim)}." for claim, _, _ in decided)
        answer = "\n".join("yes" if is_right else "no" for _, _, is_right in decided)
        return [("user", say_wording(draw, EACH_ASKS).format(facts=facts, lines=lines)), ("assistant", answer)]
    is_explained = chance < 0.5
    turns: Messages = []
    for claim, fact, is_right in decided:
        wordings = NEXT_ASKS if turns or not is_explained else EXPLAIN_ASKS
        ask = say_wording(draw, wordings).format(facts=facts, claim=claim, Claim=sentence(claim))
        said = "yes" if is_right else "no"
        turns += [("user", ask), ("assistant", f"{fact}. {said}" if is_explained else said)]
    if is_explained:
        return turns
    if draw.chance(0.5):
        return [("system", facts), *turns]
    return [("user", f"{facts}\n{turns[0][1]}"), *turns[1:]]
