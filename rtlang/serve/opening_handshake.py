"""The opening of one WebSocket connection: answers the upgrade request and waits for the client's hello.

A malformed upgrade, another host or path, and a server that shuts down are refused with an HTTP status. All other refusals are close
codes after the upgrade: browsers hide the status of a failed handshake, but show a close code. The connection counts towards the limit of
its principal from its admission until `end`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from websockets.http11 import Request
from websockets.server import ServerProtocol

from rtlang.contract.errors import OverloadError
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.protocol.messages import CloseCode
from rtlang.protocol.serialization import Encoding
from rtlang.serve.connection import Connection
from rtlang.serve.network.access import bearer_key, host_is_allowed, is_own_page, origin_is_allowed
from rtlang.serve.records.request_record import REQUEST_ID, UNMATCHED, context_of
from rtlang.serve.service import StreamService

PATH = "/v1/stream"
_REFUSAL_CODES = {403: "forbidden", 404: "not_found", 503: OverloadError.code}


class OpeningHandshake:
    """Makes the `Connection` of one socket. Used on the server's event loop.

    Args:
        websocket: frames the socket; the response to the upgrade is left in it, to be sent by the caller.
        number: names the connection to the table of keys.
        flush: sends the output of the connection; called when it is closed because no hello came in time.
    """

    def __init__(
        self, service: StreamService, websocket: ServerProtocol, number: int, flush: Callable[[], None]
    ) -> None:
        self._service, self._websocket, self._number, self._flush = service, websocket, number, flush
        self._connection: Connection | None = None
        self._hello_timer: asyncio.TimerHandle | None = None
        self._counted: Principal | None = None  # the principal whose limit this connection counts towards

    def start(self) -> None:
        """Start the timer for hello."""
        self._hello_timer = self._service.loop.call_later(self._service.config.hello_timeout_s, self._hello_late)

    def answer(self, request: Request) -> Connection | None:
        """Answer the upgrade request. Returns the connection, which may have ended already; None if the request is refused."""
        service, headers = self._service, request.headers
        refusal = None
        if not host_is_allowed(service.config, ", ".join(headers.get_all("Host"))):
            refusal = (HTTPStatus.FORBIDDEN, "This Host header is not allowed.\n")
        elif request.path.partition("?")[0] != PATH:
            refusal = (HTTPStatus.NOT_FOUND, f"WebSockets are served at {PATH} and /v1/responses.\n")
        elif service.is_draining:
            refusal = (HTTPStatus.SERVICE_UNAVAILABLE, "The server is shutting down.\n")
        offered = [name.strip() for value in headers.get_all("Sec-WebSocket-Protocol") for name in value.split(",")]
        encoding = next((encoding for encoding in Encoding if encoding.value in offered), None)
        if refusal is not None:
            response = self._websocket.reject(*refusal)
            if service.is_draining:
                response.headers["Retry-After"] = str(math.ceil(service.config.drain_timeout_s))
        else:
            response = self._websocket.accept(request)
            if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS and encoding is not None:
                response.headers["Sec-WebSocket-Protocol"] = encoding.value
        is_open = response.status_code == HTTPStatus.SWITCHING_PROTOCOLS
        if not is_open:
            response.headers[REQUEST_ID] = self._note_refused(request, response.status_code)
        self._websocket.send_response(response)
        if not is_open:
            return None
        key = bearer_key(", ".join(headers.get_all("Authorization")) or None)
        authenticate = partial(service.keys.principal_of, client=f"connection {self._number}")
        principal = LOCAL if key is None else authenticate(key)
        connection = Connection(
            encoding or Encoding.JSON,
            service.server_info,
            principal or LOCAL,
            authenticate if key is None else None,
            self._admit,
        )
        self._connection = connection
        origin, host = (", ".join(headers.get_all(name)) or None for name in ("Origin", "Host"))
        if not (is_own_page(origin, host) or origin_is_allowed(service.config, origin)):
            connection.fail(CloseCode.ORIGIN, "this origin is not allowed")
        elif encoding is None:
            names = " or ".join(encoding.value for encoding in Encoding)
            connection.end(CloseCode.SUBPROTOCOL, f"no supported subprotocol was offered; offer {names}")
        elif principal is None:
            connection.fail(CloseCode.KEY, "the API key is wrong")
        elif len(service.sockets) > service.config.max_connections:
            connection.fail(
                CloseCode.TOO_MANY,
                f"the server already has its maximum of {service.config.max_connections} connections",
            )
        return connection

    def _note_refused(self, request: Request, status: int) -> str:
        """Write the line of a handshake that is refused; returns its id."""
        door = f"GET {PATH if request.path.partition('?')[0] == PATH else UNMATCHED}"
        context = context_of(lambda name: ", ".join(request.headers.get_all(name)) or None, door)
        code = _REFUSAL_CODES.get(status, "bad_request")
        return self._service.records.refuse_unread(None, status, code, context)

    def note_message(self) -> None:
        """Stop the timer if the message that was just taken was hello."""
        if self._connection is not None and self._connection.has_said_hello:
            self._stop_timer()

    def end(self) -> None:
        """Release the place of a lost connection."""
        if self._counted is not None:
            self._service.connections.release(self._counted)
            self._counted = None
        self._stop_timer()

    def _admit(self, principal: Principal) -> str | None:
        limit = self._service.connections.admit(principal, is_shared=self._service.keys.is_shared)
        if limit is not None:
            return f"{principal.name} already has {limit} connections, which is its maximum"
        self._counted = principal
        return None

    def _hello_late(self) -> None:
        self._hello_timer = None
        if self._connection is not None and not self._connection.has_said_hello:
            self._connection.fail(CloseCode.HELLO_LATE, "no hello within the time limit")
            self._flush()

    def _stop_timer(self) -> None:
        if self._hello_timer is not None:
            self._hello_timer.cancel()
            self._hello_timer = None
