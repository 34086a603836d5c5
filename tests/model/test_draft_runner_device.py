"""A draft model on the device of its model: both fit, and it samples what it samples on the host. Runs in triton's interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.device_runner import CACHE_SHARE, DeviceRunner
from rtlang.model.draft_runner import POOL_SHARE, DeviceDraftRunner
from rtlang.model.gpu import device_graphs
from rtlang.model.gpu.accelerator import InterpretedAccelerator
from rtlang.model.host_runner import HostRunner
from tests.support.models.tiny_models import make_checkpoint

TOTAL = 1 << 23
SETTINGS: dict[str, Any] = {"dtype": "float32", "num_threads": 1, "page_size": 4}


class Card(InterpretedAccelerator):
    """A device with so much memory, of which pools take their part and the weights of each model a quarter.

    Attributes:
        num_models: models whose weights were there when the memory was asked for, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runners: list[DeviceRunner] = []
        self.num_models: list[int] = []

    def free_bytes(self) -> int:
        self.num_models.append(sum(runner._has_weights for runner in self.runners))
        pools = [tensor for runner in self.runners if "kv" in runner.__dict__ for tensor in runner.kv.tensors]
        return TOTAL - self.num_models[-1] * TOTAL // 4 - sum(tensor.nbytes for tensor in pools)


def sampled(runner: Any) -> list[int | None]:
    """A prompt and two steps that go on: the tokens of a greedy row and of one with noise."""
    found: list[int | None] = []
    prompt, params = [5, 9, 2, 7, 7], (SamplingParams(temperature=0.0), SamplingParams(temperature=0.9))
    for number in range(3):
        known = len(prompt) + number
        rows = []
        for index in range(2):
            tokens = prompt if not number else [found[-2 + index] or 0]
            pages = (2 * index, 2 * index + 1)
            start = known - len(tokens)
            rows.append(Row(index, tokens, start, pages, 0, True, params[index], seed=3, num_output_tokens=number))
        step = Step(number, tuple(rows))
        flight = runner.launch(step)
        runner.sample(flight, step.rows, None)
        output = runner.collect(flight)
        assert (output.device_s is not None and output.device_s > 0) is runner.is_pipelined
        found += [row.token_id for row in output.rows]
    return found


def test_both_models_fit_and_the_draft_model_samples_as_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = str(make_checkpoint(tmp_path / "model", num_hidden_layers=2, max_position_embeddings=16))
    draft = str(make_checkpoint(tmp_path / "draft", num_hidden_layers=1, seed=1, max_position_embeddings=16))
    monkeypatch.delenv("RTLANG_KERNELS", raising=False)
    host = HostRunner(RuntimeConfig(model=draft, num_pages=16, **SETTINGS))
    host.load()
    expected = sampled(host)
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    monkeypatch.setattr(DeviceRunner, "_warm_up", lambda self: None)
    monkeypatch.setattr(device_graphs, "GRAPH_TOKENS", (2,))
    config = RuntimeConfig(
        model=model,
        draft_model=draft,
        device="interpreter",
        max_rows=2,
        speculation="on",
        cache_host_bytes=1,
        **SETTINGS,
    )
    card = Card()
    target = DeviceRunner(config, card)
    runner = DeviceDraftRunner(config, target)
    card.runners += [target, runner]
    target.load()
    assert card.num_models[-1] == 2, "the memory is divided when the weights of both are there"
    runner.load()
    share = POOL_SHARE * target.num_pages * target.bytes_per_page / runner.bytes_per_page
    assert runner.num_pages == int(share)
    assert target.num_pages * target.bytes_per_page < CACHE_SHARE * TOTAL / 2 < 0.9 * TOTAL / 2
    assert card.free_bytes() > (1 - CACHE_SHARE) * TOTAL / 2 - 2 * target.bytes_per_page
    assert (runner.accelerator, sorted(runner._graphs.steps)) == (card, [2])
    assert runner.page_memory is not None
    assert not runner.page_memory._content._writers, "the tiers are the model's"
    assert sampled(runner) == expected
    assert runner.num_replayed == 2
    runner.close()
    target.close()


def test_what_a_draft_model_cannot_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"draft_model = .*requires tensor_parallel 1, or device cpu"):
        RuntimeConfig(draft_model="x", device="cuda", tensor_parallel=2)
    with pytest.raises(ConfigError, match="requires speculation auto or on"):
        RuntimeConfig(draft_model="x", device="cuda", speculation="off")
