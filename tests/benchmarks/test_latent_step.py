"""The benchmark compares two decoders with equal weights, which differ in what their pages hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rtlang.bench.checkpoint import write_config
from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.batch import Batch
from rtlang.model.layers.attention import StepAttention
from rtlang.model.loader import model_directory
from rtlang_bench import latent_step

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
}
SMALL |= {"qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12, "max_position_embeddings": 512}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:transformers")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latent_step, "SHAPE", latent_step.SHAPE | SMALL)


def test_both_sides_compute_the_same_prompt(small: None, tmp_path: Path) -> None:
    fields = latent_step.SHAPE | {"num_hidden_layers": 1, "first_k_dense_replace": 1}
    write_config(tmp_path, model_directory(EMBEDDED_MODEL), "deepseek_v2", fields)
    batch = Batch.from_step(latent_step.step_of(1, 20, 20), latent_step.PAGE_SIZE)
    found = []
    for is_latent in (True, False):
        runner = latent_step.runner_of(tmp_path, 4, is_latent=is_latent)
        assert runner.decoder.geometries[0].is_latent == is_latent
        with torch.inference_mode():
            found.append(runner.decoder.forward(StepAttention(batch, runner.kv)).float())
    assert float((found[0] - found[1]).norm() / found[1].norm()) < 0.05


def test_every_step_has_a_line(small: None, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--layers", "1", "--context", "33", "--rows", "1", "2", "--prompt", "20", "--repeats", "1"]
    assert latent_step.main(sizes) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "bytes of KV per token and layer: 48, multiplied out 288, 6.0x"
    assert [line.partition(":")[0] for line in lines[1:]] == ["decode 1 x 33", "decode 2 x 33", "prefill 20"]
