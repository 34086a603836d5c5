"""The commands `rtlang bench memory` and `rtlang bench tiers`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.bench.endurance import mixed_load, small_pool
from rtlang.bench.endurance.mixed_load import MixedLoad
from rtlang.bench.endurance.small_pool import PoolRun, SmallPool
from rtlang.bench.memory import Sample


@pytest.mark.parametrize(("growth", "code"), [(1.05, 0), (1.2, 1)])
def test_grown_memory_is_an_exit_code(monkeypatch: pytest.MonkeyPatch, growth: float, code: int) -> None:
    def measured(config: Any, *, minutes: float, num_clients: int, seed: int, tell: Any) -> MixedLoad:
        first, last = (Sample(1, int(size * 2**30), 0, 0, 0) for size in (1.0, growth))
        return MixedLoad(minutes, first, last, last.resident, Counter(chat=num_clients, seed=seed))

    monkeypatch.setattr(mixed_load, "measure_mixed_load", measured)
    result = CliRunner().invoke(app, ["bench", "memory", "--minutes", "3", "--clients", "2", "--seed", "5"])
    assert result.exit_code == code
    assert result.stdout == f"{measured(None, minutes=3.0, num_clients=2, seed=5, tell=None)}\n"


@pytest.mark.parametrize(("texts", "code"), [(((1,),), 0), (((2,),), 1)])
def test_different_texts_are_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, texts: tuple[tuple[int, ...], ...], code: int
) -> None:
    def measured(
        config: Any, *, num_documents: int, num_tokens: int, num_requests: int, share: float, tell: Any
    ) -> SmallPool:
        assert (num_documents, num_tokens, num_requests, share) == (3, 40, 5, 0.5)
        first = PoolRun("large", 90, 1.0, ((1,),), 0, 0, 0, 0)
        return SmallPool((first, PoolRun("small", 9, 1.0, texts, 4, 0, 0, 0)))

    monkeypatch.setattr(small_pool, "measure_small_pool", measured)
    options = ["--documents", "3", "--tokens", "40", "--requests", "5", "--share", "0.5"]
    result = CliRunner().invoke(app, ["bench", "tiers", *options])
    assert result.exit_code == code
    assert ("same texts" if code == 0 else "DIFFERENT TEXTS") in result.stdout
    assert CliRunner().invoke(app, ["bench", "tiers", "--shape", "huge"]).exit_code == 1
