"""Deep stacks: results, errors, other threads. That they are deep is shown by the chains of `test_llguidance_backend.py`."""

from __future__ import annotations

import threading

import pytest

from rtlang_grammars.adapters.deep_stack import on_deep_stack


def test_what_is_returned_or_raised_comes_back() -> None:
    assert on_deep_stack(lambda: 5) == 5
    with pytest.raises(KeyError, match="x"):
        on_deep_stack(lambda: dict[str, int]()["x"])


def test_other_threads_keep_their_stacks() -> None:
    before = threading.stack_size()
    on_deep_stack(lambda: None)
    assert threading.stack_size() == before
