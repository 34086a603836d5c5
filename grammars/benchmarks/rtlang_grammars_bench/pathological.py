"""Hostile inputs, and a table of their outcome: a grammar or a typed error, its time and memory, and the delay of other requests.

Every input is compiled in a process of its own (a fork, so that the vocabulary is loaded) while another thread fills masks of a small
grammar; then random tokens are accepted.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.protocols import CompiledGrammar
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.process_settings import serving

_NUM_TOKENS = 40
_OTHER = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    "required": ["name"],
}


def _schema(schema: Any) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, schema if isinstance(schema, str) else json.dumps(schema))


def _regex(pattern: str) -> Constraint:
    return Constraint(ConstraintKind.REGEX, pattern)


def _lark(source: str) -> Constraint:
    return Constraint(ConstraintKind.LARK, source)


def _nested(depth: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def _megabyte_of_rules() -> str:
    rules = [f'r{i}: "word{i}" r{i + 1} | "other{i}"' for i in range(24_000)]
    return "\n".join(["start: r0", *rules, 'r24000: "end"'])


_NAMES = [f"property_{i}" for i in range(10_000)]
CASES: dict[str, Callable[[], Constraint]] = {
    "60,000 strings as enum": lambda: _schema({"enum": [f"v{i * 7919 % 60_000}" for i in range(60_000)]}),
    "60,000 numbers as enum": lambda: _schema({"enum": [i * 31 for i in range(60_000)]}),
    "5,000 objects as enum": lambda: _schema({"enum": [{"id": i, "n": [i, str(i)]} for i in range(5_000)]}),
    "1,000 objects as enum": lambda: _schema({"enum": [{"id": i, "n": [i, str(i)]} for i in range(1_000)]}),
    "60,000 choices": lambda: Constraint(ConstraintKind.CHOICE, json.dumps([f"choice {i}" for i in range(60_000)])),
    "10,000 properties, closed": lambda: _schema(
        {"type": "object", "properties": {name: {"type": "integer"} for name in _NAMES}, "additionalProperties": False}
    ),
    "10,000 properties, half required": lambda: _schema(
        {"type": "object", "properties": {name: {"type": "string"} for name in _NAMES}, "required": _NAMES[:5000]}
    ),
    "300 patternProperties": lambda: _schema(
        {"type": "object", "patternProperties": {f"^x{i}[a-z]+": {"type": "integer"} for i in range(300)}}
    ),
    "objects 300 deep": lambda: _schema(_nested(300)),
    "text 100,000 deep": lambda: _schema("[" * 100_000),
    "[ab]*a[ab]{24}": lambda: _regex("[ab]*a[ab]{24}"),
    "[ab]*a[ab]{24} as pattern": lambda: _schema({"type": "string", "pattern": "^[ab]*a[ab]{24}$"}),
    "a{1000000000}": lambda: _regex("a{1000000000}"),
    "a{1000000000} as pattern": lambda: _schema({"type": "string", "pattern": "^a{1000000000}$"}),
    "((a{1000}){1000}){1000}": lambda: _regex("((a{1000}){1000}){1000}"),
    "10,000 brackets": lambda: _regex("(" * 10_000 + "a" + ")" * 10_000),
    "14 lookaheads": lambda: _regex("".join(f"(?=.*{letter})" for letter in "abcdefghijklmn") + ".*"),
    "nested lookarounds": lambda: _regex(r'"(?:(?!(?<!\\)(?:(?!")(\\\\))*").)*(?<!\\)(?:(?!")(\\\\))*"'),
    "50,000 alternatives": lambda: _regex("|".join(f"w{i * 7919 % 100_003}x" for i in range(50_000))),
    "minItems 1,000,000": lambda: _schema({"type": "array", "items": {"type": "integer"}, "minItems": 1_000_000}),
    "minContains 1,000,000": lambda: _schema(
        {"type": "array", "contains": {"type": "integer"}, "minContains": 1_000_000}
    ),
    "20,000 prefixItems": lambda: _schema({"type": "array", "prefixItems": [{"type": "integer"}] * 20_000}),
    "cyclic $ref": lambda: _schema(
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    ),
    "endless $ref": lambda: _schema(
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a"}}, "required": ["x"], "type": "object"}},
        }
    ),
    "remote $ref": lambda: _schema({"$ref": "https://example.com/schema.json"}),
    "24 anyOf in allOf": lambda: _schema(
        {"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(24)]}
    ),
    "multipleOf 1999 to 1e300": lambda: _schema({"type": "number", "maximum": 10**300, "multipleOf": 1999}),
    "2 MB of schema": lambda: _schema({"enum": ["x" * (1 << 21)]}),
    "5 MB of schema": lambda: _schema({"enum": ["x" * (5 << 20)]}),
    "1 MB of Lark rules": lambda: _lark(_megabyte_of_rules()),
    "60,000 literals in Lark": lambda: _lark("start: " + " | ".join(f'"word{i}"' for i in range(60_000))),
    "ambiguous Lark": lambda: _lark('start: s\ns: s s s | s s | "a"'),
}
"""Inputs by name, made on demand."""


def answer(backend: RtlangBackend, constraint: Constraint) -> CompiledGrammar | GrammarError:
    """Compile a constraint; returns the grammar or the error."""
    try:
        return backend.compile(constraint)
    except GrammarError as error:
        return error


def walk(grammar: CompiledGrammar, vocabulary: Vocabulary, num_tokens: int, seed: int = 1) -> tuple[int, float]:
    """Accept random tokens; returns their number and the longest CPU time of a mask in ms.

    Raises:
        GrammarError: the grammar exceeded its limits.
    """
    rng, row = random.Random(seed), np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    matcher, slowest = grammar.matcher(), 0
    for taken in range(num_tokens):
        started = time.thread_time_ns()
        matcher.fill_bitmask(row)
        slowest = max(slowest, time.thread_time_ns() - started)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        token_id = int(rng.choice(allowed.tolist()))
        if token_id in vocabulary.eos_token_ids or not matcher.accept_token(token_id):
            return taken, slowest / 1e6
    return num_tokens, slowest / 1e6


def table(vocabulary: Vocabulary, names: list[str] | None = None) -> list[str]:
    """The lines of the table."""
    backend = RtlangBackend.create(vocabulary)
    lines = [
        "| input | compile s | MB more | mask ms at most | others' mask ms p99, at most | outcome |",
        "|---|---|---|---|---|---|",
    ]
    context = multiprocessing.get_context("fork")
    for name in names or list(CASES):
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=lambda name=name, sender=sender: sender.send(_line(backend, vocabulary, name)))
        child.start()
        lines.append(receiver.recv())
        child.join()
    return lines


def _line(backend: RtlangBackend, vocabulary: Vocabulary, name: str) -> str:
    with serving():  # in the child: a fork begins with default settings
        return _measured(backend, vocabulary, name)


def _measured(backend: RtlangBackend, vocabulary: Vocabulary, name: str) -> str:
    before = _memory("VmRSS")
    constraint = CASES[name]()
    stop, waits = threading.Event(), list[int]()
    other = threading.Thread(target=_fill_others, args=(backend, vocabulary, stop, waits))
    other.start()
    started = time.thread_time()
    found = answer(backend, constraint)
    seconds = time.thread_time() - started
    stop.set()
    other.join()
    slowest = 0.0
    if isinstance(found, GrammarError):
        outcome = f"refused: {found}"[:90]
    else:
        try:
            taken, slowest = walk(found, vocabulary, _NUM_TOKENS)
            outcome = f"compiled, {taken} tokens taken"
        except GrammarError as error:
            outcome = f"compiled, then stopped: {error}"[:90]
    p99, most = np.percentile(waits, 99) / 1e6, max(waits) / 1e6
    more = _memory("VmHWM") - before
    return f"| {name} | {seconds:.2f} | {more} | {slowest:.1f} | {p99:.1f}, {most:.1f} | {outcome.replace('|', '/')} |"


def _fill_others(backend: RtlangBackend, vocabulary: Vocabulary, stop: threading.Event, waits: list[int]) -> None:
    """Fill masks of another grammar until `stop` is set; appends the wall time of each in ns."""
    matcher = backend.compile(_schema(_OTHER)).matcher()
    row = np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    while not waits or not stop.is_set():
        started = time.monotonic_ns()
        matcher.fill_bitmask(row)
        waits.append(time.monotonic_ns() - started)
        time.sleep(0.001)  # as the model's step would take time


def _memory(key: str) -> int:
    """MB of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(key))) >> 10
