"""Types and bounds of metadata."""

from __future__ import annotations

import numpy as np
import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.fields import Fields, as_written


def _fields(**entries: object) -> Fields:
    return Fields(
        "m.gguf", {"general.architecture": "a", **{f"a.{name}": value for name, value in entries.items()}}, {}
    )


def test_entries_are_read_by_type() -> None:
    fields = _fields(count=3, same=[2, 2], size=float(np.float32(1e-5)), yes=True)
    assert (fields.number("count"), fields.number("same"), fields.number("none", 7)) == (3, 2, 7)
    assert (fields.real("size"), fields.real("count"), fields.real("none", 0.5)) == (1e-5, 3.0, 0.5)
    assert fields.flag("yes", False)
    assert not fields.flag("none", False)


@pytest.mark.parametrize("value", [True, 0, -1, 1 << 41, 2.5, "3", [], [1, 2], None])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ModelLoadError, match=r"a\.count"):
        _fields(count=value).number("count")


@pytest.mark.parametrize("value", [True, "3", float("nan"), float("inf"), -1e31, [1.0], None])
def test_what_is_not_finite_is_refused(value: object) -> None:
    with pytest.raises(ModelLoadError, match=r"a\.size"):
        _fields(size=value).real("size")


def test_a_number_may_have_a_least_value() -> None:
    assert _fields(a=0.0).real("a", least=0.0) == 0
    with pytest.raises(ModelLoadError, match=r"expected a number from 0\.0"):
        _fields(a=-1e-9).real("a", least=0.0)


def test_only_true_and_false_are_flags() -> None:
    with pytest.raises(ModelLoadError, match=r"a\.yes = 1: expected true or false"):
        _fields(yes=1).flag("yes", False)


def test_long_values_are_cut_in_errors() -> None:
    assert len(_fields(kind="x" * 10_000).fail("a.kind", "x" * 10_000, "y").reason) < 120


def test_the_architecture_is_needed() -> None:
    with pytest.raises(ModelLoadError, match=r"general\.architecture is missing"):
        Fields("m.gguf", {}, {})


def test_entries_that_nothing_read_are_known() -> None:
    fields = _fields(count=3, other=1)
    fields.number("count")
    assert fields.unread() == ["a.other"]


def test_numbers_are_as_they_were_written() -> None:
    for value in (1e-5, 1e-6, 0.0625, 150000.0, 0.2, 1e6, 1.702):
        assert as_written(float(np.float32(value))) == value
    assert as_written(0.1) == 0.1  # a float64 that is no float32
