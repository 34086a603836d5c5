"""Corpus task: character sheets, answered by one JSON object."""

import json

from tiny_model.corpus.extras import Record, Value
from tiny_model.corpus.lexicon import ANIMALS, CITIES, COLORS, FIRST_NAMES, HOBBIES
from tiny_model.corpus.phrases import ANY_ROLE, ROLES
from tiny_model.corpus.words import Draw, Messages, article, listing

SHEET_FIELDS = ("name", "age", "role", "home", "traits", "motto")
EXTRA_FIELDS = ("likes", "pet", "level", "friend", "skills", "color")


def sheet_value(draw: Draw, key: str, name: str, role: str, home: str, age: int) -> Value:
    """The value of a field: one of those given, or one made up to suit the role."""
    traits, mottos = ROLES.get(role, ANY_ROLE)
    known: Record = {"name": name, "role": role, "home": home, "age": age}
    if key in known:
        return known[key]
    if key == "traits":
        return draw.subset(traits, draw.pick((2, 3, 3, 3, 3)))
    if key == "skills":
        return draw.subset(HOBBIES, 2)
    if key == "motto":
        return draw.pick(mottos)
    if key == "level":
        return draw.number(1, 20)
    extra: Record = {
        "likes": draw.subset(HOBBIES, 2),
        "pet": draw.pick(ANIMALS),
        "friend": draw.pick(FIRST_NAMES),
        "color": draw.pick(COLORS),
    }
    return extra[key]


def age_for(draw: Draw, role: str) -> int:
    """Wise roles are old, bold and quick ones young."""
    traits, _ = ROLES.get(role, ANY_ROLE)
    if "wise" in traits:
        return draw.number(48, 76)
    return draw.number(19, 33) if {"bold", "quick", "clever"} & set(traits) else draw.number(28, 52)


def sheet(draw: Draw) -> Messages:
    """A character: what the prompt tells is copied, what it leaves open is made up to suit the role."""
    name, home = draw.full_name() if draw.chance(0.3) else draw.person(0.25), draw.place_name()
    role = draw.pick(tuple(ROLES)) if draw.chance(0.93) else draw.made_up()
    age = age_for(draw, role)
    keys = list(SHEET_FIELDS)
    if draw.chance(0.4):
        keys = draw.sample(keys, draw.number(2, 6))
        if draw.chance(0.5):
            keys.insert(draw.number(0, len(keys)), draw.pick(EXTRA_FIELDS))
    told_home, told_age, told_fields = draw.chance(0.7), draw.chance(0.15), draw.chance(0.75)
    if not told_fields and draw.chance(0.7):
        keys = list(SHEET_FIELDS)
    if not told_home:
        home = draw.pick(CITIES)
    who = f"{name}, " + (f"{article(role)} from {home}" if told_home else article(role))
    if told_age:
        who += f", aged {age}" if draw.chance(0.5) else f", {age} years old"
    with_fields = f" with {', '.join(keys) if draw.chance(0.8) else listing(keys)}" if told_fields else ""
    verb = draw.pick(
        ("Describe", "Describe", "Create", "Invent", "Imagine", "Write about", "Show", "Introduce", "Make up")
    )
    sheet_word = draw.pick(("character sheet", "character", "profile", "character card", "short profile"))
    ask = draw.pick(
        (
            f"{verb} {who}, as JSON{with_fields}.",
            f"{verb} {who}, as JSON{with_fields}.",
            f"{verb} {who}, as a JSON object{with_fields}.",
            f"{verb} a {sheet_word} for {who}, as JSON{with_fields}.",
            f"Write a {sheet_word} for {who}.{' Fields: ' + ', '.join(keys) + '.' if told_fields else ''}",
            f"Character: {who}.\nReturn JSON{with_fields}.",
            f"{verb} {who}.",
            f"Who is {who}? Answer as JSON{with_fields}.",
            f"Give me the {sheet_word} of {who}, in JSON{with_fields}.",
        )
    )
    record = {key: sheet_value(draw, key, name, role, home, age) for key in keys}
    messages = [("user", ask), ("assistant", json.dumps(record, ensure_ascii=False))]
    if draw.chance(0.3):
        systems = (
            "You invent characters.",
            "You write character sheets as JSON.",
            "You are a helpful assistant.",
            "Answer in JSON.",
        )
        messages.insert(0, ("system", draw.pick(systems)))
    return messages
