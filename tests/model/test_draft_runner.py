"""The runner of a draft model: the same tokens, and a pool of its own that is small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.model import system_resources
from rtlang.model.draft_runner import POOL_SHARE, DraftRunner
from rtlang.model.host_runner import HostRunner
from tests.support.models.tiny_models import make_checkpoint

SETTINGS = {"dtype": "float32", "num_threads": 1, "page_size": 4}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostRunner]:
    path = make_checkpoint(tmp_path_factory.mktemp("target"), num_hidden_layers=4)
    runner = HostRunner(RuntimeConfig(model=str(path), num_pages=1000, **SETTINGS))
    runner.load()
    yield runner
    runner.close()


def draft_runner(target: HostRunner, path: Path) -> DraftRunner:
    return DraftRunner(RuntimeConfig(model=target.config.model, draft_model=str(path), **SETTINGS), target)


def test_the_pool_is_a_share_of_that_of_the_model(target: HostRunner, tmp_path: Path) -> None:
    runner = draft_runner(target, make_checkpoint(tmp_path, num_hidden_layers=2))
    runner.load()
    assert runner.num_pages * runner.page_memory.page_bytes <= POOL_SHARE * 1000 * target.page_memory.page_bytes
    assert runner.num_pages == POOL_SHARE * 1000 * 2, "its pages are half as large"
    runner.close()


def test_the_pool_has_room_for_one_sequence_at_least(target: HostRunner, tmp_path: Path) -> None:
    runner = draft_runner(target, make_checkpoint(tmp_path, num_hidden_layers=8, hidden_size=128))
    runner.load()
    assert runner.num_pages >= target.max_model_len // 4 + 1
    runner.close()


def test_a_pool_without_memory_is_refused(target: HostRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = draft_runner(target, make_checkpoint(tmp_path))
    monkeypatch.setattr(DraftRunner, "_warm_up", lambda self: None)
    free = iter([1 << 30])
    monkeypatch.setattr(system_resources, "free_bytes", lambda: next(free, 1000))
    with pytest.raises(ConfigError, match="draft_model"):
        runner.load()


def test_other_tokens_are_refused_with_the_first_difference(target: HostRunner, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path)
    content = json.loads((path / "tokenizer.json").read_text())
    vocab = content["model"]["vocab"]
    vocab["b"], vocab["c"] = vocab["c"], vocab["b"]
    (path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError) as caught:
        draft_runner(target, path).load()
    assert caught.value.facts["field"] == "draft_model"
    assert "the same tokens: token 98 is b'c' instead of b'b'" in str(caught.value)


def test_another_vocabulary_is_refused(target: HostRunner) -> None:
    runner = DraftRunner(RuntimeConfig(model=target.config.model, draft_model="rtlang:tiny", **SETTINGS), target)
    with pytest.raises(ConfigError, match=r"token 0 is .* instead of .*"):
        runner.load()


def test_a_draft_model_with_recurrent_layers_is_refused(target: HostRunner, tmp_path: Path) -> None:
    runner = draft_runner(target, make_checkpoint(tmp_path, "mamba"))
    with pytest.raises(ConfigError, match=r"draft_model.*expected a model without recurrent layers"):
        runner.load()
