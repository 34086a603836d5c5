"""Corpus task: a shop's list in the system message and several turns about it.

Every question has one right answer, spelled in one way. `it` is the product that the turn before was about.
"""

import json
from dataclasses import dataclass

from tiny_model.corpus.corpus_data import blocks_of, sections_of
from tiny_model.corpus.lexicon import COLORS
from tiny_model.corpus.tasks_lookup import distinct
from tiny_model.corpus.words import Draw, Messages, article, listing, plural

TEMPLATES = sections_of("tasks_catalogue")

HEADINGS = (
    "You work in a shop. Catalog:",
    TEMPLATES["HEADINGS"],
    "[Catalog/Price list/Our goods/Stock list/Goods/In the shop]:",
    "You are a shop assistant. [We sell/Our list/In stock]:",
    "[Answer questions/Tell customers] about [our goods/this list]:",
)
HELD_HEADINGS = (
    "You are a shop assistant. Catalog:",
    "You work in a shop. We sell:",
    "You help in a shop with these goods:",
)
ROWS = (
    "- {name}: {price} dollars, {color}, {left} in stock",
    "- {name}: {price} dollars, {color}, {left} in stock",
    "{name}: {price} dollars, {color}, {left} left",
    "The {name} is {color} and costs {price} dollars, {left} in stock.",
)
TABLE_HEAD = "name | price | color | stock"
TABLE_ROW = "{name} | {price} | {color} | {left}"

# Questions about one product, with the share of each; `{noun}` is `the lamp` or `it`.
ASK = {
    "price": (
        (
            "How much [is/costs] {noun}?",
            "[What/How much] does {noun} cost?",
            "[What/Which] is the price of {noun}?",
            "The price of {noun}?",
            "[Tell me/I want to know] the price of {noun}.",
            "How many dollars do I pay for {noun}?",
            "[What/How much] do you ask for {noun}?",
        ),
        ("For how many dollars do you sell {noun}?", "What price is {noun}?"),
    ),
    "color": (
        (
            "What color is {noun}?",
            "Which color does {noun} have?",
            "What color does {noun} have?",
            "What is the color of {noun}?",
            "The color of {noun}?",
            "[Tell me/I want to know] the color of {noun}.",
            "In [which/what] color does {noun} come?",
        ),
        ("Which color is {noun}?", "Of what color is {noun}?"),
    ),
    "stock": (
        (
            "Is {noun} in stock?",
            "Do you have {noun} in stock?",
            "Is {noun} sold out?",
            "Is {noun} [there/available] and in stock?",
            "[Is/Was] {noun} sold out [now/already/today]?",
            "Can I get {noun} from stock?",
            "Do you still have {noun} in stock?",
        ),
        ("Is {noun} still in stock?",),
    ),
    "color?": (
        (
            "Is {noun} {shade}?",
            "Does {noun} come in {shade}?",
            "Is the color of {noun} {shade}?",
            "Is it right that {noun} is {shade}?",
            "Is {noun} [really/the color] {shade}?",
        ),
        ("Would you say {noun} is {shade}?",),
    ),
    "buy": (
        (
            "I [take/buy/want] {noun}.",
            "I would like to [buy/have/order] {noun}.",
            "I will take {noun}[, please/ then/].",
            "[Please give/Give] me {noun}.",
            "I want to buy {noun}.",
        ),
        ("I think I will buy {noun}.", "Yes, I take {noun}."),
    ),
}
COUNT = (
    (
        "How many {nouns} do you have?",
        "How many {nouns} are in stock?",
        "How many {nouns} are left?",
        "How many {nouns} [are there/can I get]?",
        "How many {nouns} does the shop have?",
    ),
    ("How many {nouns} do you have in stock?", "How many {nouns} does the shop have left?"),
)
SOLD = (
    (
        "Do you sell {one}?",
        "Do you have {one}?",
        "Can I [buy/get] {one} here?",
        "Do you [also/really] sell {one}?",
        "Is there {one} in the shop?",
        "I look for {one}. Do you have one?",
    ),
    ("Do you sell {one} here?", "Can I find {one} in the shop?"),
)
SINGLE_KINDS = (
    "price", "price", "price", "color", "color", "color", "stock", "stock", "stock", "count", "count",
    "sold", "sold", "color?", "buy",
)  # fmt: skip
LIST_KINDS = (
    "all", "all", "cheapest", "dearest", "shade", "shade", "total", "total", "dearer", "costs", "out", "kinds",
)  # fmt: skip
# Of questions about the whole list or two of its products, the held-out wordings by kind. Those of training are in texts/catalogue.txt.
HELD_ASK_LIST: dict[str, tuple[str, ...]] = {
    "all": (
        "What can I buy here?",
        "Can you tell me everything you have for sale?",
        "Which products do you carry?",
        "I'd like to see your full product list.",
    ),
    "cheapest": (
        "What costs the least?",
        "What's the cheapest thing you sell?",
        "What is your least expensive item?",
        "I'm on a tight budget, so what costs the least?",
        "Which of your products is the most affordable?",
    ),
    "dearest": (
        "What costs the most?",
        "What's the most expensive thing in your shop?",
        "What item costs the most?",
        "Tell me which product is your priciest.",
        "Which one of your products would cost me the most money?",
    ),
    "shade": (
        "What is {shade}?",
        "Do you have anything in {shade}?",
        "Which products are {shade}?",
        "Show me all your {shade} items.",
        "What do you sell that comes in {shade}?",
    ),
    "out": (
        "What do you not have in stock?",
        "Which products are sold out?",
        "What items are out of stock right now?",
        "Is anything sold out at the moment?",
        "Tell me what I can't buy because you've run out.",
    ),
    "kinds": (
        "How many kinds of goods do you have?",
        "How many different products do you sell?",
        "How many items are on your product list?",
        "What's the total number of different products you offer?",
        "Can you tell me how many different items you carry?",
    ),
    "costs": (
        "Which product is {price} dollars?",
        "What do you have for exactly {price} dollars?",
        "Is there anything priced at {price} dollars?",
        "Which item sells for {price} dollars?",
        "I have exactly {price} dollars to spend, which product is that price?",
    ),
    "dearer": (
        "What costs more, the {a} or the {b}?",
        "Would I pay more for the {a} or for the {b}?",
        "Hi, does the {a} or the {b} cost more?",
        "Which one sells for more, the {a} or the {b}?",
        "I wonder whether the {a} or the {b} is more expensive.",
    ),
    "total": (
        "What is the price of the {a} and the {b} together?",
        "What would the {a} and the {b} cost me in total?",
        "Getting both the {a} and the {b} would cost how much altogether?",
        "How much for the {a} and the {b} as a pair?",
        "What do I spend in all on the {a} and the {b}?",
    ),
}
ASK_LIST = {kind: (known, HELD_ASK_LIST[kind]) for kind, known in blocks_of("catalogue").items()}
NOT_SOLD_SHARE = 0.16  # of the turns


