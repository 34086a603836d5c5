"""Kinds of records of occasions: an event, and a recipe."""

from tiny_model.corpus import clauses_more_of_life
from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.clauses_of_occasions import EVENT, RECIPE
from tiny_model.corpus.corpus_data import lines_of, sections_of
from tiny_model.corpus.extras import EMAIL, PHONE, WEBSITE, Record
from tiny_model.corpus.extras_more import AUTHOR, DIFFICULTY, FREE, GUESTS, VEGAN
from tiny_model.corpus.kinds import Drawn, Kind, lines
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw, article, listing

TEMPLATES = sections_of("kinds_of_occasions")


def draw_event(draw: Draw) -> Drawn:
    kind = draw.slot(lex.EVENTS, lex.HELD_EVENTS)
    record: Record = {
        "event": kind, "place": draw.slot(lex.VENUES, lex.HELD_VENUES), "date": draw.any_date(), "time": draw.any_time(),
        "host": draw.full_name(),
    }  # fmt: skip
    return record, {"an_event": article(kind)}


event = Kind(
    "event", words("event|invitation|announcement", "|"), draw_event,
    lines(TEMPLATES['event']) + lines_of("event"),
    lines(TEMPLATES['event 2']),
    (FREE, PHONE, EMAIL, WEBSITE, GUESTS),
    sentences=lines(TEMPLATES['event.sentences']),
    first_person=lines(TEMPLATES['event.first_person']),
    aliases={"an_event": "event"},
    clauses=EVENT + clauses_more_of_life.EVENT,
)  # fmt: skip


def draw_recipe(draw: Draw) -> Drawn:
    kind = draw.slot(lex.DISHES, lex.HELD_DISHES)
    prefix = draw.pick(lex.INGREDIENTS).rstrip("s") if draw.chance(0.8) else draw.made_up()
    dish = f"{prefix} {kind}" if draw.chance(0.5) else kind
    needs: list[str] = []
    for _ in range(draw.number(2, 6)):
        name = draw.slot(lex.INGREDIENTS, lex.HELD_INGREDIENTS, 0.25)
        if name not in needs:
            needs.append(name)
    record: Record = {
        "dish": dish,
        "minutes": draw.number(5, 120),
        "servings": draw.number(2, 12),
        "ingredients": [*needs],
    }
    return record, {"needs": listing(needs), "comma": ", ".join(needs), "Dish": dish.capitalize()}


recipe = Kind(
    "recipe", words("recipe|dish|cooking note", "|"), draw_recipe,
    lines(TEMPLATES['recipe']) + \
lines_of("recipe"),
    lines(TEMPLATES['recipe 2']),
    (VEGAN, AUTHOR, DIFFICULTY),
    sentences=lines(TEMPLATES['recipe.sentences']),
    aliases={"needs": "ingredients", "comma": "ingredients", "Dish": "dish"},
    clauses=RECIPE + clauses_more_of_life.RECIPE,
)  # fmt: skip
