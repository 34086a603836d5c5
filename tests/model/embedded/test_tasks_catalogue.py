"""The shop's answers, recomputed from the list by a reader of its own."""

import json
import re

import pytest

from rtlang.model.embedded import tasks_catalogue
from rtlang.model.embedded.tasks_catalogue import Product, about_lists, catalogue
from rtlang.model.embedded.words import Draw, Split, plural

ROW = re.compile(r"(?:- )?(?P<name>[^:]+): (?P<price>\d+) dollars, (?P<color>\w+), (?P<left>\d+) (?:in stock|left)")
SENTENCE = re.compile(r"The (?P<name>.+) is (?P<color>\w+) and costs (?P<price>\d+) dollars, (?P<left>\d+) in stock\.")
COLORS = "red blue green black white yellow brown gray orange purple"


# What is said in questions about the whole list.
ALL = re.compile(
    r"Wh(at|ich)( goods| things)? do you (sell|have|offer)\?|What can I (buy|get) here\?|What is (on the list|there to buy)\?"
    r"|(Name|List|Show) your goods\.|Tell me all that you sell\."
)
CHEAPEST = re.compile(r"cheapest|cheaper than all|lowest price|(costs|pay|costs the) least\?")
DEAREST = re.compile(r"dearest|most expensive|dearer than all|highest price|(costs|pay|costs the) most\?")
OUT = re.compile(
    r"Wh(at|ich)( goods| things)? (is|are) (sold out|out of stock)\?|all that is sold out|run out of|you out of"
    r"|can I not|none left|anything sold out|not have in stock"
)
KINDS = re.compile(
    r"kinds|How many (goods|things|articles) |How long is the list|(Count|Number) the goods|How much is there to"
)


def read(system: str) -> dict[str, tuple[int, str, int]]:
    _, *lines = system.split("\n")
    if lines[0].startswith("["):
        return {row["name"]: (row["price"], row["color"], row["stock"]) for row in json.loads(lines[0])}
    if " | " in lines[0]:
        rows = [line.split(" | ") for line in lines[1:]]
        return {name: (int(price), color, int(left)) for name, price, color, left in rows}
    found = [SENTENCE.fullmatch(line) or ROW.fullmatch(line) for line in lines]
    return {m["name"]: (int(m["price"]), m["color"], int(m["left"])) for m in found if m}


def with_the(names: list[str]) -> str:
    listed = [f"the {name}" for name in names]
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " and " + listed[-1]


def those(names: list[str], what: str) -> str:
    if not names:
        return f"Nothing is {what}."
    text = with_the(names)
    return f"{text[0].upper()}{text[1:]} {'is' if len(names) == 1 else 'are'} {what}."


