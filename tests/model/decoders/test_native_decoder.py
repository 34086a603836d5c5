"""The native decoder against transformers: tiny random models of each family, ragged, chunked, over shared pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from rtlang.contract.config import RuntimeConfig
from rtlang.model.decoders.native.rotations import Rotations
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.checkpoint_source import DummySource
from rtlang.model.loading.model_config import ModelConfig
from rtlang_kernels.contract.low_bit import LinearInputs, LowBitWeight
from rtlang_kernels.cpu.low_bit_linear import rounded
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.low_bit_weights import FORMATS, random_weight
from tests.support.models.model_steps import Pages, TrackedSequence, all_logits, greedy_tokens, next_row, ragged_logits
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint, make_model, random_model, save_checkpoint

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama-tied": ("llama", {"tie_word_embeddings": True}),
    "llama-biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-one-kv-head": ("llama", {"num_key_value_heads": 1}),
    "llama-all-kv-heads": ("llama", {"num_key_value_heads": 4}),
    "llama-head-dim": ("llama", {"head_dim": 32}),
    "llama3-rope": ("llama", {"rope_parameters": LLAMA3_ROPE}),
    "linear-rope": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}}),
    "mistral-window": ("mistral", {"sliding_window": 10}),
    "mistral-full": ("mistral", {"sliding_window": None}),
    "qwen2": ("qwen2", {}),
    "qwen2-window": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 10, "max_window_layers": 1, "num_hidden_layers": 3},
    ),
    "qwen3": ("qwen3", {}),
    "qwen3-bias": ("qwen3", {"attention_bias": True}),
}


# Entries of config.json as published checkpoints spell them; the last part says whether the native decoder takes it.
LLAMA3_SCALING = {key: value for key, value in LLAMA3_ROPE.items() if key != "rope_theta"}
FIELDS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "plain": ("llama", {}, True),
    "attention_bias": ("llama", {"attention_bias": True}, True),
    "mlp_bias": ("llama", {"mlp_bias": True}, True),
    "mistral has no biases": ("mistral", {"attention_bias": True, "mlp_bias": True}, True),
    "qwen2 has biases": ("qwen2", {"attention_bias": False, "mlp_bias": True}, True),
    "qwen3 attention_bias": ("qwen3", {"attention_bias": True, "head_dim": 32}, True),
    "head_dim": ("llama", {"head_dim": 24}, True),
    "head_dim null": ("llama", {"head_dim": None}, True),
    "head_dim of mistral": ("mistral", {"head_dim": 32}, True),
    "num_key_value_heads null": ("llama", {"num_key_value_heads": None}, True),
    "rms_norm_eps": ("llama", {"rms_norm_eps": 0.1}, True),
    "tied": ("llama", {"tie_word_embeddings": True}, True),
    "swish": ("llama", {"hidden_act": "swish"}, True),
    "gelu": ("llama", {"hidden_act": "gelu"}, False),
    "relu2 in qwen2": ("qwen2", {"hidden_act": "relu2"}, False),
    "rope_theta": ("llama", {"rope_theta": 50.0}, True),
    "rope_theta in rope_parameters": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}, True),
    "rope_theta twice": ("qwen2", {"rope_theta": 9.0, "rope_parameters": {"rope_theta": 50.0}}, True),
    "rope_scaling null": ("llama", {"rope_theta": 50.0, "rope_scaling": None}, True),
    "linear": ("llama", {"rope_theta": 50.0, "rope_scaling": {"type": "linear", "factor": 4.0}}, True),
    "llama3": ("llama", {"rope_theta": 500.0, "rope_scaling": LLAMA3_SCALING}, True),
    "llama3 in qwen3": ("qwen3", {"head_dim": 32, "rope_theta": 500.0, "rope_scaling": LLAMA3_SCALING}, True),
    "llama3 with the length beside it": (
        "llama",
        {"rope_theta": 500.0, "rope_scaling": LLAMA3_SCALING, "original_max_position_embeddings": 8},
        True,
    ),
    "both rope entries": (
        "llama",
        {"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_parameters": {"rope_type": "default"}},
        True,
    ),
    "yarn": ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "max_position_embeddings": 64}, False),
    "dynamic": ("llama", {"rope_scaling": {"type": "dynamic", "factor": 4.0}}, False),
    "longrope": (
        "llama",
        {
            "rope_scaling": {"type": "longrope", "factor": 2.0, "long_factor": [2.0] * 8, "short_factor": [1.3] * 8},
        },
        False,
    ),
    "partial rotary": ("llama", {"partial_rotary_factor": 0.5}, False),
    "sliding_window of llama means nothing": ("llama", {"sliding_window": 8}, True),
    "sliding_window": ("mistral", {"sliding_window": 8}, True),
    "sliding_window unused": (
        "qwen2",
        {"sliding_window": 8, "use_sliding_window": False, "max_window_layers": 0},
        True,
    ),
    "max_window_layers": ("qwen2", {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 1}, True),
    "layer_types": (
        "qwen3",
        {
            "head_dim": 32,
            "sliding_window": 8,
            "use_sliding_window": True,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        True,
    ),
    "other families' factors mean nothing": ("llama", {"logits_scaling": 2.0, "residual_multiplier": 0.5}, True),
    "pretraining_tp": ("llama", {"pretraining_tp": 2}, True),
    "experts": ("mixtral", {}, True),
    "one expert a token": ("mixtral", {"num_experts_per_tok": 1, "norm_topk_prob": False}, True),
    "attention_bias of mixtral means nothing": ("mixtral", {"attention_bias": True, "decoder_sparse_step": 2}, True),
    "sliding_window of mixtral": ("mixtral", {"sliding_window": 8}, True),
    "gelu in experts": ("mixtral", {"hidden_act": "gelu"}, False),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("field", FIELDS)
def test_every_field_that_changes_results_is_computed_or_left_to_the_transformers_decoder(
    field: str, tmp_path: Path
) -> None:
    import transformers

    family, entries, is_native = FIELDS[field]
    path = make_checkpoint(tmp_path / "plain", family)
    raw = json.loads((path / "config.json").read_text())
    for name in ("rope_parameters", "rope_theta", "rope_scaling", "head_dim", "layer_types", *entries):
        raw.pop(name, None)
    raw |= entries
    (path / "config.json").write_text(json.dumps(raw))  # of the right shapes only now, so made once more
    save_checkpoint(random_model(transformers.AutoConfig.from_pretrained(path)), path)
    (path / "config.json").write_text(json.dumps(raw))
    config = ModelConfig.from_pretrained(path)
    assert (config.native is not None) == is_native, config.native_obstacle
    runner = HostRunner(
        RuntimeConfig(model=str(path), dtype="float32", num_pages=64, page_size=4, num_threads=1, max_model_len=64)
    )
    runner.load()
    assert isinstance(runner.decoder, NativeDecoder) == is_native
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


def load_runner(path: Path, dtype: str = "float32") -> HostRunner:
    runner = HostRunner(
        RuntimeConfig(model=str(path), dtype=dtype, decoder="native", num_pages=64, page_size=4, num_threads=1)
    )
    runner.load()
    assert isinstance(runner.decoder, NativeDecoder)
    return runner


@pytest.mark.parametrize("case", CASES)
def test_ragged_chunked_and_shared_logits_equal_transformers(case: str, tmp_path: Path) -> None:
    family, overrides = CASES[case]
    runner = load_runner(make_checkpoint(tmp_path, family, **overrides))
    model = make_model(family, **overrides)
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)
        assert logits.argmax(-1).tolist() == expected.argmax(-1).tolist()


@pytest.mark.parametrize("head", ["same", "other", "alone"])
def test_a_tied_head_that_the_checkpoint_has_is_used_as_in_transformers(head: str, tmp_path: Path) -> None:
    import transformers

    path = make_checkpoint(tmp_path, "llama", tie_word_embeddings=True)
    weights = load_file(path / "model.safetensors")
    embedding = weights["model.embed_tokens.weight"]
    other = torch.randn(embedding.shape, generator=torch.Generator().manual_seed(7)) * 0.15
    weights["lm_head.weight"] = other if head == "other" else embedding.clone()
    if head == "alone":
        del weights["model.embed_tokens.weight"]
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    for token_ids, logits in ragged_logits(load_runner(path), VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
def test_greedy_text_equals_transformers_generate(family: str, tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, family))
    prompt = list(range(40, 60))
    with torch.no_grad():
        expected = make_model(family).generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
            max_new_tokens=40,
            do_sample=False,
            eos_token_id=None,
        )
    assert greedy_tokens(runner, prompt, 40) == expected[0, len(prompt) :].tolist()


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_bfloat16_logits_stay_near_float32_transformers(family: str, tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, family), dtype="bfloat16")
    model = make_model(family)
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        relative = (logits - expected).norm() / expected.norm()
        assert relative < 0.05


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_layers_of_small_models_are_one_call_with_the_same_bits(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_checkpoint(tmp_path, "qwen3")
    tokens, logits, calls = [], [], []
    for is_fused in (True, False):
        runner = load_runner(path, dtype=dtype)
        assert isinstance(runner.decoder, NativeDecoder)
        step = runner.decoder._fused
        assert step is not None
        if is_fused:
            forward = step.forward
            monkeypatch.setattr(step, "forward", lambda *args, real=forward: calls.append(len(args[0])) or real(*args))
        else:
            runner.decoder._fused = None
        tokens.append(greedy_tokens(runner, list(range(40, 60)), 30))
        logits.append(torch.cat([rows for _, rows in ragged_logits(runner, VOCAB_SIZE)]))
    assert tokens[0] == tokens[1]
    assert calls[:30] == [20] + [1] * 29
    assert torch.equal(logits[0], logits[1])


@pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("model_type", "dtype"),
    [
        ("gemma2", "bfloat16"),
        ("gemma3_text", "bfloat16"),
        ("phi3", "float32"),
        ("granite", "bfloat16"),
        ("olmo3", "bfloat16"),
    ],
)
def test_the_layers_of_every_family_are_one_call_with_the_same_bits(
    model_type: str, dtype: str, tmp_path: Path
) -> None:
    """And a token has the same bits in a step of its own as in a ragged one."""
    family = next(each for each in FAMILIES if each.model_type == model_type)
    runner = load_runner(save_checkpoint(random_model(make_config(family)), tmp_path), dtype)
    decoder, found = runner.decoder, []
    assert isinstance(decoder, NativeDecoder)
    assert decoder._fused is not None
    for is_fused in (True, False):
        if not is_fused:
            decoder._fused = None
        found.append([logits for _, logits in ragged_logits(runner, VOCAB_SIZE)])
    for fused, separate in zip(*found, strict=True):
        assert torch.equal(fused, separate)
        assert fused.std() > 0
    for (tokens, logits), _ in zip(ragged_logits(runner, VOCAB_SIZE), range(3), strict=False):
        pages = Pages(runner.kv.num_pages)
        row = next_row(TrackedSequence(tokens), len(tokens), pages, runner.kv.page_size)
        assert torch.equal(all_logits(runner, [row])[0], logits)


class CodedSource(DummySource):
    """Noise, and weights of few bits where a format is given for a projection."""

    def __init__(self, formats: dict[str, str]) -> None:
        super().__init__(0, torch.bfloat16)
        self._formats = formats

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """See `WeightSource`."""
        found = self._formats.get(name.split(".")[-2].removesuffix("_proj"))
        return None if found is None else random_weight(FORMATS[found], *shape)


@pytest.mark.parametrize(
    ("formats", "is_supported"),
    [
        ({"q": "q4_0", "k": "q4_0", "v": "q8_0", "gate": "q4_0", "up": "q4_0", "down": "q8_0"}, True),
        ({"q": "q8_0", "k": "q8_0", "v": "q8_0", "o": "q4_0", "gate": "q4_0", "up": "q8_0"}, True),
        ({"q": "q4_0"}, False),
    ],
    ids=["o is floats", "gate and up differ, down is floats", "k and v are floats"],
)
def test_layers_of_few_bits_are_one_call_with_the_same_bits(
    formats: dict[str, str], is_supported: bool, tmp_path: Path
) -> None:
    runner = load_runner(make_checkpoint(tmp_path, "qwen3"), dtype="bfloat16")
    decoder = NativeDecoder.load(runner.model_config, CodedSource(formats), torch.bfloat16)
    runner.decoder = decoder
    assert (decoder._fused is not None) == is_supported
    found = []
    for is_fused in (True, False):
        if not is_fused:
            decoder._fused = None
        sequence, pages = TrackedSequence(list(range(40, 49))), Pages(runner.kv.num_pages)
        rows = [next_row(sequence, count, pages, runner.kv.page_size) for count in (8, 1)]
        found.append(torch.cat([logits for row in rows for logits in all_logits(runner, [row])]))
    assert torch.equal(*found)
    assert found[0].isfinite().all()
    assert found[0].std() > 0


def test_inputs_of_weights_of_few_bits_stay_floats_if_asked(tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, "qwen3"), dtype="bfloat16")
    formats, found = dict.fromkeys(("q", "k", "v", "o", "gate", "up", "down"), "q4_0"), []

    class Floats(CodedSource):
        """The same weights, multiplied out."""

        def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
            weight = super().low_bit(name, shape)
            return super().tensor(name, shape) if weight is None else rounded(exact_weight(weight), torch.bfloat16)

        def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
            return None

    for source in (CodedSource(formats), Floats(formats)):
        decoder = NativeDecoder.load(runner.model_config, source, torch.bfloat16, inputs=LinearInputs.FLOAT)
        assert (decoder._fused is None) == (type(source) is CodedSource)
        runner.decoder = decoder
        sequence, pages = TrackedSequence(list(range(40, 49))), Pages(runner.kv.num_pages)
        rows = [next_row(sequence, count, pages, runner.kv.page_size) for count in (8, 1)]
        found.append(torch.cat([logits for row in rows for logits in all_logits(runner, [row])]))
    assert torch.equal(*found)
    assert found[0].std() > 0


def test_the_definition_is_not_left_for_the_fused_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = load_runner(make_checkpoint(tmp_path, "llama"))
    assert isinstance(runner.decoder, NativeDecoder)
    monkeypatch.setattr(runner.decoder._fused, "forward", None)
    monkeypatch.setenv("RTLANG_KERNELS", "reference")
    assert len(greedy_tokens(runner, [40, 41], 3)) == 3


def test_rotation_tables_grow_with_the_longest_sequence(tmp_path: Path) -> None:
    runner = load_runner(make_checkpoint(tmp_path, "llama", max_position_embeddings=16384))
    decoder = runner.decoder
    assert isinstance(decoder, NativeDecoder)
    ropes = [layer.attention.rope for layer in decoder.native.layers]
    decoder._rotations = Rotations(ropes, decoder.config.head_dim, torch.device("cpu"), 8)
    model = make_model("llama", max_position_embeddings=16384)
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)
