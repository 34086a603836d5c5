"""Measures how much text is forced: `python -m rtlang_grammars_bench.forced_text --tokenizer FILE --schemas FILE`.

Every valid instance is written as compact JSON and followed token by token. Before each token the engine is asked for the bytes that must
come next. A byte of the instance is forced if it is among them at any place before it. Prints the share of forced bytes of rtlang, for each
order of properties, and of llguidance, over the instances that both take in that order.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.rivals import create_engine
from rtlang_grammars_bench.speed import read_vocabulary


def num_forced(matcher: Any, text: bytes, token_ids: list[int], vocabulary: Vocabulary) -> int | None:
    """Number of forced bytes of a text; None if it is refused."""
    is_forced = bytearray(len(text))
    at = 0
    for token_id in token_ids:
        forced = matcher.forced_bytes()
        if text.startswith(forced, at):
            is_forced[at : at + len(forced)] = b"\1" * len(forced)
        if not matcher.accept_token(token_id):
            return None
        at += len(vocabulary.token_bytes[token_id])
    return sum(is_forced) if matcher.is_accepting else None


def shares(rows: list[dict[str, Any]], vocabulary: Vocabulary, tokenizer: Any, order: PropertyOrder) -> str:
    """The shares of forced bytes in one order, as a line."""
    engines = {name: create_engine(name, vocabulary) for name in ("rtlang", "llguidance")}
    total, forced, count = 0, dict.fromkeys(engines, 0), 0
    style = JsonStyle(Whitespace.COMPACT, order)
    for row in rows:
        constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(row["schema"]), style)
        try:
            grammars = {name: engine.compile(constraint) for name, engine in engines.items()}
        except GrammarError:
            continue
        for test in row["tests"]:
            if not test["valid"]:
                continue
            text = json.dumps(test["data"], ensure_ascii=False, separators=(",", ":"))
            token_ids = tokenizer.encode(text, add_special_tokens=False).ids
            found = {
                name: num_forced(grammar.matcher(), text.encode(), token_ids, vocabulary)
                for name, grammar in grammars.items()
            }
            if None in found.values():
                continue
            count += 1
            total += len(text.encode())
            for name, number in found.items():
                forced[name] += number or 0
    parts = ", ".join(f"{name} {100 * number / max(total, 1):.1f} %" for name, number in forced.items())
    return f"{order}: {parts} of {total} bytes in {count} instances"


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json")
    parser.add_argument("--schemas", type=Path, required=True, help="JSON lines (gzip) with schema and tests")
    parser.add_argument("--count", type=int, default=100, help="schemas, spread over the file")
    given = parser.parse_args(arguments)
    vocabulary, tokenizer = read_vocabulary(given.tokenizer)
    with gzip.open(given.schemas) as file:
        rows = [json.loads(line) for line in file]
    rows = rows[:: max(1, len(rows) // given.count)][: given.count]
    print("share of forced bytes in compact JSON, by the order of properties of rtlang")
    for order in PropertyOrder:
        print(shares(rows, vocabulary, tokenizer, order))


if __name__ == "__main__":
    main()
