"""Optional fields of records: each with the sentence of a text that tells it."""

from collections.abc import Callable

from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.words import Draw

Value = str | int | float | bool | list[str] | list[dict[str, str | int]] | dict[str, str | int] | None
Record = dict[str, Value]
Extra = Callable[[Draw], tuple[str, Value, str]]  # key, value, and the sentence that tells it


def yes_no(key: str, yes: str, no: str, held_yes: str, held_no: str) -> Extra:
    """An extra field that is true or false; the sentences of each, separated by `|`."""
    known, held = (
        {True: words(yes, "|"), False: words(no, "|")},
        {True: words(held_yes, "|"), False: words(held_no, "|")},
    )

    def extra(draw: Draw) -> tuple[str, Value, str]:
        value = draw.chance(0.5)
        return key, value, draw.template(known[value], held[value])

    return extra


def told(key: str, make: Callable[[Draw], str | int], known: str, held: str) -> Extra:
    """An extra field with a value; its sentences, separated by `|`, have a place `{}` for it."""
    known_texts, held_texts = words(known, "|"), words(held, "|")

    def extra(draw: Draw) -> tuple[str, Value, str]:
        value = make(draw)
        return key, value, draw.template(known_texts, held_texts).format(value)

    return extra


URGENT = yes_no(
    "urgent",
    "This is urgent.|It is urgent!|Please hurry, it is urgent.|We need it as soon as possible, it is urgent.",
    "It is not urgent.|There is no hurry.|Take your time, this is not urgent.|No rush at all.",
    "Marked as urgent.|Top urgency, please act at once.",
    "Not urgent in any way.|No need to rush.",
)
PHONE = told(
    "phone",
    Draw.phone,
    "Phone: {}.|You can call {}.|Call {} for questions.|The phone number is {}.|Tel. {}",
    "Reachable at {}.|Ring {}.",
)
EMAIL = told(
    "email",
    Draw.email,
    "Write to {} with questions.|Email: {}|The email address is {} .|Contact: {}",
    "Mail goes to {} please.|E-mail {}",
)
WEBSITE = told(
    "website",
    Draw.url,
    "See {} for more.|More at {}|Website: {}|Find out more on {} .",
    "The web page is {}|Visit {} .",
)
NOTE_CODE = told(
    "reference",
    Draw.any_code,
    "Reference: {}.|The reference is {}.|Please quote {} as reference.|Our reference: {}.",
    "Refer to {}.|Ref. {}.",
)
EXPRESS = yes_no(
    "express",
    "Express delivery, please.|Send it by express.|Express shipping was chosen.",
    "Normal delivery is fine.|No express shipping needed.|Standard shipping, not express.",
    "It should go by express mail.",
    "Regular mail will do, no express.",
)
GIFT = yes_no(
    "gift",
    "It is a gift.|Please wrap it as a gift.|This is meant as a gift.",
    "It is not a gift.|No gift wrapping.|Not meant as a gift.",
    "It will be given as a gift.",
    "It is no gift.",
)
FREE = yes_no(
    "free",
    "Entry is free.|Admission is free.|It costs nothing to attend.|It is free of charge.",
    "Entry is not free.|There is an entry fee.|You need to buy a ticket.|It is not free.",
    "Nobody has to pay.",
    "Visitors have to pay.",
)
GUESTS = told(
    "guests",
    lambda d: d.number(5, 400),
    "About {} guests are expected.|There is room for {} guests.|{} people will come.",
    "{} visitors have signed up.|The list has {} guests.",
)
MARRIED = yes_no(
    "married",
    "Married.|Marital status: married.|The family status is married.",
    "Not married.|Unmarried.|Still single, not married.",
    "Has been married for years.",
    "Never married.",
)
EMPLOYER = told(
    "employer",
    Draw.company,
    "The employer is {}.|Works for {}.|Employer: {}.",
    "On the payroll of {}.|{} is the employer.",
)
RESOLVED = yes_no(
    "resolved",
    "The problem is solved.|It has been resolved.|Fixed in the meantime.",
    "It is not solved yet.|Still not resolved.|The problem remains open.",
    "All fine again by now, resolved.",
    "Nobody has resolved it so far.",
)
VEGAN = yes_no(
    "vegan",
    "The dish is vegan.|It is vegan.|Vegan: yes.",
    "It is not vegan.|The dish is not vegan.|Vegan: no.",
    "Suits vegan guests.",
    "Unfit for vegan guests.",
)
AUTHOR = told(
    "author",
    Draw.full_name,
    "Recipe by {}.|The recipe comes from {}.|Author: {}.",
    "Written down by {}.|Thanks to {} for the recipe.",
)
DIFFICULTY = told(
    "difficulty",
    lambda d: d.pick(("easy", "medium", "hard")),
    "The difficulty is {}.|Difficulty: {}.|This is rated as {}.",
    "Level: {}.|It counts as {}.",
)
WINDOW_SEAT = yes_no(
    "window_seat",
    "It is a window seat.|Window seat: yes.",
    "It is not a window seat.|No window seat.",
    "The seat is at the window.",
    "The seat is away from the window.",
)
BREAKFAST = yes_no(
    "breakfast",
    "Breakfast is included.|With breakfast.|Breakfast: yes.",
    "Breakfast is not included.|Without breakfast.|No breakfast.",
    "The rate covers breakfast.",
    "Guests bring their own food, breakfast is extra.",
)
REMOTE = yes_no(
    "remote",
    "Remote work is possible.|The job is remote.|You can work from home.",
    "No remote work.|The job is not remote.|You work on site.",
    "Home office is welcome.",
    "Presence in the office is a must.",
)
PAID = yes_no(
    "paid",
    "It is already paid.|The invoice has been paid.|Paid: yes.",
    "It is not paid yet.|Not paid so far.|Paid: no.",
    "The money has been sent, so it is paid.",
    "Payment is still missing.",
)
DEPARTMENT = told(
    "department",
    lambda d: d.pick(lex.DEPARTMENTS),
    "Department: {}.|The department is {}.|In charge of {}.",
    "Assigned to {}.|The unit in charge is {}.",
)
COLOR = told(
    "color", lambda d: d.pick(lex.COLORS), "The color is {}.|Color: {}.|It comes in {}.", "Painted {}.|Colored {}."
)
IN_STOCK = yes_no(
    "in_stock",
    "It is in stock.|In stock: yes.|We have it in stock.",
    "It is out of stock.|In stock: no.|Not in stock at the moment.",
    "There are still some in stock.",
    "The stock is empty.",
)
URGENT_OF_CASE = yes_no(
    "urgent",
    "The case is urgent.|This is urgent.|Urgent: yes.",
    "The case is not urgent.|This is not urgent.|Urgent: no.",
    "Treat it as urgent.",
    "There is nothing urgent about it.",
)
PUBLISHER = told(
    "publisher",
    Draw.company,
    "Publisher: {}.|The publisher is {}.|Published by {}.",
    "{} brought it out.|Printed at {}.",
)
FURNISHED = yes_no(
    "furnished",
    "It is furnished.|Furnished: yes.|The rooms are furnished.",
    "It is not furnished.|Furnished: no.|Unfurnished.",
    "Furniture is included, so it is furnished.",
    "You bring your own furniture, it is not furnished.",
)
PETS = yes_no(
    "pets",
    "Pets are allowed.|Pets: yes.|You may bring pets.",
    "Pets are not allowed.|No pets.|Pets: no.",
    "Pets are welcome.",
    "We do not accept pets.",
)
