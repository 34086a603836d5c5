"""Kinds of records of trade: an order of one article, and a basket of several."""

from tiny_model.corpus import clauses_more
from tiny_model.corpus import lexicon as lex
from tiny_model.corpus.clauses_of_trade import BASKET, ORDER
from tiny_model.corpus.corpus_data import lines_of, sections_of
from tiny_model.corpus.extras import EMAIL, NOTE_CODE, PHONE, URGENT, Record
from tiny_model.corpus.extras_more import EXPRESS, GIFT
from tiny_model.corpus.kinds import Drawn, Kind, lines, money
from tiny_model.corpus.lexicon import words
from tiny_model.corpus.words import Draw, listing, plural

TEMPLATES = sections_of("kinds_of_trade")


def draw_order(draw: Draw) -> Drawn:
    item, (price, spelled) = draw.goods(), money(draw)
    record: Record = {
        "customer": draw.full_name(), "item": item, "quantity": draw.number(2, 90), "price": price, "city": draw.place_name(),
    }  # fmt: skip
    return record, {
        "items": plural(item),
        "price": spelled,
        "money": draw.pick(lex.CURRENCIES) if draw.chance(0.3) else "dollars",
    }


order = Kind(
    "order", words("order|purchase|request", "|"), draw_order,
    lines(TEMPLATES['order']) + lines_of("order"),
    lines(TEMPLATES['order 2']),
    (URGENT, PHONE, EMAIL, NOTE_CODE, EXPRESS, GIFT),
    sentences=lines(TEMPLATES['order.sentences']),
    first_person=lines(TEMPLATES['order.first_person']),
    aliases={"items": "item", "money": ""},
    clauses=ORDER + clauses_more.ORDER,
)  # fmt: skip


def draw_basket(draw: Draw) -> Drawn:
    pairs = [(draw.goods(), draw.number(2, 60)) for _ in range(draw.pick((1, 2, 2, 2, 3, 3, 4)))]
    if draw.chance(0.2):
        goods = [f"{count} x {noun}" for noun, count in pairs]
    else:
        pairs = [(plural(noun), count) for noun, count in pairs]
        goods = [f"{count} {noun}" for noun, count in pairs]
    items: list[dict[str, str | int]] = [{"item": noun, "quantity": count} for noun, count in pairs]
    return {"customer": draw.full_name(), "city": draw.place_name(), "items": items}, {"goods": listing(goods)}


basket = Kind(
    "order", words("order|purchase|shopping list", "|"), draw_basket,
    lines(TEMPLATES['basket']) + lines_of("basket"),
    lines(TEMPLATES['basket 2']),
    (URGENT, PHONE, NOTE_CODE, EXPRESS, GIFT),
    sentences=lines(TEMPLATES['basket.sentences']),
    first_person=lines(TEMPLATES['basket.first_person']),
    aliases={"goods": "items"},
    clauses=BASKET + clauses_more.BASKET,
)  # fmt: skip
