"""Corpus task: a shop's list in the system message and several turns about it.

Every question has one right answer, spelled in one way. `it` is the product that the turn before was about.
"""

import json
from dataclasses import dataclass

from rtlang.model.embedded.lexicon import COLORS
from rtlang.model.embedded.tasks_lookup import distinct
from rtlang.model.embedded.words import Draw, Messages, article, listing, plural

HEADINGS = (
    "You work in a shop. Catalog:",
    "[You work in a shop/You run a small shop/You are the clerk of a shop/You help customers]. [Catalog/Stock/Goods/Prices/List]:",
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


# Questions about the whole list or two of its products: the wordings of training, and those held out.
ASK_ALL = {
    "all": (
        (
            "What do you sell?",
            "What do you have?",
            "What [goods/things] do you sell?",
            "What can I get here?",
            "What is on the list?",
            "[Name/List/Show] your goods.",
            "Which [goods/things] do you have?",
            "What is there to buy?",
            "What do you offer?",
            "Tell me all that you sell.",
        ),
        ("What can I buy here?",),
    ),
    "cheapest": (
        (
            "[What/Which] is the cheapest?",
            "[What/Which] has the lowest price?",
            "Which of [them/your goods] is the cheapest?",
            "Which [thing/article] costs least?",
            "[Show/Name/Tell] me the cheapest.",
            "I look for the cheapest [thing/of all].",
            "I have little money, which is the cheapest?",
            "Is there something cheaper than all the rest?",
            "For what do I pay least?",
        ),
        ("What costs the least?",),
    ),
    "dearest": (
        (
            "[What/Which] is the most expensive?",
            "[What/Which] has the highest price?",
            "Which of [them/your goods] is the most expensive?",
            "Which [thing/article] costs most?",
            "[Show/Name/Tell] me the [dearest/most expensive].",
            "I look for the most expensive [thing/of all].",
            "Money is no matter, which is the dearest?",
            "Is there something dearer than all the rest?",
            "For what do I pay most?",
        ),
        ("What costs the most?",),
    ),
    "shade": (
        (
            "Which is {shade}?",
            "What do you have in {shade}?",
            "[What/Which] goods are {shade}?",
            "[Show/Name/List] all that is {shade}.",
            "Have you got [anything/something] {shade}?",
            "I want something {shade}, what is there?",
            "Which [things/goods] come in {shade}?",
            "Which of [them/your goods] are {shade}?",
            "My color is {shade}. What do you have?",
        ),
        ("What is {shade}?",),
    ),
    "out": (
        (
            "[What/Which] is sold out?",
            "Which [goods/things] are sold out?",
            "[Show/Name/List] all that is sold out.",
            "What have you run out of?",
            "What are you out of?",
            "What can I not [get/take home] today?",
            "Of what is there none left?",
            "Is anything sold out?",
            "Which [goods/things] are out of stock?",
        ),
        ("What do you not have in stock?",),
    ),
    "kinds": (
        (
            "How many kinds of goods do you sell?",
            "How many [goods/things/articles] are on the list?",
            "How many [goods/articles] does the shop sell?",
            "How long is the list?",
            "[Count/Number] the goods.",
            "How much is there to choose from?",
        ),
        ("How many kinds of goods do you have?",),
    ),
    "costs": (
        (
            "[What/Which] costs {price} dollars?",
            "[What/Which] is sold for {price} dollars?",
            "What do I get for {price} dollars?",
            "[What/Which] has a price of {price} dollars?",
            "I have {price} dollars. What costs just that?",
            "Which [thing/article] costs {price} dollars?",
            "For {price} dollars, what is there?",
            "Something was {price} dollars. What was it?",
        ),
        ("Which product is {price} dollars?",),
    ),
    "dearer": (
        (
            "Which costs more, the {a} or the {b}?",
            "Which is [dearer/more expensive], the {a} or the {b}?",
            "Is the {a} or the {b} [dearer/more expensive]?",
            "The {a} or the {b}, which costs more?",
            "Which has the higher price, the {a} or the {b}?",
            "Of the {a} and the {b}, which costs more?",
            "For which do I pay more, the {a} or the {b}?",
        ),
        ("What costs more, the {a} or the {b}?",),
    ),
    "total": (
        (
            "How much are the {a} and the {b} together?",
            "What do the {a} and the {b} cost together?",
            "[What/How much] do I pay for the {a} and the {b}?",
            "I [take/want] the {a} and the {b}. How much is that?",
            "The {a} and the {b}, what does that make?",
            "Add up the {a} and the {b}[, please/].",
            "What is the sum for the {a} and the {b}?",
        ),
        ("What is the price of the {a} and the {b} together?",),
    ),
}


def about_all(draw: Draw, kind: str, goods: list[Product]) -> tuple[str, str]:
    """A question about the whole list or two of its products, and the answer."""
    ask = draw.wording(*ASK_ALL[kind])
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


def about_lists(draw: Draw) -> Messages:
    """A catalogue with more questions about the whole list, which are harder than those about one product."""
    return catalogue(draw, list_share=0.7)


def catalogue(draw: Draw, list_share: float = 0.22) -> Messages:
    """A shop's list in the system message and one to eight turns about it, a share of them about the whole list."""
    goods = stock_list(draw)
    messages: Messages = [("system", written(draw, goods))]
    last: Product | None = None
    asked: set[tuple[str, str]] = set()
    for _ in range(draw.pick((1, 3, 4, 5, 6, 7, 8))):
        kind = draw.random.random()
        if kind < 0.16:
            other = not_sold(draw, goods)
            ask = (
                draw.wording(*SOLD) if draw.chance(0.7) else draw.wording(*ASK[draw.pick(("price", "color", "stock"))])
            )
            turn = ask.format(one=article(other), noun=f"the {other}"), f"Sorry, we do not sell {article(other)}."
            last = None
        elif kind < 0.16 + list_share:
            turn = about_all(draw, draw.pick(LIST_KINDS), goods)
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
    return messages if len(messages) > 1 else catalogue(draw)
