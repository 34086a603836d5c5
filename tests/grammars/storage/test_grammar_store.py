"""Compiled grammars on disk, behind the backend: found by later processes, masks as without, and never in the way."""

from __future__ import annotations

import functools
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.lowering.compilation import Compilation
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.spec.constraint import (
    Constraint,
    ConstraintKind,
    JsonStyle,
    Lexer,
    Numbers,
    PropertyOrder,
    Whitespace,
)
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Limits
from rtlang_grammars.spec.structures import sequence, tagged, token
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage import disk_cache, grammar_store
from rtlang_grammars.storage.grammar_store import GrammarStore
from rtlang_grammars.storage.serialize import complete_rows
from rtlang_grammars_bench.conformance import accepts, entries
from tests.grammars.benchmarks.test_conformance import BENCH

END = 256
VOCABULARY = Vocabulary((*(bytes([byte]) for byte in range(256)), b"<end>"), frozenset({END}), frozenset({END}), 257)
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "pattern": "^[a-c]+$"}, "b": {"enum": [1, "x", None]}},
    "required": ["b"],
    "dependentRequired": {"a": ["c"]},
}
CHECKED = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
CHANGES: list[dict[str, Any]] = [
    {"constraint": Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "null"}')},
    {"constraint": Constraint(ConstraintKind.STRUCTURE, json.dumps(SCHEMA))},
    {"constraint": Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA), JsonStyle(Whitespace.COMPACT))},
    {"constraint": Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA), JsonStyle(order=PropertyOrder.DECLARED))},
    {"constraint": Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA), JsonStyle(numbers=Numbers.ANY))},
    {"options": SchemaOptions(default_dialect="draft-04")},
    {"options": SchemaOptions(assert_formats=False)},
    {"options": SchemaOptions(lenient=frozenset({"required"}))},
    {"limits": Limits(max_states=1000)},
    {"limits": Limits(max_bytes=1 << 20)},
    {"allow_checked": False},
]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which tables are stored does not depend on how busy the machine is."""
    monkeypatch.setattr(grammar_store, "complete_rows", functools.partial(complete_rows, max_seconds=60.0))


@pytest.fixture(scope="module")
def index() -> VocabularyIndex:
    RtlangBackend.create(VOCABULARY)
    return VocabularyIndex(VOCABULARY)


def backend(index: VocabularyIndex, store: GrammarStore | None) -> RtlangBackend:
    return RtlangBackend(index, allow_checked=True, store=store)


def schema(source: Any) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(source))


def reported(grammar: RtlangGrammar) -> tuple[object, ...]:
    assert grammar.report is not None
    return grammar.report.dialect, grammar.report.entries, grammar.report.is_exact


def test_what_was_kept_is_found_and_says_the_same(index: VocabularyIndex, tmp_path: Path) -> None:
    for source in (SCHEMA, CHECKED, True):
        store = GrammarStore(tmp_path, min_seconds=0.0)
        first = backend(index, store).compile(schema(source))
        store.flush()
        later = GrammarStore(tmp_path)
        found = backend(index, later).compile(schema(source))
        assert (later.counts.hits, later.counts.misses) == (1, 0)
        assert reported(found) == reported(first)
        assert found.value_check == first.value_check
        assert (found.value_check is not None) is (source is CHECKED)
        assert not found.machine.tables.makers
        for text in (
            '{"b":1}',
            '{"b":1,"a":"ab","c":[]}',
            '{"a":"ab"}',
            '{"a":"d","b":1,"c":1}',
            "[1,1]",
            "[1, 2]",
            "7",
        ):
            assert accepts(found, text) == accepts(first, text)


def test_the_key_is_of_all_that_the_tables_depend_on() -> None:
    base = Compilation(schema(SCHEMA), None, Limits(), True)
    key = grammar_store._key
    keys = {key(base), *(key(replace(base, **change)) for change in CHANGES)}
    assert len(keys) == 1 + len(CHANGES)
    same = [
        replace(base, constraint=Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA, indent=3))),
        replace(base, options=SchemaOptions()),
        replace(base, limits=Limits(max_seconds=9.0)),
    ]
    assert {key(each) for each in same} == {key(base)}


def test_other_code_finds_nothing(index: VocabularyIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = GrammarStore(tmp_path, min_seconds=0.0)
    backend(index, store).compile(schema(SCHEMA))
    store.flush()
    monkeypatch.setattr(grammar_store, "revision", lambda: "other")
    later = GrammarStore(tmp_path)
    backend(index, later).compile(schema(SCHEMA))
    assert later.counts.misses == 1
    assert later.counts.hits == later.counts.damaged == 0


def test_what_is_quickly_compiled_and_what_is_refused_is_not_kept(index: VocabularyIndex, tmp_path: Path) -> None:
    store = GrammarStore(tmp_path, min_seconds=3600.0)
    backend(index, store).compile(schema(SCHEMA))
    quick = GrammarStore(tmp_path, min_seconds=0.0)
    with pytest.raises(GrammarError):
        backend(index, quick).compile(schema({"type": "nothing"}))
    with pytest.raises(GrammarError):
        RtlangBackend(index, store=quick).compile(schema(CHECKED))
    endless = schema({"type": "string", "pattern": "^[ab]*a[ab]{13}$"})
    for _ in range(3):  # tried once
        assert accepts(backend(index, quick).compile(endless), '"' + "a" * 14 + '"')
        quick.flush()
    for each in (store, quick):
        each.flush()
        assert each.counts.stored == 0
    assert quick.counts.unfit == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("spoil", ["half", "other", "plain", "start", "closer"])
def test_files_that_are_not_right_are_compiled_anew(index: VocabularyIndex, tmp_path: Path, spoil: str) -> None:
    store = GrammarStore(tmp_path, min_seconds=0.0)
    fresh = backend(index, store).compile(schema(SCHEMA))
    store.flush()
    (path,) = tmp_path.iterdir()
    key = bytes.fromhex(path.stem.removeprefix("grammar-"))
    entry = disk_cache.unpacked(path.read_bytes(), key)
    assert entry is not None
    plain, arrays = entry
    match spoil:
        case "half":
            content = path.read_bytes()[: path.stat().st_size // 2]
        case "other":
            content = b"not a grammar"
        case "plain":
            content = disk_cache.packed(key, {}, arrays)
        case "start":
            content = disk_cache.packed(key, {**plain, "start": "x"}, arrays)
        case _:
            tables = {**plain["tables"], "closers": [["unheard of"] for _ in plain["tables"]["closers"]]}
            content = disk_cache.packed(key, {**plain, "tables": tables}, arrays)
    path.write_bytes(content)
    later = GrammarStore(tmp_path, min_seconds=0.0)
    found = backend(index, later).compile(schema(SCHEMA))
    assert later.counts.damaged == 1
    assert accepts(found, '{"b":1}')
    assert not accepts(found, '{"b":2}')
    later.flush()
    assert later.counts.stored == 1
    assert reported(backend(index, GrammarStore(tmp_path)).compile(schema(SCHEMA))) == reported(fresh)


def test_a_cache_that_does_not_work_changes_nothing(index: VocabularyIndex, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = GrammarStore(tmp_path / "file" / "below", min_seconds=0.0)
    assert accepts(backend(index, store).compile(schema(SCHEMA)), '{"b":1}')
    store.flush()
    assert store.counts.failures == 1


_OTHER_PROCESS = """
import json, sys
from pathlib import Path
from rtlang_grammars_bench.conformance import accepts
from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.storage.grammar_store import GrammarStore, revision
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.structures import sequence, tagged, token
from rtlang_grammars.spec.vocabulary import Vocabulary
letters = Vocabulary((*(bytes([byte]) for byte in range(256)), b"<end>"), frozenset({256}), frozenset({256}), 257)
store = GrammarStore(Path(sys.argv[1]), min_seconds=0.0)
backend = RtlangBackend(VocabularyIndex(letters), allow_checked=True, store=store)
grammar = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, sys.argv[2]))
store.flush()
print(json.dumps([revision(), store.counts.hits, store.counts.stored, accepts(grammar, sys.argv[3])]))
"""


def test_other_processes_find_it_whatever_their_hashes_are(index: VocabularyIndex, tmp_path: Path) -> None:
    path = os.pathsep.join(each for each in sys.path if each)
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": path}
    source = json.dumps(SCHEMA, indent=1)
    command = [sys.executable, "-c", _OTHER_PROCESS, str(tmp_path), source, '{"a":"ab","b":1,"c":[]}']
    done = subprocess.run(command, env=environment, check=True, capture_output=True)
    its_revision, *found = json.loads(done.stdout)
    assert found == [0, 1, True]
    if its_revision != grammar_store.revision():
        pytest.skip("the sources were changed while the tests ran")
    store = GrammarStore(tmp_path)
    backend(index, store).compile(schema(SCHEMA))
    assert store.counts.hits == 1


def rows_of(grammar: RtlangGrammar, text: bytes) -> list[bytes]:
    """The masks on the way through a text."""
    matcher, row, found = grammar.matcher(), np.empty(VOCABULARY.num_mask_words, dtype=np.int32), []
    for byte in text:
        matcher.fill_bitmask(row)
        found.append(row.tobytes())
        if not matcher.accept_token(byte):
            break
    return found


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.long)])
def test_schemas_of_the_benchmark_have_the_same_masks_from_disk(
    index: VocabularyIndex, tmp_path: Path, every: int
) -> None:
    if not BENCH.exists():
        pytest.skip("the benchmark's schemas are not beside the checkout")
    store = GrammarStore(tmp_path, min_seconds=0.0)
    later = GrammarStore(tmp_path)
    num_found, rng = 0, random.Random(5)
    for number, entry in enumerate(entries(BENCH)):
        if number % every:
            continue
        constraint = schema(entry["schema"])
        fresh = backend(index, None).compile(constraint)
        backend(index, store).compile(constraint)
        store.flush()
        found = backend(index, later).compile(constraint)
        num_found += not found.machine.tables.makers
        assert reported(found) == reported(fresh)
        for test in entry["tests"][:6]:
            text = json.dumps(test["data"], ensure_ascii=False, indent=rng.choice([None, 2])).encode()[:400]
            assert rows_of(found, text) == rows_of(fresh, text)
            assert accepts(found, json.dumps(test["data"])) == accepts(fresh, json.dumps(test["data"]))
        for each in (found, fresh):
            closing = each.matcher().closing_bytes()
            assert closing is not None
            assert fresh.matcher().completes_bytes(closing)
    assert later.counts.hits == store.counts.stored
    assert later.counts.hits >= 0.9 * (300 // every) - 3
    assert num_found >= later.counts.hits


@pytest.mark.slow
def test_reading_is_much_faster_than_compiling(index: VocabularyIndex, tmp_path: Path) -> None:
    # Intersections are worked out by each compile; the tables of plain objects alone would be built on demand.
    parts = [{"type": "object", "properties": {name: {"enum": [1, "a", None]}}, "required": [name]} for name in "qrs"]
    properties = {f"p{i}": {"allOf": [*parts, {"properties": {"q": {"enum": [1, i]}}}]} for i in range(40)}
    constraint = schema({"type": "object", "properties": properties, "required": ["p1", "p7"]})
    store = GrammarStore(tmp_path, min_seconds=0.0)
    backend(index, store).compile(constraint)
    store.flush()

    def shortest(compiler: RtlangBackend) -> float:
        times = []
        for _ in range(7):
            started = time.thread_time()
            compiler.compile(constraint)
            times.append(time.thread_time() - started)
        return min(times)

    assert shortest(backend(index, GrammarStore(tmp_path))) < shortest(backend(index, None)) / 2


@pytest.mark.parametrize(
    "constraint",
    [
        sequence("a", token("<t>"), "b"),
        sequence("a<t>b"),
        Constraint(ConstraintKind.CHOICE, '["a<t>b"]'),
        Constraint(ConstraintKind.GBNF, 'root ::= ("a" <t> "b")'),
        Constraint(ConstraintKind.LARK, 'start: "a" <t> "b"', lexer=Lexer.ANYWHERE),
        sequence(Constraint(ConstraintKind.GBNF, 'root ::= "a" <t> "b"')),
        sequence(Constraint(ConstraintKind.CHOICE, r'["a\u003ct>b"]')),
    ],
)
def test_a_grammar_that_names_a_token_is_kept_for_one_vocabulary(constraint: Constraint, tmp_path: Path) -> None:
    for number in (256, 258, 256):
        texts = [bytes([byte]) for byte in range(256)] + [b"<t>" if i == number else b"" for i in range(256, 260)]
        specials = frozenset(range(256, 260))
        index = VocabularyIndex(Vocabulary(tuple(texts), frozenset({259}), specials, 260))
        store = GrammarStore(tmp_path, min_seconds=0.0)
        matcher = backend(index, store).compile(constraint).matcher()
        assert [matcher.accept_token(each) for each in (97, number, 98)] == [True] * 3
        store.flush()
    assert (store.counts.hits, store.counts.stored) == (1, 0)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_grammar_that_names_no_token_serves_all_vocabularies(tmp_path: Path) -> None:
    counts = []
    for number in (256, 257):
        texts = (*(bytes([byte]) for byte in range(256)), *[b"<t>" if i == number else b"<u>" for i in range(256, 258)])
        index = VocabularyIndex(Vocabulary(texts, frozenset({257}), frozenset({256, 257}), 258))
        store = GrammarStore(tmp_path, min_seconds=0.0)
        backend(index, store).compile(tagged([("<call>", Constraint(ConstraintKind.REGEX, "[0-9]"), "</call>")]))
        store.flush()
        counts.append(store.counts.hits)
    assert counts == [0, 1]


def test_an_ordinary_token_by_id_is_itself_from_the_disk_too(tmp_path: Path) -> None:
    index = VocabularyIndex(Vocabulary((*(bytes([byte]) for byte in range(256)), b"ab"), frozenset(), frozenset(), 257))
    for _ in range(2):
        store = GrammarStore(tmp_path, min_seconds=0.0)
        matcher = backend(index, store).compile(Constraint(ConstraintKind.GBNF, "root ::= <[256]> [a-z]")).matcher()
        assert not matcher.accept_token(97)
        assert matcher.accept_token(256)
        store.flush()
    assert store.counts.hits == 1
