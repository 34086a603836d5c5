"""The cases whose masks are measured: their texts satisfy them, by other validators, and by the machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

from jsonschema import Draft202012Validator

from rtlang_grammars.spec.constraint import ConstraintKind
from rtlang_grammars_bench.rivals import create_engine
from rtlang_grammars_bench.slow_cases import CASES, table
from rtlang_grammars_bench.speed import read_vocabulary
from tests.grammars.benchmarks.test_speed import tiny_tokenizer
from tests.support.long_tests import sized


def test_the_texts_of_every_case_are_valid() -> None:
    for name in list(CASES)[:: sized(1, usual=5)]:
        constraint, texts = CASES[name]()
        assert texts
        if constraint.kind is ConstraintKind.JSON_SCHEMA and "\\p{" not in name:
            validator = Draft202012Validator(json.loads(constraint.source))
            assert all(validator.is_valid(json.loads(text)) for text in texts), name
        elif "\\p{" not in constraint.source:
            assert all(re.fullmatch(constraint.source, text) for text in texts), name


def test_the_table_has_the_times_of_each_engine(tmp_path: Path) -> None:
    vocabulary, tokenizer = read_vocabulary(tiny_tokenizer(tmp_path / "tokenizer.json"))
    engines = {name: create_engine(name, vocabulary) for name in ("rtlang", "llguidance")}
    names = ["pattern [a-z]{3,40}", "array of enum of 300 strings", "format regex"]
    lines = list(table(vocabulary, tokenizer, engines, names))
    assert len(lines) == 2 + len(names)
    cells = [line.split("|")[2:-1] for line in lines[2:]]
    for row in cells[:2]:
        assert all(float(number) >= 0 for cell in row for number in cell.split(","))
    assert cells[2][0].strip().startswith("refused")
