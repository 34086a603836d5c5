"""`outlines.Generator` with the backend `rtlang`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from rtlang_grammars import Constraint, ConstraintKind, GrammarError
from tests.support.models.foreign_models import write_transformers_model

outlines = pytest.importorskip("outlines")
pydantic = pytest.importorskip("pydantic")
transformers = pytest.importorskip("transformers")
from rtlang_grammars.plugs import outlines as plug  # noqa: E402


class Person(pydantic.BaseModel):  # type: ignore[misc,name-defined]
    name: str
    age: int


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = write_transformers_model(tmp_path_factory.mktemp("model"))
    loaded = transformers.AutoModelForCausalLM.from_pretrained(path)
    return outlines.from_transformers(loaded, transformers.AutoTokenizer.from_pretrained(path))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlines.backends, "_get_backend", outlines.backends._get_backend)
    plug.register(max_new_tokens=40)


def test_a_pydantic_model_is_generated_once_and_in_batches(model: Any) -> None:
    generator = outlines.Generator(model, Person, backend="rtlang")
    assert Person.model_validate_json(generator("A person:", max_new_tokens=40))
    for text in generator.batch(["A person:", "Hi", "Another one:"], max_new_tokens=40):
        assert Person.model_validate_json(text)
    report = generator.logits_processor.report
    assert ("#/properties/age", "type", "enforced") in {
        (entry.pointer, entry.keyword, str(entry.status)) for entry in report.entries
    }


def test_patterns_choices_and_grammars_are_generated(model: Any) -> None:
    regex = outlines.Generator(model, outlines.types.Regex("[a-c]{3}-[0-9]+"), backend="rtlang")
    assert re.fullmatch("[a-c]{3}-[0-9]+", regex("x", max_new_tokens=40))
    choice = outlines.Generator(model, Literal["left", "right"], backend="rtlang")
    assert choice("x", max_new_tokens=40) in ("left", "right")
    grammar = outlines.Generator(model, outlines.types.CFG('start: "(" start ")" | "x"'), backend="rtlang")
    assert re.fullmatch(r"(\(*)x(\)*)", text := grammar("x", max_new_tokens=40))
    assert text.count("(") == text.count(")")


def test_a_processor_of_any_constraint_is_taken(model: Any) -> None:
    backend = plug.RtlangOutlinesBackend(model, max_new_tokens=20)
    processor = backend.processor(Constraint(ConstraintKind.GBNF, 'root ::= "a" root | "b"'))
    assert re.fullmatch("a*b", outlines.Generator(model, processor=processor)("x", max_new_tokens=20))


def test_whitespace_is_free_or_none(model: Any) -> None:
    schema = json.dumps(Person.model_json_schema())
    compact = outlines.Generator(model, outlines.types.JsonSchema(schema, whitespace_pattern=""), backend="rtlang")
    text = compact("x", max_new_tokens=40)
    assert json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False).count(":") == text.count(":")
    assert not re.search(r"[{,:]\s", re.sub(r'"(\\.|[^"\\])*"', "", text))
    with pytest.raises(GrammarError, match=r"whitespace_pattern = ' \+'"):
        outlines.Generator(model, outlines.types.JsonSchema(schema, whitespace_pattern=" +"), backend="rtlang")


def test_a_keyword_that_is_not_enforced_is_refused_with_its_pointer(model: Any) -> None:
    schema = {"properties": {"n": {"type": "string", "format": "regex"}}}
    with pytest.raises(GrammarError) as caught:
        outlines.Generator(model, outlines.json_schema(schema), backend="rtlang")
    assert str(caught.value.location).startswith("#/properties/n")


def test_other_backends_and_models_stay_as_they_are(model: Any) -> None:
    plug.register()  # again: wraps the library's own lookup once
    with pytest.raises(ValueError, match="no_such"):
        outlines.Generator(model, Person, backend="no_such")
    with pytest.raises(ValueError, match="Path"):
        plug.RtlangOutlinesBackend(Path())
