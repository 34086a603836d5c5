"""Models of transformers divided among two ranks, against the same models whole: logits, greedy tokens, and what a rank keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from rtlang.contract.errors import ConfigError
from rtlang.model.parallel.divided_layers import DividedEmbedding, divide
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.plan_table import Cut, Style
from tests.support.models.divided_models import check_divided, run_divided
from tests.support.models.families import FAMILIES, NOT_DIVIDED, Family
from tests.support.models.rank_threads import RankThreads, rank_threads
from tests.support.models.tiny_models import VOCAB_SIZE, make_checkpoint

BY_TYPE = {family.model_type: family for family in FAMILIES}
QUICK: dict[str, tuple[str | None, ...]] = {
    "llama": (None, "biases", "one KV head", "tied embeddings"),
    "qwen2": (None,),
    "qwen3": (None,),
    "mixtral": (None,),
    "gemma2": (None,),
    "gemma3_text": (None,),
    "phi3": (None,),
    "cohere": ("norms of q and k",),
    "deepseek_v2": (None,),
    "aria_text": (None,),
}
CASES = [
    pytest.param(
        family,
        variant,
        id=f"{family.model_type}-{variant or 'plain'}".replace(" ", "_"),
        marks=() if variant in QUICK.get(family.model_type, ()) else pytest.mark.long,
    )
    for family in FAMILIES
    if family.refusal is None and family.division != NOT_DIVIDED
    for variant in (None, *family.variants)
]
pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def ranks() -> Iterator[RankThreads]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with rank_threads(2) as made:
        yield made
    torch.set_num_threads(threads)


@pytest.mark.parametrize(("family", "variant"), CASES)
def test_two_ranks_give_the_logits_and_tokens_of_the_whole_model(
    family: Family, variant: str | None, ranks: RankThreads, tmp_path: Path
) -> None:
    check_divided(ranks, family, variant, tmp_path)


def test_a_family_that_its_plan_divides_wrongly_is_refused(ranks: RankThreads, tmp_path: Path) -> None:
    # each token keeps the largest features of all, which a rank does not have
    with pytest.raises(ConfigError, match=r"tensor_parallel = 2: .*'gemma3n_text', divided by its plan.* differ"):
        check_divided(ranks, BY_TYPE["gemma3n_text"], None, tmp_path)


def test_a_family_without_a_plan_is_refused_on_all_ranks(ranks: RankThreads, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tensor_parallel = 2: .*'gpt2', whose plan in transformers is missing"):
        run_divided(ranks, make_checkpoint(tmp_path, "gpt2"), VOCAB_SIZE)


def test_bfloat16_passes_the_check_at_load(ranks: RankThreads, tmp_path: Path) -> None:
    results = run_divided(ranks, make_checkpoint(tmp_path, "qwen2"), VOCAB_SIZE, torch.bfloat16)
    assert results[0].greedy == results[1].greedy


@pytest.mark.parametrize("style", [Style.PACKED_COLUMNS, Style.ROWS_OF_WHOLE, Style.GATHERED_COLUMNS])
def test_linear_layers_of_other_styles(style: Style, ranks: RankThreads) -> None:
    generator = torch.Generator().manual_seed(0)
    num_rows = 11 if style is Style.GATHERED_COLUMNS else 12
    weight, bias = torch.randn(num_rows, 9, generator=generator), torch.randn(num_rows, generator=generator)
    x = torch.randn(1, 5, 9, generator=generator)
    expected = torch.nn.functional.linear(x, weight, bias)
    ranges_of = {
        Style.PACKED_COLUMNS: (((0, 3), (6, 9)), ((3, 6), (9, 12))),
        Style.ROWS_OF_WHOLE: (((0, 5),), ((5, 9),)),
        Style.GATHERED_COLUMNS: (((0, 6),), ((6, 11),)),
    }[style]

    def work(group: RankGroup) -> torch.Tensor:
        model = torch.nn.Sequential(torch.nn.Linear(9, num_rows))
        model[0].load_state_dict({"weight": weight, "bias": bias})
        divide(model, [Cut("0", style, False, ranges_of[group.rank], num_rows)], group)
        return model(x).detach()

    results = ranks.run(work)
    if style is Style.PACKED_COLUMNS:
        halves = [torch.cat([result.chunk(2, -1)[half] for result in results], -1) for half in range(2)]
        results = [torch.cat(halves, -1)]
    for result in results:
        torch.testing.assert_close(result, expected)


def test_tied_parts_share_memory_and_outlive_the_whole(ranks: RankThreads) -> None:
    def work(group: RankGroup) -> tuple[bool, int]:
        model = torch.nn.ModuleDict({"embedding": torch.nn.Embedding(7, 4), "head": torch.nn.Linear(4, 7, bias=False)})
        model["head"].weight = model["embedding"].weight
        own = ((0, 4), (4, 7))[group.rank]
        cuts = [
            Cut("embedding", Style.VOCABULARY, False, (own,), 7),
            Cut("head", Style.GATHERED_COLUMNS, False, (own,), 7),
        ]
        divide(model, cuts, group)
        embedding = model["embedding"]
        assert isinstance(embedding, DividedEmbedding)
        is_tied = embedding.weight is model["head"].weight
        return is_tied, embedding.weight.untyped_storage().nbytes()

    assert ranks.run(work) == [(True, 4 * 4 * 4), (True, 3 * 4 * 4)]
