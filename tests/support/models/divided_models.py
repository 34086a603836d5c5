"""Models of `transformers` divided among ranks, which are threads here, against the same models whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rtlang.contract.errors import ConfigError
from rtlang.model.decoders.transformers_decoder import TransformersDecoder
from rtlang.model.layers.attention import PagedKV
from rtlang.model.layers.linear import PackedModule
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.plan_table import Style, read_plan
from tests.support.models.families import ATTENTION_WHOLE, DIVIDED, NOT_DIVIDED, Family, make_config
from tests.support.models.model_steps import Pages, StepRunner, TrackedSequence, all_logits, next_row, ragged_logits
from tests.support.models.rank_threads import RankThreads
from tests.support.models.tiny_models import random_model, save_checkpoint

PAGE_SIZE, NUM_PAGES = 4, 64
_NUM_NEW = 12
MAX_ERROR = 1e-5
"""Relative error of the logits of a token in float32. Most families have 1e-6, whole or divided; one with large activations has 5e-6."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one rank computed.

    Attributes:
        ragged: token ids of sequences, and logits of their last tokens.
        greedy: tokens after `prompt`.
        heads: of queries, in each layer.
        num_parameters: that the rank keeps.
    """

    ragged: list[tuple[list[int], torch.Tensor]]
    prompt: list[int]
    greedy: list[int]
    heads: list[int]
    num_parameters: int


def run_divided(ranks: RankThreads, path: Path, vocab_size: int, dtype: torch.dtype = torch.float32) -> list[Result]:
    """Load the checkpoint on every rank and compute ragged steps, then greedy text; in the order of ranks.

    Raises:
        ModelLoadError, ConfigError: it is refused.
    """

    def work(group: RankGroup) -> Result:
        decoder = TransformersDecoder.load(path, dtype, dummy_seed=None, group=group)
        runner = StepRunner(decoder, PagedKV(decoder.geometries, NUM_PAGES, PAGE_SIZE, dtype))
        ragged = ragged_logits(runner, vocab_size)
        prompt = list(range(40, 57))
        sequence, pages = TrackedSequence(list(prompt)), Pages(NUM_PAGES)
        for _ in range(_NUM_NEW):
            row = next_row(sequence, len(sequence.token_ids) - sequence.num_computed, pages, PAGE_SIZE)
            sequence.token_ids.append(int(all_logits(runner, [row])[0][-1].argmax()))
        heads = [each.num_q_heads for each in decoder.geometries]
        return Result(ragged, prompt, sequence.token_ids[len(prompt) :], heads, _num_parameters(decoder.model))

    return ranks.run(work)


def check_divided(ranks: RankThreads, family: Family, variant: str | None, path: Path) -> None:
    """Make the configuration's checkpoint in the folder `path` and hold each rank to the stock model.

    Raises:
        ConfigError, ModelLoadError: it is refused.
        AssertionError: logits or tokens differ, or a rank keeps too much.
    """
    model = random_model(make_config(family, variant))
    model.set_attn_implementation("eager")
    results = run_divided(ranks, save_checkpoint(model, path), model.config.get_text_config().vocab_size)
    whole = [int(model.config.get_text_config().num_attention_heads)] * len(results[0].heads)
    for result in results:
        error = _worst_error(model, result)
        assert error < MAX_ERROR, error
        assert result.num_parameters < 0.8 * sum(each.numel() for each in model.parameters())
        heads = whole if family.division == ATTENTION_WHOLE else [num // len(results) for num in whole]
        assert result.heads == heads
    for mine, other in zip(results[0].ragged, results[1].ragged, strict=True):
        assert torch.equal(mine[1], other[1])


def division(model: Any) -> str:
    """What two ranks divide of a model by its plan, as the table of families says it."""
    try:
        cuts = read_plan(model, 0, 2)
    except ConfigError as error:
        return NOT_DIVIDED if "whose plan" in str(error) else str(error)
    attention = {name for name, module in model.named_modules() if isinstance(getattr(module, "layer_idx", None), int)}
    has_heads = any(cut.style is Style.COLUMNS and cut.name.rpartition(".")[0] in attention for cut in cuts)
    return DIVIDED if has_heads else ATTENTION_WHOLE


def _worst_error(model: Any, result: Result) -> float:
    """The largest relative error of the logits of a token, against the whole model; greedy tokens must be equal."""
    text = result.prompt + result.greedy
    with torch.inference_mode():
        logits = model(torch.tensor([text[:-1]]), use_cache=False).logits[0, len(result.prompt) - 1 :]
        assert logits.argmax(-1).tolist() == result.greedy
        errors = []
        for token_ids, found in result.ragged:
            expected = model(torch.tensor([token_ids]), use_cache=False).logits[0, -len(found) :].float()
            errors.append((found - expected).norm(dim=-1) / expected.norm(dim=-1))
    return float(torch.cat(errors).max())


def _num_parameters(model: torch.nn.Module) -> int:
    """Packed linear layers included, whose weights are no parameters."""
    packed = (each for each in model.modules() if isinstance(each, PackedModule))
    return sum(map(torch.Tensor.numel, model.parameters())) + sum(
        each.in_features * each.out_features for each in packed
    )
