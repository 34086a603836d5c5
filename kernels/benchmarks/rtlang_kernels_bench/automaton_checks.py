"""Check of grammar masks and transitions on a device, against plain Python that decides the languages without an automaton.

Two languages. Finite: numbers of at most twelve digits that are multiples of seven. Pushdown: nested brackets, where [ ] holds any number
of items and { } one, so the allowed closing bracket depends on the stack. Rows of both grammars, deep and flat, are followed for some
tokens; every bit of every mask must be right, which also verifies each transition in the masks after it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

MAX_DEPTH = 128  # as in `automaton_store`
MOST_DIGITS, DIVISOR = 12, 7
OWN_FRAMES = 8  # frames that a token may have open at a time
CLOSES = {"]": "[", "}": "{"}
NUM_STEPS = 4
NO_BYTE, CALL_TO = 256, 2  # as in `automaton_store`
Frames = tuple[tuple[str, int], ...]
"""Open brackets, the outermost first, each with its number of items (counted for those that hold one); "" is the text itself."""


@dataclass(frozen=True, slots=True)
class Tables:
    """An automaton without registers.

    Attributes:
        classes: [256], the class of each byte.
        trans: [num_states, num_classes]; the next state, -1 (nowhere; the frame ends if it may), or -3 - i: calls[i].
        calls: [num_calls, 2], the first state of a frame, and the state after it.
        may_end: [num_states], whether the frame may end there.
    """

    classes: NDArray[np.uint8]
    trans: NDArray[np.int32]
    calls: NDArray[np.int32]
    may_end: NDArray[np.bool_]

    def words(self) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """The arrays of `automaton_store.Automaton`."""
        states = np.full((len(self.trans), 8), -1, np.int32)
        states[:, 0], states[:, 1], states[:, 4], states[:, 7] = range(len(states)), NO_BYTE, self.may_end, 0
        ops = np.zeros((len(self.calls), 12), np.int64)
        ops[:, 0], ops[:, 1], ops[:, 3] = CALL_TO, self.calls[:, 0], self.calls[:, 1]
        return self.classes, self.trans, states, ops


def numbers() -> Tables:
    """Multiples of DIVISOR: a state is a length and a remainder; the last state is the number 0."""
    zero = (MOST_DIGITS + 1) * DIVISOR
    classes = np.full(256, 10, np.uint8)
    classes[[ord(digit) for digit in "0123456789"]] = range(10)
    trans = np.full((zero + 1, 11), -1, np.int32)
    for length in range(MOST_DIGITS):
        for rest in range(DIVISOR):
            for digit in range(10):
                after = (10 * rest + digit) % DIVISOR
                if length + 1 < MOST_DIGITS or after == 0:
                    trans[length * DIVISOR + rest, digit] = (length + 1) * DIVISOR + after
    trans[0, 0] = zero
    may_end = np.arange(zero + 1) % DIVISOR == 0
    may_end[0] = False
    return Tables(classes, trans, np.zeros((1, 2), np.int32), may_end)


def brackets() -> Tables:
    """States: 0 and 1 the text before and after its item; 2 in [ ]; 3 and 4 in { } before and after its item; 5 after a bracket."""
    classes = np.full(256, 5, np.uint8)
    classes[[ord(letter) for letter in "[]{}a"]] = range(5)
    trans = np.full((8, 6), -1, np.int32)
    calls: list[tuple[int, int]] = []
    for state, after in ((0, 1), (2, 2), (3, 4)):  # states in which an item may begin
        for column, inner in ((0, 6), (2, 7)):
            trans[state, column] = -3 - len(calls)
            calls.append((inner, after))
        trans[state, 4] = after
    trans[6, 0], trans[7, 2] = 2, 3
    trans[2, 1], trans[4, 3] = 5, 5
    may_end = np.isin(np.arange(8), (1, 5))
    return Tables(classes, trans, np.array(calls, np.int32), may_end)


def number_after(before: str, text: str) -> str | None:
    """The number extended by these characters; None if no multiple begins so."""
    whole = before + text
    if not (whole.isdecimal() and whole.isascii()) or len(whole) > MOST_DIGITS or (len(whole) > 1 and whole[0] == "0"):
        return None
    return whole if len(whole) < MOST_DIGITS or int(whole) % DIVISOR == 0 else None


def frames_after(before: Frames, text: str) -> Frames | None:
    """The open brackets after these characters; None if they do not fit, or open more than OWN_FRAMES of their own."""
    frames, own = list(before), 0
    for letter in text:
        kind, items = frames[-1]
        if letter in "a[{":
            if kind != "[" and items:
                return None
            frames[-1] = kind, int(kind != "[")
            if letter != "a":
                frames.append((letter, 0))
                own += 1
        elif CLOSES.get(letter) == kind and not (kind == "{" and not items):
            frames.pop()
            own = max(0, own - 1)
        else:
            return None
        if own > OWN_FRAMES:
            return None
    return tuple(frames)


def place_of(frames: Frames) -> tuple[int, tuple[int, ...], bool]:
    """Position of a text of brackets in the automaton of `brackets`: state, return states, and whether it is complete."""
    stack = [{"": 1, "[": 2, "{": 4}[kind] for kind, _ in frames[:-1]]
    kind, items = frames[-1]
    state = {"": int(items > 0), "[": 2, "{": 3 + items}[kind]
    return state, tuple(stack), kind == "" and items > 0


def vocabulary(num_tokens: int, rng: random.Random) -> list[str]:
    """Texts of digits, of brackets, of neither, and empty texts."""
    found = ["", "a", "[", "{", "]", "}", "7", "0", "[" * OWN_FRAMES, "[a]", "x"]
    while len(found) < num_tokens:
        letters, most = rng.choice((("0123456789", 6), ("[]{}a", 5), ("[[]{}}a", 14), ("[a7x", 3)))
        text = "".join(rng.choices(letters, k=rng.randint(0, most)))
        if text.count("[") + text.count("{") <= OWN_FRAMES:  # with more frames the device asks the host
            found.append(text)
    return found[:num_tokens]


def check(num_tokens: int, device: torch.device) -> float:
    """Follow rows of both languages over a vocabulary of `num_tokens` tokens. Returns 0, as all bits must be equal.

    Raises:
        ArithmeticError: a mask is wrong; names the row and step.
    """
    from rtlang_kernels.triton.grammar import automaton_store  # imports triton

    assert automaton_store.MAX_DEPTH == MAX_DEPTH
    rng = random.Random(0)
    texts, ends = vocabulary(num_tokens, rng), {0, num_tokens - 1}
    texts[num_tokens - 1] = ""
    num_words = -(-num_tokens // 32)
    data = "".join(texts).encode()
    offsets = np.cumsum([0, *map(len, texts)])
    store = automaton_store.AutomatonStore(
        device, num_tokens, np.frombuffer(data, np.uint8), offsets, _packed(ends, num_words), 9
    )
    for tables in (numbers(), brackets()):
        store.add(automaton_store.Automaton(*tables.words()))
    start: Frames = (("", 0),)
    deep = frames_of("[{[" * 11)
    full = frames_of("[" * (MAX_DEPTH - 1))
    rows: list[Any] = [
        "",
        "",
        "49",
        start,
        start,
        deep,
        full,
    ]  # two rows in the same state, which both compute its mask
    places = [automaton_store.DeviceSlot(0, 0)] * 2
    places.append(automaton_store.DeviceSlot(0, 2 * DIVISOR, is_complete=True))
    for row in rows[3:]:
        state, stack, is_complete = place_of(row)
        frames = [(back, 0) for back in stack]
        places.append(automaton_store.DeviceSlot(1, state, stack=frames, is_complete=is_complete))
    slots = [8, 0, 3, 5, 2, 7, 1]
    store.put(slots, places)
    for step in range(NUM_STEPS):
        store.build_masks(slots)
        got = store.masks.cpu().numpy()
        sampled = []
        for index, row in enumerate(rows):
            allowed = _allowed(row, texts, ends)
            _compare(got[slots[index]], allowed, num_words, f"row {index} at step {step}")
            choices = sorted(allowed - ends)
            sampled.append(rng.choice(choices) if choices else 0)
        sampled[6] = texts.index("[")  # the second time exceeds the depth limit
        if step == 1:
            sampled[1] = 0  # an end token, which has no text
        tokens = torch.tensor([5, *sampled], device=device)
        store.advance(tokens, range(1, len(rows) + 1))
        rows = [_after(row, texts[token]) for row, token in zip(rows, sampled, strict=True)]
    return 0.0


def frames_of(text: str) -> Frames:
    """Open brackets after a valid text, at any depth."""
    found: Frames = (("", 0),)
    for letter in text:
        after = frames_after(found, letter)
        assert after is not None
        found = after
    return found


def _after(row: Any, text: str) -> Any:
    """Position of a row after a token; None if it is dead: no text, not allowed, or too deep."""
    if row is None or not text:
        return None
    found: Any = (number_after if isinstance(row, str) else frames_after)(row, text)
    return None if isinstance(found, tuple) and len(found) - 1 > MAX_DEPTH else found


def _allowed(row: Any, texts: list[str], ends: set[int]) -> set[int]:
    if row is None:
        return set()
    follow: Callable[[Any, str], Any] = number_after if isinstance(row, str) else frames_after
    found = {token for token, text in enumerate(texts) if text and follow(row, text) is not None}
    if isinstance(row, str):
        is_complete = bool(row) and int(row) % DIVISOR == 0
    else:
        is_complete = row == (("", 1),)
    return found | (ends if is_complete else set())


def _packed(tokens: set[int], num_words: int) -> NDArray[np.int32]:
    bits = np.zeros(num_words * 32, np.uint8)
    bits[sorted(tokens)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def _compare(got: NDArray[np.int32], allowed: set[int], num_words: int, name: str) -> None:
    wrong = np.unpackbits((got ^ _packed(allowed, num_words)).view(np.uint8), bitorder="little")
    if wrong.any():
        raise ArithmeticError(f"masks, {name}: {int(wrong.sum())} of {len(wrong)} bits differ")
