"""First runs are timed with nothing on disk, second ones with everything."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rtlang.bench import cold_start
from rtlang.bench.cold_start import Times, measure, timed


def test_every_round_begins_with_an_empty_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cold_start, "COMPILE_ALL", ("-c", "import os; open(os.environ['NUMBA_CACHE_DIR'] + '/code', 'w')")
    )
    times = iter([Times(5.0, 6.0), Times(1.0, 2.0), Times(9.0, 9.5), Times(1.5, 2.5)])
    kept: list[tuple[str, bool]] = []

    def run(command: Sequence[str], environment: Mapping[str, str]) -> Times:
        assert list(command)[1:] == ["-m", "rtlang", "run", "a.py:b"]
        folder = environment["NUMBA_CACHE_DIR"]
        kept.append((folder, Path(folder, "code").exists()))
        return next(times)

    table = measure("a.py:b", 2, run)
    assert [has_code for _, has_code in kept] == [False, True, False, True]
    assert len({folder for folder, _ in kept}) == 2
    assert table.splitlines()[2:] == ["| empty | 7.0 s | 7.8 s |", "| filled | 1.2 s | 2.2 s |"]


def test_what_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="no such thing"):
        timed([sys.executable, "-c", "raise SystemExit('no such thing')"], {})
    with pytest.raises(RuntimeError, match="ended with 0"):
        timed([sys.executable, "-c", ""], {})
    times = timed([sys.executable, "-c", "print('a', flush=True)"], {})
    assert 0 < times.first <= times.whole
