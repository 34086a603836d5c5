"""Draft heads predict what the layers of `transformers` predict from the same states, whatever the steps."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.model.draft_heads.head_config import MTP
from rtlang.model.host_runner import HostRunner
from tests.support.models.draft_heads import EAGLE, EAGLE_3, SPECULATORS, predicted, write_head, write_mtp
from tests.support.models.families import FAMILIES as FAMILY_LIST
from tests.support.models.families import make_config
from tests.support.models.tiny_models import make_checkpoint, make_model, random_model, write_tokenizer

LAYERS = {"num_hidden_layers": 8}
PAGE = 4
TOKENS = [int(each) for each in np.random.default_rng(0).integers(0, 250, 23)]


def loaded(target: Path, head: Path | str) -> HostRunner:
    runner = HostRunner(
        RuntimeConfig(
            model=str(target), draft_model=str(head), dtype="float32", page_size=PAGE, num_pages=40, num_threads=1
        )
    )
    runner.load()
    return runner


def row(start: int, stop: int, *, pages: tuple[int, ...] = tuple(range(1, 30)), name: int = 7, **options: Any) -> Row:
    return Row(name, TOKENS[start:stop], start, pages, 0, True, SamplingParams(), **options)


def drafted(runner: HostRunner, num_computed: int, num_drafts: int) -> list[torch.Tensor]:
    """Logits after the last known token, and after each likeliest next one, in steps of the head."""
    assert runner.head is not None
    found: list[torch.Tensor] = []
    token_id = TOKENS[num_computed]
    for draft in range(num_drafts + 1):
        each = Row(7, (token_id,), num_computed + draft, tuple(range(1, 30)), 0, True, SamplingParams())
        flight = runner.head.launch(Step(100 + draft, (each,)))
        assert flight.logits is not None
        found.append(flight.logits[0].double())
        token_id = int(found[-1].argmax())
    return found


@pytest.mark.parametrize("layout", [EAGLE, EAGLE_3, SPECULATORS])
def test_the_logits_are_those_of_transformers(layout: str, tmp_path: Path) -> None:
    model = make_model(**LAYERS)
    target = make_checkpoint(tmp_path / "target", **LAYERS)
    head = write_head(tmp_path / "head", layout, model, norm_before_residual=layout == SPECULATORS)
    expected = predicted(head, model, TOKENS, num_drafts=3)[len(TOKENS) - 2 :]
    runner = loaded(target, head)
    before = len(TOKENS) - 1  # the last token is sampled, not computed
    for cuts in ([0, before], [0, 5, 6, 7, 16, before], list(range(before + 1))):
        for start, stop in itertools.pairwise(cuts):
            runner.launch(Step(1, (row(start, stop),)))
        for found, wanted in zip(drafted(runner, before, 3), expected, strict=True):
            assert torch.equal(found == -torch.inf, wanted == -torch.inf)
            finite = wanted > -torch.inf
            assert (found - wanted)[finite].abs().max() < 2e-4 * wanted[finite].abs().max(), cuts
    # drafts in a step, of which the second is wrong: the states after it are not used
    wrong = row(before - 3, before)._replace(token_ids=[*TOKENS[before - 3 : before - 1], 3], num_draft_tokens=2)
    runner.launch(Step(2, (row(0, before - 3),)))
    runner.launch(Step(3, (wrong,)))
    runner.launch(Step(4, (row(before - 1, before),)))
    assert torch.allclose(drafted(runner, before, 0)[0], expected[0], atol=1e-3)
    runner.close()


@pytest.mark.parametrize("family", ["qwen3_5_text", "qwen3_next"])
def test_the_layer_of_a_model_itself(family: str, tmp_path: Path) -> None:
    config = make_config(next(each for each in FAMILY_LIST if each.model_type == family))
    config._attn_implementation = "eager"
    model = random_model(config)
    model.save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    predict = write_mtp(tmp_path, model)
    expected = predict(TOKENS)[-1]
    runner = loaded(tmp_path, MTP)
    before = len(TOKENS) - 1
    states = [RowStates(None, ((6, 0),)), RowStates(0, ((before - 6, 1),))]
    for (start, stop), each in zip(((0, 6), (6, before)), states, strict=True):
        runner.launch(Step(1, (row(start, stop, states=each),)))
    (found,) = drafted(runner, before, 0)
    assert (found - expected).abs().max() < 2e-4 * expected.abs().max()
    runner.close()
