"""Masks and transitions of automata on the device against walks in Python: every token, deep stacks, several grammars."""

from __future__ import annotations

import random

import numpy as np
import torch

from rtlang_grammars.machine.export import ExportedAutomaton, Walk
from rtlang_kernels.triton.grammar.automaton_store import MAX_DEPTH, AutomatonStore, DeviceSlot
from tests.support.kernels.gpu import DEVICE

# S -> [ S* ] | { S } | a; two kinds of frames, so the allowed closing bracket depends on the stack
ALPHABET = b"[]{}a"
TEXTS = [b"a", b"[", b"]", b"{", b"}", b"[[", b"]]", b"a]", b"a}]", b"}}", b"[a]", b"{a", b"]a", b"", b"[[[[[[[[a", b"[[[[[[[[[",
         b"]]]]", b"aa", b"b"] + [b""] * 20 + [b"[]", b"{[a]}"]  # fmt: skip
ENDS = (13,)


def brackets() -> ExportedAutomaton:
    """States: 0 the start, 1 the end of the text; 2 in [ ], 3 and 4 in { } before and after its one item, 5 after an item."""
    classes = np.full(256, 5, np.uint8)
    classes[list(ALPHABET)] = range(5)
    rows = {
        0: {"[": ("call", 0), "{": ("call", 1), "a": 1},
        1: {},
        2: {"]": 5, "[": ("call", 2), "{": ("call", 3), "a": 2},
        3: {"[": ("call", 4), "{": ("call", 5), "a": 4},
        4: {"}": 5},
        5: {},
        6: {"[": 2},
        7: {"{": 3},
    }
    calls = [(6, 1), (7, 1), (6, 2), (7, 2), (6, 4), (7, 4)]
    trans = np.full((8, 6), -1, np.int32)
    for state, entries in rows.items():
        for letter, target in entries.items():
            column = ALPHABET.index(letter.encode())
            trans[state, column] = -3 - target[1] if isinstance(target, tuple) else target
    trans[5, :] = -2
    may_end = np.array([state in (1, 5) for state in range(8)])
    return ExportedAutomaton(classes, trans, np.array(calls, np.int32), may_end, 0)


def letters() -> ExportedAutomaton:
    """a, aa, aaa and so on, without frames."""
    classes = np.zeros(256, np.uint8)
    classes[ord("a")] = 1
    return ExportedAutomaton(
        classes,
        np.array([[-1, 1], [-1, 1]], np.int32),
        np.zeros((1, 2), np.int32),
        np.array([False, True]),
        0,
    )


def made(num_slots: int, cache_bytes: int = 1 << 16) -> AutomatonStore:
    offsets = np.cumsum([0] + [len(text) for text in TEXTS])
    end_words = np.zeros(2, np.int32)
    for token in ENDS:
        end_words[token // 32] |= np.int32(1 << (token % 32))
    text = np.frombuffer(b"".join(TEXTS), np.uint8)
    return AutomatonStore(DEVICE, len(TEXTS), text, offsets, end_words, num_slots, cache_bytes=cache_bytes)


def place_of(walk: Walk, grammar: int) -> DeviceSlot:
    return DeviceSlot(grammar, walk.state, tuple(walk.stack), walk.is_complete)


def allowed_by(walk: Walk) -> set[int]:
    """Tokens that may follow, walked in Python."""
    found = set()
    for token, text in enumerate(TEXTS):
        ahead = Walk(walk.automaton, walk.state, list(walk.stack))
        if text.count(b"[") <= 8 and text and walk.state >= 0 and ahead.advance(text):
            found.add(token)
    return found | (set(ENDS) if walk.is_complete else set())


def bits(row: torch.Tensor) -> set[int]:
    data = np.unpackbits(row.cpu().numpy().view(np.uint8), bitorder="little")
    return set(np.flatnonzero(data).tolist())


def test_masks_and_transitions_of_several_grammars_match_python() -> None:
    rng, store = random.Random(0), made(5)
    automata = [brackets(), letters()]
    numbers = [store.add(each.classes, each.trans, each.calls, each.may_end) for each in automata]
    assert numbers == [0, 1]
    slots = [3, 0, 4]
    grammars = [0, 1, 0]
    walks = [Walk.at_start(automata[grammar]) for grammar in grammars]
    walks[2].advance(b"{[[")
    store.put(slots, [place_of(walk, grammar) for walk, grammar in zip(walks, grammars, strict=True)])
    num_compared = 0
    for _ in range(10):
        store.build_masks(slots)
        sampled = []
        for slot, walk in zip(slots, walks, strict=True):
            assert bits(store.masks[slot]) == allowed_by(walk), (walk.state, walk.stack)
            choices = sorted(allowed_by(walk) - set(ENDS))
            num_compared += len(choices)
            sampled.append(rng.choice(choices) if choices else ENDS[0])
        tokens = torch.tensor([7, *sampled], device=DEVICE)
        store.advance(slots, tokens, [1, 2, 3])
        for walk, token in zip(walks, sampled, strict=True):
            if not (TEXTS[token] and walk.advance(TEXTS[token])):
                walk.state = -1
    assert num_compared > 60


def test_a_finished_or_dead_row_allows_no_tokens() -> None:
    store, automaton = made(2), letters()
    store.add(automaton.classes, automaton.trans, automaton.calls, automaton.may_end)
    walk = Walk.at_start(automaton)
    store.put([0, 1], [place_of(walk, 0)] * 2)
    store.advance([0, 1], torch.tensor([ENDS[0], TEXTS.index(b"b")], device=DEVICE), [0, 1])
    store.build_masks([0, 1])
    assert not store.masks.any()


def test_a_full_stack_ends_the_row() -> None:
    store, automaton = made(1), brackets()
    store.add(automaton.classes, automaton.trans, automaton.calls, automaton.may_end)
    walk = Walk.at_start(automaton)
    assert walk.advance(b"[" * (MAX_DEPTH - 1))
    store.put([0], [place_of(walk, 0)])
    store.advance([0], torch.tensor([TEXTS.index(b"[")], device=DEVICE), [0])
    assert int(store._depth[0]) == MAX_DEPTH
    store.advance([0], torch.tensor([TEXTS.index(b"[")], device=DEVICE), [0])
    assert int(store._state[0]) == -1


def test_a_grammar_is_rejected_if_there_is_no_room() -> None:
    store, automaton = made(1, cache_bytes=8 * 2 * 10), brackets()
    arrays = automaton.classes, automaton.trans, automaton.calls, automaton.may_end
    assert store.add(*arrays) == 0
    assert store.add(*arrays) is None
    store.clear()
    assert store.add(*arrays) == 0
