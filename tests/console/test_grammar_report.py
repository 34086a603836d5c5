"""`rtlang grammar check` from outside: what it prints, and its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.console.grammar_report import MAX_LINES

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    "required": ["a"],
}
SCHEMA["additionalProperties"] = False


def invoke(*arguments: object) -> tuple[int, list[str], str]:
    result = CliRunner().invoke(app, ["grammar", "check", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout.splitlines(), result.stderr


def lines_of(lines: list[str], name: str) -> list[str]:
    return [line.split(None, 1)[1] for line in lines if line.startswith(f"{name} ")]


def test_a_schema_is_reported_with_samples(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(SCHEMA))
    code, lines, errors = invoke(path, "--samples", 6, "--whitespace", "compact", "--order", "declared")
    assert code == 0, errors
    samples = lines_of(lines, "sample")
    assert len(samples) >= 3
    for text in samples:
        value = json.loads(text)
        jsonschema.validate(value, SCHEMA)
        assert not re.search(r"\s", re.sub(r'"(\\.|[^"\\])*"', "", text))
    for fact in ("#/properties/a type", "#  required", "json_schema", "states", "us a mask", "forced"):
        assert fact.replace("#  ", "# ") in "\n".join(lines)


def test_long_reports_are_cut_unless_all_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"properties": {f"p{i}": {"type": "null"} for i in range(60)}}))
    _, lines, _ = invoke(path, "--samples", 0)
    assert sum("enforced  #" in line for line in lines) == MAX_LINES
    assert any("(use --all)" in line for line in lines)
    _, lines, _ = invoke(path, "--samples", 0, "--all")
    assert sum("enforced  #" in line for line in lines) >= 60


@pytest.mark.parametrize(
    ("name", "text", "sample"),
    [("p.regex", "a{3}\n", "aaa"), ("g.lark", 'start: "x" "y"', "xy"), ("g.gbnf", 'root ::= "q\\n"', "q\\n")],
)
def test_kinds_are_told_by_names(tmp_path: Path, name: str, text: str, sample: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    code, lines, errors = invoke(path)
    assert code == 0, errors
    assert lines_of(lines, "shortest") == lines_of(lines, "sample") == [sample]


def test_long_texts_are_cut_and_ends_that_are_too_long_are_none(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"type": "string", "minLength": 50000}')
    _, lines, _ = invoke(path, "--samples", 0)
    (shown,) = lines_of(lines, "shortest")
    assert shown.startswith('"aaa')
    assert shown.endswith("... (50002 characters)")
    path.write_text('{"type": "array", "minItems": 1000000000}')
    code, lines, _ = invoke(path, "--samples", 2)
    assert code == 0
    assert lines_of(lines, "shortest") == ["not found"]


@pytest.mark.parametrize(
    ("name", "text", "arguments", "told"),
    [
        ("s.json", '{"properties": {"a": {"type": "strin"}}}', [], "/properties/a"),
        ("s.json", '{"type": }', [], "1:10"),
        ("g.lark", "start: (", [], "1:9"),
        ("g.txt", "a", [], "unknown suffix"),
        ("g.txt", "(", ["--kind", "regex"], "1:1"),
        ("g.lark", 'start: "a" start', [], "g.lark"),
        ("g.regex", "a", ["--model", "/no/such/model"], "/no/such/model"),
        ("s.json", "{", ["--model", "/no/such/model"], "1:2"),  # before the model is looked for
    ],
)
def test_what_is_refused_ends_in_one_line_and_exit_code_one(
    tmp_path: Path, name: str, text: str, arguments: list[str], told: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    code, _, errors = invoke(path, *arguments)
    assert code == 1
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert told in line


def test_wrong_flags_end_with_code_two(tmp_path: Path) -> None:
    assert invoke(tmp_path / "x.json", "--kind", "poem")[0] == 2
    assert invoke()[0] == 2
