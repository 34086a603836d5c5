"""Models of transformers on two ranks: a busy engine gives the tokens of the stock model, and a runtime the texts of one process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.model.host_runner import HostRunner
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.messages import end_words
from rtlang.runtime.runtime import Runtime
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.family_check import SMALL, check_tokens, load_config
from tests.support.models.rank_threads import TIMEOUT_S, RankThreads, rank_threads
from tests.support.models.tiny_models import make_checkpoint, random_model, save_checkpoint

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def ranks() -> Iterator[RankThreads]:
    with rank_threads(2) as made:
        yield made


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "qwen3", "mixtral", "gemma2"])
def test_a_busy_engine_on_two_ranks_gives_the_greedy_tokens_of_transformers(
    model_type: str, ranks: RankThreads, tmp_path: Path
) -> None:
    (family,) = (family for family in FAMILIES if family.model_type == model_type)
    model = random_model(make_config(family))
    model.set_attn_implementation("eager")
    config = replace(load_config(save_checkpoint(model, tmp_path), "transformers", SMALL), tensor_parallel=2)

    def work(group: RankGroup) -> None:
        runner = HostRunner(config, group)
        runner.load()
        if not group.is_first:
            runner.follow()
            return
        try:
            check_tokens(runner, config, model, SMALL)
        finally:
            group.send(end_words())

    ranks.run(work)


def test_two_processes_give_the_text_of_one(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "mixtral")
    one = RuntimeConfig(model=str(path), dtype="float32", decoder="transformers", num_pages=64, num_threads=1)
    sampled = SamplingParams(max_tokens=24, temperature=1.0, seed=5, ignore_eos=True)
    texts = []
    for config in (one, replace(one, tensor_parallel=2)):
        with Runtime(config=config) as runtime:
            texts.append(runtime.generate("hello there", params=sampled).result(TIMEOUT_S).completions[0].text)
    assert texts[0] == texts[1]


def test_the_pages_of_a_rank_hold_its_heads_only(ranks: RankThreads, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "qwen2")
    config = RuntimeConfig(model=str(path), dtype="float32", decoder="transformers", num_pages=8, num_threads=1)

    def page_bytes(group: RankGroup | None) -> int:
        runner = HostRunner(config if group is None else replace(config, tensor_parallel=2), group)
        with torch.inference_mode():
            runner.load()
        if group is not None:
            if group.is_first:
                group.send(end_words())
            else:
                runner.follow()
        return runner.kv.page_bytes

    whole = page_bytes(None)
    assert ranks.run(page_bytes) == [whole // 2, whole // 2]
