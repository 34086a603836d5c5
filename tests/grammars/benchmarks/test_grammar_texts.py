"""Texts for grammars: installed ones are texts of their grammars, and random walks are texts that the grammar accepts."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest

from rtlang_grammars import Constraint, ConstraintKind
from rtlang_grammars_bench.grammar_texts import MAX_CHARS, random_walks, texts_of
from rtlang_grammars_bench.lark_fuzz import byte_backend


def test_definitions_of_the_standard_library_compile() -> None:
    texts = texts_of("python3", 4, None)
    assert len(set(texts)) == 4
    for text in texts:
        assert len(text) <= MAX_CHARS
        compile(text, "text", "exec")


def test_a_folder_of_texts_is_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    for name in ("b", "a"):
        (tmp_path / "sql" / name).write_text(name)
    assert texts_of("sql", 3, tmp_path) == ["a", "b"]
    assert texts_of("sql", 1, tmp_path) == ["a"]
    assert texts_of("unknown", 3, tmp_path) == []


@pytest.mark.parametrize(
    "source", ['start: "[" (start ("," start)*)? "]" | /[a-z]+/', 'start: A* "end"\nA: "x" | "yz"\n%ignore " "']
)
def test_random_walks_are_texts_of_the_grammar(source: str) -> None:
    grammar = byte_backend().compile(Constraint(ConstraintKind.LARK, source))
    walks = random_walks(grammar, 3)
    assert len(walks) == 3
    parser = lark.Lark(source, parser="lalr")
    for text in walks:
        parser.parse(text)
