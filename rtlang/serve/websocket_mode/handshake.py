"""The upgrade request of WebSocket mode.

It passes the checks of the HTTP routes: the `Host` header, the origin, the key, and the limits of connections. A refusal is an HTTP status
with an error body, as the clients of this door are programs that read them.
"""

from __future__ import annotations

import math
from http import HTTPStatus

from websockets.http11 import Request
from websockets.server import ServerProtocol

from rtlang.contract.errors import OverloadError
from rtlang.contract.runs.principal import Principal
from rtlang.serve.http.errors import HttpError, error_body, retry_header
from rtlang.serve.json_parts import json_text
from rtlang.serve.network.access import bearer_key, host_is_allowed, is_own_page, origin_is_allowed
from rtlang.serve.records.request_record import REQUEST_ID, context_of
from rtlang.serve.service import StreamService

PATH = "/v1/responses"
DOOR = f"WS {PATH}"
"""The door of the requests of this mode in logs and metrics."""


def answer_upgrade(
    service: StreamService, websocket: ServerProtocol, request: Request, number: int
) -> Principal | None:
    """Answer the upgrade request of a socket, which `service.sockets` has already.

    Args:
        websocket: the response is left in it.
        number: names the connection to the table of keys.
    Returns:
        The principal, counted in `service.connections`; None if the request is refused.
    """
    headers = request.headers
    context = context_of(lambda name: ", ".join(headers.get_all(name)) or None, DOOR)
    response = websocket.accept(request)
    is_valid, principal = response.status_code == HTTPStatus.SWITCHING_PROTOCOLS, None
    refusal: HttpError | None = None
    if is_valid:
        try:
            principal = _admitted(service, request, number)
        except HttpError as error:
            refusal = error
            text = json_text(error_body(error.status, error.message, code=error.code, request_id=context.request_id))
            response = websocket.reject(HTTPStatus(error.status), text)
            response.headers.pop("Content-Type", None)
            response.headers["Content-Type"] = "application/json"
            for name, value in retry_header(error.retry_after).items():
                response.headers[name] = value
            if error.status == HTTPStatus.UNAUTHORIZED:
                response.headers["WWW-Authenticate"] = "Bearer"
    if principal is None:
        code = "bad_request" if refusal is None else refusal.code
        service.records.refuse_unread(None, response.status_code, code, context)
    response.headers[REQUEST_ID] = context.request_id
    websocket.send_response(response)
    return principal


def _admitted(service: StreamService, request: Request, number: int) -> Principal:
    """The principal of an upgrade request, counted in `service.connections`.

    Raises:
        HttpError: the connection is refused.
    """
    config, headers = service.config, request.headers
    host, origin, authorization = (
        ", ".join(headers.get_all(name)) or None for name in ("Host", "Origin", "Authorization")
    )
    if not host_is_allowed(config, host):
        raise HttpError(403, "this Host header is not allowed", code="host")
    if not (is_own_page(origin, host) or origin_is_allowed(config, origin)):
        raise HttpError(403, "pages of this origin may not use the server", code="origin")
    principal = service.keys.principal_of(bearer_key(authorization), client=f"connection {number}")
    if principal is None:
        raise HttpError(401, "the API key is missing or wrong", code="invalid_api_key")
    if service.is_draining:
        retry_after = float(math.ceil(config.drain_timeout_s))
        raise HttpError(503, "the server is shutting down", code=OverloadError.code, retry_after=retry_after)
    if len(service.sockets) > config.max_connections:
        message = f"the server already has its maximum of {config.max_connections} connections"
        raise HttpError(503, message, code=OverloadError.code, retry_after=1.0)
    limit = service.connections.admit(principal, is_shared=service.keys.is_shared)
    if limit is not None:
        message = f"{principal.name} already has {limit} connections, which is its maximum"
        raise HttpError(429, message, code=OverloadError.code, retry_after=1.0)
    return principal
