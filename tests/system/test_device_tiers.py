"""Tiers below the pool of a device, in triton's interpreter: the texts are those without tiers, and of the CPU.

Copies beside the steps happen when somebody waits for them, so a page that a step reads too early has what was there before.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.params import SamplingParams
from rtlang.engine import engine
from rtlang.model import device_runner
from rtlang.model.gpu import device_graphs
from rtlang.runtime.runtime import Runtime
from tests.support.kernels.late_copies import LateCopies
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.tiny_models import make_checkpoint, random_model, save_checkpoint
from tests.support.servers.free_port import free_port

pytestmark = pytest.mark.slow
PAGE, LENGTH = 4, 20
DOCUMENTS = [[(number * 37 + 11 * at) % 250 + 3 for at in range(LENGTH)] for number in range(2)]
ORDER = (0, 1, 0)  # each comes back after the pool has lost it, if that has room for one and a half
PARAMS = SamplingParams(max_tokens=3, ignore_eos=True, temperature=0.8, seed=3)


@pytest.fixture(autouse=True)
def late(monkeypatch: pytest.MonkeyPatch) -> list[LateCopies]:
    """The devices of the test's runtimes."""
    made: list[LateCopies] = []

    def device(name: str) -> LateCopies:
        assert name == "interpreter"
        made.append(LateCopies())
        return made[-1]

    monkeypatch.setattr(device_runner, "accelerator_for", device)
    monkeypatch.setattr(device_graphs, "GRAPH_TOKENS", (2,))
    monkeypatch.setattr(engine, "compute_seconds", lambda *_, **__: None)  # the time of a step here says nothing
    return made


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_checkpoint(tmp_path_factory.mktemp("llama"), "llama", num_hidden_layers=1))


def runtime(model: str, monkeypatch: pytest.MonkeyPatch, device: str, **settings: Any) -> Runtime:
    if device == "cpu":
        monkeypatch.delenv("RTLANG_KERNELS", raising=False)
    else:
        monkeypatch.setenv("RTLANG_KERNELS", "triton")
    given = {"dtype": "float32", "page_size": PAGE, "num_threads": 1, "max_rows": 2, "max_model_len": 64, **settings}
    return Runtime(model=model, device=device, **given)


def texts(opened: Runtime) -> tuple[list[tuple[int, ...]], int]:
    """The outputs, and the number of tokens that came from below the pool."""
    with opened:
        while opened.config.cache_peers is not None and not opened.stats()["num_peers_connected"]:
            time.sleep(0.01)
        ends = [
            opened.generate(token_ids=[*DOCUMENTS[each], 5 + number], params=PARAMS).result()
            for number, each in enumerate(ORDER)
        ]
    usages = [end.usage for end in ends]
    num_fetched = sum(each.host_tokens + each.disk_tokens + each.peer_tokens for each in usages)
    return [end.completions[0].token_ids for end in ends], num_fetched


def test_texts_are_those_of_the_cpu_with_memory_below_the_pool(
    checkpoint: str, monkeypatch: pytest.MonkeyPatch, late: list[LateCopies]
) -> None:
    expected, _ = texts(runtime(checkpoint, monkeypatch, "cpu", num_pages=64))
    found, num_fetched = texts(runtime(checkpoint, monkeypatch, "interpreter", num_pages=7, cache_host_bytes=1 << 28))
    assert found == expected
    assert num_fetched >= LENGTH - 2 * PAGE
    assert late[-1].num_copies >= 3


@pytest.mark.long
def test_texts_are_those_of_the_cpu_with_files_and_pages_of_others(
    checkpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected, _ = texts(runtime(checkpoint, monkeypatch, "cpu", num_pages=64))
    with runtime(checkpoint, monkeypatch, "interpreter", num_pages=64, cache_dir=str(tmp_path)) as first:
        for document in DOCUMENTS:
            first.generate(token_ids=document, params=PARAMS).result()
    address = f"127.0.0.1:{free_port()}"
    settings = {"cache_dir": str(tmp_path), "cache_listen": address}
    with runtime(checkpoint, monkeypatch, "interpreter", num_pages=64, **settings) as first:
        again = first.generate(token_ids=[*DOCUMENTS[0], 5], params=PARAMS).result()
        assert (again.completions[0].token_ids, again.usage.disk_tokens) == (expected[0], LENGTH)
        found, num_fetched = texts(runtime(checkpoint, monkeypatch, "interpreter", num_pages=7, cache_peers=address))
    assert found == expected
    assert num_fetched > 2 * LENGTH


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")
def test_a_conversation_goes_on_from_a_stored_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the end of the last answer, inside a page, with the text of the CPU."""
    family = next(family for family in FAMILIES if family.model_type == "lfm2")
    model = str(save_checkpoint(random_model(make_config(family)), tmp_path / "model"))
    params = SamplingParams(max_tokens=6, ignore_eos=True, temperature=0.0)
    histories: dict[str, list[int]] = {}
    for device in ("cpu", "interpreter"):
        history = histories[device] = list[int]()
        for said in (DOCUMENTS[0][:17], DOCUMENTS[1][:4]):
            history += said
            known = len(history) - len(said) - 1  # the last token of an answer is not computed
            folder = tmp_path / device
            with runtime(model, monkeypatch, device, num_pages=32, cache_dir=str(folder)) as opened:
                end = opened.generate(token_ids=history, params=params).result()
                assert end.usage.cached_tokens == max(0, known)
                assert opened.stats()["num_states_loaded_from_disk"] == (known > 0)
            history += end.completions[0].token_ids
    assert histories["interpreter"] == histories["cpu"]
