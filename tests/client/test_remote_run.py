"""Graphs travel in parts that fit into frames."""

from __future__ import annotations

import pytest

from rtlang.client.remote_run import in_batches
from rtlang.contract.request_graph import Text, nodes_to_plain
from rtlang.protocol.serialization import Encoding


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
