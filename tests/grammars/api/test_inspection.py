"""A look at constraints: samples fit, figures add up, files tell their kind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from rtlang_grammars.api.inspection import KINDS_BY_SUFFIX, check, inspect, read_constraint
from rtlang_grammars.context_free.lark_library import library_constraint
from rtlang_grammars.schema.reading.report import KeywordStatus
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import tagged
from tests.support.grammars.vocabularies import small_vocabulary

VOCABULARY = small_vocabulary()
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2}, "kind": {"enum": ["a", "b"]}, "n": {"multipleOf": 3}},
    "required": ["name", "kind"],
    "additionalProperties": False,
}


def test_samples_of_a_schema_fit_it_and_every_keyword_is_reported() -> None:
    seen = inspect(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA)), VOCABULARY, num_samples=12, seed=1)
    assert len(seen.samples) > 6
    for text in [*seen.samples, seen.shortest]:
        jsonschema.validate(json.loads(text), SCHEMA)
    assert len(seen.shortest) <= min(map(len, seen.samples))
    assert seen.report is not None
    assert {entry.keyword for entry in seen.report.with_status(KeywordStatus.ENFORCED)} >= {
        "required",
        "enum",
        "multipleOf",
    }
    assert seen.num_states > 0 < seen.num_rows
    assert seen.size_bytes > 1024 * seen.num_rows
    assert seen.masks is not None
    assert 1 <= seen.masks.allowed[0] <= seen.masks.allowed[1] <= seen.masks.allowed[2] < VOCABULARY.vocab_size
    assert seen.masks.microseconds[1] <= seen.masks.microseconds[3]
    assert 0 < seen.masks.num_forced_bytes < seen.masks.num_bytes
    assert seen.masks.num_bytes >= sum(len(text.encode()) for text in seen.samples)


def test_samples_of_other_constraints_fit() -> None:
    seen = inspect(Constraint(ConstraintKind.REGEX, "[a-c]{2,5}x"), VOCABULARY)
    assert all(re.fullmatch("[a-c]{2,5}x", text) for text in (*seen.samples, seen.shortest))
    assert seen.report is None
    assert len(seen.shortest) == 3
    seen = inspect(tagged([("<", Constraint(ConstraintKind.CHOICE, '["ab", "the"]'), ">")], low=1), VOCABULARY)
    assert all(re.search("<(ab|the)>", text) for text in seen.samples)
    json.loads(inspect(library_constraint("json"), VOCABULARY).shortest)
    assert inspect(Constraint(ConstraintKind.REGEX, ""), VOCABULARY).samples == ("",)


def test_special_tokens_are_shown_under_their_names() -> None:
    seen = inspect(Constraint(ConstraintKind.LARK, 'start: <|tool|> "ab" <|end|> ("x" <|stop|>)*'), VOCABULARY)
    assert seen.shortest == "<|tool|>ab<|end|>"
    assert len(seen.samples) > 1
    assert all(re.fullmatch(r"<\|tool\|>ab<\|end\|>(x<\|stop\|>)*", text) for text in seen.samples)


def test_seeds_decide_the_samples() -> None:
    constraint = Constraint(ConstraintKind.REGEX, "[a-z ]{3,40}")
    first, second, other = (inspect(constraint, VOCABULARY, seed=seed).samples for seed in (1, 1, 2))
    assert first == second != other


@pytest.mark.parametrize("suffix", KINDS_BY_SUFFIX)
def test_a_file_tells_its_kind(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix.upper()}"
    path.write_text("abc\n")
    kind = KINDS_BY_SUFFIX[suffix]
    assert read_constraint(path) == Constraint(kind, "abc" if kind is ConstraintKind.REGEX else "abc\n")
    assert read_constraint(path, ConstraintKind.LARK).kind is ConstraintKind.LARK


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a")
    (tmp_path / "x.lark").write_bytes(b"\xff")
    for name, reason in (("x.txt", "unknown suffix"), ("x.lark", "UTF-8"), ("y.lark", "No such file")):
        with pytest.raises(GrammarError, match=reason) as caught:
            read_constraint(tmp_path / name)
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (ConstraintKind.JSON_SCHEMA, '{"uniqueItems": true, "multipleOf": 3}', '{"type": "nul"}'),
        (ConstraintKind.REGEX, "a+", "a("),
        (ConstraintKind.LARK, 'start: "a"', "start: b"),
        (ConstraintKind.GBNF, 'root ::= "a"', "root ::= a"),
        (ConstraintKind.EBNF, "s ::= 'a'", "s ::= a"),
        (ConstraintKind.CHOICE, '["a"]', "[]"),
        (ConstraintKind.STRUCTURE, '{"any_of": ["a", "b"]}', '{"any_of": []}'),
    ],
)
def test_no_vocabulary_is_needed_to_see_that_a_constraint_is_wrong(kind: ConstraintKind, good: str, bad: str) -> None:
    check(Constraint(kind, good))
    with pytest.raises(GrammarError):
        check(Constraint(kind, bad))