@dataclass(frozen=True, slots=True)
class Product:
    """One row of the list; the price in whole dollars, what is left in pieces."""

    name: str
    price: int
    color: str
    left: int


def stock_list(draw: Draw) -> list[Product]:
    """Two to twelve products with different names and prices."""
    count = draw.number(3, 12) if draw.chance(0.6) else draw.number(2, 5)
    names = distinct(
        draw, lambda source: source.made_up() if source.chance(0.35) else source.item(0), count, frozenset(COLORS)
    )
    prices = draw.sample(range(2, 100), count)
    colors = draw.sample(COLORS, min(len(COLORS), draw.number(3, 8)))
    return [
        Product(name, price, draw.pick(colors), 0 if draw.chance(0.25) else draw.number(1, 40))
        for name, price in zip(names, prices, strict=True)
    ]


def written(draw: Draw, goods: list[Product]) -> str:
    """The list as the system message spells it."""
    heading, kind = draw.wording(HEADINGS, HELD_HEADINGS), draw.random.random()
    rows = [{"name": each.name, "price": each.price, "color": each.color, "left": each.left} for each in goods]
    if kind < 0.66:
        row = draw.pick(ROWS)
        return heading + "\n" + "\n".join(row.format(**each) for each in rows)
    if kind < 0.86:
        return "\n".join([heading, TABLE_HEAD, *(TABLE_ROW.format(**each) for each in rows)])
    named = [{"stock" if key == "left" else key: value for key, value in each.items()} for each in rows]
    return f"{heading}\n{json.dumps(named)}"


def about_one(draw: Draw, kind: str, noun: str, each: Product) -> tuple[str, str]:
    """A question about one product on the list, and the answer."""
    if kind == "sold":
        return (
            draw.wording(*SOLD).format(one=article(each.name)),
            f"Yes, the {each.name} costs {each.price} dollars.",
        )
    if kind == "count":
        ask = "How many do you have?" if noun == "it" else draw.wording(*COUNT).format(nouns=plural(each.name))
        return ask, f"We have {each.left} in stock." if each.left else f"The {each.name} is sold out."
    shade = each.color if draw.chance(0.5) else draw.pick(COLORS)
    ask = draw.wording(*ASK[kind]).format(noun=noun, shade=shade)
    if kind == "price":
        return ask, f"The {each.name} costs {each.price} dollars."
    if kind == "color":
        return ask, f"The {each.name} is {each.color}."
    if kind == "color?":
        return ask, f"{'Yes' if shade == each.color else 'No'}, the {each.name} is {each.color}."
    if kind == "buy":
        return ask, (
            f"Great, one {each.name} for {each.price} dollars." if each.left else f"Sorry, the {each.name} is sold out."
        )
    if "sold out" in ask:
        return ask, f"No, we have {each.left} in stock." if each.left else f"Yes, the {each.name} is sold out."
    return ask, f"Yes, we have {each.left} in stock." if each.left else f"No, the {each.name} is sold out."


