"""Draft heads in an engine: no text changes, and a head that knows the next token is always right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from rtlang.contract.config import RuntimeConfig
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.drafts.draft_model import DraftModel
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.drafts.model_pages import HeadPages
from rtlang.engine.drafts.model_policy import ModelPolicy
from rtlang.engine.engine import Engine
from rtlang.engine.planning.step_cost import StepSize
from rtlang.model.host_runner import HostRunner
from tests.engine.drafts.test_drafter_exactness import OPTIONS, PROMPTS, World, assert_same
from tests.support.engine.draft_sources import FreeCost
from tests.support.long_tests import is_long
from tests.support.models.draft_heads import EAGLE, EAGLE_3, write_head
from tests.support.models.tiny_models import make_checkpoint, make_model

NAMES = ("seeded", "penalties", "schema", "stops", "ignore_eos", "logprobs")


@pytest.fixture
def runners() -> Iterator[Any]:
    """Loads runners, and closes them."""
    made: list[HostRunner] = []

    def load(path: Path, head: Path | None, **settings: Any) -> HostRunner:
        config = RuntimeConfig(
            model=str(path),
            draft_model=None if head is None else str(head),
            dtype="float32",
            num_threads=1,
            num_pages=300,
            page_size=8,
            grammar_timeout_s=60,
            **settings,
        )
        made.append(HostRunner(config))
        made[-1].load()
        return made[-1]

    yield load
    for runner in made:
        runner.close()


def outcomes(runner: HostRunner, names: tuple[str, ...], prompts: tuple[str, ...] = PROMPTS) -> Any:
    """What every prompt gives with every option, and the drafter if there is a head."""

    def drafter(engine: Engine) -> Drafter:
        assert runner.head is not None
        pages = HeadPages(runner.head, runner.config.page_size)
        model = DraftModel(runner.config, runner.head, runner.model_config.vocab_size, pages=pages)
        model.cost.observe(StepSize(1, 1, 10), 1e-3)
        return Drafter((), FreeCost(), model=ModelPolicy(model, FreeCost()))

    compiler = ConstraintCompiler(runner.config, runner.tokenizer, runner.model_config.vocab_size)
    world = World(runner, compiler, None if runner.head is None else drafter, max_rows=8, max_step_tokens=96)
    for seed, prompt in enumerate(prompts):
        for name in names:
            world.add(runner.tokenizer.encode(prompt, is_start=True), OPTIONS[name], seed=seed)
    world.run()
    compiler.close()
    if runner.head is not None:
        world.drafter.model.pages.check()
    return world


@pytest.mark.parametrize("layout", [EAGLE, EAGLE_3])
def test_a_random_head_keeps_every_text(layout: str, runners: Any, tmp_path: Path) -> None:
    layers = {"num_hidden_layers": 3}
    target = make_checkpoint(tmp_path / "target", **layers)
    head = write_head(tmp_path / "head", layout, make_model(**layers), tapped=[0, 1, 2])
    names = tuple(OPTIONS) if is_long() else NAMES
    expected = outcomes(runners(target, None), names).outcomes
    world = outcomes(runners(target, head), names)
    for found, wanted, name in zip(world.outcomes, expected, names * len(PROMPTS), strict=True):
        assert_same(found, wanted, name)
    assert world.drafter.num_drafted["draft_model"] > 100


def test_a_head_that_knows_the_model_is_always_right(runners: Any, tmp_path: Path) -> None:
    """A model of which a token follows from the one before alone, and a head that does the same: each noise key meets its token."""
    target, model = make_checkpoint(tmp_path / "target"), make_model()
    head = write_head(tmp_path / "head", EAGLE, model)
    weights = load_file(target / "model.safetensors")
    for name, tensor in weights.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            tensor.zero_()
        elif name == "model.norm.weight":
            tensor.fill_(1.0)
    embedding = weights["model.embed_tokens.weight"]
    embedding /= (embedding.square().mean(1, keepdim=True) + 1e-6).sqrt()  # the last norm changes nothing
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    parts = load_file(head / "model.safetensors") | {"embed_tokens.weight": embedding}
    for name in ("layers.0.self_attn.o_proj.weight", "layers.0.mlp.down_proj.weight", "fc.weight"):
        parts[name].zero_()
    hidden = embedding.shape[1]
    parts["fc.weight"][:, :hidden] = torch.eye(hidden)
    save_file(parts, head / "model.safetensors")
    names = ("greedy", "seeded", "ignore_eos", "logprobs")
    world = outcomes(runners(target, head), names)
    expected = outcomes(runners(target, None), names).outcomes
    for found, wanted, name in zip(world.outcomes, expected, names * len(PROMPTS), strict=True):
        assert_same(found, wanted, name)
    drafted, accepted = (counts["draft_model"] for counts in (world.drafter.num_drafted, world.drafter.num_accepted))
    assert accepted == drafted > 200
