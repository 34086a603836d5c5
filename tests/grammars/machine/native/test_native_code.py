"""Sources of the machine run by Python, which stands in for compiled code that is not there yet."""

from __future__ import annotations

import importlib
import json
import random
import sys
import threading
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

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


MODULES = {
    "inner": """
from rtlang_grammars.machine.native.native_code import compiled
FACTOR = 2
UNUSED = 1


@compiled(inner=True)
def times(number):
    return FACTOR * number
""",
    "entry": """
from inner import times
from rtlang_grammars.machine.native.array_types import INT
from rtlang_grammars.machine.native.native_code import compiled


@compiled(INT, group="test")
def doubled(number):
    return times(number)


def unrelated():
    return 1
""",
}


def entry_of(folder: Path, monkeypatch: pytest.MonkeyPatch, edits: Sequence[tuple[str, str, str]] = ()) -> Any:
    """The one entry of a group "test", from modules in a folder, with some texts replaced."""
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(native_code, "_entries", {"test": {}})
    monkeypatch.setattr(native_code, "GROUPS", {"test": ()})
    monkeypatch.setattr(native_code, "AHEAD", ("test",))
    monkeypatch.setattr(native_code, "_locks", {"test": threading.Lock()})
    monkeypatch.setattr(native_code, "_loaded", set())
    monkeypatch.setattr(native_code, "_inner", {})
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "code"))
    native_code.digest.cache_clear()
    for name, source in MODULES.items():
        for module, old, new in edits:
            if module == name:
                assert old in source
                source = source.replace(old, new)
        (folder / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in MODULES:
        importlib.import_module(name)
    return sys.modules["entry"].doubled


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """One whose code is kept in a folder that is empty at first."""
    yield entry_of(tmp_path / "modules", monkeypatch)
    native_code.digest.cache_clear()


def test_an_entry_is_compiled_once_for_all_processes(entry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert native_code.is_missing_on_disk("test")
    assert native_code.is_any_missing_on_disk()
    assert entry(3) == 6
    assert not native_code.is_any_missing_on_disk()
    compiled, compiler = entry._code, Mock()
    native_code._loaded.clear()  # as in the next process
    assert not native_code.is_any_missing_on_disk()
    monkeypatch.setattr(native_code, "compile_group", compiler)
    native_code.load("test")
    assert entry._code is not compiled
    assert entry(4) == 8
    assert not compiler.called


def test_a_thread_may_run_compiled_code_where_others_interpret(entry: Any) -> None:
    native_code.interpret()
    assert native_code.is_interpreted()
    native_code.prepare("test")
    assert not native_code._loaded
    assert entry(Fraction(1, 3)) == Fraction(2, 3)  # which compiled code could not take
    with native_code.use_compiled_here():
        native_code.prepare("test")
        with pytest.raises(TypeError):
            entry(Fraction(1, 3))
    assert entry(Fraction(1, 3)) == Fraction(2, 3)
    native_code.use_compiled()
    assert not native_code.is_interpreted()
    assert entry(5) == 10


def test_where_nothing_can_be_kept_code_is_compiled_in_memory(entry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_code.code_files, "_folders", lambda: iter(()))
    assert entry(3) == 6
    assert native_code.is_missing_on_disk("test") is False  # this process has it
    native_code._loaded.clear()
    assert native_code.is_missing_on_disk("test")


def test_numba_may_be_switched_off(entry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert entry(Fraction(1, 3)) == Fraction(2, 3)


def test_code_is_named_by_what_it_is_made_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(name: str, *edits: tuple[str, str, str]) -> str:
        entry_of(tmp_path / name, monkeypatch, edits)
        return native_code.digest("test")

    first = digest("first")
    same = [
        digest("same"),
        digest("constant", ("inner", "UNUSED = 1", "UNUSED = 2")),
        digest("function", ("entry", "return 1", "return 2")),
    ]
    assert set(same) == {first}
    others = [
        digest("inner body", ("inner", "FACTOR * number", "FACTOR * number + 1")),
        digest("used constant", ("inner", "FACTOR = 2", "FACTOR = 3")),
        digest("inner option", ("inner", "inner=True", "inner=True, inline=True")),
        digest("entry body", ("entry", "return times(number)", "return times(number + 1)")),
        digest("types", ("entry", "INT, group", "INT, INT, group")),
        digest("lock", ("entry", 'group="test"', 'group="test", nogil=True')),
    ]
    assert len({first, *others}) == 1 + len(others)
    native_code.digest.cache_clear()
