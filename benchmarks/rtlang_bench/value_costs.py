"""Compares the prices of pure functions with the times that they take on the slowest arguments.

python -m rtlang_bench.value_costs

Each function of the table runs on arguments of about a million characters and items that are the slowest that we know. Its price is an
estimate of that time (`rtlang/contract/graph/function_costs.py`). While it runs, another thread measures for how long it does not get the
interpreter: one step of C code that takes long would hold up the engine thread, wherever it runs.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from rtlang.console.one_line_errors import one_line_errors
from rtlang.contract.errors import ApplyError
from rtlang.contract.graph.pure_functions import FUNCTIONS, compute, price_of
from rtlang.contract.graph.value_size import Measured, measured
from rtlang_bench.command import command, progress, show

MAX_RATIO = 3.0
"""Time divided by price. A price may be too high: it is that of the slowest arguments."""
MAX_HOLD_S = 0.2
_SWITCH_S = 0.0005
_TOOLS = '[{"name": "f"}]'
_NUM_ARGS = 4_000


def cases(size: int) -> dict[str, list[list[Any]]]:
    """The slowest arguments of each function, of about `size` characters and items."""
    wide, many = "ΐ" * size, size // 3
    flat: list[Any] = [0.1] * (size // 2)
    nested: Any = [each + 0.5 for each in range(size - 200)]
    other: Any = [*(each + 0.5 for each in range(size - 201)), 0]
    for _ in range(40):
        nested, other = [nested], [other]
    letters = "".join(map(chr, range(0x3400, 0x3400 + min(0x6000, size // 2))))
    digits = 10**3_999
    texts: dict[str, list[list[Any]]] = {
        name: [[wide], ["ŉ" * size]] for name in ("lower", "upper", "title", "capitalize", "parse_bool")
    }
    texts |= {
        name: [[letters * (size // 2 // len(letters)), letters], [" " * size]] for name in ("strip", "lstrip", "rstrip")
    }
    texts |= {name: [[wide, wide[: size // 2]]] for name in ("removeprefix", "removesuffix")}
    texts |= {name: [[wide, ["ΐ"] * (size // 2)]] for name in ("startswith", "endswith")}
    orders: dict[str, list[list[Any]]] = {
        name: [[nested, other], [wide, "ΐ" * (size - 1) + "a"]] for name in ("eq", "ne", "lt", "le", "gt", "ge")
    }
    numbers: dict[str, list[list[Any]]] = {
        name: [[digits, digits // 7], [digits // 7, 10**2_000 + 1]]
        for name in ("sub", "mul", "truediv", "floordiv", "mod")
    }
    return {
        **texts,
        **orders,
        **numbers,
        "parse_json": [
            ["[" + "[]," * (many - 2) + "0]"],
            ["[" + '{"":0},' * (size // 8) + "0]"],
            [json.dumps(["é"] * (size // 12))],
            ["[" + "0.1234567891234567," * (size // 20) + "0]"],
        ],
        "parse_int": [["9" * 4_000]],
        "parse_float": [["1." + "1" * (size - 3)], [" " * (size - 2) + "1"]],
        "parse_tools": [
            ['{"name": "f", "arguments": {"x": [' + "[]," * 30_000 + "0]}}", "json", _TOOLS],
            ["<tool_call>" * 10_000, "hermes", _TOOLS],
            ["x<" * 90_000, "hermes", _TOOLS],
        ],
        "item": [[[[[]] * many], 0]],
        "field": [[{"a": [[]] * many}, "a"]],
        "present": [[flat]],
        "json_or_text": [[[[[]]] * (size // 4)], [{"a": [0.25] * (size // 8)}], [["\x00"] * (size // 10)]],
        "slice": [[[[]] * many, None, None, -1], [wide, None, None, -1]],
        "replace": [[wide, "ΐ", "x"], ["a" * size, "a", "b"], ["ab" * (size // 2), "ab" * 500 + "aa", "x"]],
        "split": [["漢字 " * many], ["a," * (size // 2), ","], ["ab" * (size // 2), "ab" * 500 + "aa"]],
        "splitlines": [["\n" * (size // 2)], ["\u2028a" * (size // 2)]],
        "join": [["", [[[]]] * (size // 3)], ["", [0.123] * (size // 8)], ["a", [""] * (size // 2)]],
        "format": [["{}" * _NUM_ARGS, *[[0.5] * 40] * _NUM_ARGS], ["{0}" * (size // 3), "a"], ["{{" * (size // 2)]],
        "len": [[flat]],
        "str": [[[[[]]] * (size // 4)], [[0.12345] * (size // 10)], [["\U000e0001"] * (size // 20)]],
        "int": [["9" * 4_000], [1e308]],
        "float": [["1." + "1" * (size - 3)]],
        "bool": [[flat]],
        "add": [[flat[: size // 4], flat[: size // 4]], ["ΐ" * (size // 2 - 2), "a" * (size // 2 - 2)]],
        "neg": [[digits]],
        "contains": [
            [[[each] for each in range(size // 3)], [-1]],
            [nested, nested[0]],
            [wide, "ΐ" * (size // 2) + "a"],
        ],
        "not": [[flat]],
        "and": [[flat, flat]],
        "or": [[flat, flat]],
        "list": [[1] * _NUM_ARGS],
        "min": [[[list(each) for each in [[0] * 1_000] * (size // 1_010)]], [nested, other] * 3],
        "max": [[["ΐ" * 90] * (size // 100)], [nested, other] * 3],
        "sum": [[digits] * _NUM_ARGS],
    }


@dataclass(frozen=True, slots=True)
class Row:
    """One call: its price, the processor time that it took, and the longest time for which another thread had to wait."""

    name: str
    price_s: float
    seconds: float
    hold_s: float
    error: str

    def __str__(self) -> str:
        ratio = self.seconds / self.price_s
        line = (
            f"{self.name:13} {self.price_s * 1e3:9.2f} {self.seconds * 1e3:9.2f} {ratio:7.2f} {self.hold_s * 1e3:9.1f}"
        )
        return f"{line}  {self.error}".rstrip()


@dataclass(frozen=True, slots=True)
class ValueCosts:
    """The rows of all calls."""

    rows: tuple[Row, ...]

    @property
    def is_met(self) -> bool:
        """Whether no call takes much longer than its price, and none holds the interpreter for long. Tiny calls are not compared."""
        return all(row.seconds <= MAX_RATIO * row.price_s + 0.001 and row.hold_s <= MAX_HOLD_S for row in self.rows)

    def __str__(self) -> str:
        worst = max(self.rows, key=lambda row: row.seconds / (row.price_s + 0.001 / MAX_RATIO))
        longest = max(self.rows, key=lambda row: row.hold_s)
        return "\n".join(
            (
                "function       price ms   time ms   ratio   hold ms",
                *map(str, self.rows),
                f"worst ratio of time to price: {worst.seconds / worst.price_s:.2f} ({worst.name}), bound {MAX_RATIO:g} above 1 ms",
                f"longest hold of the interpreter: {longest.hold_s * 1e3:.0f} ms ({longest.name}), bound {MAX_HOLD_S * 1e3:.0f} ms",
            )
        )


def measure_value_costs(
    size: int, rounds: int, tell: Callable[[str], None] = lambda line: None, names: tuple[str, ...] = ()
) -> ValueCosts:
    """Measure all functions, or some. Of several rounds the shortest times count."""
    found = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        for name, calls in cases(size).items():
            for args in calls if not names or name in names else ():
                tell(name)
                found.append(_measure(name, args, rounds))
    finally:
        sys.setswitchinterval(before)
    return ValueCosts(tuple(found))


def _measure(name: str, args: list[Any], rounds: int) -> Row:
    known: dict[int, Measured] = {}
    for arg in args:
        if id(arg) not in known:
            known[id(arg)] = measured(arg)
    operands = [known[id(arg)] for arg in args]
    runs = [_run(name, operands) for _ in range(rounds)]
    price_s = FUNCTIONS[name].price(operands) / 1e6
    return Row(name, price_s, min(run[0] for run in runs), min(run[1] for run in runs), runs[0][2])


def _run(name: str, operands: list[Measured]) -> tuple[float, float, str]:
    seconds, errors = [0.0], [""]

    def work() -> None:
        started = time.thread_time()
        try:
            price_of(name, operands)
            compute(name, operands)
        except ApplyError as error:
            errors[0] = error.reason[:60]
        seconds[0] = time.thread_time() - started

    gc.collect()
    thread = threading.Thread(target=work)
    longest, last = 0.0, time.perf_counter()
    thread.start()
    while thread.is_alive():
        time.sleep(_SWITCH_S)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    thread.join()
    return seconds[0], longest, errors[0]


def bench_value_costs(
    size: Annotated[int, typer.Option(min=1_000, max=990_000, help="Characters and items of the arguments.")] = 990_000,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Runs of each call; the shortest counts.")] = 3,
    function: Annotated[list[str] | None, typer.Option(help="Only this function; may be repeated.")] = None,
) -> None:
    """Compare the price of every pure function with the time that it takes on its slowest arguments.

    Exits with code 1 if one takes more than three times its price, or holds the interpreter for more than 0.2 s.
    """
    with one_line_errors():
        with progress() as tell:
            found = measure_value_costs(size, rounds, tell, tuple(function or ()))
        show(found)


app = command(bench_value_costs)

if __name__ == "__main__":
    app()
