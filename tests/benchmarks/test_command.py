"""The commands `memory`, `tiers` and `pages`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang_bench import memory, pages, tiers
from rtlang_bench.memory import MixedLoad
from rtlang_bench.pages import Exchange, PageExchange
from rtlang_bench.prompt_memory import Sample
from rtlang_bench.tiers import PoolRun, SmallPool


@pytest.mark.parametrize(("growth", "code"), [(1.05, 0), (1.2, 1)])
def test_grown_memory_is_an_exit_code(monkeypatch: pytest.MonkeyPatch, growth: float, code: int) -> None:
    def measured(config: Any, *, minutes: float, num_clients: int, seed: int, tell: Any) -> MixedLoad:
        first, last = (Sample(1, int(size * 2**30), 0, 0, 0) for size in (1.0, growth))
        return MixedLoad(minutes, first, last, last.resident, Counter(chat=num_clients, seed=seed))

    monkeypatch.setattr(memory, "measure_mixed_load", measured)
    result = CliRunner().invoke(memory.app, ["--minutes", "3", "--clients", "2", "--seed", "5"])
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

    monkeypatch.setattr(tiers, "measure_small_pool", measured)
    options = ["--documents", "3", "--tokens", "40", "--requests", "5", "--share", "0.5"]
    result = CliRunner().invoke(tiers.app, [*options])
    assert result.exit_code == code
    assert ("same texts" if code == 0 else "DIFFERENT TEXTS") in result.stdout
    assert CliRunner().invoke(tiers.app, ["--shape", "huge"]).exit_code == 1


@pytest.mark.parametrize(("is_same", "code"), [(True, 0), (False, 1)])
def test_another_text_with_pages_of_a_peer_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, is_same: bool, code: int
) -> None:
    def measured(config: Any, *, lengths: list[int], rounds: int, tell: Any) -> PageExchange:
        assert (lengths, rounds, config.page_size) == ([40, 60], 2, 8)
        return PageExchange(4096, 8, 1e9, (Exchange("loopback", 40, 0.1, 0.01, 0.02, 32, is_same),))

    monkeypatch.setattr(pages, "measure_page_exchange", measured)
    command = ["--rounds", "2", "--page-size", "8", "--tokens"]
    result = CliRunner().invoke(pages.app, [*command, "40,60"])
    assert result.exit_code == code
    assert ("same text" if is_same else "DIFFERENT TEXT") in result.stdout
    for wrong in ("40,x", "15", ""):
        assert CliRunner().invoke(pages.app, [*command, wrong]).exit_code == 1
