"""The shop's answers, recomputed from the list by a reader of its own."""

import json
import re

import pytest
from spoken import ways
from tiny_model.corpus import tasks_catalogue
from tiny_model.corpus.corpus_data import blocks_of
from tiny_model.corpus.tasks_catalogue import HELD_ASK_LIST, LIST_KINDS, Product, catalogue, list_questions
from tiny_model.corpus.words import Draw, Split, plural

ROW = re.compile(r"(?:- )?(?P<name>[^:]+): (?P<price>\d+) dollars, (?P<color>\w+), (?P<left>\d+) (?:in stock|left)")
SENTENCE = re.compile(r"The (?P<name>.+) is (?P<color>\w+) and costs (?P<price>\d+) dollars, (?P<left>\d+) in stock\.")
COLORS = "red blue green black white yellow brown gray orange purple"


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


def answer_about_list(ask: str, kind: str, goods: dict[str, tuple[int, str, int]]) -> str:
    """The answer to a question of this kind about the whole list or two of its products."""
    by_price = sorted(goods, key=lambda name: goods[name][0])
    match kind:
        case "all":
            return re.sub(r"\bthe ", "", f"We sell {with_the(list(goods))}.")
        case "cheapest":
            return f"The {by_price[0]} is the cheapest, at {goods[by_price[0]][0]} dollars."
        case "dearest":
            return f"The {by_price[-1]} is the most expensive, at {goods[by_price[-1]][0]} dollars."
        case "kinds":
            return f"We sell {len(goods)} kinds."
        case "out":
            return those([name for name in goods if not goods[name][2]], "sold out")
        case "shade":
            (shade,) = [word for word in re.findall(r"\w+", ask) if word in COLORS.split()]
            return those([name for name in goods if goods[name][1] == shade], shade)
        case "costs":
            (price,) = re.findall(r"(\d+) dollars", ask)
            (name,) = [name for name in goods if goods[name][0] == int(price)]
            return f"The {name} costs {price} dollars."
    named = {name: found.start() for name in goods if (found := re.search(rf"\b[Tt]he {re.escape(name)}\b", ask))}
    assert len(named) == 2, ask
    if kind == "dearer":
        return f"The {max(named, key=lambda name: goods[name][0])} costs more."
    first, second = sorted(named, key=lambda name: named[name])
    a, b = goods[first][0], goods[second][0]
    return f"{a} + {b} = {a + b}, so together they cost {a + b} dollars."


def about_product(ask: str, said: str, goods: dict[str, tuple[int, str, int]], last: str | None) -> tuple[str, str]:
    """The answer and the kind of question; of a product that is not on the list, its name is taken from what was said."""
    named = [name for name in goods if re.search(rf"\b(?:the|a|an) {re.escape(name)}\b", ask)]
    named += [name for name in goods if re.search(rf"How many {re.escape(plural(name))} ", ask)]
    shade = next((word for word in re.findall(r"\w+", ask) if word in COLORS.split()), None)
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


@pytest.fixture
def kinds_asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The kind of every question about a whole list, by its text. Tests may clear it."""
    kinds: dict[str, str] = {}
    ask_about_list = tasks_catalogue.about_list

    def noted(draw: Draw, kind: str, goods: list[Product]) -> tuple[str, str]:
        turn = ask_about_list(draw, kind, goods)
        kinds[turn[0]] = kind
        return turn

    monkeypatch.setattr(tasks_catalogue, "about_list", noted)
    return kinds


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_answer_follows_from_the_list(split: Split, kinds_asked: dict[str, str]) -> None:
    draw, kinds = Draw(17, split), set()
    for number in range(600):
        kinds_asked.clear()
        (_, system), *turns = (list_questions if number % 2 else catalogue)(draw)
        goods, last = read(system), None
        assert len(goods) == len(system.split("\n")) - 1 - ("name | price" in system) or "[" in system
        for (_, ask), (_, said) in zip(turns[::2], turns[1::2], strict=True):
            if ask.startswith("Thank"):
                continue
            if ask in kinds_asked:
                kind, last = kinds_asked[ask], None
                answer = answer_about_list(ask, kind, goods)
            else:
                answer, kind = about_product(ask, said, goods, last)
                here = [
                    name for name in goods if re.search(rf"\b(?:{re.escape(name)}|{re.escape(plural(name))})\b", ask)
                ]
                last = None if kind == "not sold" else here[0] if here else last
            assert said == answer, (ask, system)
            kinds.add(kind)
    assert len(kinds) == 17, kinds


def test_more_of_the_questions_are_about_the_whole_list(kinds_asked: dict[str, str]) -> None:
    share = {}
    for task in (catalogue, list_questions):
        draw, num_turns, num_about_list = Draw(18), 0, 0
        for _ in range(400):
            kinds_asked.clear()
            asked = [content for role, content in task(draw) if role == "user"]
            num_turns += len(asked)
            num_about_list += sum(ask in kinds_asked for ask in asked)
        share[task] = num_about_list / num_turns
    assert share[catalogue] < 0.3
    assert share[list_questions] > 0.6


# What wordings of a kind say, and those of the others with the same fields do not.
CUES = {
    "cheapest": "cheap|least|lowest|low to high|affordable|little|inexpensive|minimum|bottom|smallest|easiest|fewest|below",
    "dearest": "most(?! affordable| inexpensive)|priciest|pricier|costliest|dearest|dearer|highest|high to low|top|biggest|maximum|hardest"
    "|steepest|more",
    "kinds": "how many|number|count|how (?:long|large|big)",
    "total": "together|total|sum|add|combined|bill|plus|both|as well as|joint|owe|what does that make|in all|pair|full price|overall",
}


def test_each_wording_of_a_question_about_a_whole_list_is_of_one_kind() -> None:
    fields = {"shade": {"shade"}, "costs": {"price"}, "dearer": {"a", "b"}, "total": {"a", "b"}}
    assert set(blocks_of("catalogue")) == set(HELD_ASK_LIST) == set(LIST_KINDS)
    said: dict[str, str] = {}
    for kind, (known, held) in tasks_catalogue.ASK_LIST.items():
        assert len(known) >= 60
        assert len(held) >= 4
        others = [cue for other, cue in CUES.items() if other != kind and fields.get(other) == fields.get(kind)]
        for wording in (*known, *held):
            assert set(re.findall(r"{(\w+)}", wording)) == fields.get(kind, set()), wording
            for text in sorted(ways(wording)):
                assert said.setdefault(text, kind) == kind, text
                assert re.search(CUES.get(kind, ""), text, re.IGNORECASE), (kind, text)
                assert not [cue for cue in others if re.search(rf"\b(?:{cue})\b", text, re.IGNORECASE)], (kind, text)


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
