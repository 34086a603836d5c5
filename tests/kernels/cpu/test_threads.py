"""Every chunk runs once, errors propagate, and no chunk outlives the call."""

from __future__ import annotations

import pytest

from rtlang_kernels.cpu.threads import run_chunks


def test_every_chunk_runs_once() -> None:
    for count in (1, 2, 5):
        seen: list[int] = []
        run_chunks(seen.append, [(i,) for i in range(count)])
        assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_error_in_any_chunk_is_raised_after_all_chunks_end(bad: int) -> None:
    ended: list[int] = []

    def work(index: int) -> None:
        if index == bad:
            raise ArithmeticError(str(index))
        ended.append(index)

    with pytest.raises(ArithmeticError, match=str(bad)):
        run_chunks(work, [(0,), (1,), (2,)])
    assert len(ended) == 2
