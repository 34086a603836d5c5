"""Kinds of records about travel: flights, stays in hotels, and the weather."""

from tiny_model.corpus import clauses_more
from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.clauses_of_travel import FLIGHT, HOTEL, WEATHER
from tiny_model.corpus.corpus_data import lines_of, sections_of
from tiny_model.corpus.extras import BREAKFAST, EMAIL, NOTE_CODE, PHONE, WINDOW_SEAT
from tiny_model.corpus.kinds import Drawn, Kind, lines, money
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw

TEMPLATES = sections_of("kinds_of_travel")


def draw_flight(draw: Draw) -> Drawn:
    return {
        "passenger": draw.full_name(), "origin": draw.place_name(), "destination": draw.place_name(), "flight": draw.any_code(),
        "date": draw.any_date(), "seat": f"{draw.number(1, 40)}{draw.pick('ABCDEF')}",
    }, {}  # fmt: skip


flight = Kind(
    "flight", words("flight|booking|ticket", "|"), draw_flight,
    lines(TEMPLATES['flight']) + lines_of("flight"),
    lines(TEMPLATES['flight 2']),
    (PHONE, EMAIL, NOTE_CODE, WINDOW_SEAT),
    lines(TEMPLATES['flight 3']),
    first_person=lines(TEMPLATES['flight.first_person']),
    clauses=FLIGHT + clauses_more.FLIGHT,
    verbs_tell_roles=True,
)  # fmt: skip


def draw_hotel(draw: Draw) -> Drawn:
    price, spelled = money(draw)
    return {
        "guest": draw.full_name(), "hotel": f"Hotel {draw.capital()}" if draw.chance(0.5) else draw.company(), "city": draw.place_name(),
        "nights": draw.number(1, 21), "check_in": draw.any_date(), "price": price,
    }, {"price": spelled, "money": draw.pick(lex.CURRENCIES)}  # fmt: skip


hotel = Kind(
    "hotel booking", words("hotel booking|reservation|booking", "|"), draw_hotel,
    lines(TEMPLATES['hotel']) + lines_of("hotel"),
    lines(TEMPLATES['hotel 2']),
    (PHONE, EMAIL, NOTE_CODE, BREAKFAST),
    lines(TEMPLATES['hotel 3']),
    first_person=lines(TEMPLATES['hotel.first_person']),
    aliases={"money": ""},
    clauses=HOTEL + clauses_more.HOTEL,
    verbs_tell_roles=True,
)  # fmt: skip


def draw_weather(draw: Draw) -> Drawn:
    low = draw.number(-20, 25)
    return {
        "city": draw.place_name(), "day": draw.pick(lex.DAYS), "condition": draw.slot(lex.CONDITIONS, (), 0.1),
        "high": low + draw.number(1, 15),
        "low": low, "wind": draw.number(1, 120),
    }, {}  # fmt: skip


weather = Kind(
    "weather report", words("weather report|forecast|weather", "|"), draw_weather,
    lines(TEMPLATES['weather']) + lines_of("weather"),
    lines(TEMPLATES['weather 2']),
    (),
    lines(TEMPLATES['weather 3']),
    clauses=WEATHER + clauses_more.WEATHER,
    verbs_tell_roles=True,
)  # fmt: skip
