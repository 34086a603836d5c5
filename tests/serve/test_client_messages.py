"""Messages are read without a connection: into what they ask for, or into the error that answers them."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import GraphError, ProtocolError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text, nodes_to_plain
from rtlang.protocol.messages import ExtendNodes, Open, digest_of
from rtlang.protocol.serialization import DecodeLimits, Encoding
from rtlang.serve.client_messages import ReadMessage, SubmitMessage, extend_content, read_message

NODES = (Text(0, None, ("Hi",)), Generate(1, 0, "x", SamplingParams(max_tokens=2)))


def read(message: Any, encoding: Encoding = Encoding.JSON, *, reads_body: bool = True) -> ReadMessage:
    return read_message(encoding.pack(message), encoding, DecodeLimits(), reads_body=reads_body)


def program(**graph: Any) -> dict[str, Any]:
    return {"t": "open", "s": 3, "kind": "program", "body": {"graph": graph, "priority": 2}}


@pytest.mark.parametrize("encoding", Encoding)
def test_an_open_is_read_with_its_graph(encoding: Encoding) -> None:
    message = program(**RequestGraph(NODES).to_plain())
    found = read(message, encoding)
    assert isinstance(found.submit, SubmitMessage)
    assert (found.plain, found.submit.stream, found.submit.options.priority) == (message, 3, 2)
    assert found.submit.graph == RequestGraph(NODES)


def test_bodies_are_read_only_where_asked_for() -> None:
    message = program(nodes=[{"wrong": 1}])
    unread = read(message, reads_body=False)
    assert isinstance(unread.parsed, Open)
    assert unread.submit is None
    found = read(message)
    assert isinstance(found.parsed, Open)  # so that its stream id is used up
    assert isinstance(found.submit, GraphError)
    assert found.submit.__traceback__ is None  # it would keep the whole message


def test_an_extend_is_read_with_its_nodes() -> None:
    plain = nodes_to_plain(NODES)
    found = read({"t": "extend", "s": 3, "nodes": plain, "q": 5}).parsed
    assert isinstance(found, ExtendNodes)
    assert extend_content(found).nodes == NODES
    assert extend_content(found) is found.content
    assert found.digest == digest_of([plain, False])
    assert extend_content(ExtendNodes(3, plain)).nodes == NODES
    wrong = read({"t": "extend", "s": 3, "nodes": [7]}).parsed
    assert isinstance(wrong, ExtendNodes)
    with pytest.raises(GraphError):
        extend_content(wrong)


@pytest.mark.parametrize(("message", "param"), [([1], None), ({"t": "opne"}, "t"), ({"t": "open", "s": 0}, "s")])
def test_an_error_of_a_message_is_returned(message: Any, param: str | None) -> None:
    found = read(message)
    assert isinstance(found.parsed, ProtocolError)
    assert (found.plain, found.parsed.param) == (message, param)
    broken = read_message(b"{", Encoding.JSON, DecodeLimits(), reads_body=True)
    assert isinstance(broken.parsed, ProtocolError)
    assert broken.plain is None
