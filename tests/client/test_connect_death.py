"""Servers that are killed in the middle of texts: clients go on at the same address or at another one, and no text changes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from typing import Any

import rtlang as rt
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from tests.client.test_connect_javascript import NODE, start
from tests.support.programs.graph_ear import Ear
from tests.support.servers.free_port import free_port
from tests.support.servers.killable_server import KillableServer, killable_servers
from tests.support.waiting import wait_until

WAIT_S = 100.0
NUM_TOKENS = 160
PARAMS = SamplingParams(max_tokens=NUM_TOKENS, temperature=1.0, ignore_eos=True)
TWO = SamplingParams(max_tokens=30, temperature=1.0, n=2, ignore_eos=True)


def graph(number: int) -> RequestGraph:
    return RequestGraph(
        (
            Text(0, None, (f"Story {number}:",)),
            Generate(1, 0, "x", PARAMS),
            Text(2, 1, (" And then",)),
            Generate(3, 2, "y", TWO),
        )
    )


def check(ear: Ear, values: dict[str, Any]) -> None:
    """One end, and texts that are those of the values."""
    assert len(ear.finals) == 1
    assert ear.values() == values
    assert ear.text[1, 0] == values["x"]
    assert [ear.text[3, choice] for choice in (0, 1)] == list(values["y"])


SCRIPT = """
const graph = JSON.parse(args[1]);
const runs = JSON.parse(args[0]).map(async ([number, urls]) => {
  const client = await rtlang.connect(urls, { resumeMs: 100000 });
  const nodes = graph.nodes.map((node) => (node.id === 0 ? { ...node, parts: [`Story ${number}:`] } : node));
  const stream = client.program({ graph: { nodes, inputs: [] }, seed: number });
  const texts = {};
  let pieces = 0;
  for await (const { node, choice, text } of stream) {
    texts[`${node},${choice}`] = (texts[`${node},${choice}`] ?? "") + text;
    if (++pieces === 5) console.log("begun");
  }
  const { values } = await stream.result;
  client.close();
  return [values, texts];
});
console.log(JSON.stringify(await Promise.all(runs)));
"""


def undisturbed(url: str) -> list[dict[str, Any]]:
    ears = [Ear() for _ in range(16)]
    with rt.connect(url) as remote:
        for number, ear in enumerate(ears):
            remote.submit(graph(number), ear, RunOptions(seed=number))
        return [ear.values() for ear in ears]


def test_sixteen_streams_survive_the_death_of_their_server() -> None:
    """Clients that know one address wait for the next server there, others go on at another server at once."""
    first, second = KillableServer(free_port()), KillableServer(free_port())
    ears = [Ear() for _ in range(16)]
    waiting, moving = [first.url], [first.url, second.url]
    by_script = [(5, waiting), (6, moving), (7, moving)] if NODE is not None else []
    by_loop = [(number, moving if number % 2 else waiting) for number in range(8, 16)]
    by_thread = [(number, moving if number % 2 else waiting) for number in range(8 - len(by_script))]

    async def stream(number: int, urls: list[str]) -> None:
        async with rt.connect_async(urls, resume_s=WAIT_S) as remote:
            async for event in remote.stream(graph(number), seed=number):
                ears[number](event)

    async def stream_all() -> None:
        await asyncio.gather(*(stream(*each) for each in by_loop))

    with killable_servers(first, second), contextlib.ExitStack() as exits:
        expected = undisturbed(second.url)
        loop_thread = threading.Thread(target=lambda: asyncio.run(stream_all()))
        loop_thread.start()
        process = start(SCRIPT, json.dumps(by_script), json.dumps(graph(0).to_plain())) if by_script else None
        if process is not None:
            exits.callback(process.kill)
            assert process.stdout is not None
            for _ in by_script:
                assert process.stdout.readline() == "begun\n"
        remotes = [exits.enter_context(rt.connect(urls, resume_s=WAIT_S)) for urls in (waiting, moving)]
        for number, _ in by_thread:
            remotes[number % 2].submit(graph(number), ears[number], RunOptions(seed=number))
        mine = [number for number, _ in by_thread + by_loop]
        wait_until(lambda: all(ears[number].num_tokens >= 5 for number in mine), WAIT_S)
        first.kill()
        num_ended = sum(len(ear.finals) for ear in ears)
        first.start(waits=False)
        wait_until(lambda: all(ears[number].finals for number in mine), WAIT_S)
        loop_thread.join(WAIT_S)
        assert [remote.url for remote in remotes] == [first.url, second.url]
        if process is not None:
            output, errors = process.communicate(timeout=WAIT_S)
            assert process.returncode == 0, errors
            for (number, _), (values, texts) in zip(by_script, json.loads(output), strict=True):
                assert values == expected[number]
                assert {"x": texts["1,0"], "y": [texts["3,0"], texts["3,1"]]} == values
    assert num_ended < 8, "the server was killed too late"
    for number in mine:
        check(ears[number], expected[number])
