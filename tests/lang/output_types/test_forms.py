"""Forms as output types: what constraint they stand for, and what they refuse."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import rtlang as rt
import rtlang_grammars
from rtlang.contract.errors import ParameterError
from rtlang.contract.params import ConstraintKind
from rtlang.lang.output_types.types import output_type
from rtlang_grammars import ANY_STYLE, Constraint, JsonLayout, JsonStyle, Lexer, PropertyOrder, Whitespace


class Point(BaseModel):
    x: int
    y: int = 0


def test_a_style_changes_how_a_value_is_written_and_not_how_it_is_read() -> None:
    plain, styled = output_type(schema=Point), rt.json_text(Point, whitespace="compact", order="declared")
    assert plain.constraint is not None
    assert styled.constraint is not None
    assert plain.constraint.style == JsonStyle()
    assert styled.constraint.style == JsonStyle(Whitespace.COMPACT, PropertyOrder.DECLARED)
    assert styled.constraint.source == plain.constraint.source
    assert styled.read("p", '{"x": 1}') == Point(x=1)
    loose = rt.json_text(Point, order="any", numbers="any").constraint
    assert loose is not None
    assert loose.style == ANY_STYLE
    assert output_type(type=styled) is styled
    assert output_type(schema=styled) is styled


def test_separators_and_indent_are_those_of_json_dumps() -> None:
    for arguments, layout in (
        ({"indent": 2}, JsonLayout(",", ": ", "  ")),
        ({"separators": (",", ":")}, JsonLayout(",", ":")),
        ({"separators": (", ", " : "), "indent": "\t"}, JsonLayout(", ", " : ", "\t")),
    ):
        constraint = rt.json_text(Point, **arguments).constraint  # type: ignore[arg-type]
        assert constraint is not None
        assert constraint.style.layout == layout
        assert Constraint.from_plain(constraint.to_plain()) == constraint


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: rt.json_text(Point, whitespace="wide"), "whitespace"),  # type: ignore[arg-type]
        (lambda: rt.json_text(Point, order="sorted"), "order"),  # type: ignore[arg-type]
        (lambda: rt.json_text(Point, numbers="short"), "numbers"),  # type: ignore[arg-type]
        (lambda: rt.json_text(Point, separators=(";", ":")), "separators"),
        (lambda: rt.json_text(Point, separators=","), "separators"),  # type: ignore[arg-type]
        (lambda: rt.json_text(Point, indent=-1), "indent"),
        (lambda: rt.json_text(Point, whitespace="compact", indent=2), "whitespace"),
        (lambda: rt.json_text(int), "schema"),
        (lambda: rt.json_text("{"), "schema"),
        (lambda: rt.ebnf(" "), "source"),
        (lambda: rt.lark(" "), "source"),
        (lambda: rt.lark('start: "a"', lexer="first"), "lexer"),  # type: ignore[arg-type]
        (lambda: rt.lark('start: "a"', indentation="_NL"), "indentation"),  # type: ignore[arg-type]
        (
            lambda: rt.lark('start: "a"', lexer="anywhere", indentation=rt.Indentation("_NL", "_IN", "_OUT")),
            "indentation",
        ),
        (lambda: rt.ebnf("a ::= b", notation="bnf"), "notation"),  # type: ignore[arg-type]
        (lambda: rt.sequence("a", str), "parts"),
        (lambda: rt.either(), "parts"),
        (lambda: rt.repeated("a", 3, 2), "high"),
        (lambda: rt.tagged({"": ("a", "b")}), "tags"),
        (lambda: rt.tagged([("<a", "x", "")], triggers=["<b"]), "tags"),
        (lambda: rt.tagged({"<a>": int}), "tags"),  # type: ignore[dict-item]
        (lambda: rt.tagged([("<a>",)]), "tags"),  # type: ignore[list-item]
        (lambda: rt.sequence(Point, rt.json_text(Point, whitespace="compact")), "parts"),
        (lambda: rt.sequence(object()), "type"),
        (lambda: rt.token(""), "which"),
        (lambda: rt.token("<[3-]>"), "which"),
        (lambda: rt.tagged({"<a>": ("a", "b")}, low=3, high=2), "high"),
        (lambda: rt.tagged([3]), "tags"),  # type: ignore[list-item]
        (lambda: rt.tagged(3), "tags"),  # type: ignore[arg-type]
        (lambda: rt.Indentation("a", "a", "b"), "indentation"),
        (lambda: rt.Indentation("a", "b", "c", tab_len=0), "tab_len"),
        (lambda: rt.tagged({rt.sequence("a"): ("a", "b")}), "tags"),
        (lambda: rt.tagged({"<a>": ("a", rt.lark("start: /a/"))}), "tags"),
    ],
)
def test_what_is_no_form_is_refused(make: Any, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert caught.value.field == field


def test_grammars_of_other_notations() -> None:
    assert rt.ebnf('root ::= "a"').constraint.kind is ConstraintKind.GBNF  # type: ignore[union-attr]
    assert rt.ebnf("s ::= 'a'", notation="w3c").constraint.kind is ConstraintKind.EBNF  # type: ignore[union-attr]


def test_parts_are_texts_patterns_types_schemas_and_forms() -> None:
    form = rt.sequence(
        "n=", int, re.compile("[a-z]"), {"type": "null"}, rt.either(Literal["x", "y"], Point), rt.ebnf("root ::= [a]")
    )
    assert form.constraint is not None
    assert form.constraint.kind is ConstraintKind.STRUCTURE
    parts = json.loads(form.constraint.source)["sequence"]
    kinds = [part if isinstance(part, str) else part.get("kind", sorted(part)) for part in parts]
    assert kinds == ["n=", "regex", "regex", "json_schema", ["any_of"], "gbnf"]
    assert [part["kind"] for part in parts[4]["any_of"]] == ["choice", "json_schema"]
    assert not form.is_text
    assert form.read("f", 'n=12znull{"x": 1, "y": 2}a') == ("n=", 12, "z", None, Point(x=1, y=2), "a")


def test_tags_are_given_as_a_mapping_or_a_list() -> None:
    mapped = rt.tagged({"<call>": (Point, "</call>")}, low=1, high=2, text_behind=False)
    assert mapped == rt.tagged([("<call>", Point, "</call>")], low=1, high=2, text_behind=False)
    assert rt.repeated(mapped, 1).constraint is not None


def test_a_lark_grammar_has_an_indentation() -> None:
    lines = rt.Indentation("_NL", "_IN", "_OUT", open=("LPAR",), close=("RPAR",))
    source = 'start: "a"'
    same = rtlang_grammars.Indentation("_NL", "_IN", "_OUT", open=("LPAR",), close=("RPAR",))
    assert rt.lark(source, indentation=lines).constraint == Constraint(ConstraintKind.LARK, source, indentation=same)
    library = output_type(grammar="python3").constraint
    assert library is not None
    assert library.indentation is not None
    assert library.lexer is Lexer.LONGEST


def test_a_lark_grammar_names_its_lexer() -> None:
    source = 'start: "a"'
    assert rt.lark(source).constraint == Constraint(ConstraintKind.LARK, source)
    assert rt.lark(source, lexer="anywhere").constraint == Constraint(ConstraintKind.LARK, source, lexer=Lexer.ANYWHERE)


def test_tokens_are_parts_and_ends_of_tags() -> None:
    form = rt.tagged(
        {rt.token("<|call|>"): (rt.sequence("x", rt.token(7)), rt.token("<[^5]>"))}, triggers=[rt.token("<|call|>")]
    )
    assert form.constraint is not None
    assert json.loads(form.constraint.source) == {
        "tags": [
            {"begin": {"token": "<|call|>"}, "part": {"sequence": ["x", {"token": 7}]}, "end": {"token": "<[^5]>"}}
        ],
        "triggers": [{"token": "<|call|>"}],
        "min": 0,
        "max": None,
        "text_behind": True,
    }
    assert Constraint.from_plain(form.constraint.to_plain()) == form.constraint
