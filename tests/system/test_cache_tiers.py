"""A real model whose pool holds a part of its working set, with and without tiers below: the same texts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.engine import engine
from rtlang.runtime.runtime import Runtime
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.tiny_models import random_model, save_checkpoint
from tests.support.servers.free_port import free_port
from tests.system.test_against_transformers import Naive

PAGE, LENGTH, NUM_DOCUMENTS = 16, 100, 4
WORKING_SET = NUM_DOCUMENTS * -(-LENGTH // PAGE)
PARAMS = SamplingParams(max_tokens=3, ignore_eos=True)


def connected(runtime: Runtime) -> None:
    """Wait until a runtime is connected to its peer."""
    while not runtime.stats()["num_peers_connected"]:
        time.sleep(0.01)


def texts(
    on_start: Callable[[Runtime], None] = lambda runtime: None, **settings: Any
) -> tuple[list[tuple[int, ...]], int]:
    """The outputs of prompts over some documents in a random order, and the number of tokens that came from below the pool."""
    generator = random.Random(0)
    with Runtime(num_threads=1, dtype="float32", page_size=PAGE, **settings) as runtime:
        on_start(runtime)
        vocab_size = runtime.text_service.info.vocab_size
        documents = [[generator.randrange(3, vocab_size) for _ in range(LENGTH)] for _ in range(NUM_DOCUMENTS)]
        ends = [
            runtime.generate(token_ids=[*generator.choice(documents), 5 + number], params=PARAMS).result()
            for number in range(12)
        ]
    usages = [end.usage for end in ends]
    return [end.completions[0].token_ids for end in ends], sum(
        each.host_tokens + each.disk_tokens + each.peer_tokens for each in usages
    )


def test_a_pool_of_a_part_of_the_working_set_gives_the_same_texts(tmp_path: Path) -> None:
    expected, num_fetched = texts()
    assert num_fetched == 0
    small = {"num_pages": WORKING_SET // 3}  # one prompt and its output need a quarter and one page
    assert texts(**small)[0] == expected
    for settings in ({"cache_host_bytes": 1 << 28}, {"cache_dir": str(tmp_path)}, {"cache_dir": str(tmp_path)}):
        found, num_fetched = texts(**small, **settings)
        assert found == expected
        assert num_fetched > 0


def test_pages_of_another_engine_give_the_same_texts() -> None:
    expected, _ = texts()
    address = f"127.0.0.1:{free_port()}"
    settings: dict[str, Any] = {"num_threads": 1, "dtype": "float32", "page_size": PAGE}
    with Runtime(cache_host_bytes=1 << 28, cache_listen=address, **settings) as first:
        generator = random.Random(0)
        vocab_size = first.text_service.info.vocab_size
        for _ in range(NUM_DOCUMENTS):
            document = [generator.randrange(3, vocab_size) for _ in range(LENGTH)]
            first.generate(token_ids=document, params=PARAMS).result()
        found, num_fetched = texts(cache_peers=address, on_start=connected)
        assert found == expected
        assert num_fetched > 0
        assert first.stats()["num_pages_served"] * PAGE >= num_fetched


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny Qwen3-Next: a layer with a state, and one with keys and values."""
    family = next(family for family in FAMILIES if family.model_type == "qwen3_next")
    return str(save_checkpoint(random_model(make_config(family)), tmp_path_factory.mktemp("hybrid")))


def answer(model: str, history: list[int], said: list[int], **settings: Any) -> tuple[Runtime, int]:
    """Add a turn and its answer to a conversation, on a new engine, which is returned with the number of tokens that it did not compute."""
    runtime = Runtime(model=model, num_threads=1, dtype="float32", page_size=4, num_pages=64, **settings)
    if "cache_peers" in settings:
        connected(runtime)
    history += said
    params = SamplingParams(max_tokens=NUM_ANSWERED, ignore_eos=True, temperature=0.0)
    end = runtime.generate(token_ids=history, params=params).result()
    history += end.completions[0].token_ids
    return runtime, end.usage.cached_tokens


NUM_ANSWERED = 25


@pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")
def test_a_conversation_of_a_hybrid_goes_on_after_a_restart_and_on_another_engine(
    hybrid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the end of the last answer, inside a page, with the tokens of `transformers`."""
    monkeypatch.setattr(
        engine, "compute_seconds", lambda *_, **__: None
    )  # a tiny model computes faster than a disk reads
    generator, history = random.Random(1), list[int]()
    said = [[generator.randrange(3, 250) for _ in range(length)] for length in (42, 6, 5)]
    address = f"127.0.0.1:{free_port()}"
    with answer(hybrid, history, said[0], cache_dir=str(tmp_path))[0]:
        pass
    assert len(history) % 4 == 3
    known = len(history) - 1  # the last token of an answer is not computed
    runtime, num_cached = answer(hybrid, history, said[1], cache_dir=str(tmp_path), cache_listen=address)
    with runtime as first:
        assert num_cached == known
        assert first.stats()["num_states_loaded_from_disk"] == 1
        known = len(history) - 1
        runtime, num_cached = answer(hybrid, history, said[2], cache_peers=address)
        with runtime as second:
            assert num_cached == known
            assert second.stats()["num_states_loaded_from_peer"] == 1
    naive, expected = Naive(Path(hybrid)), list[int]()
    for each in said:
        expected += each
        expected += naive.generate(expected, SamplingParams(max_tokens=NUM_ANSWERED, temperature=0.0), 0, set())
    assert history == expected
