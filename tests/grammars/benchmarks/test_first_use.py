"""Figures of new processes: what they are, and that a process that fails is no figure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtlang_grammars.api.precompile import precompile
from rtlang_grammars_bench import first_use
from tests.support.grammars.native_code_cache import PATHS


def test_a_process_measures_itself_from_its_start() -> None:
    precompile()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
    one, other = first_use.measure(environment, None, 2)
    for figures in (one, other):
        assert set(figures) == set(first_use._FIGURES)
        times = [figures[name] for name in first_use._FIGURES[1:]]
        assert 0 < times[0] <= times[-1] < first_use._TIMEOUT_S
        assert times == sorted(times)
    assert one["cpu_s"] > 0
    assert other["cpu_s"] == 0  # counted with the first


def test_a_process_that_fails_is_an_error() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
    with pytest.raises(RuntimeError, match="No such file"):
        first_use.measure(environment, Path("nowhere.json"))
