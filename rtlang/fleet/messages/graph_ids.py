"""The id under which an engine's runtime knows a graph of a connection, so that its record of work names the connection's stream."""

from __future__ import annotations

_STREAM_BITS = 40


def graph_id_of(connection: int, stream_id: int) -> int:
    """The id of the graph with this stream id on a connection; connections count from 1, since lower ids are the runtime's own."""
    return connection << _STREAM_BITS | stream_id


def stream_id_of(graph_id: int, connection: int = 1) -> int | None:
    """The stream id of a graph; None if it is not of this connection."""
    return graph_id & (1 << _STREAM_BITS) - 1 if graph_id >> _STREAM_BITS == connection else None
