"""JSON in parts is the JSON of one call."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rtlang.serve.json_parts import json_bytes, json_text
from tests.support.long_tests import sized


def value_of(source: random.Random, depth: int) -> Any:
    kind = source.randrange(7 if depth < 6 else 4)
    if kind < 4:
        return source.choice([None, True, -0.25, 7, "", 'a"\\\n', "\u2028\u00e9", "\ud800"])
    count = source.choice([0, 1, 3, 63, 64, 65, 200])
    if kind == 4:
        return {f"k{number}": value_of(source, depth + 2) for number in range(count % 7)}
    if kind == 5:
        return [source.randrange(9) for _ in range(count)]
    return [value_of(source, depth + 1 + count // 9) for _ in range(count)]


@pytest.mark.parametrize("seed", range(sized(60)))
def test_parts_join_to_the_text_of_one_call(seed: int) -> None:
    value = value_of(random.Random(seed), 0)
    assert json_bytes(value) == json_text(value).encode(errors="replace")


def test_keys_that_are_no_strings_become_strings() -> None:
    assert json.loads(json_bytes({1: [2], None: {True: 3}})) == {"1": [2], "null": {"true": 3}}


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_bytes([[float("nan")]] * 100)
