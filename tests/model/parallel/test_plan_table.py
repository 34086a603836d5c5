"""The cuts read from the plans of transformers: what a rank keeps, and what cannot be divided. Models are without weights."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from rtlang.contract.errors import ConfigError
from rtlang.model.parallel.plan_table import Cut, Style, kept_numel, read_plan
from tests.support.models.divided_models import division
from tests.support.models.families import FAMILIES, WRONGLY_DIVIDED, make_config

pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")


def model_of(model_type: str, **settings: Any) -> Any:
    from transformers import AutoModelForCausalLM

    (family,) = (family for family in FAMILIES if family.model_type == model_type)
    config = make_config(family)
    for name, value in settings.items():
        setattr(config, name, value)
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def cuts_of(model: Any, num_ranks: int) -> list[dict[str, Cut]]:
    """By rank, then by name."""
    return [{cut.name: cut for cut in read_plan(model, rank, num_ranks)} for rank in range(num_ranks)]


@pytest.mark.parametrize("model_type", ["llama", "mixtral", "phi3", "gpt_neox", "aria_text", "deepseek_v2"])
def test_ranks_keep_everything_once(model_type: str) -> None:
    by_rank = cuts_of(model_of(model_type), 2)
    for name, first in by_rank[0].items():
        kept = Counter(index for cuts in by_rank for start, stop in cuts[name].ranges for index in range(start, stop))
        assert kept == Counter(range(first.size)), name


def test_fewer_kv_heads_than_ranks_are_kept_by_several() -> None:
    by_rank = cuts_of(model_of("llama", num_key_value_heads=2, num_attention_heads=4, head_dim=16), 4)
    for leaf in ("k_proj", "v_proj"):
        ranges = [cuts[f"model.layers.1.self_attn.{leaf}"].ranges for cuts in by_rank]
        assert ranges == [((0, 16),), ((0, 16),), ((16, 32),), ((16, 32),)]
    assert [cuts["model.layers.1.self_attn.q_proj"].ranges for cuts in by_rank][3] == ((48, 64),)


def test_both_matrices_of_the_experts_are_divided() -> None:
    cuts = cuts_of(model_of("mixtral"), 2)
    experts = "model.layers.0.mlp.experts"
    assert [each[f"{experts}.gate_up_proj"].ranges for each in cuts] == [((0, 48), (96, 144)), ((48, 96), (144, 192))]
    assert cuts[0][experts].style is Style.SUM


def test_a_vocabulary_need_not_be_even() -> None:
    model = model_of("llama")
    for name in ("model.embed_tokens", "lm_head"):
        assert [cuts[name].ranges for cuts in cuts_of(model, 2)] == [((0, 130),), ((130, 259),)]


@pytest.mark.parametrize(
    ("model_type", "settings", "num_ranks", "reason"),
    [
        ("gpt2", {}, 2, "model type 'gpt2', whose plan in transformers is missing"),
        ("gpt_oss", {}, 2, "model type 'gpt_oss', whose plan in transformers divides none of its layers"),
        ("llama", {}, 3, "model.layers.0.self_attn.q_proj has 4 heads, which 3 ranks cannot divide"),
        ("llama", {"num_attention_heads": 6, "num_key_value_heads": 3}, 2, "k_proj has 3 KV heads, which 2 ranks"),
        ("llama", {"num_attention_heads": 12, "num_key_value_heads": 3, "head_dim": 16}, 4, "k_proj has 3 KV heads"),
        ("llama", {"intermediate_size": 97}, 2, "model.layers.0.mlp.gate_proj has a size of 97, which 2 ranks cannot"),
        ("mixtral", {"intermediate_size": 97}, 2, "experts.gate_up_proj has a size of 2 matrices of 97, which 2 ranks"),
        ("deepseek_v2", {"num_attention_heads": 5}, 2, "has 5 heads, which 2 ranks cannot divide"),
    ],
)
def test_what_cannot_be_divided_is_refused_with_its_sizes(
    model_type: str, settings: dict[str, Any], num_ranks: int, reason: str
) -> None:
    with pytest.raises(ConfigError, match="tensor_parallel") as refused:
        read_plan(model_of(model_type, **settings), 0, num_ranks)
    assert refused.value.field == "tensor_parallel"
    assert refused.value.value == str(num_ranks)
    assert reason in str(refused.value)
    assert model_type in str(refused.value)


@pytest.mark.parametrize("settings", [{}, {"tie_word_embeddings": True}, {"attention_bias": True, "mlp_bias": True}])
def test_the_parameters_that_ranks_keep_are_counted(settings: dict[str, Any]) -> None:
    model = model_of("llama", **settings)
    both = sum(kept_numel(model, read_plan(model, rank, 2)) for rank in range(2))
    whole = {name: each.numel() for name, each in model.named_parameters()}
    kept_twice = sum(
        count for name, count in whole.items() if "norm" in name or name.endswith(("o_proj.bias", "down_proj.bias"))
    )
    assert both == sum(whole.values()) + kept_twice


@pytest.mark.parametrize(
    ("entry", "style", "reason"),
    [
        ("model.layers.*.mlp.gate_proj", "grouped_gemm", "has 'grouped_gemm' for model.layers.0.mlp.gate_proj"),
        ("model.norm", "colwise", "model.norm is a LlamaRMSNorm, not a linear layer"),
        ("model.layers.*.mlp.up_proj", "embedding_rowwise", "up_proj is a Linear, not an embedding"),
        ("model.norm.weight", "rowwise", "divides the inputs of model.norm.weight, which has one dimension"),
    ],
)
def test_entries_that_are_not_supported_are_refused_by_name(entry: str, style: str, reason: str) -> None:
    model = model_of("llama")
    model._tp_plan = {**model.tp_plan, entry: style}
    with pytest.raises(ConfigError, match="tensor_parallel") as refused:
        read_plan(model, 0, 2)
    assert reason in str(refused.value)


def test_the_table_of_families_says_what_the_plans_divide() -> None:
    from transformers import AutoModelForCausalLM

    for family in FAMILIES:
        if family.refusal is not None or family.has_states or family.model_type in WRONGLY_DIVIDED:
            continue  # states are not divided, whatever the plan says
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(make_config(family))
        assert division(model) == family.division, family.model_type
