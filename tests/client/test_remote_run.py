"""Graphs travel in parts that fit into frames."""

from __future__ import annotations

import pytest

import rtlang as rt
from rtlang.client.remote_run import in_batches
from rtlang.contract.errors import ProtocolError
from rtlang.contract.request_graph import Text, nodes_to_plain
from rtlang.protocol.serialization import Encoding
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime


@pytest.mark.parametrize("frame_bytes", [None, 200, 4096, 1 << 20])
def test_nodes_are_split_in_order_into_an_eighth_of_a_frame(frame_bytes: int | None) -> None:
    nodes = [Text(number, number - 1 if number else None, ("x" * (7 * number % 90),)) for number in range(200)]
    batches = in_batches(nodes, frame_bytes)
    assert [node for batch in batches for node in batch["nodes"]] == nodes_to_plain(nodes)
    for batch in batches:
        size = sum(len(Encoding.MSGPACK.pack(node)) for node in batch["nodes"])
        assert frame_bytes is None or len(batch["nodes"]) == 1 or size <= frame_bytes // 8
    assert (len(batches) == 1) == (frame_bytes in (None, 1 << 20))


def test_no_nodes_make_one_empty_batch() -> None:
    assert in_batches([], 100) == [{"nodes": []}]


def test_values_that_would_arrive_changed_are_refused() -> None:
    seen: list[object] = []

    def call(given: object) -> object:
        seen.append(given)
        return given if given == "kept" else ["\udcff"]

    @rt.program
    def program(s: rt.State, value: object) -> object:
        s += "x" + rt.gen("a")
        return rt.call(call, value)

    with ScriptedRuntime() as runtime, running_server(runtime) as url, rt.connect(url) as there:
        assert program.run("kept", runtime=there).value == "kept"
        for value, match in (("\udcff", "lone surrogate"), (1 << 64, "pass it as text")):
            with pytest.raises(ProtocolError, match=match):
                program.run(value, runtime=there)
        assert seen == ["kept"]
        with pytest.raises(rt.CallError, match=r"the text '.udcff' has a lone surrogate"):
            program.run("sent", runtime=there)
