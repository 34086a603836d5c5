"""Labels of nodes, and text that fits."""

from __future__ import annotations

import pytest

from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.pictures.labels import (
    fitted,
    label_of,
    names_of,
    printable,
    shortened,
    width_of,
    wrapped,
)
from rtlang.contract.request_graph import (
    Apply,
    Call,
    Const,
    Decide,
    Generate,
    Marks,
    Ref,
    RoleEnd,
    RoleStart,
    Select,
    Text,
)
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph

ODD = "a\x00b\u202ec\u2066d\ud800e\x1b[31m\ufffe\x85"


def test_text_shows_its_roles_and_the_names_that_it_refers_to() -> None:
    text = Text(1, 0, (RoleStart("user"), "Is ", Ref(0), " right?", RoleEnd(), RoleStart("assistant")))
    label = label_of(text, {0: "answer"})
    assert label.title == "user › assistant"
    assert "Is {answer} right?" in label.text


def test_a_generation_shows_what_differs_from_the_default() -> None:
    params = SamplingParams(max_tokens=7, n=3, temperature=0.5, seed=4, stop=("\n",))
    node = Generate(0, None, "x", params, Constraint(ConstraintKind.REGEX, "a+"), Marks(lifetime="program"))
    label = label_of(node, {})
    assert (label.kind, label.title, label.marks) == ("gen", "x", ("kept while the program is open",))
    assert label.notes == ("regex", "≤ 7 tokens", "n = 3", "temperature 0.5", "seed 4", 'stop "\\n"')


def test_values_show_their_operands() -> None:
    names = {0: "x", 5: "upper"}
    assert label_of(Apply(1, "add", (Ref(0), Const(2))), names).text == "add({x}, 2)"
    assert label_of(Call(2, "search", (Const("q"),)), names).text == 'search("q")'
    assert label_of(Decide(3, "vote", (Ref(0), Ref(0, 1)), 2), names).text == "of {x}, {x[1]}"
    assert label_of(Select(4, None, None, ("a", "b")), names).text == "a | b"


def test_every_kind_of_node_has_a_label() -> None:
    kinds = set()
    for seed in range(sized(120)):
        graph = random_graph(seed)
        names = names_of(graph.nodes)
        for node in graph.nodes:
            label = label_of(node, names)
            assert label.title
            kinds.add(label.kind)
    assert kinds == {"text", "gen", "select", "apply", "call", "switch", "repeat", "first", "vote", "best"}


def test_printable_text_has_no_character_that_breaks_a_document() -> None:
    shown = printable(ODD)
    shown.encode()  # no lone surrogate
    assert all(character >= " " or character in "\n\t" for character in shown)
    assert not set("\u202e\u2066\x85\ufffe") & set(shown)
    assert "‹U+202E›" in shown
    assert printable("é 漢字 \n\t 😀") == "é 漢字 \n\t 😀"


@pytest.mark.parametrize("text", ["", "short", "x" * 500, "many words " * 60, "漢字" * 80, "wWmM" * 50, ODD * 20])
@pytest.mark.parametrize("width", [40.0, 120.0, 228.0])
def test_text_fits_into_its_width(text: str, width: float) -> None:
    line = fitted(text, 12, width)
    assert width_of(line, 12) <= width
    assert line == " ".join(printable(text).split()) or line.endswith("…")
    lines = wrapped(text, 12, width, 3)
    assert len(lines) <= 3
    assert all(width_of(each, 12) <= width + 12 for each in lines)


def test_wrapped_text_loses_no_word_where_there_is_room() -> None:
    text = "one two three four five six seven"
    assert " ".join(wrapped(text, 12, 90, 10)) == text


def test_shortened_text_keeps_both_ends() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("a" * 50 + "z" * 50, 20) == "a" * 13 + "…" + "z" * 6
