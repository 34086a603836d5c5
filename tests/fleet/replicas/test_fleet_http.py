"""HTTP clients of a fleet, the unmodified `openai` package: engines end or hang under their streams, and no text changes or breaks off."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from openai import OpenAI

from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.fleet.engines import engine_link
from rtlang.fleet.host.engine_host import EngineHost
from rtlang.fleet.replicas.fleet import Fleet
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.servers.engine_threads import ThreadLauncher
from tests.support.waiting import wait_until

CONFIG = RuntimeConfig(dtype="float32", num_pages=400, num_threads=1)
NAMES = ("a", "b")
NUM_CLIENTS = 6


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, EngineHost]]:
    hosts = {name: EngineHost() for name in NAMES}
    yield hosts
    for host in hosts.values():
        host.close()


@pytest.fixture
def launchers(hosts: dict[str, EngineHost], monkeypatch: pytest.MonkeyPatch) -> dict[str, ThreadLauncher]:
    monkeypatch.setattr(engine_link, "MAX_PAUSE_S", 0.05)
    return {name: ThreadLauncher(host, name) for name, host in hosts.items()}


class Clients:
    """Clients that stream at once, every other one a chat.

    Attributes:
        num_chunks: that have come, of all together.
    """

    def __init__(self, url: str) -> None:
        self._url = url.replace("ws", "http", 1) + "/v1"
        self.num_chunks = 0

    def stream(self, index: int) -> tuple[str, list[str], int]:
        """The text, the finish reasons, and the number of output tokens of a stream that nobody tries again."""
        texts, reasons, num_tokens = [], [], 0
        with OpenAI(base_url=self._url, api_key="any", max_retries=0, timeout=120) as client:
            asked = {"model": "tiny", "max_tokens": 40, "temperature": 1.0, "seed": index, "stream": True}
            asked["stream_options"] = {"include_usage": True}
            if index % 2:
                messages = [{"role": "user", "content": f"Tell me story {index}."}]
                stream = client.chat.completions.create(messages=messages, **asked)  # type: ignore[call-overload]
            else:
                stream = client.completions.create(prompt=f"Story {index}:", **asked)  # type: ignore[call-overload]
            for chunk in stream:
                self.num_chunks += 1
                for choice in chunk.choices:
                    texts.append((choice.delta.content if index % 2 else choice.text) or "")
                    reasons += [choice.finish_reason] if choice.finish_reason else []
                num_tokens = chunk.usage.completion_tokens if chunk.usage else num_tokens
        return "".join(texts), reasons, num_tokens


@pytest.fixture
def fleet(launchers: dict[str, ThreadLauncher]) -> Iterator[Fleet]:
    with Fleet(launchers.values(), CONFIG, stall_timeout_s=6.0) as fleet:
        assert all(fleet.wait_until_ready(name, 60.0) for name in NAMES)
        yield fleet


@pytest.fixture
def clients(fleet: Fleet) -> Iterator[Clients]:
    with running_server(fleet, ServeConfig(port=0), TokenizerInfo("tiny"), metrics=fleet.metrics) as url:
        yield Clients(url)


def test_streams_of_http_clients_survive_engines_that_end(
    fleet: Fleet, clients: Clients, launchers: dict[str, ThreadLauncher]
) -> None:
    rng = random.Random(11)
    with ThreadPoolExecutor(NUM_CLIENTS) as pool:
        undisturbed = list(pool.map(clients.stream, range(NUM_CLIENTS)))
        assert all(len(reasons) == 1 and num_tokens for _, reasons, num_tokens in undisturbed)
        running, num_kills = [pool.submit(clients.stream, index) for index in range(NUM_CLIENTS)], 0
        next_kill = clients.num_chunks
        while not all(each.done() for each in running):
            wait_until(lambda: clients.num_chunks >= next_kill or all(each.done() for each in running))  # noqa: B023
            launchers[rng.choice(NAMES)].engines[-1].kill()
            next_kill, num_kills = clients.num_chunks + rng.randrange(20, 60), num_kills + 1
        assert [each.result() for each in running] == undisturbed
    assert num_kills >= 3
    assert sum(replica.num_moved for replica in fleet.fleet_report().replicas) > 0


@pytest.mark.long
def test_streams_of_http_clients_leave_an_engine_that_hangs(
    fleet: Fleet, clients: Clients, hosts: dict[str, EngineHost]
) -> None:
    hangs, goes_on, runtime = threading.Event(), threading.Event(), hosts["a"]._runtime
    assert runtime is not None

    def hang() -> None:
        hangs.set()
        goes_on.wait(120)

    def num_programs() -> dict[str, int]:
        return {replica.name: replica.num_programs for replica in fleet.fleet_report().replicas}

    with ThreadPoolExecutor(NUM_CLIENTS) as pool:
        undisturbed = list(pool.map(clients.stream, range(NUM_CLIENTS)))
        runtime.post(hang)
        assert hangs.wait(60)
        try:
            running = [pool.submit(clients.stream, index) for index in range(NUM_CLIENTS)]
            wait_until(lambda: num_programs()["a"] > 0)
            assert [each.result(90) for each in running] == undisturbed
        finally:
            goes_on.set()
    assert sum(replica.num_deaths for replica in fleet.fleet_report().replicas) >= 1
