"""Graph ids of connections."""

from __future__ import annotations

from rtlang.fleet.messages.graph_ids import graph_id_of, stream_id_of
from rtlang.runtime.runtime import FIRST_GIVEN_ID


def test_a_graph_id_names_a_stream_of_its_connection_only() -> None:
    graph_ids = {graph_id_of(connection, stream_id) for connection in (1, 2) for stream_id in (1, 2, 1 << 39)}
    assert len(graph_ids) == 6
    assert min(graph_ids) >= FIRST_GIVEN_ID, "a runtime makes lower ones"
    assert stream_id_of(graph_id_of(1, 1 << 39)) == 1 << 39
    assert stream_id_of(graph_id_of(2, 7)) is None
    assert stream_id_of(graph_id_of(2, 7), 2) == 7
    assert stream_id_of(7) is None, "a pin, or another graph of the engine itself"
