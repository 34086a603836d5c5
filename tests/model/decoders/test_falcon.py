"""Falcon over pages: every arrangement of its heads against the stock model; positions as biases are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.host_runner import HostRunner
from tests.support.models.model_steps import ragged_logits
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint, make_model

ARRANGEMENTS: dict[str, tuple[int, dict[str, Any]]] = {
    "one KV head": (1, {"multi_query": True, "new_decoder_architecture": False}),
    "all KV heads": (4, {"multi_query": False, "new_decoder_architecture": False, "bias": True}),
    "groups": (2, {"new_decoder_architecture": True, "num_kv_heads": 2}),
}


def load(path: Path) -> HostRunner:
    runner = HostRunner(RuntimeConfig(model=str(path), dtype="float32", num_pages=64, page_size=4, num_threads=1))
    runner.load()
    return runner


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_ragged_logits_equal_the_stock_model_and_kv_is_stored_once(arrangement: str, tmp_path: Path) -> None:
    num_kv_heads, settings = ARRANGEMENTS[arrangement]
    runner = load(make_checkpoint(tmp_path, "falcon", **settings))
    assert {geometry.num_kv_heads for geometry in runner.decoder.geometries} == {num_kv_heads}
    model = make_model("falcon", **settings)
    model.set_attn_implementation("eager")
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


def test_alibi_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="'falcon' is not supported: its ALiBi"):
        load(make_checkpoint(tmp_path, "falcon", alibi=True))
