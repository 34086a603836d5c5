"""Latent attention over compressed pages against the stock modules of transformers, in bytes and in results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.model.decoders.latent_attention import (
    AbsorbedProjections,
    absorb_projections,
    multiply_out,
    pack_projections,
    projections_of,
)
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.attention import HeadGeometry, PagedKV
from rtlang.model.layers.linear import Linear
from rtlang.model.layers.low_bit_modules import LowBitModule
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.model_steps import ragged_logits
from tests.support.models.tiny_models import VOCAB_SIZE, random_model, save_checkpoint

LATENT = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "minicpm3", "youtu", "sarvam_mla", "axk1")
"""Families whose pages hold latents."""
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
    "mscale_all_dim": 0.7,
}
VARIANTS: list[dict[str, Any]] = [{"q_lora_rank": None}, {"rope_interleave": False}, {"rope_parameters": _YARN}]
BY_TYPE = {family.model_type: family for family in FAMILIES}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:transformers")


def load_runner(path: Path, **settings: Any) -> HostRunner:
    settings = {"dtype": "float32", "num_pages": 64, "page_size": 4, "num_threads": 1} | settings
    runner = HostRunner(RuntimeConfig(model=str(path), decoder="transformers", **settings))
    runner.load()
    return runner


def model_of(model_type: str) -> Any:
    return random_model(make_config(BY_TYPE[model_type]))


def latent_modules(model: Any) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "expand_kv")]


@pytest.mark.parametrize("model_type", LATENT)
def test_pages_hold_latents(model_type: str, tmp_path: Path) -> None:
    """The load compares logits with the stock model's; so do the tests of all families."""
    model = model_of(model_type)
    config = model.config
    runner = load_runner(save_checkpoint(model, tmp_path / "model"))
    line = config.kv_lora_rank + config.qk_rope_head_dim
    latent = HeadGeometry(config.num_attention_heads, 1, line, config.kv_lora_rank, is_latent=True)
    assert runner.decoder.geometries == (latent,) * config.num_hidden_layers
    assert runner.kv.page_bytes == config.num_hidden_layers * runner.kv.page_size * line * 4


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_variants_of_queries_and_rotations_equal_the_stock_model(changes: dict[str, Any], tmp_path: Path) -> None:
    config = make_config(BY_TYPE["deepseek_v3"])
    for name, value in changes.items():
        setattr(config, name, value)
    model = random_model(config)
    runner = load_runner(save_checkpoint(model, tmp_path / "model"))
    assert all(geometry.is_latent for geometry in runner.decoder.geometries)
    model.set_attn_implementation("eager")
    for token_ids, logits in ragged_logits(runner, VOCAB_SIZE):
        with torch.no_grad():
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(logits) :]
        torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


def test_pages_of_deepseek_v3_are_71_times_smaller_than_multiplied_out() -> None:
    num_layers, num_heads, nope, rope, v, rank = 61, 128, 128, 64, 128, 512
    multiplied_out = (HeadGeometry(num_heads, num_heads, nope + rope, v),) * num_layers
    latent = (HeadGeometry(num_heads, 1, rank + rope, rank, is_latent=True),) * num_layers
    sizes = [PagedKV.bytes_per_page(each, 16, torch.bfloat16) for each in (multiplied_out, latent)]
    assert sizes[1] == 16 * num_layers * (512 + 64) * 2
    assert sizes[0] // sizes[1] == 71


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("is_packed", [False, True])
def test_absorbed_scores_and_results_equal_multiplied_out_ones(is_packed: bool, dtype: torch.dtype) -> None:
    """Queries times lines and expanded sums, against keys and values of the whole weight in float64."""
    generator = torch.Generator().manual_seed(0)
    num_heads, nope, rope, v, rank, num_tokens = 3, 6, 4, 5, 8, 7

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    weight, q = drawn(num_heads * (nope + v), rank), drawn(num_tokens, num_heads, nope + rope)
    latents, shared = drawn(num_tokens, rank), drawn(num_tokens, rope)
    made = AbsorbedProjections(weight, nope, rope, v)
    if is_packed:
        made.pack()
        assert made.keys.numel() == made.values.numel() == 0
    multiplied = (latents.double() @ weight.double().T).unflatten(1, (num_heads, nope + v))  # [T, H, nope + v]
    keys = torch.cat([multiplied[..., :nope], shared.double()[:, None].expand(-1, num_heads, -1)], -1)
    lines = torch.cat([latents, shared], 1).double()
    want = torch.einsum("qhd,khd->hqk", q.double(), keys)
    got = torch.einsum("qhd,kd->hqk", made.absorbed(q).double(), lines)
    tolerance = 1e-6 if dtype is torch.float32 else 6e-3
    assert float((got - want).norm() / want.norm()) < tolerance
    results = made.expanded(latents[:, None].expand(-1, num_heads, -1).contiguous())
    expected = multiplied[..., nope:]
    assert float((results.double() - expected).norm() / expected.norm()) < tolerance


