"""Models of transformers over our pages against the same models alone; and refusals."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.host_runner import HostRunner
from tests.support.models.families import FAMILIES as FAMILIES_BY_TYPE
from tests.support.models.families import make_config
from tests.support.models.model_steps import greedy_tokens, ragged_logits
from tests.support.models.tiny_models import (
    PAD_TOKEN_ID,
    VOCAB_SIZE,
    make_checkpoint,
    make_model,
    plant_outliers,
    random_model,
    save_checkpoint,
)

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


BROKEN = [
    ("gemma2", "softcap", {"attn_logit_softcapping": 0.5}),
    ("gemma2", "window", {"sliding_window": 10}),
    ("mistral", "window", {"sliding_window": 10}),
    ("gpt_oss", "s_aux", {}),
    ("granite", "scaling", {}),
    ("gemma3", "scaling", {"query_pre_attn_scalar": 64}),
    ("mixtral", "scaling", {"head_dim": 32}),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("family", "forgotten", "overrides"), BROKEN, ids=lambda value: str(value))
def test_a_model_whose_logits_differ_is_refused(
    family: str, forgotten: str, overrides: dict[str, Any], dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend = TransformersDecoder._attend

    def forgetful(
        self: TransformersDecoder, module: Any, q: Any, k: Any, v: Any, mask: object, options: Any
    ) -> torch.Tensor:
        if forgotten == "window":
            return attend(self, module, q, k, v, None, {**options, "sliding_window": None})
        if family == "mixtral":  # which has the usual scale
            options = {**options, "scaling": 0.1}
        return attend(self, module, q, k, v, mask, {**options, **({} if family == "mixtral" else {forgotten: None})})

    model = make_model(family, **overrides)
    plant_outliers(model)  # so that in bfloat16 the noise is larger than some of these mistakes
    path = save_checkpoint(model, tmp_path)
    assert load_runner(path, dtype)
    monkeypatch.setattr(TransformersDecoder, "_attend", forgetful)
    with pytest.raises(ModelLoadError, match="differ from the stock model"):
        load_runner(path, dtype)


@pytest.mark.parametrize("family", ["gemma3", "gemma2", "llama", "mixtral"])
def test_outlier_channels_pass_the_self_check(family: str, tmp_path: Path) -> None:
    model = make_model(family, num_hidden_layers=6)
    plant_outliers(model)
    path = save_checkpoint(model, tmp_path)
    stock = make_model(family, num_hidden_layers=6)
    plant_outliers(stock)
    stock.to(torch.bfloat16).set_attn_implementation("eager")
    narrow, exact = load_runner(path, "bfloat16"), load_runner(path, "float32")
    ours, theirs = [], []
    for (token_ids, found), (_, expected) in zip(
        ragged_logits(narrow, VOCAB_SIZE), ragged_logits(exact, VOCAB_SIZE), strict=True
    ):
        with torch.no_grad():
            logits = stock(torch.tensor([token_ids]), use_cache=False).logits[0, -len(found) :].float()
        size = expected.norm(dim=-1)
        ours.append((found - expected).norm(dim=-1) / size)
        theirs.append((logits - expected).norm(dim=-1) / size)
    assert torch.cat(ours).median() < 1.5 * torch.cat(theirs).median()


def test_noise_beyond_that_of_the_stock_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attend = TransformersDecoder._attend

    def noisy(self: TransformersDecoder, module: Any, q: Any, *rest: Any) -> torch.Tensor:
        out = attend(self, module, q, *rest)
        return out.roll(1, -1) if q.dtype is torch.bfloat16 else out

    monkeypatch.setattr(TransformersDecoder, "_attend", noisy)
    path = make_checkpoint(tmp_path, "gemma3")
    assert load_runner(path, "float32")
    with pytest.raises(ModelLoadError, match=r"in torch.bfloat16 its logits differ.*choose dtype='float32'"):
        load_runner(path, "bfloat16")


def test_one_sequence_without_another_expert_proves_a_model_with_experts_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = TransformersDecoder._logit_errors
    wrong: set[int] = set()

    def tied(self: TransformersDecoder, *rest: Any) -> list[torch.Tensor]:
        return [each + 0.1 * (index in wrong) for index, each in enumerate(compare(self, *rest))]

    monkeypatch.setattr(TransformersDecoder, "_logit_errors", tied)
    experts, dense = make_checkpoint(tmp_path / "experts", "mixtral"), make_checkpoint(tmp_path / "dense", "gemma")
    wrong |= {0, 2}
    assert load_runner(experts)
    with pytest.raises(ModelLoadError, match="differ from the stock model"):
        load_runner(dense)
    wrong.add(1)
    with pytest.raises(ModelLoadError, match="differ from the stock model"):
        load_runner(experts)


def test_the_padding_token_stays_and_is_not_searched_for(tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, "gemma"))
    model: Any = runner.decoder.model  # type: ignore[attr-defined]
    assert model.config.pad_token_id == PAD_TOKEN_ID
    checked = [each for each in model.modules() if hasattr(each, "warn_if_padding_and_no_attention_mask")]
    assert checked
    for module in checked:
        assert module.warn_if_padding_and_no_attention_mask(None, None) is None


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


def test_no_kernels_are_advised_that_would_not_be_used(tmp_path: Path) -> None:
    from transformers.utils import logging as library_logging

    advised: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: advised.append(record.getMessage())  # type: ignore[method-assign]
    path = save_checkpoint(
        random_model(make_config(next(each for each in FAMILIES_BY_TYPE if each.model_type == "lfm2"))), tmp_path
    )
    library_logging.warning_once.cache_clear()  # type: ignore[attr-defined]
    library_logging.add_handler(handler)
    try:
        load_runner(path)
    finally:
        library_logging.remove_handler(handler)
    assert advised == []


def test_modules_that_select_keys_are_refused_by_name() -> None:
    """The self-check cannot see them: they select all keys of short texts."""

    class NewIndexer(torch.nn.Module):
        """As in models with sparse attention."""

    model = make_model("llama")
    model.model.layers[1].self_attn.indexer = NewIndexer()
    with pytest.raises(ModelLoadError, match=r"selects the keys that a token attends to \(NewIndexer\)"):
        TransformersDecoder(model, "a path", torch.float32)._prepare_check()


@pytest.mark.parametrize("shape", [(1, 4, 1, 1), (1, 4, 1, 9)])
def test_arguments_of_attention_by_query_and_head_are_refused_by_name(
    shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend = TransformersDecoder._attend

    def biased(self: TransformersDecoder, module: Any, q: Any, k: Any, v: Any, mask: object, options: Any) -> Any:
        return attend(self, module, q, k, v, mask, {**options, "distances": torch.zeros(shape)})

    monkeypatch.setattr(TransformersDecoder, "_attend", biased)
    with pytest.raises(ModelLoadError, match="its attention takes 'distances' of each query and head"):
        load_runner(make_checkpoint(tmp_path, "gemma"))
