"""Masks and places of automata on the device against the host's matchers: every bit of every mask along random texts."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
import torch

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.export import ExportedAutomaton, Walk, export, name_digest
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.protocols import GrammarMatcher
from rtlang_kernels.triton.grammar.automaton_store import MAX_DEPTH, Automaton, AutomatonStore, DeviceSlot
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, without_letter
from tests.support.kernels.gpu import DEVICE
from tests.support.long_tests import sized

SMALL = small_vocabulary()
END = min(SMALL.eos_token_ids)


def json_schema(schema: Any) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))


OPEN_OBJECT = {"type": "object"}
CONSTRAINTS = [
    json_schema({"type": "string", "minLength": 2, "maxLength": 5}),
    json_schema(OPEN_OBJECT),
    json_schema({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3}),
    json_schema(
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "abc": {"type": "integer"}, "name": {"enum": ["x", "é"]}},
            "required": ["abc"],
            "additionalProperties": False,
        }
    ),
    json_schema({"type": "string", "maxLength": 5000}),
    json_schema(
        {
            "type": "object",
            "properties": {f"n{index}": {"type": "boolean"} for index in range(16)},
            "additionalProperties": False,
        }
    ),
    json_schema({"type": "object", "properties": {"a": {"type": "integer"}}, "minProperties": 1, "maxProperties": 3}),
    json_schema(
        {"type": "object", "properties": {"next": {"$ref": "#"}, "id": {"type": "number"}}, "maxProperties": 1}
    ),
    Constraint(ConstraintKind.REGEX, "[ab]{2,4}c"),
    Constraint(ConstraintKind.REGEX, r"-?\d{1,3}(\.\d+)?"),
]


class Rows:
    """Matchers, and a store that follows them."""

    def __init__(self, constraints: list[Constraint], vocabulary: Any = SMALL, cache_bytes: int = 1 << 16) -> None:
        backend = RtlangBackend.create(vocabulary)
        self.vocabulary = vocabulary
        self.matchers: list[GrammarMatcher] = [backend.compile(each).matcher() for each in constraints]
        self.automata: list[ExportedAutomaton] = []
        texts = [b"" if token in vocabulary.silent_ids else text for token, text in enumerate(vocabulary.token_bytes)]
        offsets = np.cumsum([0, *map(len, texts)])
        ends = np.zeros(vocabulary.num_mask_words * 32, np.uint8)
        ends[list(vocabulary.eos_token_ids)] = 1
        words = np.packbits(ends, bitorder="little").view(np.int32)
        text = np.frombuffer(b"".join(texts), np.uint8)
        sizes = {"cache_bytes": cache_bytes, "pool_words": 1 << 19}
        self.store = AutomatonStore(DEVICE, vocabulary.vocab_size, text, offsets, words, len(constraints), **sizes)
        self.numbers: list[int] = []
        for matcher in self.matchers:
            automaton = export(matcher)
            assert automaton is not None
            self.automata.append(automaton)
            self.numbers.append(self.added(automaton))
        self.slots = list(range(len(constraints)))[::-1]
        self.num_lost = self.num_made = 0
        for index in range(len(constraints)):
            self.put(index)

    def added(self, automaton: ExportedAutomaton) -> int:
        added = self.store.add(tables_of(automaton), self.numbers)
        assert added is not None
        return added[0]

    def put(self, index: int) -> None:
        walk = Walk.of(self.automata[index], self.matchers[index])
        if walk is not None:
            self.store.put([self.slots[index]], [slot_of(self.numbers[index], walk)])

    def step(self, rng: random.Random) -> int:
        """Compare the masks, and take a random token in every row; returns the number of masks compared."""
        store, num_compared, sampled, lost_rows = self.store, 0, [], []
        store.build_masks(self.slots)
        self.num_made += store.num_lines_made
        for index, (matcher, is_lost) in enumerate(zip(self.matchers, store.lost().tolist(), strict=True)):
            row = np.zeros(self.vocabulary.num_mask_words, dtype=np.int32)
            if not matcher.is_terminated:
                matcher.fill_bitmask(row)
            allowed = set(allowed_ids(row))
            if is_lost:
                lost_rows.append(index)
                self.num_lost += bool(allowed)
            elif allowed:
                got = set(allowed_ids(store.masks[self.slots[index]].cpu().numpy()))
                assert got == allowed, (index, self.texts(got - allowed), self.texts(allowed - got))
                num_compared += 1
            choices = sorted(allowed - self.vocabulary.eos_token_ids)
            few = rng.sample(choices, min(4, len(choices)))
            sampled.append(max(few, key=lambda token: len(self.vocabulary.token_bytes[token])) if few else END)
            if few:
                assert matcher.accept_token(sampled[-1])
        store.advance(torch.tensor(sampled, device=DEVICE), list(range(len(sampled))))
        for index in lost_rows:
            self.put(index)
        return num_compared

    def texts(self, tokens: set[int]) -> list[bytes]:
        return [self.vocabulary.token_bytes[token] for token in sorted(tokens)][:9]


def tables_of(automaton: ExportedAutomaton) -> Automaton:
    return Automaton(automaton.classes, automaton.rows, automaton.states, automaton.ops, automaton.has_names)


def slot_of(number: int, walk: Walk) -> DeviceSlot:
    trail = walk.trail
    names = trail.mode, trail.escape, trail.unit | trail.high << 16, trail.digest, trail.containers
    return DeviceSlot(number, walk.state, walk.register, walk.stack, walk.is_complete, *names, walk.blocks)


def test_masks_along_random_texts_are_those_of_the_host() -> None:
    for seed in range(sized(20, usual=1)):
        rng, rows = random.Random(seed), Rows(CONSTRAINTS)
        num_compared = sum(rows.step(rng) for _ in range(sized(20, usual=3)))
        assert num_compared > 15
        assert rows.num_lost < num_compared / 2


@pytest.mark.long
@pytest.mark.parametrize("letter", [b" ", b'",'])
def test_masks_of_other_vocabularies_are_those_of_the_host(letter: bytes) -> None:
    for seed in range(5):
        rng, rows = random.Random(seed), Rows(CONSTRAINTS, without_letter(SMALL, letter))
        assert sum(rows.step(rng) for _ in range(12)) > 20


def token_of(text: str) -> int:
    return SMALL.token_bytes.index(text.encode())


@pytest.mark.parametrize(
    ("text", "ends", "is_allowed"),
    [
        ('{"ab":1,"cd":2,"ab', '"', False),
        ('{"ab":1,"cd":2,"abc', '"', True),
        ('{"ab":1,"cd":{"ab', '":', True),
        ('{"cd":{"ab":2},"ab', '":', True),
        ('{"cd":{"ab":2},"cd', '":', False),
        ('{"a\\u0062":1,"ab', '"', False),
        ('{"ab":1,"\\u0061b', '"', False),
        ('{"\\u00e9":1,"é', '"', False),
        ('{"😀":1,"\\ud83d\\ude00', '"', False),
        ('{"😀":1,"\\ud83d\\ude01', '"', True),
        ('{"\\n":1,"\\u000a', '"', False),
        ('[{"ab":1},{"ab', '"', True),
    ],
)
def test_names_of_one_object_differ_however_they_are_spelled(text: str, ends: str, is_allowed: bool) -> None:
    """Placed before the last name, which the device reads byte by byte, and at the end, as the host knows it."""
    data = text.encode()
    for start in (data.rindex(b'"') + 1, len(data)):
        rows = Rows([json_schema({"type": ["object", "array"]})])
        matcher = rows.matchers[0]
        for byte in data[:start]:
            assert matcher.accept_token(byte)
        rows.put(0)
        for byte in data[start:]:
            rows.store._slots_there = torch.tensor(rows.slots, dtype=torch.int32, device=DEVICE)
            rows.store.advance(torch.tensor([byte], device=DEVICE), [0])
            assert matcher.accept_token(byte)
        rows.store.build_masks(rows.slots)
        assert rows.store.lost().tolist() == [False]
        got = set(allowed_ids(rows.store.masks[0].cpu().numpy()))
        assert (token_of(ends) in got) == is_allowed
        assert matcher.allowed([token_of(ends)]) == [is_allowed]


def flags(count: int, **rest: Any) -> dict[str, Any]:
    """An object of many names, whose register is a block."""
    return {"type": "object", "properties": {f"n{index}": {"type": "boolean"} for index in range(count)}, **rest}


CHAIN = {"next": {"$ref": "#"}, **flags(64)["properties"]}
LARGE_OBJECTS: list[tuple[Any, str, int]] = [
    (flags(70, required=["n69", "n1"]), '{"n1":true,"n7', 4),
    (flags(130, additionalProperties=False, maxProperties=3, required=["n120"]), '{"n5":true,"', 6),
    ({"type": "object", "properties": CHAIN, "additionalProperties": False}, '{"next":{"n4":true', 2),
]
"""Schemas, a text to begin with, and how many tokens to take after it."""


@pytest.mark.parametrize(("schema", "text", "count"), LARGE_OBJECTS)
def test_objects_of_many_names_need_no_host(schema: Any, text: str, count: int) -> None:
    """Placed at the start, and within the text: the device reads it byte by byte, or gets a block from the host."""
    rng = random.Random(count)
    rows = Rows([json_schema(schema)])
    for start in (0, len(text)):
        matcher = rows.matchers[0] = RtlangBackend.create(SMALL).compile(json_schema(schema)).matcher()
        for byte in text.encode()[:start]:
            assert matcher.accept_token(byte)
        rows.put(0)
        for byte in text.encode()[start:]:
            rows.store._slots_there = torch.tensor(rows.slots, dtype=torch.int32, device=DEVICE)
            rows.store.advance(torch.tensor([byte], device=DEVICE), [0])
            assert matcher.accept_token(byte)
        assert sum(rows.step(rng) for _ in range(sized(4 * count, usual=count // 2))) > 0
        assert rows.num_lost == 0


def test_no_mask_is_made_twice_unless_there_is_no_room() -> None:
    constraint = Constraint(ConstraintKind.REGEX, "(ab){20}")
    for cache_bytes, num_made in ((1 << 16, 4), (1, 6)):
        rows = Rows([constraint], cache_bytes=cache_bytes)
        start = Walk.of(rows.automata[0], rows.matchers[0])
        assert start is not None
        for _ in range(3):
            rows.store.put([0], [slot_of(rows.numbers[0], start)])
            for token in (b"a", b"b"):
                rows.store.build_masks([0])
                rows.num_made += rows.store.num_lines_made
                rows.store.advance(torch.tensor([token[0]], device=DEVICE), [0])
        assert rows.num_made <= num_made


def test_a_row_is_lost_at_a_hole_a_full_stack_and_after_its_end() -> None:
    nested: dict[str, Any] = {"type": "array", "items": {"$ref": "#"}}
    rows = Rows([json_schema(nested)])
    matcher = rows.matchers[0]
    for _ in range(MAX_DEPTH - 1):
        assert matcher.accept_token(token_of("["))
    rows.put(0)
    is_lost = []
    for _ in range(4):
        rows.store.build_masks([0])
        is_lost += rows.store.lost().tolist()
        rows.store.advance(torch.tensor([token_of("[")], device=DEVICE), [0])
    assert is_lost[0] is False
    assert is_lost[-1] is True
    logits = torch.arange(2.0 * 8, device=DEVICE).reshape(2, 8)
    assert torch.equal(rows.store.lost_lines(logits, [1])[0], logits[1])


def test_the_least_recently_used_automaton_leaves() -> None:
    rows = Rows([CONSTRAINTS[8]])
    store = rows.store
    first = store._segments[1]._taken[0][1]
    automaton = tables_of(rows.automata[0])
    count = min(segment.size // max(1, end - begin) for segment in store._segments for begin, end in segment._taken[:1])
    others = [store.add(automaton) for _ in range(count - 1)]
    assert first
    assert all(other is not None and other[1] == [] for other in others)
    store.touch(0)
    newest = store.add(automaton)
    assert newest is not None
    assert newest[1] == [1]
    assert store.add(automaton, kept=range(1024)) is None
    rows.put(0)
    assert rows.step(random.Random(0)) == 1


def test_places_say_whether_there_is_room_for_them() -> None:
    assert DeviceSlot(0, 0).has_room
    assert not DeviceSlot(0, 0, stack=[(1, 0)] * 100).has_room
    assert not DeviceSlot(0, 0, containers=[(True, [name_digest(b"a")] * 100)]).has_room
