"""Writes parts of the body of an HTTP response straight to its connection.

The body is in chunks (RFC 9112, 7.1), so that a part needs nothing but its length before it. uvicorn writes the head and the end; it must
not be writing in between. The writer checks by itself that the connection takes the part: uvicorn would wait for that.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uvicorn.protocols.http.flow_control import FlowControl
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

BODY_WRITER = "body_writer"
"""The key in the state of a request of a function that gives the writer of its response, or None if the body is not in chunks."""


class BodyWriter:
    """Writes parts of the response of one request, after its head. Used on the server's event loop."""

    def __init__(self, cycle: RequestResponseCycle, flow: FlowControl, transport: asyncio.Transport) -> None:
        self._cycle, self._flow, self._transport = cycle, flow, transport

    @property
    def is_ready(self) -> bool:
        """Whether the connection takes a part now: the response goes on, and not too much of it waits for the client."""
        cycle = self._cycle
        is_open = cycle.response_started and not cycle.response_complete and not cycle.disconnected
        return is_open and not self._flow.write_paused and not self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write one part, which must not be empty. Only while `is_ready`."""
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))


def body_writer_of(cycle: RequestResponseCycle, flow: FlowControl, transport: asyncio.Transport) -> BodyWriter | None:
    """The writer of a response without a content length; None if its body is not in chunks."""
    is_chunked = cycle.scope["http_version"] == "1.1" and cycle.scope["method"] != "HEAD"
    return BodyWriter(cycle, flow, transport) if is_chunked else None
