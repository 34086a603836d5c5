"""Models of transformers and models with experts on the device: the greedy tokens of the models alone, over kept plans and recorded graphs.

Rows share prefixes, prompts come in chunks, rows are preempted and computed again. Kernels run in triton's interpreter, or natively with
RTLANG_TEST_DEVICE=cuda.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.gpu.accelerator import Accelerator, accelerator_for
from tests.support.kernels.recorded_graphs import RecordedGraphs
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.family_check import SMALL, check_tokens, load_config
from tests.support.models.tiny_models import random_model, save_checkpoint

DEVICE = "cuda" if os.environ.get("RTLANG_TEST_DEVICE") == "cuda" else "interpreter"
# A soft cap with local and global layers; sinks and experts; two shapes of heads; and what else differs in its attention.
QUICK = (("gemma2", "transformers"), ("gpt_oss", "native"))
SLOW = (("deepseek_v3", "transformers"),)
LONG = (
    *(
        (each, "transformers")
        for each in ("llama", "gemma3_text", "gemma4_text", "gpt2", "falcon", "mixtral", "gpt_oss", "mimo_v2_flash")
    ),
    *((each, "native") for each in ("mixtral", "qwen2_moe", "qwen3_moe")),
)
OTHERS = (
    *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW),
    *(pytest.param(*each, marks=pytest.mark.long) for each in LONG),
)
pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE == "interpreter":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("rtlang")]


def checked(model_type: str, path: Path, decoder: str = "transformers", **settings: Any) -> DeviceRunner:
    (family,) = (family for family in FAMILIES if family.model_type == model_type)
    config = make_config(family)
    for name, value in settings.items():
        setattr(config, name, value)
    model = random_model(config)
    model.set_attn_implementation("eager")
    wanted = load_config(save_checkpoint(model, path), decoder, SMALL, DEVICE)
    accelerator: Accelerator = RecordedGraphs() if DEVICE == "interpreter" else accelerator_for("cuda")
    runner = DeviceRunner(wanted, accelerator)
    runner.load()
    check_tokens(runner, wanted, model, SMALL)
    return runner


@pytest.mark.parametrize(("model_type", "decoder"), [*QUICK, *OTHERS])
def test_a_busy_engine_gives_the_greedy_tokens_of_transformers(
    model_type: str, decoder: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rtlang"):
        runner = checked(model_type, tmp_path, decoder)
    assert isinstance(runner.decoder, NativeDecoder) == (decoder == "native")
    assert runner.num_replayed > 0
    assert runner.num_eager == 0, "prompts are replayed as well"
    assert not told(caplog)


def test_a_model_that_reads_values_back_is_computed_without_graphs_and_this_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from transformers.models.llama import modeling_llama

    forward = modeling_llama.LlamaMLP.forward

    def curious(self: Any, x: torch.Tensor) -> torch.Tensor:
        return forward(self, x) if x.isfinite().all() else x

    monkeypatch.setattr(modeling_llama.LlamaMLP, "forward", curious)
    with caplog.at_level(logging.WARNING, "rtlang"):
        runner = checked("llama", tmp_path)
    assert (runner.num_replayed, runner.num_eager > 0) == (0, True)
    (message,) = told(caplog)
    assert message.startswith("steps are launched kernel by kernel")
    assert "aten::_local_scalar_dense (test_device_graphs.py:" in message