def about_list(draw: Draw, kind: str, goods: list[Product]) -> tuple[str, str]:
    """A question about the whole list or two of its products, and the answer."""
    ask = draw.wording(*ASK_LIST[kind])
    if kind == "all":
        return ask, f"We sell {listing([each.name for each in goods])}."
    if kind == "cheapest":
        best = min(goods, key=lambda each: each.price)
        return ask, f"The {best.name} is the cheapest, at {best.price} dollars."
    if kind == "dearest":
        best = max(goods, key=lambda each: each.price)
        return ask, f"The {best.name} is the most expensive, at {best.price} dollars."
    if kind == "shade":
        shade = draw.pick(COLORS if draw.chance(0.15) else [each.color for each in goods])
        return ask.format(shade=shade), those_that_are([each.name for each in goods if each.color == shade], shade)
    if kind == "out":
        return ask, those_that_are([each.name for each in goods if not each.left], "sold out")
    if kind == "kinds":
        return ask, f"We sell {len(goods)} kinds."
    if kind == "costs":
        each = draw.pick(goods)
        return ask.format(price=each.price), f"The {each.name} costs {each.price} dollars."
    first, second = draw.sample(goods, 2)
    ask = ask.format(a=first.name, b=second.name)
    if kind == "dearer":
        more = first if first.price > second.price else second
        return ask, f"The {more.name} costs more."
    total = first.price + second.price
    return ask, f"{first.price} + {second.price} = {total}, so together they cost {total} dollars."


def those_that_are(names: list[str], what: str) -> str:
    """The sentence that the named products, or nothing, are `what`."""
    if not names:
        return f"Nothing is {what}."
    return f"{'The ' + listing([names[0], *('the ' + name for name in names[1:])])} {'is' if len(names) == 1 else 'are'} {what}."


def not_sold(draw: Draw, goods: list[Product]) -> str:
    """A product that is not on the list, at times with a name like one that is."""
    names = {each.name for each in goods}
    while True:
        name = draw.made_up() if draw.chance(0.3) else draw.item(0)
        like = draw.pick(goods).name
        if draw.chance(0.2) and len(like) > 3:
            name = like[: len(like) // 2] + name[len(name) // 2 :]
        if name not in names and name not in COLORS and plural(name) not in names:
            return name


def list_questions(draw: Draw) -> Messages:
    """A catalogue with most of the questions about the whole list. They are nearly all that a model gets wrong otherwise."""
    return catalogue(draw, list_share=0.7)


def catalogue(draw: Draw, list_share: float = 0.22) -> Messages:
    """A shop's list in the system message and one to eight turns about it.

    Of the turns, `list_share` (at most 1 - `NOT_SOLD_SHARE`) are about the whole list or two of its products.
    """
    goods = stock_list(draw)
    messages: Messages = [("system", written(draw, goods))]
    last: Product | None = None
    asked: set[tuple[str, str]] = set()
    for _ in range(draw.pick((1, 3, 4, 5, 6, 7, 8))):
        kind = draw.random.random()
        if kind < NOT_SOLD_SHARE:
            other = not_sold(draw, goods)
            ask = (
                draw.wording(*SOLD) if draw.chance(0.7) else draw.wording(*ASK[draw.pick(("price", "color", "stock"))])
            )
            turn = ask.format(one=article(other), noun=f"the {other}"), f"Sorry, we do not sell {article(other)}."
            last = None
        elif kind < NOT_SOLD_SHARE + list_share:
            turn = about_list(draw, draw.pick(LIST_KINDS), goods)
            last = None
        else:
            is_it = last is not None and draw.chance(0.35)
            each = last if is_it and last is not None else draw.pick(goods)
            name = draw.pick([kind for kind in SINGLE_KINDS if kind != "sold"] if is_it else SINGLE_KINDS)
            if (name, each.name) in asked:
                continue
            asked.add((name, each.name))
            turn = about_one(draw, name, "it" if is_it else f"the {each.name}", each)
            last = each
        messages += [("user", turn[0]), ("assistant", turn[1])]
    if draw.chance(0.03):
        messages += [("user", draw.pick(("Thank you!", "Thanks"))), ("assistant", "You are welcome!")]
    return messages
