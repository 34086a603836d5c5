"""Reads the messages of a client: decodes and checks them, and builds the graphs in them.

This is the part of receiving a message that takes time, up to a tenth of a second for the largest. It changes no state, so that it may run
on a thread while the event loop goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rtlang.contract.errors import GraphError, ProtocolError, RtlangError
from rtlang.contract.field_names import check_fields
from rtlang.contract.request_graph import RequestGraph, nodes_from_plain
from rtlang.contract.runs.run_options import RunOptions
from rtlang.protocol.continuation import continue_from_from_wire, known_from_wire
from rtlang.protocol.field_checks import check_map
from rtlang.protocol.generation import generation_graph_from_plain
from rtlang.protocol.messages import (
    ClientMessage,
    CloseCode,
    ExtendContent,
    ExtendNodes,
    Open,
    OpenKey,
    digest_of,
    parse_client_message,
)
from rtlang.protocol.run_options import BODY_FIELDS, options_from_open
from rtlang.protocol.serialization import DecodeLimits, Encoding

KINDS = ("program", "generate", "chat")
PROGRAM_FIELDS = frozenset(("graph", "open", *BODY_FIELDS))
GENERATION_FIELDS = frozenset(("prompt", "messages", "params", "constraint", "name", *BODY_FIELDS)) - {"inputs"}


@dataclass(frozen=True, slots=True)
class SubmitMessage:
    """Submit `graph`, then call `opened` or `refused`."""

    stream: int
    graph: RequestGraph
    options: RunOptions
    resume_timeout_s: float | None = None
    key: OpenKey | None = None


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """One message, or the error in it.

    Attributes:
        plain: the decoded message; None if it could not be decoded.
        submit: what an `open` asks for, or the error in its body; None for other messages.
    """

    plain: Any
    parsed: ClientMessage | RtlangError
    submit: SubmitMessage | RtlangError | None = None


def read_message(data: bytes, encoding: Encoding, limits: DecodeLimits, *, reads_body: bool) -> ReadMessage:
    """Read one whole message. Raises no error of the message: it is returned.

    Args:
        reads_body: whether to build the graph of an `open`, and the nodes of an `extend`, as well.
    """
    plain: Any = None
    try:
        plain = encoding.unpack(data, limits)
        if not isinstance(plain, dict):
            raise ProtocolError("a message must be a map", close_code=CloseCode.PROTOCOL)
        parsed = parse_client_message(plain)
    except RtlangError as error:
        return ReadMessage(plain, _without_traceback(error))
    if reads_body and isinstance(parsed, Open):
        try:
            return ReadMessage(plain, parsed, submit_of(parsed))
        except RtlangError as error:
            return ReadMessage(plain, parsed, _without_traceback(error))
    if reads_body and isinstance(parsed, ExtendNodes):
        digest = b"" if parsed.request is None else digest_of([parsed.nodes, parsed.closes])
        parsed = replace(parsed, digest=digest, content=_content_of(parsed))
    return ReadMessage(plain, parsed)


def extend_content(message: ExtendNodes) -> ExtendContent:
    """The nodes that a message adds.

    Raises:
        RtlangError: they are invalid.
    """
    match message.content:
        case RtlangError():
            raise message.content
        case None:
            continuation = message.continuation
            nodes = tuple(nodes_from_plain(message.nodes))
            return ExtendContent(nodes, known_from_wire(continuation), continue_from_from_wire(continuation))
        case found:
            return found


def _content_of(message: ExtendNodes) -> ExtendContent | RtlangError:
    try:
        return extend_content(message)
    except RtlangError as error:
        return _without_traceback(error)


def _without_traceback(error: RtlangError) -> RtlangError:
    """An error that keeps no decoded message alive."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def submit_of(message: Open) -> SubmitMessage:
    """The graph that a message opens.

    Raises:
        RtlangError: the body is invalid.
    """
    body = message.body
    if message.kind not in KINDS:
        raise ProtocolError(f"kind = {message.kind[:40]!r}: expected one of {', '.join(KINDS)}", param="kind")
    check_fields(
        body, PROGRAM_FIELDS if message.kind == "program" else GENERATION_FIELDS, f"the body of a {message.kind}"
    )
    if message.kind == "program":
        graph = RequestGraph.from_plain(check_map(body, "graph"))
    else:
        if message.kind == "chat" and "messages" not in body:
            raise GraphError(None, "messages", "messages is missing: a chat needs a list of messages")
        graph = generation_graph_from_plain(body)
    is_open = body.get("open") is True
    options = options_from_open(body, message.options, message.continuation, is_open=is_open)
    return SubmitMessage(message.stream, graph, options, message.resume_timeout_s, message.key)
