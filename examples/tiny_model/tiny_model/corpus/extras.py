"""Optional fields of records: each with the sentence of a text that tells it."""

from collections.abc import Callable

from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.corpus_data import blocks_of, sections_of
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw

TEMPLATES = sections_of("extras")

Value = str | int | float | bool | list[str] | list[dict[str, str | int]] | dict[str, str | int] | None
Record = dict[str, Value]
Extra = Callable[[Draw], tuple[str, Value, str]]  # key, value, and the sentence that tells it
MORE = blocks_of("yes_no")


def ways(text: str) -> tuple[str, ...]:
    """The sentences of a text, a line each."""
    return tuple(line for line in words(text, "\n") if line)


def yes_no(key: str, yes: str, no: str, held_yes: str, held_no: str, block: str) -> Extra:
    """An extra field that is true or false; the sentences of each, a line each; those of a block of yes_no.txt too."""
    known, held = (
        {True: ways(yes) + MORE[f"{block} yes"], False: ways(no) + MORE[f"{block} no"]},
        {True: ways(held_yes), False: ways(held_no)},
    )

    def extra(draw: Draw) -> tuple[str, Value, str]:
        value = draw.chance(0.5)
        return key, value, draw.template(known[value], held[value])

    return extra


def told(key: str, make: Callable[[Draw], str | int], known: str, held: str) -> Extra:
    """An extra field with a value; its sentences, a line each, have a place `{}` for it."""
    known_texts, held_texts = ways(known), ways(held)

    def extra(draw: Draw) -> tuple[str, Value, str]:
        value = make(draw)
        return key, value, draw.template(known_texts, held_texts).format(value)

    return extra


URGENT = yes_no(
    "urgent",
    TEMPLATES["URGENT.1"],
    TEMPLATES["URGENT.2"],
    TEMPLATES["URGENT.3"],
    TEMPLATES["URGENT.4"],
    block="urgent",
)
PHONE = told(
    "phone",
    Draw.phone,
    TEMPLATES["PHONE"],
    TEMPLATES["PHONE 2"],
)
EMAIL = told(
    "email",
    Draw.email,
    TEMPLATES["EMAIL"],
    TEMPLATES["EMAIL 2"],
)
WEBSITE = told(
    "website",
    Draw.url,
    TEMPLATES["WEBSITE"],
    TEMPLATES["WEBSITE 2"],
)
NOTE_CODE = told(
    "reference",
    Draw.any_code,
    TEMPLATES["NOTE_CODE"],
    TEMPLATES["NOTE_CODE 2"],
)
WINDOW_SEAT = yes_no(
    "window_seat",
    TEMPLATES["WINDOW_SEAT.1"],
    TEMPLATES["WINDOW_SEAT.2"],
    "The seat is at the window.",
    "The seat is away from the window.",
    block="window_seat",
)
BREAKFAST = yes_no(
    "breakfast",
    TEMPLATES["BREAKFAST.1"],
    TEMPLATES["BREAKFAST.2"],
    "The rate covers breakfast.",
    "Guests bring their own food, breakfast is extra.",
    block="breakfast",
)
REMOTE = yes_no(
    "remote",
    TEMPLATES["REMOTE.1"],
    TEMPLATES["REMOTE.2"],
    "You may log in from your sofa.",
    "Presence in the office is a must.",
    block="remote",
)
PAID = yes_no(
    "paid",
    TEMPLATES["PAID.1"],
    TEMPLATES["PAID.2"],
    "The money has been sent, so it is paid.",
    "Payment is still missing.",
    block="paid",
)
DEPARTMENT = told(
    "department",
    lambda d: d.pick(lex.DEPARTMENTS),
    TEMPLATES["DEPARTMENT"],
    TEMPLATES["DEPARTMENT 2"],
)
COLOR = told(
    "color",
    lambda d: d.pick(lex.COLORS),
    TEMPLATES["COLOR"],
    TEMPLATES["COLOR 2"],
)
IN_STOCK = yes_no(
    "in_stock",
    TEMPLATES["IN_STOCK.1"],
    TEMPLATES["IN_STOCK.2"],
    "There are still some in stock.",
    "The stock is empty.",
    block="in_stock",
)
URGENT_OF_CASE = yes_no(
    "urgent",
    TEMPLATES["URGENT_OF_CASE.1"],
    TEMPLATES["URGENT_OF_CASE.2"],
    "Treat it as urgent.",
    "There is nothing urgent about it.",
    block="urgent_of_case",
)
PUBLISHER = told(
    "publisher",
    Draw.company,
    TEMPLATES["PUBLISHER"],
    TEMPLATES["PUBLISHER 2"],
)
FURNISHED = yes_no(
    "furnished",
    TEMPLATES["FURNISHED.1"],
    TEMPLATES["FURNISHED.2"],
    "Furniture is included, so it is furnished.",
    "You bring your own furniture, it is not furnished.",
    block="furnished",
)
PETS = yes_no(
    "pets",
    TEMPLATES["PETS.1"],
    TEMPLATES["PETS.2"],
    "A dog in the rooms is no problem for us.",
    "We do not accept pets.",
    block="pets",
)
EXPRESS = yes_no(
    "express",
    TEMPLATES["EXPRESS.1"],
    TEMPLATES["EXPRESS.2"],
    "It should go by express mail.",
    "Regular mail will do, no express.",
    block="express",
)
GIFT = yes_no(
    "gift",
    TEMPLATES["GIFT.1"],
    TEMPLATES["GIFT.2"],
    "It will be given as a gift.",
    "It is no gift.",
    block="gift",
)
FREE = yes_no(
    "free",
    TEMPLATES["FREE.1"],
    TEMPLATES["FREE.2"],
    "Nobody has to pay.",
    "Visitors have to pay.",
    block="free",
)
GUESTS = told(
    "guests",
    lambda d: d.number(5, 400),
    TEMPLATES["GUESTS"],
    TEMPLATES["GUESTS 2"],
)
MARRIED = yes_no(
    "married",
    TEMPLATES["MARRIED.1"],
    TEMPLATES["MARRIED.2"],
    "Has been married for years.",
    "A wedding ring was never bought.",
    block="married",
)
EMPLOYER = told(
    "employer",
    Draw.company,
    TEMPLATES["EMPLOYER"],
    TEMPLATES["EMPLOYER 2"],
)
RESOLVED = yes_no(
    "resolved",
    TEMPLATES["RESOLVED.1"],
    TEMPLATES["RESOLVED.2"],
    "All fine again by now, resolved.",
    "Nobody has resolved it so far.",
    block="resolved",
)
VEGAN = yes_no(
    "vegan",
    TEMPLATES["VEGAN.1"],
    TEMPLATES["VEGAN.2"],
    "Suits vegan guests.",
    "Unfit for vegan guests.",
    block="vegan",
)
AUTHOR = told(
    "author",
    Draw.full_name,
    TEMPLATES["AUTHOR"],
    TEMPLATES["AUTHOR 2"],
)
DIFFICULTY = told(
    "difficulty",
    lambda d: d.pick(("easy", "medium", "hard")),
    TEMPLATES["DIFFICULTY"],
    TEMPLATES["DIFFICULTY 2"],
)
