"""Values as text, in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang.contract.graph.value_size import measured
from rtlang.contract.graph.value_text import bounded_json, bounded_text, text_of_plain

LARGE: list[Any] = [
    [0.5] * 3_000,
    [[], {}, (), (1,)] * 2_000,
    {str(index): ["x", {"é": None}] for index in range(1_000)},
    [{"a": "'" * 3_000, "b": '"\n'}] * 3,
]


@pytest.mark.parametrize("value", LARGE)
def test_a_large_value_is_written_as_at_once(value: Any) -> None:
    assert text_of_plain(value) == bounded_text(measured(value)) == str(value)
    assert bounded_json(measured(value)) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("write", [bounded_text, bounded_json])
def test_a_text_that_is_too_long_is_refused(write: Any) -> None:
    with pytest.raises(ValueError, match="more than 1000000 characters"):
        write(measured([0.123456789] * 200_000))
