"""The benchmark compares a hybrid model with a dense one that has as many weights."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from rtlang.model.decoders.native_decoder import native_bytes
from rtlang.model.loading.model_config import ModelConfig
from rtlang_bench import hybrid_step

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "max_position_embeddings": 512,
}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:transformers")


@pytest.mark.parametrize("num_layers", [4, 24])
def test_both_models_have_as_many_weights(num_layers: int, tmp_path: Path) -> None:
    configs = [ModelConfig.from_pretrained(path) for path in hybrid_step.write_models(tmp_path, num_layers)]
    natives = [config.native for config in configs]
    assert natives[0] is not None
    assert natives[1] is not None
    assert len(natives[0].deltas) == num_layers * 3 // 4
    assert natives[1].deltas == ()
    sizes = [native_bytes(config, torch.bfloat16) for config in configs]
    assert abs(sizes[1] / sizes[0] - 1) < 0.01


def test_a_line_for_each_kind_of_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(hybrid_step, "SHAPE", hybrid_step.SHAPE | SMALL)
    assert hybrid_step.main(["--layers", "4", "--context", "9", "--rows", "2", "--prompt", "5", "--repeats", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["decode 2 x 9", "prefill 5"]
    for line in lines:
        found = re.search(r": ([\d.]+) ms, dense ([\d.]+) ms, ([\d.]+)x$", line)
        assert found is not None
        assert all(float(each) > 0 for each in found.groups())
