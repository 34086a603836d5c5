"""The judge of conformance: on made-up entries, and on the development suites where they are beside the checkout."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars_bench.conformance import STYLES, Judge, Tally, accepts, judge_entry, main

SHARED = Path(os.environ.get("RTLANG_SHARED", Path(__file__).parents[4] / "shared"))
BENCH = SHARED / "jsonschemabench" / "dev.jsonl.gz"
SUITE = SHARED / "json-schema-test-suite" / "dev.jsonl.gz"


def judged(*entries: dict[str, Any]) -> Tally:
    judge, tally = Judge(), Tally()
    for entry in entries:
        judge_entry(judge, entry, tally)
    return tally


def test_every_kind_of_outcome_is_counted() -> None:
    integers = {"schema": {"type": "integer"}, "tests": [{"data": 1, "valid": True}, {"data": "a", "valid": False}]}
    nothing = {"schema": {"type": "string", "enum": [1]}, "tests": [{"data": 1, "valid": False}]}
    wrong = {"schema": {"type": "null"}, "tests": [{"data": 1, "valid": True}, {"data": None, "valid": False}]}
    remote = {"schema": {"$ref": "http://example.com/"}, "tests": []}
    found = judged(integers, nothing, wrong, remote)
    expected = {"schemas": 4, "compiled": 3, "refused": 1, "fully right": 2, "valid rejected": 1, "invalid accepted": 1}
    assert {key: found.counts[key] for key in expected} == expected
    assert len(found.wrong) == 2


def test_what_is_left_to_be_checked_is_judged_with_the_check() -> None:
    schema = {"not": {"uniqueItems": True}, "type": "array"}
    found = judged({"schema": schema, "tests": [{"data": [1, 1], "valid": True}, {"data": [1, 2], "valid": False}]})
    assert found.counts["fully right"] == found.counts["invalid found by the check"] == 1
    assert found.counts["exact"] == 0
    assert not found.wrong


def test_styles_say_the_same_and_differ() -> None:
    value = {"é": [1, {"a": "b"}], "b": None, "c": "ü"}
    texts = {name: write(value) for name, write in STYLES.items()}
    assert len(set(texts.values())) == len(texts)
    assert all(json.loads(text) == value for text in texts.values())
    grammar = Judge().compile({"properties": {"é": {"type": "array"}}}, SchemaOptions())
    assert all(accepts(grammar, text) for text in texts.values())


def test_the_command_prints_figures_and_fails_where_something_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.jsonl"
    entry = {"id": "e1", "schema": {"type": "null"}, "tests": [{"data": None, "valid": True}]}
    path.write_text(json.dumps(entry) + "\n")
    assert main(["--schemas", str(path)]) == 0
    assert "| fully right: every instance decided rightly | 1 |" in capsys.readouterr().out
    path.write_text(json.dumps(entry | {"tests": [{"data": 1, "valid": True}]}) + "\n")
    assert main(["--schemas", str(path)]) == 1
    assert "e1" in capsys.readouterr().out
    assert main(["--markdown"]) == 0
    assert "| `uniqueItems` |" in capsys.readouterr().out


def sampled(path: Path, every: int) -> Tally:
    from rtlang_grammars_bench.conformance import entries

    if not path.exists():
        pytest.skip(f"{path.parent.name} is not beside the checkout")
    return judged(*[entry for index, entry in enumerate(entries(path)) if index % every == 0])


def test_the_command_refuses_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--schemas", str(tmp_path / "none.jsonl")])
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_no_instance_of_the_benchmark_is_decided_wrongly(every: int) -> None:
    found = sampled(BENCH, every)
    assert found.wrong == []
    assert found.counts["fully right"] >= 0.98 * found.counts["schemas"]


A_LABELS = "xn--"
"""Valid host names with such labels are left out, as the report says."""


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_no_test_of_the_standard_suite_is_decided_wrongly(every: int) -> None:
    found = sampled(SUITE, every)
    assert [each for each in found.wrong if A_LABELS not in each] == []
    assert all(A_LABELS in each for each in found.narrowed)
    assert found.counts["refused"] <= 0.02 * found.counts["schemas"]
