"""Compiled functions against their sources run by Python, and the arguments that they refuse."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from rtlang_grammars.machine.native.array_types import BOOL, INT, INT32, INT32_TABLE, INT64, TEXT, UINT8, arrays_of
from rtlang_grammars.machine.native.code_compiler import compile_group
from rtlang_grammars.machine.native.object_code import ObjectCode


class Pair(NamedTuple):
    counts: Annotated[NDArray[np.int64], INT64]
    cells: Annotated[NDArray[np.int32], INT32_TABLE]


class Other(NamedTuple):
    counts: NDArray[np.int64]
    cells: NDArray[np.int32]


def total(cells, row, begin):  # type: ignore[no-untyped-def]
    found = 0
    for column in range(begin, cells.shape[1]):
        found += cells[row, column]
    return found


def tally(pair, text, is_doubled):  # type: ignore[no-untyped-def]
    """Calls `total` with constants, an element of int32, and an int64."""
    for row in range(pair.cells.shape[0]):
        pair.counts[row] = total(pair.cells, row, 0) + total(pair.cells, row, pair.cells[row, 0])
        if is_doubled:
            pair.counts[row] *= 2
    found = 0
    for at in range(text.size):
        found = 31 * found + int(text[at])
    return found


def minimum_and_maximum(numbers, start):  # type: ignore[no-untyped-def]
    low = high = np.int64(start)
    for each in numbers:
        low, high = min(low, np.int64(each)), max(high, np.int64(each))
    return low, high


def fill(data, number):  # type: ignore[no-untyped-def]
    for at in range(data.size):
        data[at] = number + at


ENTRIES = {
    "tally": (tally, (Pair, TEXT, BOOL), True),
    "minimum_and_maximum": (minimum_and_maximum, (INT32, INT), False),
    "fill": (fill, (UINT8, INT), True),
}


@pytest.fixture(scope="module")
def code() -> ObjectCode:
    return compile_group(ENTRIES, {total: True})


@pytest.fixture(scope="module")
def functions(code: ObjectCode) -> dict[str, Callable[..., Any]]:
    return code.functions([kind for _, types, _ in ENTRIES.values() for kind in types])


def test_the_arrays_of_a_group_are_annotated() -> None:
    assert arrays_of(Pair) == {"counts": INT64, "cells": INT32_TABLE}


def test_compiled_code_does_what_its_source_does(functions: dict[str, Callable[..., Any]]) -> None:
    rng = np.random.default_rng(1)
    for num_rows, num_columns in [(0, 4), (1, 1), (3, 5), (70, 2)]:
        cells = rng.integers(0, num_columns, (num_rows, num_columns), dtype=np.int32)
        text = np.frombuffer(rng.bytes(9), dtype=np.uint8)  # read-only
        for is_doubled in (False, True):
            pairs = [Pair(np.zeros(num_rows, dtype=np.int64), cells) for _ in range(2)]
            results = functions["tally"](pairs[0], text, is_doubled), tally(pairs[1], text, is_doubled)
            assert results[0] == results[1]
            assert pairs[0].counts.tolist() == pairs[1].counts.tolist()
    numbers = rng.integers(-(2**31), 2**31, 100, dtype=np.int32)
    for start in (0, -(2**63), 2**63 - 1):
        assert functions["minimum_and_maximum"](numbers, start) == minimum_and_maximum(numbers, start)
    data = np.zeros(300, dtype=np.uint8)
    assert functions["fill"](data, -5) is None
    assert data.tolist() == [(at - 5) % 256 for at in range(300)]


NUMBERS = np.arange(6, dtype=np.int32)
READ_ONLY = np.frombuffer(bytes(24), dtype=np.int32)
PAIR = Pair(np.zeros(2, dtype=np.int64), np.zeros((2, 2), dtype=np.int32))


@pytest.mark.parametrize(
    ("name", "arguments", "error", "place"),
    [
        ("minimum_and_maximum", (NUMBERS,), TypeError, 2),
        ("minimum_and_maximum", (NUMBERS, 1, 2), TypeError, 2),
        ("minimum_and_maximum", (NUMBERS.tolist(), 1), TypeError, 0),
        ("minimum_and_maximum", (NUMBERS.astype(np.int64), 1), TypeError, 0),
        ("minimum_and_maximum", (NUMBERS.astype(">i4"), 1), TypeError, 0),
        ("minimum_and_maximum", (NUMBERS[::2], 1), TypeError, 0),
        ("minimum_and_maximum", (NUMBERS.reshape(2, 3), 1), TypeError, 0),
        ("minimum_and_maximum", (READ_ONLY, 1), TypeError, 0),
        ("minimum_and_maximum", (NUMBERS, 1 << 64), OverflowError, None),
        ("minimum_and_maximum", (NUMBERS, "1"), TypeError, None),
        ("tally", (Other(*PAIR), bytes(2), True), TypeError, 0),
        ("tally", (tuple(PAIR), bytes(2), True), TypeError, 0),
        ("tally", (Pair(PAIR.counts, PAIR.cells[:, :1]), NUMBERS.view(np.uint8), True), TypeError, 0),
        ("tally", (PAIR._replace(counts=None), NUMBERS.view(np.uint8), True), TypeError, 0),
        ("tally", (PAIR, b"text", True), TypeError, 1),
    ],
)
def test_other_arguments_are_refused(
    functions: dict[str, Callable[..., Any]], name: str, arguments: Any, error: type[Exception], place: int | None
) -> None:
    with pytest.raises(error) as raised:
        functions[name](*arguments)
    if place is not None:
        assert f"{name}: wrong number of arguments, or wrong type of argument {place}" in str(raised.value)


def test_functions_without_the_lock_run_beside_each_other(functions: dict[str, Callable[..., Any]]) -> None:
    data = np.zeros(1 << 22, dtype=np.uint8)
    threads = [threading.Thread(target=functions["fill"], args=(data, 7)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert data[:3].tolist() == [7, 8, 9]


def test_each_function_is_in_the_code_once(code: ObjectCode) -> None:
    assert code.names == tuple(ENTRIES)
    assert code.code.count(b"PyLong_AsLongLong\0") == 1
    assert len(code.code) < 20_000


def test_code_of_another_processor_is_refused(code: ObjectCode) -> None:
    assert code.runs_here()
    copies = [("triple", "riscv64-unknown-linux-gnu"), ("features", "+no-such-feature"), ("header_words", 9)]
    for name, value in copies:
        fields = {each: getattr(code, each) for each in code.__slots__}
        assert not ObjectCode(**{**fields, name: value}).runs_here()


def test_a_file_is_read_as_it_was_written_or_not_at_all(code: ObjectCode) -> None:
    content = code.packed()
    assert ObjectCode.unpacked(content) == code
    for at in (0, 20, 100, len(content) // 2, len(content) - 1):
        assert ObjectCode.unpacked(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]) is None
        assert ObjectCode.unpacked(content[:at]) is None
