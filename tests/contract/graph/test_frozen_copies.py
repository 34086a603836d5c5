"""Copies of frozen dataclasses: those of `dataclasses.replace`, without the checks."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from rtlang.contract.graph.frozen_copies import changed
from rtlang.contract.graph.nodes import Text
from rtlang.contract.runs.run_options import RunOptions


def test_a_copy_is_that_of_replace() -> None:
    options = RunOptions(seed=3, priority=2)
    assert changed(options) == options
    assert changed(options) is not options
    copy = changed(options, is_open=True, begun_at=1.5)
    assert copy == replace(options, is_open=True, begun_at=1.5)
    assert [getattr(copy, item.name) for item in fields(copy)] == [
        getattr(replace(options, is_open=True, begun_at=1.5), item.name) for item in fields(copy)
    ]
    assert changed(Text(1, None, ("a",)), node_id=2) == Text(2, None, ("a",))


def test_a_copy_is_frozen_and_its_values_are_not_checked() -> None:
    copy: Any = changed(RunOptions(), seed=-1)
    assert copy.seed == -1
    with pytest.raises(FrozenInstanceError):
        copy.seed = 1
