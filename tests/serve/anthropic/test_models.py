"""Pages of models."""

from __future__ import annotations

from datetime import datetime

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.anthropic.models import described_model, listed_models

NAMES = ["a", "b", "c", "d"]


def test_a_model_has_the_fields_of_the_api() -> None:
    made = described_model("a", 4096, 1_700_000_000)
    assert (made["type"], made["id"], made["display_name"], made["lifecycle"]) == ("model", "a", "a", "active")
    assert made["max_input_tokens"] == made["max_tokens"] == 4096
    assert datetime.fromisoformat(made["created_at"]).timestamp() == 1_700_000_000


def test_pages_follow_one_another_in_both_directions() -> None:
    for query, expected, has_more in (
        ({}, "abcd", False),
        ({"limit": "1000"}, "abcd", False),
        ({"limit": "3"}, "abc", True),
        ({"limit": "3", "after_id": "c"}, "d", False),
        ({"after_id": "d"}, "", False),
        ({"limit": "2", "before_id": "d"}, "bc", True),
        ({"limit": "2", "before_id": "b"}, "a", False),
    ):
        page = listed_models(NAMES, None, 0, query)
        assert "".join(model["id"] for model in page["data"]) == expected
        assert (page["first_id"], page["last_id"]) == ((expected[0], expected[-1]) if expected else (None, None))
        assert page["has_more"] is has_more


def test_a_query_that_is_malformed_is_refused() -> None:
    for name, value in (
        ("limit", "0"),
        ("limit", "1001"),
        ("limit", "x"),
        ("limit", "²"),
        ("after_id", "e"),
        ("before_id", ""),
    ):
        with pytest.raises(ParameterError) as caught:
            listed_models(NAMES, None, 0, {name: value})
        assert caught.value.field == name