def test_packed_projections_give_a_token_the_same_bits_in_any_step() -> None:
    made = AbsorbedProjections(torch.randn(4 * 28, 16, generator=torch.Generator().manual_seed(0)), 16, 8, 12)
    made.pack()
    q, latents = torch.randn(40, 4, 24), torch.randn(40, 4, 16)
    whole = made.absorbed(q), made.expanded(latents)
    for start, stop in ((0, 1), (1, 4), (4, 21), (21, 40)):
        assert torch.equal(made.absorbed(q[start:stop]), whole[0][start:stop])
        assert torch.equal(made.expanded(latents[start:stop]), whole[1][start:stop])


def test_modules_that_compute_something_else_keep_their_keys_and_values() -> None:
    """Each change makes the split weight wrong for a module, which is then left alone; the other layer is still changed."""

    def swap(module: Any) -> None:  # values before keys
        expand = module.expand_kv
        module.expand_kv = lambda latent, rotated: expand(latent, rotated)[::-1]

    def scale(module: Any) -> None:
        expand = module.expand_kv
        module.expand_kv = lambda latent, rotated: expand(2 * latent, rotated)

    def rotate_twice(module: Any) -> None:
        expand = module.expand_kv
        module.expand_kv = lambda latent, rotated: expand(latent, rotated.flip(-1))

    def fail(module: Any) -> None:
        module.expand_kv = lambda latent: latent

    def add_bias(module: Any) -> None:
        module.kv_b_proj.bias = torch.nn.Parameter(torch.ones(len(module.kv_b_proj.weight)))

    def narrow(module: Any) -> None:
        module.v_head_dim += 1

    for change in (swap, scale, rotate_twice, fail, add_bias, narrow):
        model = model_of("deepseek_v3")
        first, second = latent_modules(model)
        change(first)
        before = first.kv_b_proj
        assert absorb_projections(model) == 1
        assert first.kv_b_proj is before
        assert projections_of(first) is None
        assert projections_of(second) is second.kv_b_proj


def test_lines_that_save_nothing_are_not_used() -> None:
    """A latent as long as all keys and values together."""
    config = make_config(BY_TYPE["deepseek_v3"])
    config.kv_lora_rank = config.num_attention_heads * (16 + 8 + 12) - 8
    assert absorb_projections(random_model(config)) == 0


def test_weights_of_few_bits_are_multiplied_out_for_the_projection_alone() -> None:
    model = model_of("minicpm3")
    for module in latent_modules(model):
        for name in ("kv_b_proj", "o_proj"):
            stock = getattr(module, name)
            setattr(module, name, LowBitModule(Linear(stock.weight.detach()), torch.float32, None))
    weights = [module.kv_b_proj.linear.rows(torch.arange(4 * 28)).clone() for module in latent_modules(model)]
    multiply_out(model)
    for module, weight in zip(latent_modules(model), weights, strict=True):
        assert type(module.kv_b_proj) is torch.nn.Linear
        assert torch.equal(module.kv_b_proj.weight, weight)
        assert isinstance(module.o_proj, LowBitModule)
    assert absorb_projections(model) == 2
    pack_projections(model)
    assert all(not projections_of(module).keys.numel() for module in latent_modules(model))  # type: ignore[union-attr]


def test_a_deterministic_decoder_keeps_latents(tmp_path: Path) -> None:
    """Its own check at load compares bits in tiles of several sizes."""
    runner = load_runner(save_checkpoint(model_of("minicpm3"), tmp_path / "model"), deterministic=True)
    assert isinstance(runner.decoder, TransformersDecoder)
    assert runner.decoder.is_row_invariant
    assert all(geometry.is_latent for geometry in runner.decoder.geometries)


def test_int8_pages_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="kv_dtype = 'int8': not supported for latent attention"):
        load_runner(save_checkpoint(model_of("youtu"), tmp_path / "model"), kv_dtype="int8")
