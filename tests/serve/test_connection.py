"""The state machine: what each message leads to, what each end looks like, and that no input raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import AbortedError, GraphError, OverloadError
from rtlang.contract.events import Completion, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta, Timing
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Arg, Generate, RequestGraph, Text, nodes_to_plain
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.generation import generation_graph
from rtlang.protocol.messages import ExtendNodes, GrantCredit, ResolveCall
from rtlang.protocol.serialization import DecodeLimits, Encoding
from rtlang.serve.client_messages import SubmitMessage
from rtlang.serve.connection import Cancel, Close, Connection, ServerInfo
from rtlang.serve.network.key_table import KeyTable

LIMITS = DecodeLimits()
FACTS = ServerInfo("epoch", ({"model": "m"},), {"max_streams": 3}, max_streams=3)
GRAPH = RequestGraph((Text(0, None, ("Hi ", Arg("name"))), Generate(1, 0, "x", SamplingParams())), ("name",))
HELLO = {"t": "hello", "v": 1}
PROGRAM = {"graph": GRAPH.to_plain(), "inputs": {"name": "Ada"}, "open": True, "priority": 3}
DONE = Completion("ab", (1, 2), FinishReason.STOP)


class Peer:
    """A connection with its client: sends maps, reads maps."""

    def __init__(self, encoding: Encoding = Encoding.MSGPACK, api_key: str | None = None, greet: bool = True) -> None:
        table = None if api_key is None else KeyTable(ServeConfig(api_key=api_key))
        self.connection = Connection(encoding, FACTS, authenticate=None if table is None else table.principal_of)
        if greet:
            assert self.send(HELLO) == []
            assert self.messages()[0]["t"] == "welcome"

    def send(self, message: Any) -> list[Any]:
        return self.send_raw(self.connection.encoding.pack(message))

    def send_raw(self, data: bytes) -> list[Any]:
        return self.connection.receive(data, is_text=self.connection.encoding.is_text)

    def batches(self) -> list[list[dict[str, Any]]]:
        """What was sent, message by message."""
        unpacked = [self.connection.encoding.unpack(data, LIMITS) for data in self.connection.take_output()]
        return [value if isinstance(value, list) else [value] for value in unpacked]

    def messages(self) -> list[dict[str, Any]]:
        return [message for batch in self.batches() for message in batch]

    def open(self, stream: int = 1, **fields: Any) -> None:
        actions = self.send({"t": "open", "s": stream, "kind": "program", "body": PROGRAM | fields})
        assert [type(action) for action in actions] == [SubmitMessage]
        self.connection.opened(stream, "rid")
        self.messages()

    def assert_one_error(self, **expected: Any) -> dict[str, Any]:
        messages = self.messages()
        assert [message["t"] for message in messages] == ["error"]
        assert messages[0] | expected == messages[0]
        return messages[0]


both = pytest.mark.parametrize("encoding", Encoding)


@both
def test_hello_is_answered_by_welcome(encoding: Encoding) -> None:
    peer = Peer(encoding, greet=False)
    assert peer.send(HELLO) == []
    assert peer.messages() == [
        {
            "t": "welcome",
            "v": 1,
            "epoch": "epoch",
            "limits": {"max_streams": 3},
            "models": [{"model": "m"}],
            "caps": ["program", "generate", "chat", "attach"],
        }
    ]
    assert peer.connection.has_said_hello
    assert peer.messages() == []


@pytest.mark.parametrize(
    ("message", "close_code", "param"),
    [
        ({"t": "ping"}, 4400, "t"),
        ({"t": "nonsense"}, 4400, "t"),
        ({"t": "hello"}, 4400, "v"),
        ({"t": "hello", "v": 2}, 4400, "v"),
        ({"t": "open", "s": 1, "kind": "generate", "body": {"prompt": "x"}}, 4400, "t"),
    ],
)
def test_a_bad_first_frame_ends_the_connection(message: dict[str, Any], close_code: int, param: str) -> None:
    peer = Peer(greet=False)
    assert peer.send(message) == []
    peer.assert_one_error(fatal=True, param=param)
    assert peer.connection.close_code == close_code
    assert peer.send(HELLO) == []
    assert peer.messages() == []


@pytest.mark.parametrize("auth", [None, "", "wrong", "ключ"])
def test_a_wrong_key_ends_the_connection(auth: str | None) -> None:
    peer = Peer(api_key="secret", greet=False)
    peer.send(HELLO | {"auth": auth})
    peer.assert_one_error(fatal=True, param="auth")
    assert peer.connection.close_code == 4401


def test_the_right_key_opens_it() -> None:
    peer = Peer(api_key="secret", greet=False)
    peer.send(HELLO | {"auth": "secret"})
    assert peer.messages()[0]["t"] == "welcome"
    assert peer.connection.principal.name == "default"


@both
def test_a_program_becomes_a_submit(encoding: Encoding) -> None:
    peer = Peer(encoding)
    actions = peer.send({"t": "open", "s": 5, "kind": "program", "body": PROGRAM, "deadline_ms": 2500})
    assert actions == [SubmitMessage(5, GRAPH, RunOptions({"name": "Ada"}, True, 3, 2.5))]
    peer.connection.opened(5, "rid-1")
    assert peer.messages() == [{"t": "ack", "s": 5, "rid": "rid-1", "epoch": "epoch"}]
    assert peer.connection.streams == (5,)


def test_a_generation_becomes_a_closed_graph() -> None:
    peer = Peer()
    body = {"prompt": "x", "params": {"max_tokens": 4}}
    assert peer.send({"t": "open", "s": 1, "kind": "generate", "body": body}) == [
        SubmitMessage(1, generation_graph("x", SamplingParams(max_tokens=4)), RunOptions())
    ]
    messages = [{"role": "user", "content": "Hi"}]
    assert peer.send({"t": "open", "s": 2, "kind": "chat", "body": {"messages": messages}}) == [
        SubmitMessage(2, generation_graph(messages, SamplingParams()), RunOptions())
    ]


@pytest.mark.parametrize(
    ("kind", "body", "code", "param"),
    [
        ("magic", {}, "protocol", "kind"),
        ("program", {}, "protocol", "graph"),
        ("program", {"graph": {"nodes": 3}}, "graph", "nodes"),
        ("program", {"graph": {"nodes": [3]}}, "graph", "nodes"),
        ("program", {"graph": {}, "inputs": {"a": 3}}, "graph", "inputs"),
        ("program", {"graph": {}, "priority": "high"}, "protocol", "priority"),
        ("generate", {}, "graph", "prompt"),
        ("chat", {"prompt": "x"}, "graph", "messages"),
        ("generate", {"prompt": "x", "params": {"temperature": -1}}, "graph", "params.temperature"),
        ("generate", {"prompt": "x", "max_tokens": 4, "params": {}}, "graph", "max_tokens"),
        ("generate", {"prompt": "x", "inputs": {}}, "graph", "inputs"),
        (
            "generate",
            {"prompt": "x", "constraint": {"kind": "regex", "source": "a", "strict": True}},
            "graph",
            "constraint.strict",
        ),
        ("chat", {"messages": [{"role": "user", "content": "x", "name": "Ada"}]}, "graph", "name"),
        ("program", {"graph": {}, "prompt": "x"}, "graph", "prompt"),
        ("program", {"graph": {"seed": 3}}, "graph", "seed"),
        ("program", {"graph": {"nodes": [{"id": 0, "kind": "text", "parts": [], "text": "x"}]}}, "graph", "text"),
        ("program", {"graph": {"nodes": [{"id": 0, "kind": "text", "parts": [{"ref": 1, "n": 2}]}]}}, "graph", "n"),
    ],
)
def test_a_bad_body_fails_its_stream_and_no_other(kind: str, body: dict[str, Any], code: str, param: str) -> None:
    peer = Peer()
    peer.open(1)
    assert peer.send({"t": "open", "s": 2, "kind": kind, "body": body}) == []
    error = peer.assert_one_error(s=2, code=code, param=param, status=400)
    assert "fatal" not in error
    assert peer.connection.close_code is None
    assert peer.connection.streams == (1,)
    assert peer.send({"t": "open", "s": 2, "kind": "generate", "body": {"prompt": "x"}}) == []
    assert peer.connection.close_code == 4409, "the id of a refused open is used up"


def test_a_refused_submit_ends_the_stream_with_the_typed_error() -> None:
    peer = Peer()
    peer.send({"t": "open", "s": 1, "kind": "program", "body": PROGRAM})
    peer.connection.refused(1, OverloadError("full", 3.0))
    peer.assert_one_error(s=1, code="overload", status=429, retry_after=3.0)
    assert peer.connection.streams == ()


@pytest.mark.parametrize("stream", [4, 3, 1])
def test_a_stream_id_is_never_reused(stream: int) -> None:
    peer = Peer()
    peer.open(4)
    peer.connection.deliver([(4, GraphFinished(1, {}, Usage()))])
    peer.messages()
    assert peer.send({"t": "open", "s": stream, "kind": "generate", "body": {"prompt": "x"}}) == []
    peer.assert_one_error(fatal=True, param="s")
    assert peer.connection.close_code == 4409


def test_too_many_streams_are_refused_one_by_one() -> None:
    peer = Peer()
    for stream in (1, 2, 3):
        peer.open(stream)
    assert peer.send({"t": "open", "s": 4, "kind": "generate", "body": {"prompt": "x"}}) == []
    peer.assert_one_error(s=4, code="overload", status=429)
    peer.connection.deliver([(2, GraphFailed(1, AbortedError("x")))])
    peer.messages()
    peer.open(5)


def test_extend_close_and_cancel_become_actions() -> None:
    peer = Peer()
    peer.open(1)
    more = Generate(2, 1, "y", SamplingParams())
    plain = nodes_to_plain([more])
    said = ExtendNodes(1, plain, 8, closes=True)
    assert peer.send({"t": "extend", "s": 1, "nodes": plain, "q": 8, "close": True}) == [said]
    peer.connection.extended(1, 8)
    assert peer.messages() == [{"t": "ack", "s": 1, "q": 8}]
    assert peer.send({"t": "extend", "s": 1, "nodes": []}) == [ExtendNodes(1, [])]
    assert peer.send({"t": "extend", "s": 1, "nodes": [7]}) == [
        ExtendNodes(1, [7])
    ]  # read where a refusal can be noted
    peer.connection.extend_refused(1, 9, GraphError(2, "node_id", "used"))
    peer.assert_one_error(s=1, q=9, code="graph", param="node_id")
    assert peer.send({"t": "close", "s": 1}) == [Close(1)]
    assert peer.send({"t": "cancel", "s": 1}) == [Cancel(1)]


def test_messages_that_cross_the_end_of_a_stream_are_ignored() -> None:
    peer = Peer()
    peer.open(1)
    peer.connection.deliver([(1, GraphFinished(1, {}, Usage()))])
    peer.messages()
    assert peer.send({"t": "cancel", "s": 1}) == []
    assert peer.send({"t": "close", "s": 1}) == []
    assert peer.messages() == []
    # It may have been done before the end, and only its answer be lost.
    assert peer.send({"t": "extend", "s": 1, "nodes": [], "q": 3}) == [ExtendNodes(1, [], 3)]
    assert peer.send({"t": "cancel", "s": 2}) == []
    peer.assert_one_error(s=2, code="protocol", param="s")


@both
def test_all_events_of_one_delivery_go_in_one_message(encoding: Encoding) -> None:
    peer = Peer(encoding)
    peer.open(1)
    peer.open(2)
    peer.connection.deliver([(1, TextDelta(7, 1, 0, "a")), (2, TextDelta(8, 1, 1, "b", (5,)))])
    peer.connection.deliver([(1, TextDelta(7, 1, 0, "c"))])
    assert peer.batches() == [
        [
            {"t": "delta", "s": 1, "n": 1, "o": 0, "d": "a"},
            {"t": "delta", "s": 2, "n": 1, "i": 1, "o": 0, "d": "b", "ids": [5]},
        ],
        [{"t": "delta", "s": 1, "n": 1, "o": 1, "d": "c"}],
    ]


def test_a_burst_is_split_by_size_not_by_count() -> None:
    peer = Peer()
    peer.open(1)
    peer.connection.deliver([(1, TextDelta(7, 1, 0, "x" * 1000)) for _ in range(1000)])
    batches = peer.batches()
    assert sum(map(len, batches)) == 1000
    assert 3 <= len(batches) <= 6


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(0, 1)), max_size=30))
def test_offsets_count_from_zero_without_gaps(keys: list[tuple[int, int, int]]) -> None:
    peer = Peer()
    peer.open(1)
    peer.open(2)
    peer.connection.deliver([(stream, TextDelta(0, node, choice, "x")) for stream, node, choice in keys])
    seen: dict[tuple[int, int, int], int] = {}
    for message in peer.messages():
        key = (message["s"], message["n"], message.get("i", 0))
        assert message["o"] == seen.get(key, 0)
        seen[key] = message["o"] + 1
    assert sum(seen.values()) == len(keys)


def test_nothing_follows_the_end_of_a_stream() -> None:
    peer = Peer()
    peer.open(1)
    late = TextDelta(7, 1, 0, "late")
    peer.connection.deliver([(1, GraphFinished(7, {"x": "ab"}, Usage(1, 0, 2))), (1, late)])
    peer.connection.deliver([(1, late)])
    assert [message["t"] for message in peer.messages()] == ["end"]
    assert peer.connection.streams == ()


def test_a_finished_node_keeps_no_memory() -> None:
    peer = Peer()
    peer.open(1)
    for node in range(100):
        events: list[Any] = [(1, TextDelta(7, node, 0, "a"))]
        finished: Any = NodeFinished(7, node, None, (DONE,), Usage(), Timing())
        failed: Any = NodeFailed(7, node, None, AbortedError("x"))
        peer.connection.deliver([*events, (1, finished if node % 2 else failed)])
    assert peer.connection._offsets == {1: {}}


def test_ping_is_answered_and_bye_ends() -> None:
    peer = Peer()
    peer.send({"t": "ping", "n": 9})
    assert peer.messages() == [{"t": "pong", "n": 9}]
    assert peer.send({"t": "bye"}) == []
    assert (peer.connection.close_code, peer.messages()) == (1000, [])


def test_a_second_hello_is_an_error_of_its_own() -> None:
    peer = Peer()
    peer.open(1)
    peer.send(HELLO)
    assert "fatal" not in peer.assert_one_error(param="t")
    assert peer.connection.streams == (1,)


def test_a_draining_server_refuses_new_streams_and_finishes_running_ones() -> None:
    peer = Peer()
    peer.open(1)
    peer.connection.drain(2.0)
    assert peer.messages() == [{"t": "drain", "deadline_ms": 2000}]
    assert peer.send({"t": "open", "s": 2, "kind": "generate", "body": {"prompt": "x"}}) == []
    peer.assert_one_error(s=2, code="overload", status=503, retry_after=2.0)
    peer.connection.deliver([(1, GraphFinished(7, {}, Usage()))])
    assert peer.messages()[0]["t"] == "end"


def test_a_failed_connection_reports_its_reason_once() -> None:
    peer = Peer()
    peer.open(1)
    peer.connection.fail(4503, "slow")
    peer.connection.fail(4408, "late")
    peer.connection.deliver([(1, GraphFinished(7, {}, Usage()))])
    peer.connection.drain(1.0)
    peer.assert_one_error(fatal=True, code="slow_consumer", message="slow")
    assert (peer.connection.close_code, peer.connection.close_reason) == (4503, "slow")


@both
def test_the_wrong_kind_of_frame_is_fatal(encoding: Encoding) -> None:
    peer = Peer(encoding)
    assert peer.connection.receive(encoding.pack({"t": "ping"}), is_text=not encoding.is_text) == []
    peer.assert_one_error(fatal=True)
    assert peer.connection.close_code == 1002


@pytest.mark.parametrize("value", [[], [{"t": "ping"}], 3, "t", None])
@both
def test_a_message_that_is_no_map_is_fatal(encoding: Encoding, value: Any) -> None:
    peer = Peer(encoding)
    data = json.dumps(value).encode() if encoding.is_text else encoding.pack(value)
    assert peer.send_raw(data) == []
    peer.assert_one_error(fatal=True)
    assert peer.connection.close_code == 1002


# Maps that look enough like messages to get past the first checks.
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 5)
    | st.sampled_from(["", "program", "generate", "text", "select", "user", "regex", "x"])
    | st.floats(allow_nan=False, allow_infinity=False)
)
node_keys = st.sampled_from(
    [
        "id",
        "parent",
        "kind",
        "parts",
        "name",
        "params",
        "constraint",
        "choices",
        "method",
        "ref",
        "choice",
        "arg",
        "role",
    ]
)
body_keys = st.sampled_from(
    ["graph", "nodes", "inputs", "prompt", "messages", "content", "source", "max_tokens", "stop", "logit_bias", "open"]
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(node_keys | body_keys, inner, max_size=4),
    max_leaves=12,
)
plain_nodes = st.lists(
    st.fixed_dictionaries(
        {"id": st.integers(0, 3) | anything, "kind": st.sampled_from(["text", "generate", "select"])},
        optional=dict.fromkeys(("parent", "parts", "name", "params", "constraint", "choices", "method"), anything),
    ),
    max_size=3,
)
fuzzed = st.fixed_dictionaries(
    {"t": st.sampled_from(["hello", "open", "extend", "close", "cancel", "ping", "bye", "attach", "delta"]) | scalars},
    optional={
        "s": st.integers(0, 3) | anything,
        "kind": st.sampled_from(["program", "generate", "chat"]) | anything,
        "body": st.dictionaries(body_keys, anything, max_size=4)
        | st.fixed_dictionaries({"graph": st.fixed_dictionaries({"nodes": plain_nodes})}),
        "nodes": plain_nodes | anything,
        "n": anything,
        "q": anything,
        "v": anything,
        "close": anything,
        "deadline_ms": anything,
    },
)


@given(st.lists(fuzzed, max_size=12), st.sampled_from(list(Encoding)), st.booleans())
def test_no_sequence_of_messages_raises(messages: list[dict[str, Any]], encoding: Encoding, greet: bool) -> None:
    """Every message leads to actions, an answer, or one error; after a fatal one there is silence."""
    peer = Peer(encoding, greet=greet)
    for message in messages:
        was_closed = peer.connection.close_code is not None
        actions = peer.send(message)
        answers = peer.messages()
        assert len(actions) + len(answers) <= 1
        if was_closed:
            assert (actions, answers) == ([], [])
        for action in actions:
            assert action.stream in peer.connection.streams
            if isinstance(action, SubmitMessage):
                try:
                    action.graph.validate()
                except GraphError as error:
                    peer.connection.refused(action.stream, error)
                else:
                    peer.connection.opened(action.stream, "rid")
                assert len(peer.messages()) == 1
        for answer in answers:
            assert answer["t"] in ("error", "pong", "welcome")
            assert answer.get("fatal", False) == (peer.connection.close_code not in (None, 1000))


@given(st.binary(max_size=300), st.sampled_from(list(Encoding)), st.booleans())
def test_random_bytes_are_one_fatal_error(data: bytes, encoding: Encoding, greet: bool) -> None:
    peer = Peer(encoding, greet=greet)
    assert peer.send_raw(data) == []
    assert len(peer.messages()) == 1
    assert peer.connection.close_code in (None, 1002, 1007, 4400)


@given(st.data(), st.sampled_from(list(Encoding)))
def test_a_damaged_message_never_raises(data: st.DataObject, encoding: Encoding) -> None:
    peer = Peer(encoding)
    packed = bytearray(encoding.pack({"t": "open", "s": 1, "kind": "program", "body": PROGRAM}))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    actions = peer.send_raw(bytes(packed))
    assert len(actions) + len(peer.messages()) == 1


def test_credit_continuation_and_progress_of_an_open_become_fields_of_its_submit() -> None:
    peer = Peer()
    given = {"credit": 0, "progress": True, "continue_from": [{"n": 1, "ids": [[7, 8]]}]}
    (action,) = peer.send({"t": "open", "s": 1, "kind": "generate", "body": {"prompt": "x"}} | given)
    assert isinstance(action, SubmitMessage)
    options = action.options
    assert (options.credit, options.reports_progress, options.continue_from) == (0, True, {1: [(7, 8)]})


def test_credit_and_input_act_on_a_running_stream() -> None:
    peer = Peer()
    peer.open(1)
    assert peer.send({"t": "credit", "s": 1, "n": 9}) == [GrantCredit(1, 9)]
    assert peer.send({"t": "input", "s": 1, "n": 2, "value": [1]}) == [ResolveCall(1, 2, [1])]
    assert peer.send({"t": "credit", "s": 1, "n": 0}) == []
    peer.assert_one_error(s=1, code="protocol", param="n", status=400)


def test_welcome_reports_the_limits_of_the_key() -> None:
    principal = Principal("ada", limits=PrincipalLimits(max_places=3, tokens_per_minute=1000))
    connection = Connection(Encoding.JSON, FACTS, principal)
    connection.receive(Encoding.JSON.pack(HELLO), is_text=True)
    (welcome,) = (Encoding.JSON.unpack(data, LIMITS) for data in connection.take_output())
    assert welcome["quota"] == {"max_places": 3, "tokens_per_minute": 1000}
