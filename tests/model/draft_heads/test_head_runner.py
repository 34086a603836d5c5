"""The rows of a draft head: one slot behind the model, over shared pages, and held states that stay bounded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.draft_heads import head_runner
from rtlang.model.draft_heads.head_runner import NUM_SCRATCH_PAGES, HeadRunner
from rtlang.model.host_runner import HostRunner
from tests.support.models.draft_heads import EAGLE, write_head
from tests.support.models.tiny_models import make_checkpoint, make_model

PAGE = 4


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostRunner]:
    path = tmp_path_factory.mktemp("models")
    target = make_checkpoint(path / "target")
    head = write_head(path / "head", EAGLE, make_model())
    config = RuntimeConfig(
        model=str(target), draft_model=str(head), dtype="float32", page_size=PAGE, num_pages=64, num_threads=1
    )
    made = HostRunner(config)
    made.load()
    yield made
    made.close()


def head_of(runner: HostRunner) -> HeadRunner:
    assert runner.head is not None
    return runner.head


def row(name: int, token_ids: list[int], start: int, pages: tuple[int, ...], shared: int = 0) -> Row:
    return Row(name, token_ids[start:], start, pages, shared, True, SamplingParams())


def keys(runner: HostRunner, pages: tuple[int, ...], start: int, stop: int) -> torch.Tensor:
    """Keys of the head's layer at some positions."""
    slots = [pages[at // PAGE] * PAGE + at % PAGE for at in range(start, stop)]
    return runner.kv.k[-1][torch.tensor(slots)]


def test_scratch_pages_are_not_those_of_the_model(runner: HostRunner) -> None:
    assert runner.num_pages == 64
    assert list(head_of(runner).scratch_pages) == list(range(64, 64 + NUM_SCRATCH_PAGES))


def test_rows_that_share_pages_have_the_keys_of_rows_alone(runner: HostRunner) -> None:
    """Of three rows with a common prefix of two pages, one computes the prefix in the same step; of another, the head has nothing yet."""
    prefix, others = [5, 6, 7, 8, 9, 10, 11, 12], ([20, 21, 22], [30], [40, 41, 42, 43, 44])
    pages = (1, 2, 3), (1, 2, 4), (1, 2, 5, 6)
    first = [row(1, prefix + others[0], 0, pages[0])]
    first += [row(2 + at, prefix + others[1 + at], 8, pages[1 + at], 8) for at in range(2)]
    runner.launch(Step(1, tuple(first)))
    alone: list[tuple[list[int], tuple[int, ...]]] = []
    for at, tail in enumerate(others):
        token_ids, own = prefix + tail, tuple(range(10 + 4 * at, 14 + 4 * at))
        runner.launch(Step(2, (row(9 + at, token_ids, 0, own),)))
        alone.append((token_ids, own))
    # the key of a token is in the slot before it; that of the first token after the prefix is in a page of all rows
    assert torch.allclose(keys(runner, pages[0], 0, 10), keys(runner, alone[0][1], 0, 10), atol=1e-5)
    assert torch.allclose(keys(runner, pages[2], 8, 12), keys(runner, alone[2][1], 8, 12), atol=1e-5)
    assert not keys(runner, pages[1], 8, 9).any(), "its next token is not known"
    assert head_of(runner).knows(2, 8)


def test_held_states(runner: HostRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    head = head_of(runner)
    monkeypatch.setattr(head_runner, "MAX_HELD", 2)
    for name in (21, 22, 23):
        runner.launch(Step(1, (row(name, [1, 2, 3], 0, (30,)),)))
    assert [head.knows(name, 2) for name in (21, 22, 23)] == [False, True, True]
    assert not head.knows(23, 1)
    head.forget(23)
    assert not head.knows(23, 2)
    drafting = Row(22, (3, 4, 5), 0, (31,), 0, True, SamplingParams(), num_draft_tokens=2)
    runner.launch(Step(2, (drafting,)))
    assert [head.knows(22, at) for at in range(4)] == [True, True, True, False]
