"""The two development suites of JSON schemas, and the tally of a run over one of them. Both may be absent."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import KeywordStatus
from rtlang_grammars.spec.errors import GrammarError
from tests.support.schemas.shape_interpreter import shape_accepts

_SHARED = Path(__file__).resolve().parents[4] / "shared"
TEST_SUITE = _SHARED / "json-schema-test-suite" / "dev.jsonl.gz"
BENCH = _SHARED / "jsonschemabench" / "dev.jsonl.gz"
_DIALECTS = {"draft7": "draft-07", "draft2020-12": "2020-12"}


@dataclass
class Tally:
    """What came of a suite: schemas by outcome, and every instance that was decided wrongly."""

    outcomes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        times = sorted(self.seconds)
        p50, p99 = (1000 * times[int(len(times) * share)] for share in (0.5, 0.99))
        lines = [f"{dict(self.outcomes)}; compile ms p50 {p50:.2f} p99 {p99:.1f} max {1000 * times[-1]:.1f}"]
        lines += [f"refused {count}: {reason}" for reason, count in self.refusals.most_common()]
        lines += [f"checked {count}: {keyword}" for keyword, count in self.checked.most_common()]
        return "\n".join([*lines, *self.wrong])


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a suite."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def options_of(entry: dict[str, Any]) -> SchemaOptions:
    """How a schema of a suite is meant to be read: in its draft, with formats asserted where the suite asserts them."""
    dialect = _DIALECTS.get(entry["set"])
    return SchemaOptions(default_dialect=dialect, assert_formats=entry.get("keyword") != "format")


def tally(path: Path) -> Tally:
    """Compile every schema of a suite and decide every instance by its shapes."""
    result = Tally()
    for entry in entries(path):
        start = time.process_time()
        try:
            graph = compile_shapes(entry["schema"], options=options_of(entry))
        except GrammarError as error:
            result.seconds.append(time.process_time() - start)
            if error.reason.startswith("nothing satisfies"):
                result.outcomes["fully right" if not any(test["valid"] for test in entry["tests"]) else "wrong"] += 1
                continue
            result.outcomes["refused"] += 1
            result.refusals[error.reason[:80]] += 1
            continue
        result.seconds.append(time.process_time() - start)
        result.outcomes["compiled"] += 1
        result.checked.update(each.keyword for each in graph.report.with_status(KeywordStatus.CHECKED))
        decided = [(test, shape_accepts(graph, test["data"])) for test in entry["tests"]]
        if all(accepted is test["valid"] for test, accepted in decided):
            result.outcomes["fully right"] += 1
            continue
        narrowed = any(each.reason for each in graph.report.with_status(KeywordStatus.ENFORCED))
        for test, accepted in decided:
            if accepted is not test["valid"] and not (narrowed if test["valid"] else not graph.report.is_exact):
                verb = "rejected" if test["valid"] else "accepted"
                result.wrong.append(f"{verb} {entry['id']} {test.get('what', '')}: {json.dumps(test['data'])[:100]}")
        result.outcomes["accepts more, as reported"] += not graph.report.is_exact
        result.outcomes["accepts less, as reported"] += narrowed
    return result
