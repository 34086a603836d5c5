"""Constrained text of a model with random weights: whatever it wants to say, every value parses and validates."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rtlang as rt
from rtlang.contract.params import Constraint, ConstraintKind
from tests.support.long_tests import sized
from tests.support.models.tiny_models import make_checkpoint

NAMES = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
SCHEMAS: list[dict[str, Any]] = [
    NAMES,
    {"type": "string"},
    {"type": "string", "minLength": 3, "maxLength": 9},
    {"type": "integer"},
    {"type": "integer", "minimum": -5, "maximum": 1234},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "null"},
    {"enum": ["red", "green", 3, None, {"a": [1, 2]}]},
    {"const": {"fixed": True}},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 5},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "minItems": 2},
    {"type": "array", "items": NAMES, "maxItems": 3},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "null"}}, "additionalProperties": False},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"inner": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}},
    {"anyOf": [{"type": "string", "maxLength": 4}, {"type": "array", "items": {"type": "null"}, "maxItems": 3}]},
    {"type": "string", "pattern": "^[A-Z][a-z]{2,5}$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "enum": ["a", "b", "öü"]},
    {
        "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}},
        "$ref": "#/$defs/node",
    },
    {"type": ["string", "null", "integer"]},
    {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}}},
]  # fmt: skip


@rt.program
def fill(s: Any, schema: dict[str, Any], seed: int, max_tokens: int) -> Any:
    s += rt.text("Fill: ", json.dumps(schema), "\n")
    s += rt.gen("value", schema=schema, temperature=1.0, seed=seed, max_tokens=max_tokens)
    return s["value"]


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rt.Runtime]:
    path: Path = make_checkpoint(tmp_path_factory.mktemp("model") / "llama", "llama", max_position_embeddings=2048)
    with rt.Runtime(model=str(path), dtype="float32", num_threads=1, grammar_timeout_s=60) as made:  # with native code
        yield made


def test_values_of_every_schema_parse_and_validate(runtime: rt.Runtime) -> None:
    seeds = range(sized(8, usual=3))
    cases = [{"schema": schema, "seed": seed, "max_tokens": 60 + 40 * seed} for schema in SCHEMAS for seed in seeds]
    results = fill.run_batch(cases, runtime=runtime)
    for case, result in zip(cases, results, strict=True):
        assert result.error is None, (case, result.error)
        value = json.loads(result.text("value"))
        jsonschema.Draft202012Validator(case["schema"], format_checker=jsonschema.FormatChecker()).validate(value)
    assert len({result.text("value") for result in results}) > len(cases) // 2, "the texts should differ"
    assert runtime.stats()["num_pages_in_use"] == 0
    counts = runtime.metrics.snapshot()
    assert counts["rtlang_grammar_compile_seconds_count"] >= len(SCHEMAS)
    assert counts["rtlang_mask_seconds_count"] > 0


def test_texts_are_the_same_where_every_mask_is_made_out_of_the_steps(
    runtime: rt.Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [{"schema": schema, "seed": seed, "max_tokens": 60} for schema in SCHEMAS[:12] for seed in range(3)]
    expected = [result.text("value") for result in fill.run_batch(cases, runtime=runtime)]
    monkeypatch.setattr("rtlang.engine.constraints.session.SLOW_FILL_S", -1.0)
    alone = fill.run(**cases[0], runtime=runtime)  # nothing else keeps the engine awake
    assert alone.text("value") == expected[0]
    results = fill.run_batch(cases, runtime=runtime)
    assert [result.text("value") for result in results] == expected
    assert runtime.stats()["num_pages_in_use"] == 0


PERSON = """start: "Name: " name "; ages: " age (", " age)*
name[capture, temperature=1.5]: /[A-Z][a-z]{2,7}/
age[capture="ages"]: /[0-9]{1,2}/
"""


def test_captures_of_a_grammar_are_variables_that_recordings_keep(runtime: rt.Runtime, tmp_path: Path) -> None:
    @rt.program
    def greet(s: Any) -> Any:
        s += rt.text("Who? ") + rt.gen("who", grammar=PERSON, max_tokens=30, seed=4)
        captures = s.meta("who").captures
        s += rt.text("\nHello ", captures["name"][0], "! ") + rt.gen("said", max_tokens=3, seed=5)
        return captures

    with rt.record(tmp_path / "run.cassette", runtime=runtime):
        result = greet.run()
    found = re.fullmatch(r"Name: (.*); ages: (.*)", result.text("who"))
    assert found is not None
    assert result.meta("who").captures == {"name": (found[1],), "ages": tuple(found[2].split(", "))}
    assert result.value == result.meta("who").captures
    assert f"\nHello {found[1]}! " in result.text()
    with rt.replay(tmp_path / "run.cassette"):
        again = greet.run()
    assert again.meta("who").is_replayed
    assert again.meta("who").captures == result.meta("who").captures == pickle.loads(pickle.dumps(result)).value
    assert again.text() == result.text()


def test_what_masks_cannot_hold_is_checked_and_generated_again(runtime: rt.Runtime) -> None:
    schema = {
        "type": "array",
        "items": {"enum": [1, 2, 3]},
        "minItems": 2,
        "maxItems": 2,
        "not": {"uniqueItems": True},
    }

    @rt.program
    def repeated(s: Any, seed: int, max_retries: int) -> None:
        options: dict[str, Any] = {"temperature": 1.5, "max_tokens": 20, "seed": seed, "max_retries": max_retries}
        s += rt.text("Twice: ") + rt.gen("value", schema=schema, **options)

    def run(max_retries: int) -> list[Any]:
        cases = [{"seed": seed, "max_retries": max_retries} for seed in range(12)]
        return list(repeated.run_batch(cases, runtime=runtime))

    once, often = run(0), run(16)
    errors = [result.error for result in once if result.error is not None]
    assert 0 < len(errors) < len(once)
    assert {type(error) for error in errors} == {rt.InvalidValueError}
    for result in often:
        assert result.error is None
        first, second = json.loads(result.text("value"))
        assert first == second
    assert [result.text("value") for result in once if result.error is None] == [
        again.text("value") for again, result in zip(often, once, strict=True) if result.error is None
    ]
    report = runtime.report(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema)))
    assert runtime.report(schema) == report
    assert report is not None
    assert [(each.pointer, each.keyword, each.status) for each in report.entries if each.status == "checked"] == [
        ("#/not", "uniqueItems", "checked")
    ]
    assert runtime.stats()["num_pages_in_use"] == 0


TWICE: dict[str, Any] = {
    "type": "array",
    "items": {"enum": [1, 2, 3]},
    "minItems": 2,
    "maxItems": 2,
    "not": {"uniqueItems": True},
}
"""A third of the texts that masks allow are valid."""
TOOL = {"name": "twice", "parameters": {"type": "object", "properties": {"value": TWICE}, "required": ["value"]}}
PARTS: dict[str, Any] = {
    "tool": lambda: rt.tools([TOOL, {"name": "other", "parameters": {}}], choice="twice"),
    "tool in Python": lambda: rt.tools([TOOL], choice="twice", format="llama-4"),
    "tagged tool": lambda: rt.tools([TOOL], choice="twice", format="qwen-coder"),
    "sequence": lambda: rt.sequence(re.compile("[a-z]{12}"), ": ", TWICE, "."),
    "tags": lambda: rt.tagged({"<v>": (TWICE, "</v>")}, low=1, high=1, text_behind=False),
    "either": lambda: rt.either(rt.sequence("value ", TWICE), rt.sequence("values ", TWICE, TWICE)),
}


def values_in(value: Any) -> list[Any]:
    """The values of `TWICE` in the value of a part."""
    if hasattr(value, "calls"):
        return [call.arguments["value"] for call in value.calls]
    return [each.value if isinstance(each, rt.Tag) else each for each in value if not isinstance(each, str)]


@pytest.mark.parametrize("name", PARTS)
def test_what_masks_cannot_hold_in_a_part_is_checked_and_generated_again(runtime: rt.Runtime, name: str) -> None:
    @rt.program
    def repeated(s: Any, seed: int, max_retries: int) -> Any:
        options: dict[str, Any] = {"temperature": 1.5, "max_tokens": 120, "seed": seed, "max_retries": max_retries}
        s += rt.text("Twice: ") + rt.gen("value", type=PARTS[name](), **options)
        return s["value"]

    def run(max_retries: int) -> list[Any]:
        cases = [{"seed": seed, "max_retries": max_retries} for seed in range(8)]
        return list(repeated.run_batch(cases, runtime=runtime))

    once, often = run(0), run(16)
    errors = [result.error for result in once if result.error is not None]
    assert 0 < len(errors) < len(once)
    assert {type(error) for error in errors} == {rt.InvalidValueError}
    assert all(("tool twice: " if "tool" in name else "the value at #/") in str(error) for error in errors)
    for result in often:
        assert result.error is None
        found = values_in(result.value)
        assert found
        assert all(first == second for first, second in found)
    assert runtime.stats()["num_pages_in_use"] == 0


def test_text_before_a_part_that_is_generated_again_is_streamed_once(runtime: rt.Runtime) -> None:
    @rt.program
    def ask(s: Any, seed: int) -> None:
        part = PARTS["sequence"]()
        s += rt.text("Twice: ") + rt.gen("value", type=part, temperature=1.5, max_tokens=60, seed=seed, max_retries=16)

    nums_of_tokens = set[bool]()
    for seed in range(8):
        stream = ask.stream(seed, runtime=runtime)
        pieces = [event.text for event in stream if isinstance(event, rt.TextEvent) and event.name == "value"]
        result = stream.result()
        assert "".join(pieces) == result.text("value")
        assert len(pieces[0]) < 12, "the text before the value comes in pieces"
        assert "[" not in "".join(pieces[:-1]), "the value comes as a whole"
        nums_of_tokens.add(result.usage.completion_tokens > len(result.meta("value").token_ids))
    assert True in nums_of_tokens, "no value was generated again"


def test_a_budget_too_small_for_any_value_is_an_error_of_its_own(runtime: rt.Runtime) -> None:
    schema = {
        "type": "object",
        "properties": {"a_rather_long_name": {"type": "string"}},
        "required": ["a_rather_long_name"],
    }
    good, bad = fill.run_batch(
        [{"schema": schema, "seed": 0, "max_tokens": 60}, {"schema": schema, "seed": 0, "max_tokens": 5}],
        runtime=runtime,
    )
    assert good.error is None
    assert isinstance(bad.error, rt.BudgetError)


def test_a_schema_that_cannot_be_compiled_fails_alone(runtime: rt.Runtime) -> None:
    bad_schema = {"type": "string", "pattern": "("}
    results = fill.run_batch(
        [{"schema": s, "seed": 0, "max_tokens": 80} for s in (NAMES, bad_schema, NAMES)], runtime=runtime
    )
    assert [type(result.error) for result in results] == [type(None), rt.ConstraintError, type(None)]


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_regex_choices_and_grammar_hold(runtime: rt.Runtime, temperature: float) -> None:
    import re

    @rt.program
    def three(s: Any) -> None:
        options: dict[str, Any] = {"temperature": temperature, "seed": 3, "max_tokens": 40}
        s += rt.text("a: ") + rt.gen("date", regex=r"\d{4}-\d{2}-\d{2}", **options)
        s += rt.text(" b: ") + rt.gen("pick", choices=["left", "right", "straight on"], **options)
        s += rt.text(" c: ") + rt.gen("sum", grammar='start: NUM ("+" NUM)+\nNUM: /[0-9]+/', **options)

    result = three.run(runtime=runtime)
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", result["date"])
    assert result["pick"] in ("left", "right", "straight on")
    assert re.fullmatch(r"[0-9]+(\+[0-9]+)+", result["sum"])


def test_forms_put_together_hold(runtime: rt.Runtime) -> None:
    import re

    call = rt.json_text(NAMES, whitespace="compact", order="declared")

    @rt.program
    def forms(s: Any, seed: int) -> None:
        options: dict[str, Any] = {"temperature": 1.2, "seed": seed, "max_tokens": 70}
        s += rt.gen("call", type=rt.tagged({"<call>": (call, "</call>")}, low=1, high=1, text_behind=False), **options)
        s += rt.gen("line", type=rt.sequence("n = ", int, rt.either(";", rt.repeated("!", 2, 3))), **options)
        s += rt.gen("gbnf", grammar='root ::= "<" root ">" | [a-c]{2}', **options)

    for seed in range(4):
        result = forms.run(runtime=runtime, seed=seed)
        before, _, inner = result.text("call").partition("<call>")
        assert "</call>" not in before or "<call>" not in before
        assert inner.endswith("</call>")
        value = json.loads(inner.removesuffix("</call>"))
        jsonschema.validate(value, NAMES)
        assert inner.startswith('{"name":')
        assert result["call"] == [*([before] if before else []), rt.Tag("<call>", value, "</call>")]
        assert re.fullmatch(r"n = -?(0|[1-9][0-9]*)(;|!{2,3})", result.text("line"))
        assert result["line"][1] == int(result.text("line")[4:].rstrip(";!"))
        inside = result["gbnf"].strip("<>")
        assert re.fullmatch("[a-c]{2}", inside)
        assert result["gbnf"].count("<") == result["gbnf"].count(">")


@pytest.mark.parametrize("max_tokens", [12, 16, 24, 40])
def test_no_budget_cuts_a_value(runtime: rt.Runtime, max_tokens: int) -> None:
    """However little room there is, what is generated is whole, or nothing is."""
    schemas = [*SCHEMAS, {"type": "array", "items": {"type": "string", "minLength": 2}, "minItems": 2}, True]
    results = fill.run_batch(
        [{"schema": schema, "seed": 3, "max_tokens": max_tokens} for schema in schemas], runtime=runtime
    )
    num_whole = 0
    for schema, result in zip(schemas, results, strict=True):
        if result.error is not None:
            assert isinstance(result.error, rt.BudgetError)
            continue
        jsonschema.Draft202012Validator(schema).validate(json.loads(result.text("value")))
        num_whole += 1
    assert num_whole > len(schemas) // 2
