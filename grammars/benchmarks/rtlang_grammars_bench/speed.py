"""Compares grammar backends in speed and verdicts: `python -m rtlang_grammars_bench.speed --tokenizer FILE --schemas FILE`.

Each backend compiles every schema and follows every instance, in turn and in one process, on the CPU clock. The output gives the time to
the first mask (compile and one mask), the time of every mask along the instances, and how many valid and invalid instances were accepted.
Peak memory is measured in a separate process for each backend. `--pathological` prints a table of hostile inputs instead, `--slow` one of
constraints whose masks are expensive. The process settings are those of a serving runtime (`process_settings`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from rtlang_grammars.spec.constraint import ANY_STYLE, Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench import pathological, slow_cases
from rtlang_grammars_bench.memory import peak_megabytes
from rtlang_grammars_bench.process_settings import serving
from rtlang_grammars_bench.rivals import ENGINES, GrammarEngine, create_engine

SLOW_NS = 1_000_000
MAX_NAMED = 8
"""Schemas with masks above SLOW_NS that are named, the slowest first."""


@dataclass(slots=True)
class Figures:
    """Measurements of one backend. Times in ns of CPU.

    Attributes:
        first: time to the first mask, by schema.
        masks: times of masks, by schema.
        counts: schemas and instances by outcome.
    """

    first: dict[int, int] = field(default_factory=dict)
    masks: dict[int, list[int]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def read_vocabulary(path: Path, vocab_size: int | None = None) -> tuple[Vocabulary, Any]:
    """The vocabulary of a `tokenizer.json`, with logits of width `vocab_size` or as many as there are tokens, and the tokenizer."""
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    names = ("<|im_end|>", "<|endoftext|>", "</s>")
    ends = [token_id for name in names if (token_id := tokenizer.token_to_id(name)) is not None]
    return Vocabulary.from_tokenizer(tokenizer, eos_token_ids=ends, vocab_size=vocab_size), tokenizer


def measure(
    backend: GrammarEngine, index: int, row: dict[str, Any], tokenizer: Any, words: NDArray[np.int32], to: Figures
) -> None:
    """Compile one schema and follow its instances."""
    started = time.process_time_ns()
    try:
        # The properties of instances have any order.
        grammar = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(row["schema"]), ANY_STYLE))
        grammar.matcher().fill_bitmask(words)
    except GrammarError:
        to.counts["refused"] += 1
        return
    to.first[index] = time.process_time_ns() - started
    to.counts["compiled"] += 1
    times = to.masks.setdefault(index, [])
    for test in row["tests"]:
        text = json.dumps(test["data"], ensure_ascii=False)
        matcher = grammar.matcher()
        accepted = True
        for token in tokenizer.encode(text, add_special_tokens=False).ids:
            started = time.process_time_ns()
            matcher.fill_bitmask(words)
            times.append(time.process_time_ns() - started)
            if not matcher.accept_token(token):
                accepted = False
                break
        accepted = accepted and matcher.is_accepting
        to.counts[f"{'valid' if test['valid'] else 'invalid'} {'accepted' if accepted else 'rejected'}"] += 1


def report(name: str, figures: Figures, shared: set[int], schemas: Sequence[str]) -> str:
    """The lines of one backend, over the schemas that all backends compiled. `schemas`: their names, by index."""
    first = np.array([figures.first[i] for i in shared]) / 1e6
    masks = np.array([each for i in shared for each in figures.masks[i]]) / 1e3
    judged = ", ".join(f"{figures.counts[key]} {key}" for key in sorted(figures.counts))
    spread = "ms to the first mask: p50 {:.2f} p90 {:.2f} p99 {:.2f} max {:.1f}"
    time_line = spread.format(*np.percentile(first, [50, 90, 99]), first.max())
    mask_line = "us a mask: mean {:.1f} p50 {:.1f} p99 {:.0f} p99.9 {:.0f} max {:.0f}".format(
        masks.mean(), *np.percentile(masks, [50, 99, 99.9]), masks.max()
    )
    slow = {i: sum(each > SLOW_NS for each in figures.masks[i]) for i in shared}
    worst = sorted((i for i in slow if slow[i]), key=lambda i: -max(figures.masks[i]))[:MAX_NAMED]
    named = ", ".join(f"{schemas[i]} ({slow[i]}, max {max(figures.masks[i]) / 1e6:.1f} ms)" for i in worst)
    slow_line = f"{sum(slow.values())} masks above {SLOW_NS / 1e6:g} ms" + (f": {named}" if named else "")
    return f"{name}: {judged}\n  {time_line}\n  {mask_line} ({masks.size} masks)\n  {slow_line}"


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json of a byte-level tokenizer")
    parser.add_argument("--schemas", type=Path, help="JSON lines (gzip) with schema and tests")
    parser.add_argument("--pathological", action="store_true", help="a table of hostile inputs instead")
    parser.add_argument(
        "--slow", nargs="*", metavar="WORD", help="a table of expensive constraints instead, or of those named so"
    )
    parser.add_argument("--count", type=int, default=100, help="schemas, spread over the file")
    parser.add_argument("--backends", nargs="+", choices=ENGINES, default=["rtlang", "llguidance"])
    given = parser.parse_args(arguments)
    if given.schemas is None and not given.pathological and given.slow is None:
        parser.error("--schemas, --pathological or --slow is needed")
    vocabulary, tokenizer = read_vocabulary(given.tokenizer)
    if given.pathological:
        print("\n".join(pathological.table(vocabulary)))
        return
    if given.slow is not None:
        names = [name for name in slow_cases.CASES if not given.slow or any(word in name for word in given.slow)]
        engines = {name: create_engine(name, vocabulary) for name in given.backends}
        with serving():
            for line in slow_cases.table(vocabulary, tokenizer, engines, names):
                print(line, flush=True)
        return
    with gzip.open(given.schemas) as file:
        rows = [json.loads(line) for line in file]
    rows = rows[:: max(1, len(rows) // given.count)][: given.count]
    backends: dict[str, GrammarEngine] = {}
    lines = [f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {len(rows)} schemas"]
    for name in given.backends:
        started = time.process_time()
        backends[name] = create_engine(name, vocabulary)
        lines.append(f"{name}: ready in {time.process_time() - started:.2f} s")
    words = np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    warm_up = {
        "schema": {"type": "object", "properties": {"a": {"enum": [1]}}},
        "tests": [{"data": {"a": 1}, "valid": True}],
    }
    figures = {name: Figures() for name in backends}
    for backend in backends.values():
        measure(backend, 0, warm_up, tokenizer, words, Figures())
    with serving():
        for index, row in enumerate(rows):
            order = list(backends) if index % 2 else list(backends)[::-1]
            for name in order:
                measure(backends[name], index, row, tokenizer, words, figures[name])
    shared = set.intersection(*(set(each.first) for each in figures.values()))
    lines.append(f"times over the {len(shared)} schemas that all compiled")
    schemas = [str(row.get("id", f"schema {index}")) for index, row in enumerate(rows)]
    lines += [report(name, each, shared, schemas) for name, each in figures.items()]
    encoded = [
        (
            row["schema"],
            [
                tokenizer.encode(json.dumps(test["data"], ensure_ascii=False), add_special_tokens=False).ids
                for test in row["tests"]
            ],
        )
        for row in rows
    ]
    for name in backends:
        lines.append(f"{name}: peak memory {peak_megabytes(name, vocabulary, encoded)} MB in a process of its own")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
