"""A million fuzzed frames, graphs and bodies, in blocks that can each be repeated alone.

    python -m tests.support.fuzzing.blocks --inputs 1000000 [--processes 2] [--seed 1] [--first-block 0]
    python -m tests.support.fuzzing.blocks --block 1234 [--seed 1]

Most blocks run against a server in memory around a runtime without a model; one in twenty goes over real sockets, one in twenty to a
server in memory around a model, and one in twenty speaks WebSocket mode (`--first-block 16 --stride 20 --processes 1` runs these alone). A
block's inputs follow from the seed and its number. After each block, the server must be healthy; at the end of a process, all pages of the
model's KV pool are free or cached and memory has not grown since a quarter of the blocks. The exit code
is 1 if an answer is wrong, none comes, a page is lost, or memory has grown by more than 64 MiB.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from random import Random
from typing import Any

import msgpack
from websockets.frames import Opcode

import rtlang
from rtlang.protocol.serialization import Encoding
from rtlang.testing import ScriptedRuntime
from rtlang_grammars.api.precompile import precompile
from tests.support.fuzzing.memory_server import MemoryServer
from tests.support.fuzzing.turn_messages import TURN_ENDS, turn_message
from tests.support.servers.fuzz import Fuzzer, body, frame, graph_frame, lost_pages, resident_bytes, served

BLOCK = 500
"""Inputs of a block."""

PATTERN = ("frames", "bodies", "frames", "graphs", "frames", "bodies", "frames", "frames", "bodies", "graphs") * 2
KINDS = (*PATTERN[:9], "model", *PATTERN[10:16], "turns", *PATTERN[17:19], "sockets")
"""Kinds of blocks, by their number."""

_AT_ONCE = 8
_HANG_MODEL_S = 300.0  # some ask for 65,536 tokens
_GROWN_BYTES = 64 << 20
_HELLO = {True: b'{"t": "hello", "v": 1}', False: msgpack.packb({"t": "hello", "v": 1})}


def kind_of(block: int) -> str:
    """The kind of a block."""
    return KINDS[block % len(KINDS)]


class Blocks:
    """Runs blocks against servers of this process, which are made when they are first needed. Use on a running loop.

    Attributes:
        ends: how often each status came, and connections and bytes of output.
    """

    def __init__(self, seed: int) -> None:
        self._seed, self._stack = seed, ExitStack()
        self._memory: MemoryServer | None = None
        self._model: tuple[MemoryServer, Any] | None = None
        self._fuzzer: Fuzzer | None = None
        self.ends: Counter[str] = Counter()

    async def run(self, block: int) -> None:
        """Run a block.

        Raises:
            AssertionError: an answer is wrong, or did not come.
        """
        rng, kind = Random(f"{self._seed}/{block}"), kind_of(block)
        if kind == "sockets":
            await asyncio.to_thread(self._over_sockets, rng)
            return
        if kind == "turns":
            await self._turns(rng)
            return
        server = self._server_with_model() if kind == "model" else self._server()
        work = []
        left = BLOCK
        while left:
            count = min(left, rng.choice((4, 20, 100)))
            left -= count
            is_body = kind == "bodies" or (kind == "model" and rng.random() < 0.2)
            makes_graphs = kind == "graphs" or (kind == "model" and rng.random() < 0.5)
            inner = Random(rng.getrandbits(64))
            work.append(
                self._bodies(server, inner, count) if is_body else self._frames(server, inner, count, makes_graphs)
            )
        await _some_at_once(work)
        await server.check()

    async def _frames(self, server: MemoryServer, rng: Random, count: int, makes_graphs: bool) -> None:
        encoding = rng.choice((Encoding.JSON, Encoding.MSGPACK))
        make = graph_frame if makes_graphs else frame
        messages = [make(rng, encoding, number + 1) for number in range(count)]
        messages.insert(0, _HELLO[encoding.is_text])
        size = await server.converse(encoding.value, messages, is_text=encoding.is_text)
        self.ends["connections"] += 1
        self.ends["output bytes"] += size

    async def _bodies(self, server: MemoryServer, rng: Random, count: int) -> None:
        for _ in range(count):
            path, data = body(rng)
            status, answer = await server.post(path, data)
            self.ends[str(status)] += 1
            assert 200 <= status < 500 or status in (501, 503, 504), (path, data, status, answer[:500])

    async def _turns(self, rng: Random) -> None:
        """Messages of WebSocket mode; one connection in eight meets a model, one in four leaves early."""
        work, left = [], BLOCK
        while left:
            count = min(left, rng.choice((4, 20, 60)))
            left -= count
            messages = [turn_message(rng) for _ in range(count)]
            server = self._server_with_model() if rng.random() < 0.125 else self._server()
            leaves_after = rng.randint(0, 4000) if rng.random() < 0.25 else None
            work.append(self._one_connection(server, messages, leaves_after))
        await _some_at_once(work)
        await self._server().check()

    async def _one_connection(
        self, server: MemoryServer, messages: list[tuple[Opcode, bytes]], leaves_after: int | None
    ) -> None:
        frames = await server.turns(messages, leaves_after)
        self.ends["connections"] += 1
        running: dict[str | None, str] = {}  # the response of each lane that has begun and not ended
        for data in frames:
            event = json.loads(data)
            kind, lane = event["type"], event.get("stream_id")
            self.ends[kind if kind in TURN_ENDS else "events"] += 1
            if kind == "response.created":
                assert lane not in running, "two responses of one lane at once"
                running[lane] = event["response"]["id"]
            elif kind in TURN_ENDS[:3]:
                assert running.pop(lane) == event["response"]["id"]
            elif kind == "error":
                assert 400 <= event["status"] < 500 or event["status"] in (501, 503, 504), event
                assert event["error"]["message"]

    def _over_sockets(self, rng: Random) -> None:
        if self._fuzzer is None:
            url, _ = self._stack.enter_context(served(with_model=False))
            self._fuzzer = Fuzzer(url, 0)
        self._fuzzer.rng = rng
        self._fuzzer.round(frame, BLOCK // 2)
        self._fuzzer.bodies(BLOCK // 4)
        self._fuzzer.round(graph_frame, BLOCK - BLOCK // 2 - BLOCK // 4)
        self._fuzzer.check()

    def _server(self) -> MemoryServer:
        if self._memory is None:
            target: Any = self._stack.enter_context(ScriptedRuntime(default="ab", checks=False))
            self._memory = MemoryServer(target)
        return self._memory

    def _server_with_model(self) -> MemoryServer:
        if self._model is None:
            runtime = self._stack.enter_context(rtlang.Runtime(num_pages=2048, grammar_timeout_s=1.0))
            self._model = MemoryServer(runtime, _HANG_MODEL_S), runtime
        return self._model[0]

    def lost_pages(self) -> int:
        """Pages of the model's pool that are neither free nor cached once nothing runs."""
        return 0 if self._model is None else lost_pages(self._model[1])

    def close(self) -> None:
        """End all servers."""
        for server in (self._memory, None if self._model is None else self._model[0]):
            if server is not None:
                server.close()
        self._stack.close()


