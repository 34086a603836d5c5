"""Models of transformers over our pages against the same models alone; and refusals."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.host_runner import HostRunner
from tests.support.families import FAMILIES as FAMILIES_BY_TYPE
from tests.support.families import make_config
from tests.support.model_steps import greedy_tokens, ragged_logits
from tests.support.tiny_models import VOCAB_SIZE, make_checkpoint, make_model, random_model, save_checkpoint

FAMILIES = [
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3",
    "gpt2",
    "gpt_oss",
    "mixtral",
    "phi3",
    "olmo2",
    "granite",
    "cohere2",
    "starcoder2",
    "gpt_neox",
    "opt",
    "deepseek_v3",
]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:transformers")


def load_runner(path: Path, dtype: str = "float32", **settings: Any) -> HostRunner:
    runner = HostRunner(
        RuntimeConfig(
            model=str(path), dtype=dtype, decoder="transformers", num_pages=64, page_size=4, num_threads=1, **settings
        )
    )
    runner.load()
    assert isinstance(runner.decoder, TransformersDecoder)
    return runner


@pytest.mark.parametrize("family", FAMILIES)
def test_ragged_chunked_and_shared_logits_equal_the_stock_model(family: str, tmp_path: Path) -> None:
    overrides = {"sliding_window": 10} if family in ("mistral", "gemma2", "gemma3", "gpt_oss", "cohere2") else {}
    runner = load_runner(make_checkpoint(tmp_path, family, **overrides))
    model = make_model(family, **overrides)
    model.set_attn_implementation("eager")
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("family", ["gemma2", "gpt2", "gpt_oss"])
def test_greedy_text_equals_transformers_generate(family: str, tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, family))
    prompt = list(range(40, 60))
    model = make_model(family)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
            max_new_tokens=30,
            do_sample=False,
            eos_token_id=None,
        )
    assert greedy_tokens(runner, prompt, 30) == expected[0, len(prompt) :].tolist()


@pytest.mark.parametrize("family", ["gemma3", "mixtral", "deepseek_v3"])
def test_bfloat16_passes_the_self_check_and_stays_near_float32(family: str, tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, family), dtype="bfloat16")
    model = make_model(family)
    errors = []
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        errors.append((logits - expected).norm(dim=-1) / expected.norm(dim=-1))
    assert torch.cat(errors).median() < 0.05


def test_dummy_weights_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "gemma2")
    (path / "model.safetensors").unlink()
    before = torch.random.get_rng_state()
    texts = [greedy_tokens(load_runner(path, weights="dummy", weights_seed=seed), [1, 2, 3], 8) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert torch.equal(before, torch.random.get_rng_state())


def test_models_that_bypass_the_attention_interface_are_refused_by_name(tmp_path: Path) -> None:
    for model_type, reason in (
        ("gpt_neo", "its attention cannot be replaced"),
        ("bloom", "must accept both position_ids"),
    ):
        (family,) = (family for family in FAMILIES_BY_TYPE if family.model_type == model_type)
        path = save_checkpoint(random_model(make_config(family)), tmp_path / model_type)
        with pytest.raises(ModelLoadError, match=f"{model_type}.*{reason}"):
            load_runner(path)


def test_a_model_whose_logits_differ_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attend = TransformersDecoder._attend

    def forgetful(
        self: TransformersDecoder, module: Any, q: Any, k: Any, v: Any, mask: object, options: Any
    ) -> torch.Tensor:
        return attend(self, module, q, k, v, mask, {**options, "softcap": None})

    monkeypatch.setattr(TransformersDecoder, "_attend", forgetful)
    path = make_checkpoint(tmp_path, "gemma2", attn_logit_softcapping=0.5)
    with pytest.raises(ModelLoadError, match="differ from the stock model"):
        load_runner(path)


def test_a_layer_that_skips_the_interface_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attend = TransformersDecoder._attend

    def skipping(
        self: TransformersDecoder, module: Any, q: Any, k: Any, v: Any, mask: object, options: Any
    ) -> torch.Tensor:
        out = attend(self, module, q, k, v, mask, options)
        self._called = [layer for layer in self._called if layer != 1]
        return out

    monkeypatch.setattr(TransformersDecoder, "_attend", skipping)
    with pytest.raises(ModelLoadError, match="1 of its 2 layers"):
        load_runner(make_checkpoint(tmp_path, "gemma"))


def test_the_attention_functions_leave_the_library_with_the_decoder(tmp_path: Path) -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    runner = load_runner(make_checkpoint(tmp_path, "gemma"))
    name = runner.decoder.model.config._attn_implementation  # type: ignore[attr-defined]
    assert name in ALL_ATTENTION_FUNCTIONS._global_mapping
    del runner
    gc.collect()
    assert name not in ALL_ATTENTION_FUNCTIONS._global_mapping
