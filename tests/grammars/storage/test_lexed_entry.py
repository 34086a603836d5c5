"""Grammars with a lexer on disk: a later process has the same masks, and compiles only to join contexts that never met."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.lowering.lexed_tables import LexedTables
from rtlang_grammars.machine.lexed.lexed_completion import LexedCompletion
from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage.grammar_store import GrammarStore
from rtlang_grammars.storage.lexed_entry import StoredTables, dump
from rtlang_grammars_bench.random_lark_grammars import random_grammar
from tests.support.grammars.lexed_grammars import place_after, small_index

UNDECIDED = 'start: x "a" "b" | y "a" "c"\nx: "1" | x "-" y\ny: "1" | y "-" x\n%ignore " "'


def restored(tables: LexedTables, source: str, *, is_lark: bool) -> StoredTables:
    plain, arrays = dump(tables)
    return StoredTables(
        json.loads(json.dumps(plain)), arrays, lambda: LexedTables(source, Budget(Limits()), is_lark=is_lark)
    )


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_stored_tables_give_the_same_masks_and_completions(first: int) -> None:
    num_masks = 0
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        source, is_lark = UNDECIDED if seed % 20 == 0 else random_grammar(rng), bool(seed % 2)
        try:
            tables = LexedTables(source, Budget(Limits(max_seconds=60.0)), is_lark=is_lark)
            stored = restored(tables, source, is_lark=is_lark)
            made, read = LexedGrammar(small_index(), tables), LexedGrammar(small_index(), stored)
        except GrammarError:
            continue
        completion, of_stored = LexedCompletion(made), LexedCompletion(read)
        place = made.start_place
        assert read.start_place == place
        for _ in range(6):
            mask = made.mask(place.configuration).base
            assert np.array_equal(read.mask(place.configuration).base, mask), source
            assert of_stored.find(place.configuration) == completion.find(place.configuration)
            num_masks += 1
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
            texts = [text for i in np.flatnonzero(bits) if (text := small_index().vocabulary.token_bytes[i])]
            if not texts:
                break
            text = rng.choice(texts)
            reached, of_read = (
                place_after(made, text, place.configuration),
                place_after(read, text, place.configuration),
            )
            assert reached is not None
            assert of_read == reached
            place = reached
    assert num_masks > 30


def test_a_second_process_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = Constraint(ConstraintKind.LARK, 'start: "a" N*\nN: /[0-9]+/\n%ignore " "')
    first = GrammarStore(tmp_path)
    RtlangBackend(small_index(), store=first).compile(constraint)
    first.flush()
    assert first.counts.stored == 1
    monkeypatch.setattr("rtlang_grammars.lowering.lexed_tables.LexedTables", None)
    second = GrammarStore(tmp_path)
    matcher = RtlangBackend(small_index(), store=second).compile(constraint).matcher()
    assert second.counts.hits == 1
    assert matcher.shortest_completion(10)
    for other in (
        Constraint(constraint.kind, constraint.source, lexer=Lexer.LARK),
        Constraint(constraint.kind, UNDECIDED),
    ):
        with pytest.raises(TypeError):
            RtlangBackend(small_index(), store=second).compile(other)


TEXT = b"1-1ab"


def followed(store: GrammarStore) -> tuple[RtlangBackend, list[bytes]]:
    """The masks along a text in which stacks meet whose contexts are not alike."""
    backend = RtlangBackend(small_index(), store=store)
    matcher = backend.compile(Constraint(ConstraintKind.LARK, UNDECIDED)).matcher()
    row, masks = np.empty(small_index().num_words, dtype=np.int32), []
    for byte in TEXT:
        matcher.fill_bitmask(row)
        masks.append(row.tobytes())
        assert matcher.accept_token(small_index().vocabulary.token_bytes.index(bytes([byte])))
    store.flush()
    return backend, masks


def test_joined_contexts_are_stored_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = GrammarStore(tmp_path)
    _, masks = followed(first)
    assert first.counts.stored >= 2  # the grammar, and again after a join
    with monkeypatch.context() as patch:
        patch.setattr("rtlang_grammars.lowering.lexed_tables.LexedTables", None)
        second = GrammarStore(tmp_path)
        assert followed(second)[1] == masks
        assert (second.counts.hits, second.counts.stored) == (1, 0)


def test_stored_joins_are_made_again_before_others() -> None:
    """A grammar of which only some joins are stored: numbers of contexts and states are those of one compile."""
    sources = [UNDECIDED.replace('"b"', f'"b{word}"').replace('"c"', f'"c{word}"') for word in ("", "d", "1")]
    for source in sources:
        tables = LexedTables(source, Budget())
        pairs = [(one, other) for one in range(3) for other in range(one) if tables.parser.joins[one, other] < 0]
        assert len(pairs) >= 2
        tables.join(*pairs[0])
        stored = restored(tables, source, is_lark=False)
        assert stored.joined == tables.joined == pairs[:1]
        for each in (tables, stored):
            each.join(*pairs[1])
        assert stored.joined == tables.joined == pairs[:2]
        assert all(np.array_equal(one, other) for one, other in zip(stored.parser, tables.parser, strict=True))
        assert all(np.array_equal(one, other) for one, other in zip(stored.lexer, tables.lexer, strict=True))
        plain, arrays = dump(stored)
        again, expected = dump(tables)
        assert plain == again
        assert all(np.array_equal(one, other) for one, other in zip(arrays, expected, strict=True))


def test_sets_of_tokens_are_kept() -> None:
    source = 'start: "a" <[3-5]> | <[^7]> "b"'
    tables = LexedTables(source, Budget())
    assert tables.token_sets
    assert restored(tables, source, is_lark=False).token_sets == tables.token_sets


def test_damaged_entries_are_refused() -> None:
    plain, arrays = dump(LexedTables('start: "a"', Budget()))
    for damaged in ({**plain, "arrays": plain["arrays"][1:]}, {**plain, "arrays": [[0, 7], *plain["arrays"][1:]]}):
        with pytest.raises(ValueError, match="array"):
            StoredTables(damaged, arrays, lambda: LexedTables('start: "a"', Budget()))


def test_masks_from_disk_need_no_compile() -> None:
    source = 'start: (NAME "=" NUMBER ";")+\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore " "'
    tables = LexedTables(source, Budget(Limits()))
    plain, arrays = dump(tables)
    made, read = LexedGrammar(small_index(), tables), LexedGrammar(small_index(), StoredTables(plain, arrays, never))
    place = read.start_place
    for text in (b"a", b"b", b" ", b"=", b"1", b";"):
        assert np.array_equal(read.mask(place.configuration).base, made.mask(place.configuration).base)
        reached = place_after(read, text, place.configuration)
        assert reached is not None
        place = reached
    assert place.is_complete


def never() -> LexedTables:
    raise AssertionError("the grammar is compiled")


def test_the_first_mask_after_a_restart_needs_no_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = (*(bytes([byte]) for byte in range(256)), b"1a", b"1ab", b"<end>")
    vocabulary = Vocabulary(tokens, frozenset({258}), frozenset({258}), 259)
    constraint = Constraint(ConstraintKind.LARK, UNDECIDED)
    store = GrammarStore(tmp_path, min_seconds=0.0)
    row = np.empty(vocabulary.num_mask_words, dtype=np.int32)
    grammar = RtlangBackend.create(vocabulary, store=store).compile(constraint)
    assert isinstance(grammar.machine, LexedGrammar)
    assert grammar.machine.tables.joined
    grammar.matcher().fill_bitmask(row)
    store.flush()
    backend = RtlangBackend.create(vocabulary, store=GrammarStore(tmp_path, min_seconds=0.0))
    monkeypatch.setattr(LexedTables, "__init__", lambda *_, **__: never())
    again = np.empty_like(row)
    backend.compile(constraint).matcher().fill_bitmask(again)
    assert np.array_equal(again, row)
