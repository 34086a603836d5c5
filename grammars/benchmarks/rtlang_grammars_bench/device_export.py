"""Measures which schemas a device can follow by itself, and at how many tokens of their valid instances.

    python -m rtlang_grammars_bench.device_export --schemas SCHEMAS.jsonl.gz --tokenizer TOKENIZER.json

`whole` schemas have no hole: only names, frames or digits beyond the room of a device would need the host. Tokens on the device are those
before which a matcher has one head that the device can be placed at.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.export import Walk, export
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.speed import read_vocabulary


@dataclass(slots=True)
class Share:
    """What was found.

    Attributes:
        kinds: number of schemas by outcome: whole, with holes, not exported, not compiled.
        times_ms: of the exports.
        num_bytes: of the exported tables.
        num_tokens, num_on_device: of the valid instances.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    times_ms: list[float] = field(default_factory=list)
    num_bytes: list[int] = field(default_factory=list)
    num_tokens: int = 0
    num_on_device: int = 0

    def lines(self) -> list[str]:
        """A report."""
        total = self.kinds.total()
        exported = self.kinds["whole"] + self.kinds["with holes"]
        found = [f"{total} schemas: {exported} exported ({exported / total:.1%}), {dict(self.kinds)}"]
        if self.times_ms:
            found.append(
                f"export: median {median(self.times_ms):.1f} ms, at most {max(self.times_ms):.0f} ms of one thread"
            )
        if self.num_bytes:
            found.append(
                f"tables: median {median(self.num_bytes) / 1024:.0f} KiB, at most {max(self.num_bytes) / 1024:.0f} KiB"
            )
        if self.num_tokens:
            found.append(f"tokens on the device: {self.num_on_device / self.num_tokens:.1%} of {self.num_tokens}")
        return found


def measure(rows: Sequence[dict[str, Any]], vocabulary: Vocabulary, tokenizer: Any) -> Share:
    """Export the schemas of some rows, and follow their valid instances.

    Args:
        rows: each with a "schema", and "tests" with "valid" and "data".
    """
    share, backend = Share(), RtlangBackend.create(vocabulary)
    for row in rows:
        try:
            compiled = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(row["schema"])))
        except GrammarError:
            share.kinds["not compiled"] += 1
            continue
        began = thread_time()
        automaton = export(compiled.matcher())
        share.times_ms.append(1e3 * (thread_time() - began))
        if automaton is None:
            share.kinds["not exported"] += 1
            continue
        share.kinds["with holes" if automaton.num_holes else "whole"] += 1
        share.num_bytes.append(automaton.rows.nbytes + automaton.states.nbytes + automaton.ops.nbytes)
        for test in row.get("tests", ()):
            if test["valid"]:
                matcher = compiled.matcher()
                for token in tokenizer.encode(
                    json.dumps(test["data"], ensure_ascii=False), add_special_tokens=False
                ).ids:
                    share.num_tokens += 1
                    share.num_on_device += Walk.of(automaton, matcher) is not None
                    if not matcher.accept_token(token):
                        break
    return share


def main(arguments: Sequence[str] | None = None) -> str:
    """The report of a command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=Path, required=True, help="jsonl.gz, as the sample of jsonschemabench")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--count", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    with gzip.open(given.schemas, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    random.Random(given.seed).shuffle(rows)
    return "\n".join(measure(rows[: given.count], *read_vocabulary(given.tokenizer)).lines())


if __name__ == "__main__":
    print(main())
