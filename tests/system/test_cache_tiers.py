"""A real model whose pool holds a part of its working set, with and without tiers below: the same texts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rtlang.contract.params import SamplingParams
from rtlang.runtime.runtime import Runtime
from tests.support.servers.free_port import free_port

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
