"""Kinds of records about things: products, results of matches, books, and houses for rent."""

from tiny_model.corpus import clauses_more_of_life
from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.clauses_of_goods import BOOK, HOUSE, MATCH, PRODUCT
from tiny_model.corpus.corpus_data import lines_of, sections_of
from tiny_model.corpus.extras import COLOR, EMAIL, FURNISHED, IN_STOCK, PETS, PHONE, PUBLISHER, WEBSITE
from tiny_model.corpus.kinds import Drawn, Kind, lines, money
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw, article

TEMPLATES = sections_of("kinds_of_goods")


def draw_product(draw: Draw) -> Drawn:
    (price, spelled), item = money(draw), draw.item(0)
    return {
        "product": item, "brand": draw.capital(), "material": draw.slot(lex.MATERIALS), "price": price,
        "weight": draw.number(1, 9000),
        "code": draw.any_code(),
    }, {"price": spelled, "a_product": article(item), "money": draw.pick(lex.CURRENCIES)}  # fmt: skip


product = Kind(
    "product", words("product|article|product description", "|"), draw_product,
    lines(TEMPLATES['product']) + lines_of("product"),
    lines(TEMPLATES['product 2']),
    (WEBSITE, COLOR, IN_STOCK),
    lines(TEMPLATES['product 3']),
    aliases={"a_product": "product", "money": ""},
    clauses=PRODUCT + clauses_more_of_life.PRODUCT,
)  # fmt: skip


def draw_match(draw: Draw) -> Drawn:
    goals = draw.number(0, 99 if draw.chance(0.4) else 7)
    return {
        "winner": draw.team(), "loser": draw.team(), "winner_score": goals + draw.number(1, 5), "loser_score": goals,
        "sport": draw.slot(lex.SPORTS), "date": draw.any_date(),
    }, {}  # fmt: skip


match = Kind(
    "match", words("match|result|game", "|"), draw_match,
    lines(TEMPLATES['match']) + lines_of("match"),
    lines(TEMPLATES['match 2']),
    (),
    lines(TEMPLATES['match 3']),
    clauses=MATCH + clauses_more_of_life.MATCH,
    verbs_tell_roles=True,
)  # fmt: skip


def draw_book(draw: Draw) -> Drawn:
    genre = draw.slot(lex.GENRES, (), 0.15)
    return {
        "title": draw.title(), "author": draw.full_name(), "year": draw.number(1890, 2030), "genre": genre,
        "pages": draw.number(40, 1200),
    }, {"a_genre": article(genre)}  # fmt: skip


book = Kind(
    "book", words("book|title|book review", "|"), draw_book,
    lines(TEMPLATES['book']) + lines_of("book"),
    lines(TEMPLATES['book 2']),
    (WEBSITE, PUBLISHER),
    lines(TEMPLATES['book 3']),
    aliases={"a_genre": "genre"},
    clauses=BOOK + clauses_more_of_life.BOOK,
)  # fmt: skip


def draw_house(draw: Draw) -> Drawn:
    kind = draw.pick(("house", "flat", "apartment", "studio", "cottage", "villa"))
    return {
        "kind": kind, "address": draw.street(),
        "city": draw.place_name(),
        "rooms": draw.number(1, 9), "area": draw.number(18, 400), "rent": draw.number(20, 500) * 10,
    }, {"a_kind": article(kind)}  # fmt: skip


house = Kind(
    "listing", words("listing|house ad|offer", "|"), draw_house,
    lines(TEMPLATES['house']) + lines_of("house"),
    lines(TEMPLATES['house 2']),
    (
        PHONE, EMAIL,
        FURNISHED,
        PETS,
    ),
    lines(TEMPLATES['house 3']),
    aliases={"a_kind": "kind"},
    clauses=HOUSE + clauses_more_of_life.HOUSE,
)  # fmt: skip
