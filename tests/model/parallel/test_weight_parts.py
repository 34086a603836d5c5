"""Models of the Llama family over two ranks, token for token as in one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from safetensors.torch import load_file, save_file

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.model.host_runner import HostRunner
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.loading.quantized.int8_rows import SCALE_SUFFIX, int8_config, quantized
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.messages import end_words
from rtlang.model.parallel.weight_parts import part_of
from tests.support.models.model_steps import greedy_tokens
from tests.support.models.rank_threads import RankThreads, rank_threads
from tests.support.models.tiny_models import make_checkpoint

T = TypeVar("T")
PROMPT = [7, 40, 99, 3, 250, 11, 68]
NUM_TOKENS = 12
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama with biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "qwen2": ("qwen2", {"use_sliding_window": False}),
    "qwen3": ("qwen3", {}),
    "tied head": ("llama", {"tie_word_embeddings": True}),
    "one KV head": ("llama", {"num_key_value_heads": 1}),
}


@pytest.fixture(scope="module")
def ranks() -> Iterator[RankThreads]:
    with rank_threads(2) as threads:
        yield threads


def settings(path: Path, **rest: Any) -> RuntimeConfig:
    return RuntimeConfig(
        **{"model": str(path), "dtype": "float32", "num_pages": 24, "page_size": 4, "num_threads": 1, **rest}
    )


def alone(config: RuntimeConfig, work: Callable[[HostRunner], T]) -> T:
    runner = HostRunner(config)
    runner.load()
    return work(runner)


def together(ranks: RankThreads, config: RuntimeConfig, work: Callable[[HostRunner], T]) -> T:
    def act(group: RankGroup) -> T | None:
        runner = HostRunner(replace(config, tensor_parallel=ranks.size), group)
        runner.load()
        if not group.is_first:
            runner.follow()
            return None
        found = work(runner)
        group.send(end_words())
        return found

    found = ranks.run(act)[0]
    assert found is not None
    return found


def quantize(path: Path, *, quantizes_inputs: bool) -> None:
    state = load_file(path / "model.safetensors")
    for name in [name for name in state if name.endswith("_proj.weight")]:
        state[name], state[name + SCALE_SUFFIX] = quantized(state[name])
    save_file(state, path / "model.safetensors")
    config = json.loads((path / "config.json").read_text())
    config["quantization_config"] = int8_config(quantizes_inputs=quantizes_inputs)
    (path / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("name", MODELS)
def test_two_ranks_give_the_tokens_of_one_process(ranks: RankThreads, tmp_path: Path, name: str) -> None:
    family, overrides = MODELS[name]
    config = settings(make_checkpoint(tmp_path, family, **overrides))
    expected = alone(config, lambda runner: greedy_tokens(runner, PROMPT, NUM_TOKENS))
    assert len(set(expected)) > 3
    assert together(ranks, config, lambda runner: greedy_tokens(runner, PROMPT, NUM_TOKENS)) == expected


@pytest.mark.parametrize("quantizes_inputs", [False, True])
def test_int8_weights_give_the_same_tokens_in_parts(ranks: RankThreads, tmp_path: Path, quantizes_inputs: bool) -> None:
    config = settings(make_checkpoint(tmp_path, "llama"))
    quantize(tmp_path, quantizes_inputs=quantizes_inputs)
    expected = alone(config, lambda runner: greedy_tokens(runner, PROMPT, NUM_TOKENS))

    def work(runner: HostRunner) -> list[int]:
        decoder: Any = runner.decoder
        assert all(each.is_low_bit == quantizes_inputs for layer in decoder._layers for each in layer.linears)
        return greedy_tokens(runner, PROMPT, NUM_TOKENS)

    assert together(ranks, config, work) == expected


def test_each_rank_has_its_part_of_weights_and_pages(ranks: RankThreads, tmp_path: Path) -> None:
    config = settings(make_checkpoint(tmp_path, "llama"))
    whole = alone(config, lambda runner: runner.kv.page_bytes)

    def work(runner: HostRunner) -> tuple[int, int, int]:
        decoder: Any = runner.decoder
        return runner.kv.page_bytes, runner.page_memory.page_bytes, decoder._layers[0].feed_forward.down.in_features

    assert together(ranks, config, work) == (whole // 2, whole, 48)


def test_noise_as_weights_is_cut_from_the_noise_of_the_whole_model(ranks: RankThreads, tmp_path: Path) -> None:
    config = settings(make_checkpoint(tmp_path, "llama"), weights="dummy", weights_seed=3)
    expected = alone(config, lambda runner: greedy_tokens(runner, PROMPT, 6))
    assert together(ranks, config, lambda runner: greedy_tokens(runner, PROMPT, 6)) == expected


@pytest.mark.parametrize(
    ("overrides", "size"),
    [
        ({}, 3),
        ({"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 3}, 2),
        ({"intermediate_size": 97}, 2),
    ],
)
def test_a_model_that_cannot_be_divided_is_refused(tmp_path: Path, overrides: dict[str, Any], size: int) -> None:
    config = ModelConfig.from_pretrained(make_checkpoint(tmp_path, "llama", **overrides))
    with pytest.raises(ConfigError, match=f"tensor_parallel = {size}: expected a divisor of"):
        part_of(config, size)


def test_more_ranks_than_kv_heads_hold_the_same_ones(tmp_path: Path) -> None:
    config = ModelConfig.from_pretrained(make_checkpoint(tmp_path, "llama"))
    part = part_of(config, 4)
    assert (part.num_q_heads, part.num_kv_heads) == (1, 1)
    assert torch.tensor([rank * config.num_kv_heads // 4 for rank in range(4)]).tolist() == [0, 0, 1, 1]
