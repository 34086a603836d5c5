"""Values are measured: characters and items, bytes, depth."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest

from rtlang.contract.graph.value_size import MAX_DEPTH, MAX_SIZE, list_measure, measure, measured
from rtlang.contract.graph.value_text import bounded_json, bounded_text, shown, text_of_plain
from tests.contract.graph.test_function_costs import values
from tests.support.long_tests import sized


def naive_size(value: Any) -> int:
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, (list, tuple)):
        return 1 + sum(map(naive_size, value))
    if isinstance(value, dict):
        return 1 + sum(len(key) + naive_size(item) for key, item in value.items())
    return 1


def test_random_values_are_measured_and_written_as_python_does() -> None:
    random = Random(5)
    for _ in range(sized(2_000, usual=200)):
        value = values(random)
        found = measured(value)
        assert found.size == naive_size(value)
        assert text_of_plain(value) == bounded_text(found) == (value if isinstance(value, str) else str(value))
        assert shown(value)[:40] == repr(value)[:40] or "digits" in shown(value) or '"' in repr(value)
        if isinstance(value, (list, dict)):
            assert bounded_json(found) == bounded_json(found._replace(measure=found.measure._replace(size=10**6)))


def test_a_list_of_measured_values_is_measured_without_a_walk() -> None:
    random = Random(6)
    for _ in range(sized(400)):
        items = [values(random, 3) for _ in range(random.randint(0, 5))]
        size = list_measure([measured(each) for each in items], items.__sizeof__() + 31)
        assert (size.size, size.depth) == (measure(items).size, measure(items).depth)
        assert size.num_bytes >= measure(items).num_bytes


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("x" * MAX_SIZE, "more than"),
        ([["x"] * 10_000] * 200, "more than"),
        ({"x" * (MAX_SIZE - 1): 1}, "more than"),
        ([10**4_100], "an integer has more than 4000 digits"),
        ([0.5, float("nan")], "nan is not a finite number"),
        ({1: 2}, "expected only text as keys"),
        ([{"a": {1, 2}}], "a set is not plain data"),
    ],
)
def test_what_is_no_plain_value_is_refused(value: Any, reason: str) -> None:
    with pytest.raises((ValueError, TypeError), match=reason):
        measure(value)


def test_depth_and_sharing_do_not_multiply_the_work() -> None:
    nested: list[Any] = []
    for _ in range(MAX_DEPTH):
        nested = [nested, nested]
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 1000000"):
            measure(nested)
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()
    deep: list[Any] = []
    for _ in range(MAX_DEPTH):
        deep = [deep]
    with pytest.raises(ValueError, match="64 levels"):
        measure(deep)


def test_the_beginning_of_a_value_is_shown_without_the_rest() -> None:
    assert shown("a" * 10**6) == repr("a" * 80)[:57] + "..."
    assert shown([1] * 10**6) == str([1] * 40)[:57] + "..."
    assert shown({"a": (1,), "b": []}) == "{'a': (1,), 'b': []}"
    assert shown([10**4_000]) == "[an integer of many digits]"
