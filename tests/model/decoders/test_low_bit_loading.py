"""Models of transformers with weights of few bits: every family against the library with dequantized weights, names, ties, refusals."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.layers.attention import PagedKV
from rtlang.model.layers.linear import PackedEmbedding
from rtlang.model.layers.low_bit_modules import LowBitExperts, LowBitModule
from rtlang_kernels import dispatch
from rtlang_kernels.contract.low_bit import LinearInputs, LowBitWeight
from rtlang_kernels.reference.low_bit import ReferenceLowBitLinear
from tests.support.long_tests import is_long
from tests.support.models.families import FAMILIES, make_config, served
from tests.support.models.low_bit_checkpoint import (
    INT4_32,
    Q4_0,
    Q8_0,
    MemoryWeights,
    check_low_bit,
    error_bound,
    quantize_model,
)
from tests.support.models.model_steps import StepRunner, ragged_logits
from tests.support.models.rank_threads import rank_threads
from tests.support.models.tiny_models import VOCAB_SIZE, make_model, random_model

USUAL = [("gemma3", None), ("phi3", None), ("gpt_oss", None), ("deepseek_v3", None), ("granitemoeshared", None)]
BY_TYPE = {family.model_type: family for family in FAMILIES}
CASES = (
    [(family.model_type, variant) for family, variant, decoder in served() if decoder == "transformers"]
    if is_long()
    else USUAL
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:transformers")


def load(path: Path, weights: MemoryWeights, dtype: torch.dtype = torch.float32, **options: Any) -> TransformersDecoder:
    return TransformersDecoder.load(path, dtype, dummy_seed=None, weights=weights, **options)


def worst_error(decoder: TransformersDecoder, stock: Any) -> float:
    """Largest relative error of logits of ragged steps."""
    errors = []
    kv = PagedKV(decoder.geometries, 64, 4, decoder.dtype)
    for ids, logits in ragged_logits(StepRunner(decoder, kv), VOCAB_SIZE):
        with torch.inference_mode():
            expected = stock(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -len(logits) :].float()
        errors.append((logits - expected).norm(dim=-1) / expected.norm(dim=-1))
    return float(torch.cat(errors).max())


@pytest.mark.parametrize(("model_type", "variant"), CASES)
def test_every_family_computes_with_weights_of_few_bits(model_type: str, variant: str | None, tmp_path: Path) -> None:
    weights = check_low_bit(BY_TYPE[model_type], variant, tmp_path)
    assert weights.codes
    assert not set(weights.reads) & weights.codes.keys()  # none as floats


@pytest.mark.parametrize("which", ["embedding", "head", "both", "float head", "float embedding"])
def test_tied_weights_are_packed_once(which: str, tmp_path: Path) -> None:
    model = make_model("gemma3", tie_word_embeddings=True, num_hidden_layers=1)
    weights, stock = quantize_model(model, tmp_path)
    embedding, head = "model.embed_tokens.weight", "lm_head.weight"
    table = weights.codes[embedding]
    if which in ("head", "both"):
        weights.codes[head] = table
    if which == "float head":
        weights.floats[head] = weights.tensor(embedding, torch.float32)
    if which == "float embedding":
        weights.floats[embedding], weights.codes[head] = weights.tensor(embedding, torch.float32), table
    if which in ("head", "float embedding"):
        del weights.codes[embedding]
    decoder = load(tmp_path, weights)
    held, module = decoder.model.model.embed_tokens.weight, decoder.model.lm_head
    assert isinstance(held, PackedEmbedding) == (which != "float embedding")
    assert isinstance(module, LowBitModule) == (which != "float head")
    if which in ("embedding", "head"):
        assert held.linear is module.linear
    assert worst_error(decoder, stock) < error_bound(1)


def test_formats_are_mixed_and_other_matrices_stay_floats(tmp_path: Path) -> None:
    formats = {"q_proj": Q8_0, "gate_proj": INT4_32, "w1": Q8_0, "w2": INT4_32, "k_proj": None}
    model = make_model("mixtral", num_hidden_layers=1)
    weights, stock = quantize_model(model, tmp_path, lambda name: formats.get(name.split(".")[-2], Q4_0))
    decoder = load(tmp_path, weights)
    layer = decoder.model.model.layers[0]
    assert isinstance(layer.self_attn.q_proj, LowBitModule)
    assert not isinstance(layer.self_attn.k_proj, LowBitModule)
    assert isinstance(layer.mlp.experts, LowBitExperts)
    assert not set(weights.reads) & weights.codes.keys()
    assert worst_error(decoder, stock) < error_bound(1)


def test_float_experts_are_left_to_the_library(tmp_path: Path) -> None:
    model = make_model("mixtral", num_hidden_layers=1)
    weights, stock = quantize_model(model, tmp_path, lambda name: None if "experts" in name else Q4_0)
    decoder = load(tmp_path, weights)
    assert not isinstance(decoder.model.model.layers[0].mlp.experts, LowBitExperts)
    assert worst_error(decoder, stock) < error_bound(1)


def test_inputs_stay_floats_if_asked(tmp_path: Path) -> None:
    weights, stock = quantize_model(make_model("mixtral", num_hidden_layers=1), tmp_path)
    bound = error_bound(1)
    decoder = load(tmp_path, weights, inputs=LinearInputs.FLOAT)
    assert worst_error(decoder, stock) < min(bound, 1e-5)


@pytest.mark.parametrize("prefix", ["", "model."])
def test_names_without_the_prefix_of_the_model_work(prefix: str, tmp_path: Path) -> None:
    model = make_model("mixtral", num_hidden_layers=1)
    weights, stock = quantize_model(model, tmp_path)

    def renamed(name: str) -> str:
        return (
            name
            if name.startswith("lm_head")
            else prefix + name.removeprefix("model.").replace("block_sparse_moe", "mlp")
        )

    other = MemoryWeights(
        {renamed(name): weight for name, weight in weights.codes.items()},
        {renamed(name): tensor for name, tensor in weights.floats.items()},
    )
    decoder = load(tmp_path, other)
    assert not set(other.reads) & other.codes.keys()
    assert worst_error(decoder, stock) < error_bound(1)


def test_tensors_that_the_model_keeps_in_float32_are_read_so(tmp_path: Path) -> None:
    model = make_model("deepseek_v3")
    weights, _ = quantize_model(model, tmp_path)
    dtypes: dict[str, torch.dtype] = {}

    class Watched(MemoryWeights):
        def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
            dtypes[name] = dtype
            return super().tensor(name, dtype)

    decoder = load(tmp_path, Watched(weights.codes, weights.floats), torch.bfloat16)
    router = "model.layers.1.mlp.gate.e_score_correction_bias"
    assert dtypes.pop(router) is torch.float32 is decoder.model.get_buffer(router).dtype
    assert dtypes.pop("model.layers.1.mlp.gate.weight") is torch.float32
    assert set(dtypes.values()) == {torch.bfloat16}


def test_readers_are_not_asked_while_a_model_is_constructed(tmp_path: Path) -> None:
    weights, _ = quantize_model(make_model("mixtral", num_hidden_layers=1), tmp_path)

    class Watched(MemoryWeights):
        def low_bit(self, name: str) -> LowBitWeight | None:
            assert torch.ones(1).device.type == "cpu"
            assert torch.ones(1).dtype is torch.float32
            return super().low_bit(name)

    load(tmp_path, Watched(weights.codes, weights.floats), torch.bfloat16)


def test_progress_is_told_in_bytes(tmp_path: Path) -> None:
    weights, _ = quantize_model(make_model("mixtral", num_hidden_layers=1), tmp_path)
    told: list[float] = []
    load(tmp_path, weights, on_progress=told.append)
    assert told == sorted(told)
    assert len(told) == len(weights.names())
    assert told[-1] == pytest.approx(1.0)
    total = sum(map(weights.num_bytes, weights.names()))
    steps = {round((b - a) * total) for a, b in zip([0.0, *told], told, strict=False)}
    assert steps == {weights.num_bytes(name) for name in weights.names()}


@dataclass
class Damage:
    """Something wrong with a checkpoint, and what the refusal says."""

    change: Any
    message: str


def drop(name: str) -> Any:
    def change(weights: MemoryWeights) -> None:
        (weights.codes if name in weights.codes else weights.floats).pop(name)

    return change


def move(name: str, other: str) -> Any:
    def change(weights: MemoryWeights) -> None:
        weights.codes[other] = weights.codes[name]

    return change


_HOME = "model.layers.0.block_sparse_moe.experts"
DAMAGES = {
    "no matrix": Damage(drop("model.layers.0.self_attn.q_proj.weight"), r"lack 1 tensors .*self_attn\.q_proj\.weight"),
    "no norm": Damage(drop("model.norm.weight"), r"lack 1 tensors .* model\.norm\.weight"),
    "no expert": Damage(drop(f"{_HOME}.2.w2.weight"), r"lack 1 tensors .*mlp\.experts\.2\.down_proj\.weight"),
    "another shape": Damage(
        move("model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.q_proj.weight"),
        r"q_proj\.weight has shape \[32, 64\], but config\.json implies \[64, 64\]",
    ),
    "an expert of another shape": Damage(
        move(f"{_HOME}.0.w2.weight", f"{_HOME}.1.w1.weight"),
        r"experts\.1\.w1\.weight has shape \[64, 96\], .* \[96, 64\]",
    ),
    "too many experts": Damage(move(f"{_HOME}.0.w2.weight", f"{_HOME}.4.w2.weight"), r"implies 4 experts"),
    "a matrix twice": Damage(
        move("lm_head.weight", "model.lm_head.weight"),
        r"lm_head\.weight and model\.lm_head\.weight are the same weight",
    ),
    "an expert twice": Damage(
        move(f"{_HOME}.0.w2.weight", "model.layers.0.mlp.experts.0.w2.weight"), r"are the same weight of the model"
    ),
    "scales": Damage(
        lambda weights: weights.floats.update({"model.layers.0.self_attn.q_proj.weight_scale": torch.ones(1)}),
        r"q_proj\.weight_scale is unexpected",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_checkpoint_that_does_not_fit_is_refused_by_name(damage: Damage, tmp_path: Path) -> None:
    weights, _ = quantize_model(make_model("mixtral", num_hidden_layers=1), tmp_path)
    damage.change(weights)
    with pytest.raises(ModelLoadError, match=damage.message):
        load(tmp_path, weights)


def test_a_weight_that_cannot_be_read_is_an_error_of_the_reader(tmp_path: Path) -> None:
    weights, _ = quantize_model(make_model("phi3", num_hidden_layers=1), tmp_path)

    class Broken(MemoryWeights):
        def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
            raise ModelLoadError("file", f"{name} is cut off")

    with pytest.raises(ModelLoadError, match="is cut off"):
        load(tmp_path, Broken(weights.codes, weights.floats))


def test_ranks_divide_the_weights_multiplied_out(tmp_path: Path) -> None:
    weights, stock = quantize_model(make_model("mixtral", num_hidden_layers=1), tmp_path)
    alone = load(tmp_path, weights)
    weights.reads.clear()
    with rank_threads(2) as ranks:
        decoders = ranks.run(lambda group: load(tmp_path, weights, group=group))
        assert set(weights.reads) == set(weights.names())
        assert not any(isinstance(each, LowBitModule | LowBitExperts) for each in decoders[0].model.modules())
        assert decoders[0].geometries[0].num_q_heads == alone.geometries[0].num_q_heads // 2
        for error in ranks.run(lambda group: worst_error(decoders[group.rank], stock)):
            assert error < 1e-4


def test_ranks_refuse_experts_that_the_library_cannot_put_together(tmp_path: Path) -> None:
    weights, _ = quantize_model(make_model("gpt_oss", num_hidden_layers=1), tmp_path)
    with (
        rank_threads(2) as ranks,
        pytest.raises(ModelLoadError, match=r"ranks cannot divide the experts .*mlp\.experts"),
    ):
        ranks.run(lambda group: load(tmp_path, weights, group=group))


def test_files_of_weights_are_let_go(tmp_path: Path) -> None:
    weights, _ = quantize_model(make_model("mixtral", num_hidden_layers=1), tmp_path)
    decoder, held = load(tmp_path, weights), weakref.ref(weights)
    del weights
    gc.collect()
    assert held() is None
    assert decoder.model is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layers_that_compute_something_else_are_refused(
    dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, _ = quantize_model(make_model("phi3", num_hidden_layers=1), tmp_path)

    class Wrong(ReferenceLowBitLinear):
        def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
            return super().__call__(x.roll(1, 1), residual)

    real = dispatch.backend_for

    def backend(device: torch.device, dtype: torch.dtype) -> Any:
        return dataclasses.replace(real(device, dtype), low_bit_linear=Wrong)

    monkeypatch.setattr("rtlang_kernels.ops.backend_for", backend)
    with pytest.raises(ModelLoadError, match=r"computes something else: model\.layers\.0\..*_proj: relative error 1"):
        load(tmp_path, weights, dtype)


@pytest.mark.parametrize("family", ["phi3", "gpt_oss"])
def test_one_token_has_one_text_if_asked(family: str, tmp_path: Path) -> None:
    model = random_model(make_config(BY_TYPE[family]))
    weights, _ = quantize_model(model, tmp_path)
    if family == "gpt_oss" and error_bound(1) < 1e-3:
        pytest.skip("the rows of an expert need layers of kernels: sums of torch depend on the number of rows")
    assert load(tmp_path, weights, is_deterministic=True).is_row_invariant
