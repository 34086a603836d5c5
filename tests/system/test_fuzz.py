"""Fuzzed input, short. The long runs are commands: see tests/support/servers/fuzz.py and tests/support/fuzzing/blocks.py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rtlang.testing import ScriptedRuntime
from tests.support.fuzzing import memory_server
from tests.support.fuzzing.blocks import Blocks, kind_of, run_blocks
from tests.support.fuzzing.memory_server import Hang, MemoryServer
from tests.support.long_tests import sized
from tests.support.servers.fuzz import MESSAGES, Fuzzer, frame, graph_frame, lost_pages, served
from tests.support.servers.fuzz_connection import one_input


@pytest.fixture(scope="module")
def fuzzer() -> Iterator[Fuzzer]:
    with served(with_model=False) as (url, target):
        yield Fuzzer(url, seed=3)
        assert lost_pages(target) == 0


def test_frames_are_answered_and_the_server_goes_on(fuzzer: Fuzzer) -> None:
    fuzzer.round(frame, 600)
    fuzzer.check()
    assert fuzzer.num_answers > 100


def test_graphs_are_answered_and_the_server_goes_on(fuzzer: Fuzzer) -> None:
    fuzzer.round(graph_frame, 200)
    fuzzer.check()


def test_bodies_are_answered_without_a_fault(fuzzer: Fuzzer) -> None:
    fuzzer.bodies(150)
    fuzzer.check()
    assert sum(fuzzer.statuses.values()) > 50


@pytest.mark.parametrize("block", [0, 1, 3, 16])
def test_blocks_in_memory_are_answered(block: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert asyncio.run(run_blocks(range(block, block + 1), seed=5)) == 0
    assert "500 inputs, 0 blocks failed, 0 pages lost" in capsys.readouterr().out


def test_the_inputs_of_a_block_follow_from_its_number() -> None:
    async def ends() -> dict[str, int]:
        blocks = Blocks(7)
        await blocks.run(5)
        blocks.close()
        return dict(blocks.ends)

    assert kind_of(5) == "bodies"
    assert asyncio.run(ends()) == asyncio.run(ends())
    assert {kind_of(block) for block in range(20)} == {"frames", "bodies", "graphs", "model", "sockets", "turns"}


def test_a_block_that_meets_a_fault_or_a_hang_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(server: MemoryServer, path: str, body: bytes) -> tuple[int, bytes]:
        return 500, b"sorry"

    monkeypatch.setattr(MemoryServer, "post", broken)
    assert asyncio.run(run_blocks(range(1, 2), seed=1)) == 1
    assert "block 1 (bodies) failed; repeat it: --seed 1 --block 1" in capsys.readouterr().out


def test_a_server_that_says_nothing_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_server, "HANG_S", 0.2)

    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    async def ask() -> None:
        with ScriptedRuntime(default="ab", checks=False) as target:
            server = MemoryServer(target)
            assert await server.converse("rtlang.v1.json", [b'{"t": "hello", "v": 1}'], is_text=True) > 0
            monkeypatch.setattr(memory_server.StreamSocket, "_process", lambda *given: None)
            with pytest.raises(Hang, match="no pong after 1 messages"):
                await server.converse("rtlang.v1.json", [b"{}"], is_text=True)
            monkeypatch.setattr(server, "_app", never)
            with pytest.raises(Hang, match="no answer to /tokenize"):
                await server.post("/tokenize", b"{}")

    asyncio.run(ask())


WORDS = st.sampled_from(
    sorted({key for message in MESSAGES for key in message} | {"open", "program", "generate", "\0"})
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=9) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
CHANGED = st.sampled_from(MESSAGES).flatmap(
    lambda message: st.dictionaries(st.sampled_from(sorted(message)) | WORDS, VALUES, max_size=3).map(
        lambda changes: {**message, **changes}
    )
)


@given(st.integers(0, 7), st.lists(CHANGED | VALUES, max_size=5))
@example(0, [MESSAGES[0], {**MESSAGES[0], "s": 2}, MESSAGES[5]])
@settings(max_examples=sized(150), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_sequence_of_messages_raises(choice: int, values: list[object]) -> None:
    data = bytes([choice])
    for value in values:
        packed = (json.dumps(value).encode(), msgpack.packb(value))[choice % 2]
        data += len(packed).to_bytes(2, "big") + packed
    one_input(data)
    one_input(bytes([choice ^ 1]) + data[1:])


@given(st.binary(max_size=300))
@settings(max_examples=sized(150), deadline=None, derandomize=True)
def test_no_bytes_raise(data: bytes) -> None:
    one_input(data)
