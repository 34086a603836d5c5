"""Options of sessions: their limits, and their plain form."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.runs.session_options import MAX_KEEP_S, MAX_KEY_LENGTH, MAX_MARKS, SessionOptions


@pytest.mark.parametrize(
    "options",
    [
        SessionOptions(),
        SessionOptions(("<tool_call>", "<|call|>"), "k" * MAX_KEY_LENGTH, MAX_KEEP_S),
        SessionOptions(key="chat-1"),
    ],
)
def test_the_plain_form_is_read_as_it_was(options: SessionOptions) -> None:
    assert SessionOptions.from_plain(options.to_plain()) == options


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("call_marks", ["<tool_call>"]),
        ("call_marks", ("",)),
        ("call_marks", ("x",) * (MAX_MARKS + 1)),
        ("call_marks", (7,)),
        ("key", ""),
        ("key", "k" * (MAX_KEY_LENGTH + 1)),
        ("keep_s", 0),
        ("keep_s", True),
        ("keep_s", MAX_KEEP_S + 1),
        ("keep_s", float("nan")),
    ],
)
def test_a_wrong_value_is_named(field: str, wrong: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        SessionOptions(**{field: wrong})
    assert refused.value.field == f"session.{field}"
