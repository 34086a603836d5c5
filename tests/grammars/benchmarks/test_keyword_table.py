"""The table of keywords, and the promise behind it: every keyword of every vocabulary is told in the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema_specifications import REGISTRY

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.dialects import ANNOTATIONS, DIALECTS
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars_bench.keyword_table import ASSERTIONS, PROBES, keyword_table

URIS = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def vocabulary_of(uri: str) -> set[str]:
    """The keywords that a published meta-schema describes, those of its vocabularies included."""
    found: set[str] = set()
    waiting = [REGISTRY.contents(uri)]
    while waiting:
        schema: Any = waiting.pop()
        found |= schema.get("properties", {}).keys()
        for each in schema.get("allOf", []):
            base = uri.removesuffix("schema")
            waiting.append(REGISTRY.contents(base + each["$ref"]))
    return found


@pytest.mark.parametrize("name", URIS)
def test_every_keyword_of_a_published_vocabulary_is_known(name: str) -> None:
    replaced = {"dependencies", "$recursiveRef"}  # named by later meta-schemas to say that they assert nothing any more
    assert vocabulary_of(URIS[name]) <= DIALECTS[name].keywords | ANNOTATIONS | replaced


def test_every_assertion_has_probes_and_a_row() -> None:
    assert PROBES.keys() == ASSERTIONS
    table = keyword_table()
    assert all(f"| `{keyword}` | " in table for keyword in ASSERTIONS)
    assert all(f"`{keyword}`" in table for keyword in ANNOTATIONS)


def test_the_readme_holds_the_table() -> None:
    readme = (Path(__file__).parents[3] / "grammars" / "README.md").read_text()
    assert keyword_table() in readme, "run python -m rtlang_grammars_bench.conformance --markdown"


def report_of(schema: Any) -> Report | GrammarError:
    try:
        return compile_shapes(schema, options=SchemaOptions(default_dialect="2020-12")).report
    except GrammarError as error:
        return error


@pytest.mark.parametrize("keyword", sorted(PROBES))
def test_every_keyword_of_a_probe_is_told_in_the_report(keyword: str) -> None:
    for schema in PROBES[keyword]:
        report = report_of(schema)
        if isinstance(report, GrammarError):
            assert report.location is not None
            continue
        told = {(entry.pointer, entry.keyword) for entry in report.entries}
        if isinstance(schema, dict):
            assert {("#", key) for key in schema} - {("#", key) for key in ANNOTATIONS} <= told
        assert any(entry.keyword == keyword for entry in report.entries)
