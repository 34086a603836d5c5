"""Sources of the machine run by Python, which stands in for compiled code that is not there yet."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.native import native_code
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary
from tests.support.long_tests import sized

VOCABULARY = small_vocabulary()
NAMES = {name: {"type": "null"} for name in ("bb", "b", "a", "ab")}
SCHEMAS = (
    {"type": "object", "properties": {"a": {"enum": ["ab", "b", 1.5]}, "b": {"type": "integer", "minimum": -12}}},
    {"type": "object", "properties": NAMES, "required": ["a"], "maxProperties": 2, "additionalProperties": False},
    {"type": "array", "items": {"enum": ["a", "b", "ab"]}, "uniqueItems": True, "maxItems": 3},
    {"type": "string", "pattern": "^(?!ab[.]).*$", "maxLength": 9},
    {"type": "string", "format": "date"},
    {"type": "string", "enum": [f"{'ab' * (i % 3)}{i}" for i in range(60)]},
)
CONSTRAINTS = [
    *((ConstraintKind.JSON_SCHEMA, json.dumps(schema)) for schema in SCHEMAS),
    (ConstraintKind.REGEX, "(a|b.)*1?[^a]{2,4}"),
    (ConstraintKind.LARK, 'start: "a" start "b" | pair+\npair: "(" start ")" | /b+/'),
    (ConstraintKind.GBNF, 'root ::= "a" root "b" | pair+\npair ::= "(" root ")" | [b]+'),
    (ConstraintKind.CHOICE, json.dumps(["a", "ab", "bb", 'b"'])),
]


@pytest.fixture(autouse=True)
def compiled_afterwards() -> Iterator[None]:
    yield
    native_code.use_compiled()


@pytest.mark.parametrize(("kind", "source"), CONSTRAINTS, ids=range(len(CONSTRAINTS)))
@pytest.mark.parametrize("way", ["interpreted", "in turns"])
def test_python_makes_the_masks_that_compiled_code_makes(kind: ConstraintKind, source: str, way: str) -> None:
    seeds = range(sized(3, usual=1))
    expected = [walked(kind, source, seed, "compiled") for seed in seeds]
    assert max(map(len, expected)) > 3
    assert [walked(kind, source, seed, way) for seed in seeds] == expected


def walked(kind: ConstraintKind, source: str, seed: int, way: str) -> list[object]:
    """What a matcher says on a random walk of at most 30 tokens, of a grammar compiled for it: nothing is known of its masks yet."""
    turns, draw = random.Random(99), random.Random(seed)

    def turn() -> None:
        if way == "interpreted" or (way == "in turns" and turns.random() < 0.5):
            native_code.interpret()
        else:
            native_code.use_compiled()

    turn()
    matcher = RtlangBackend.create(VOCABULARY).compile(Constraint(kind, source)).matcher()
    said: list[object] = []
    row = np.empty(-(-VOCABULARY.vocab_size // 32), dtype=np.int32)
    for _ in range(30):
        turn()
        matcher.fill_bitmask(row)
        turn()
        forced = matcher.forced_bytes()
        said.append((row.tobytes(), forced, matcher.is_accepting))
        ids = [token_id for token_id in allowed_ids(row) if token_id not in VOCABULARY.eos_token_ids]
        if not ids:
            break
        token_id = draw.choice(ids)
        turn()
        assert matcher.accept_token(token_id)
        said.append((token_id, matcher.completes(())))
    turn()
    said.append(matcher.shortest_completion(200))
    return said


def doubled(number):  # type: ignore[no-untyped-def]
    return 2 * number


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One whose code is kept in a folder that is empty at first."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(native_code, "_entries", [])
    return native_code.compiled()(FunctionType(doubled.__code__, globals(), "doubled"))


def test_an_entry_says_whether_its_code_is_on_disk(entry: native_code.CompiledEntry) -> None:
    assert entry.is_missing_on_disk
    assert native_code.is_any_missing_on_disk()
    assert entry(3) == 6
    assert not entry.is_missing_on_disk
    assert not native_code.is_any_missing_on_disk()


def test_a_thread_may_run_compiled_code_where_others_interpret(entry: native_code.CompiledEntry) -> None:
    native_code.interpret()
    assert native_code.is_interpreted()
    assert entry(Fraction(1, 3)) == Fraction(2, 3)  # which compiled code could not take
    with native_code.use_compiled_here(), pytest.raises(numba.TypingError):
        entry(Fraction(1, 3))
    assert entry(Fraction(1, 3)) == Fraction(2, 3)
    native_code.use_compiled()
    assert not native_code.is_interpreted()


def test_where_nothing_can_be_kept_code_is_compiled_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no locator available")

    monkeypatch.setattr(native_code, "_entries", [])
    monkeypatch.setattr(numba.core.dispatcher, "FunctionCache", fail)
    entry = native_code.compiled()(FunctionType(doubled.__code__, globals(), "doubled"))
    assert entry(3) == 6
    assert not entry.is_missing_on_disk