def expected(ask: str, said: str, goods: dict[str, tuple[int, str, int]], last: str | None) -> tuple[str, str]:
    """The answer and the kind of question; of a product that is not on the list, its name is taken from what was said."""
    named = [name for name in goods if re.search(rf"\b(?:[Tt]he|a|an) {re.escape(name)}\b", ask)]
    named += [name for name in goods if re.search(rf"How many {re.escape(plural(name))} ", ask)]
    shade = next((word for word in re.findall(r"\w+", ask) if word in COLORS.split()), None)
    price_in = re.search(r"(\d+) dollars", ask)
    if CHEAPEST.search(ask):
        best = min(goods, key=lambda name: goods[name][0])
        return f"The {best} is the cheapest, at {goods[best][0]} dollars.", "cheapest"
    if DEAREST.search(ask):
        best = max(goods, key=lambda name: goods[name][0])
        return f"The {best} is the most expensive, at {goods[best][0]} dollars.", "dearest"
    if ALL.fullmatch(ask):
        return re.sub(r"\bthe ", "", f"We sell {with_the(list(goods))}."), "all"
    if KINDS.search(ask):
        return f"We sell {len(goods)} kinds.", "kinds"
    if OUT.search(ask):
        return those([name for name in goods if not goods[name][2]], "sold out"), "out"
    if price_in:
        (name,) = [name for name in goods if goods[name][0] == int(price_in[1])]
        return f"The {name} costs {goods[name][0]} dollars.", "costs"
    if shade and not named and not re.search(r"\bit\b", ask):
        return those([name for name in goods if goods[name][1] == shade], shade), "shade"
    if len(named) > 1 and re.search(r"costs more|pay more|dearer|more expensive|higher price", ask):
        return f"The {max(named, key=lambda name: goods[name][0])} costs more.", "dearer"
    if len(named) > 1:
        first, second = sorted(named, key=lambda name: ask.index(f" {name}"))
        a, b = goods[first][0], goods[second][0]
        return f"{a} + {b} = {a + b}, so together they cost {a + b} dollars.", "total"
    if not named and not re.search(r"\bit\b|How many do you have\?", ask):
        other = re.fullmatch(r"Sorry, we do not sell (an?) (.+)\.", said)
        assert other, ask
        assert other[2] not in goods
        assert re.search(rf"\b(?:the|an?) {re.escape(other[2])}\b", ask)
        return f"Sorry, we do not sell {'an' if other[2][0] in 'aeiou' else 'a'} {other[2]}.", "not sold"
    assert named or last, ask
    name = named[0] if named else str(last)
    price, color, left = goods[name]
    stock = f"we have {left} in stock." if left else f"the {name} is sold out."
    if re.match(r"How many (?!dollars)", ask):
        return stock[0].upper() + stock[1:], "count"
    if "sold out" in ask:
        return ("No, " if left else "Yes, ") + stock, "stock"
    if re.search(r"\bstock\b", ask):
        return ("Yes, " if left else "No, ") + stock, "stock"
    if shade:
        return f"{'Yes' if shade == color else 'No'}, the {name} is {color}.", "is it red"
    if "color" in ask:
        return f"The {name} is {color}.", "color"
    if "price" in ask:
        return f"The {name} costs {price} dollars.", "price"
    if re.match(r"I (?!look)|Yes, I|Please give|Give ", ask):
        return (f"Great, one {name} for {price} dollars." if left else f"Sorry, the {name} is sold out."), "buy"
    if re.match(r"Do you (?!ask)|Can I|Is there|I look for", ask):
        return f"Yes, the {name} costs {price} dollars.", "sold"
    return f"The {name} costs {price} dollars.", "price"


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_answer_follows_from_the_list(split: Split) -> None:
    draw, kinds = Draw(17, split), set()
    for _ in range(600):
        (_, system), *turns = catalogue(draw)
        goods, last = read(system), None
        assert len(goods) == len(system.split("\n")) - 1 - ("name | price" in system) or "[" in system
        for (_, ask), (_, said) in zip(turns[::2], turns[1::2], strict=True):
            if ask.startswith("Thank"):
                continue
            answer, kind = expected(ask, said, goods, last)
            assert said == answer, (ask, system)
            kinds.add(kind)
            single = kind in ("price", "color", "stock", "count", "sold", "is it red", "buy")
            here = [name for name in goods if re.search(rf"\b(?:{re.escape(name)}|{re.escape(plural(name))})\b", ask)]
            last = (here[0] if here else last) if single else None
    assert len(kinds) == 17, kinds


def test_more_of_the_questions_are_about_the_whole_list(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask_about_all = tasks_catalogue.about_all

    def about_all(draw: Draw, kind: str, goods: list[Product]) -> tuple[str, str]:
        asked.append(kind)
        return ask_about_all(draw, kind, goods)

    monkeypatch.setattr(tasks_catalogue, "about_all", about_all)
    share = {}
    for task in (catalogue, about_lists):
        asked.clear()
        draw = Draw(18)
        num_turns = sum(len(task(draw)) // 2 for _ in range(400))
        share[task] = len(asked) / num_turns
    assert share[catalogue] < 0.3
    assert share[about_lists] > 0.6


def test_the_same_seed_gives_the_same_conversation() -> None:
    first, again = Draw(5), Draw(5)
    assert [catalogue(first) for _ in range(20)] == [catalogue(again) for _ in range(20)]


def test_the_prompts_of_the_examples_are_trained() -> None:
    draw = Draw(6)
    headings: set[str] = set()
    asked: set[str] = set()
    for _ in range(2000):
        (_, system), *turns = catalogue(draw)
        headings.add(re.sub(r"- \w+: \d+ dollars, \w+, \d+ in stock", "ROW", system.split("\n- ")[0]))
        asked.update(content for role, content in turns if role == "user")
    assert "You work in a shop. Catalog:" in headings
    assert {"What color is it?", "What do you sell?", "I take it.", "How much is it?"} <= asked
