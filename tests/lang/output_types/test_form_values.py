"""Values of composed forms: random forms give back what their texts were made from, and readings are bounded."""

from __future__ import annotations

import datetime
import enum
import json
import random
import re
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import rtlang as rt
from rtlang.contract.errors import ValueParseError
from rtlang.lang.output_types.types import output_type
from tests.support.programs.fake_target import FakeTarget


class Search(BaseModel):
    query: str
    limit: int = 3


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def read(form: Any, text: str) -> Any:
    return form.read("x", text)


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        (rt.sequence("n = ", int, ";"), "n = -5;", ("n = ", -5, ";")),
        (rt.sequence(int, bool, datetime.date), "12true2024-02-29", (12, True, datetime.date(2024, 2, 29))),
        (rt.sequence(re.compile("a*"), re.compile("a?b")), "aaab", ("aaa", "b")),
        (rt.sequence(re.compile("a*"), "aab"), "aaaab", ("aa", "aab")),
        (rt.sequence(int, int), "12", (1, 2)),
        (rt.either("none", int), "none", "none"),
        (rt.either("none", int), "7", 7),
        (rt.either(int, float), "7.5", 7.5),
        (rt.either("a", rt.sequence("a", int)), "a1", ("a", 1)),
        (rt.repeated(rt.sequence(int, ","), 0, 3), "", []),
        (rt.repeated(rt.sequence(int, ","), 0, 3), "1,22,", [(1, ","), (22, ",")]),
        (rt.sequence(rt.repeated("ab"), "a", Color), "ababared", (["ab", "ab"], "a", Color.RED)),
        (rt.sequence(rt.repeated(Literal["x", "xy"], 1), "y"), "xxyy", (["x", "xy"], "y")),
        (rt.sequence(rt.repeated("a"), "a"), "aaa", (["a", "a"], "a")),
        (rt.sequence("<", list[int], Search, ">"), '<[1, 2]{"query": ">"}>', ("<", [1, 2], Search(query=">"), ">")),
        (rt.sequence({"type": "number"}, "!"), "1.5!", (1.5, "!")),
        (rt.sequence(rt.token("<|call|>"), int, rt.token(7), "."), "<|call|>5 zz.", ("<|call|>", 5, " zz", ".")),
        (rt.sequence(rt.lark("start: /[a-z]+/"), "-", rt.ebnf("root ::= [0-9]+")), "ab-12", ("ab", "-", "12")),
        (rt.sequence(rt.json_text(Search, indent=2), "."), '{\n  "query": "}."\n}.', (Search(query="}."), ".")),
        (rt.sequence(output_type(regex=r"\p{L}+"), " ", int), "äß 1", ("äß", " ", 1)),
    ],
)
def test_a_text_is_divided_into_the_values_of_the_parts(form: Any, text: str, value: Any) -> None:
    found = read(form, text)
    assert found == value
    assert type(found) is type(value)


CALLS = rt.tagged({"<call>": (Search, "</call>"), "<n>": (int, "")}, triggers=["<call", "<n>"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", []),
        ("just text", ["just text"]),
        ("<n>5", [rt.Tag("<n>", 5, "")]),
        (
            'a<call>{"query": "</call>"}</call>b <n>12.',
            ["a", rt.Tag("<call>", Search(query="</call>"), "</call>"), "b ", rt.Tag("<n>", 12, ""), "."],
        ),
        ("<n>1<n>2", [rt.Tag("<n>", 1, ""), rt.Tag("<n>", 2, "")]),
    ],
)
def test_tags_are_values_between_texts(text: str, value: Any) -> None:
    assert read(CALLS, text) == value


def test_tags_are_parts_of_other_forms() -> None:
    form = rt.sequence("[", rt.tagged({"<b>": (rt.either("x", int), "</b>")}), "]")
    assert read(form, "[a<b>x</b><b>3</b>]") == ("[", ["a", rt.Tag("<b>", "x", "</b>"), rt.Tag("<b>", 3, "</b>")], "]")


def _random_form(rng: random.Random, depth: int) -> tuple[Any, str, Any]:
    """A form that reads in one way only, a text of it and its value."""
    kind = rng.choice(
        ("int", "word", "model", "choice", "sequence", "either", "repeated") if depth else ("int", "word", "model")
    )
    mark = rng.choice("|#%~^")
    match kind:
        case "int":
            number = rng.randrange(-99, 99)
            return int, str(number), number
        case "word":
            word = "".join(rng.choices("abc", k=rng.randrange(1, 5)))
            return re.compile("[a-c]+"), word, word
        case "model":
            made = Search(query=rng.choice(("", "}", "|#", '"')), limit=rng.randrange(9))
            return Search, made.model_dump_json(), made
        case "choice":
            color = rng.choice(list(Color))
            return Color, color.value, color
        case "sequence":
            inner = [_random_form(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
            forms, texts, values = [], "", []
            for form, text, value in inner:
                forms += [f"{mark}(", form, f"){mark}"]
                texts += f"{mark}({text}){mark}"
                values += [f"{mark}(", value, f"){mark}"]
            return rt.sequence(*forms), texts, tuple(values)
        case "either":
            inner = [_random_form(rng, depth - 1) for _ in range(3)]
            chosen = rng.randrange(3)
            forms = [rt.sequence(f"{index}:", form, ".") for index, (form, _, _) in enumerate(inner)]
            _, text, value = inner[chosen]
            return rt.either(*forms), f"{chosen}:{text}.", (f"{chosen}:", value, ".")
    form, _, _ = _random_form(rng, 0)
    items = [(text, value) for kind, text, value in (_random_form(rng, 0) for _ in range(9)) if kind == form]
    text = "".join(f"{text};" for text, _ in items)
    return rt.repeated(rt.sequence(form, ";")), text, [(value, ";") for _, value in items]


def test_random_forms_give_back_the_values_of_their_texts() -> None:
    rng = random.Random(23)
    for _ in range(400):
        form, text, value = _random_form(rng, 3)
        assert read(rt.sequence(form, "$"), text + "$") == (value, "$")


def test_a_long_repeat_and_an_ambiguous_form_end() -> None:
    text = "ab," * 9000
    assert len(read(rt.repeated(rt.sequence(re.compile("[ab]+"), ",")), text)) == 9000
    ambiguous = rt.sequence(*[re.compile("a*") for _ in range(12)], "b")
    with pytest.raises(ValueParseError, match="divisions"):
        read(ambiguous, "a" * 300)
    with pytest.raises(ValueParseError, match="cannot be split"):
        read(rt.sequence("a", int), "b5")


def test_values_and_texts_of_a_program() -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("line", type=rt.sequence("n = ", int, ";"))
        s += rt.text("[", s["line"], "]") + rt.gen("tags", type=CALLS)
        return s["line"][1], s.text("line"), s["tags"]

    texts = {"line": "n = 5;", "tags": "x <n>3"}
    with FakeTarget(lambda call: texts[call.name or ""]) as target:
        result = ask.run(runtime=target)
        assert result.value == (5, "n = 5;", ["x ", rt.Tag("<n>", 3, "")])
        assert result.text("tags") == "x <n>3"
        assert json.loads(json.dumps(result.text("line"))) == "n = 5;"