async def _some_at_once(work: list[Any]) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(each: Any) -> None:
        async with gate:
            await each

    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(one(each))


async def run_blocks(numbers: range, seed: int, tell_s: float = 10.0) -> int:
    """Run blocks in turn and print how it goes; the exit code."""
    await asyncio.to_thread(precompile)  # a minute on a machine that has not done it; no hang of the server
    blocks, started, told, settled = Blocks(seed), time.monotonic(), 0.0, 0
    failed = 0
    for done, block in enumerate(numbers, 1):
        try:
            await blocks.run(block)
        except BaseException:
            sys.stdout.write(f"block {block} ({kind_of(block)}) failed; repeat it: --seed {seed} --block {block}\n")
            traceback.print_exc()
            failed += 1
        if not settled and done >= len(numbers) / 4:
            gc.collect()
            settled = resident_bytes()
        now = time.monotonic() - started
        if now - told > tell_s or done == len(numbers):
            told = now
            rate, cpu = done * BLOCK / now, 1e6 * time.process_time() / (done * BLOCK)
            sys.stdout.write(
                f"block {block}: {done * BLOCK} inputs, {rate:.0f}/s, {cpu:.0f} us of CPU each, {resident_bytes() >> 20} MiB\n"
            )
            sys.stdout.flush()
    lost = await asyncio.to_thread(blocks.lost_pages)
    gc.collect()
    grown = resident_bytes() - settled
    num_inputs = len(numbers) * BLOCK
    sys.stdout.write(
        f"{num_inputs} inputs, {failed} blocks failed, {lost} pages lost, grown {grown / (1 << 20):.1f} MiB, {dict(blocks.ends)}\n"
    )
    blocks.close()
    return int(bool(failed or lost or (grown > _GROWN_BYTES and len(numbers) >= 40)))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.fuzzing.blocks")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first-block", type=int, default=0)
    parser.add_argument("--block", type=int, help="repeat this block alone")
    parser.add_argument("--stride", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.block is not None:
        return asyncio.run(run_blocks(range(options.block, options.block + 1), options.seed))
    count = -(-options.inputs // BLOCK)
    if options.processes <= 1:
        last = options.first_block + count * options.stride
        return asyncio.run(run_blocks(range(options.first_block, last, options.stride), options.seed))
    workers = []
    for number in range(options.processes):
        share = len(range(number, count, options.processes))
        command = [
            sys.executable,
            "-m",
            "tests.support.fuzzing.blocks",
            "--processes",
            "1",
            "--seed",
            str(options.seed),
        ]
        command += ["--inputs", str(share * BLOCK), "--stride", str(options.processes)]
        workers.append(subprocess.Popen([*command, "--first-block", str(options.first_block + number)]))
    return max([each.wait() for each in workers])


if __name__ == "__main__":
    sys.exit(main())
