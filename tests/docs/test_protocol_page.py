"""The examples and tables of the protocol page are those of the code: examples pass through the decoders of both ends."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ERRORS_BY_CODE, OverloadError, rebuild
from rtlang.contract.params import SamplingParams
from rtlang.protocol.event_codec import error_from_wire, error_to_wire, event_from_wire, event_to_wire
from rtlang.protocol.limits import wire_limits
from rtlang.protocol.messages import AttachStream, CloseCode, ExtendNodes
from rtlang.protocol.serialization import DecodeLimits, Encoding
from rtlang.serve.client_messages import SubmitMessage
from rtlang.serve.connection import Connection, ServerInfo
from rtlang.serve.server import CAPS

OF_A_SERVER = {"max_frame_bytes", "max_streams"}
PAGE = (Path(__file__).parents[2] / "docs" / "protocol-v1.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r'^```json title="(client|server)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def examples(sender: str) -> list[dict[str, Any]]:
    return [json.loads(source) for who, source in EXAMPLE.findall(PAGE) if who == sender]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table rows under a heading."""
    section = re.split(r"^#{2,3} ", PAGE.partition(f"\n{heading}\n")[2], flags=re.MULTILINE)[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line] for line in lines]


def output_of(connection: Connection) -> list[dict[str, Any]]:
    values = [connection.encoding.unpack(data, DecodeLimits()) for data in connection.take_output()]
    return [message for value in values for message in (value if isinstance(value, list) else [value])]


@pytest.mark.parametrize("encoding", list(Encoding), ids=lambda encoding: encoding.value)
def test_a_server_accepts_the_client_messages_of_the_page_in_order(encoding: Encoding) -> None:
    connection = Connection(encoding, ServerInfo("epoch"))
    for message in examples("client"):
        if connection.close_code is not None and message["t"] == "open":  # an example behind the one of bye
            assert connection.close_code is CloseCode.NORMAL
            connection = Connection(encoding, ServerInfo("epoch"))
            connection.receive(encoding.pack({"t": "hello", "v": 1}), is_text=encoding.is_text)
            connection.take_output()
        actions = connection.receive(encoding.pack(message), is_text=encoding.is_text)
        assert [answer for answer in output_of(connection) if answer["t"] == "error"] == [], message
        kinds = {"open": SubmitMessage, "attach": AttachStream, "extend": ExtendNodes}
        if message["t"] in kinds:
            (action,) = actions
            assert isinstance(action, kinds[message["t"]])
            if isinstance(action, SubmitMessage):
                action.graph.validate()
                assert set(action.options.inputs) == set(action.graph.inputs)


def test_every_client_message_has_an_example() -> None:
    assert {message["t"] for message in examples("client")} == {
        "hello", "open", "extend", "close", "cancel", "credit", "resolve", "input", "reject", "attach", "ping", "bye",
    }  # fmt: skip


@pytest.mark.parametrize("message", examples("server"), ids=lambda message: f"{message['t']}-{message.get('s', 0)}")
def test_a_server_message_of_the_page_is_what_a_server_sends(message: dict[str, Any]) -> None:
    stream = message.get("s", 0)
    match message["t"]:
        case "delta" | "event" | "end":
            event = event_from_wire(message, graph_id=1)
            assert event is not None
            assert event_to_wire(stream, event, message.get("o", 0)) == message
        case "error":
            again = error_to_wire(error_from_wire(message), stream=message.get("s"), is_fatal="fatal" in message)
            assert again == message
        case _:
            assert any(message.keys() == sent.keys() for sent in said_by_a_server() if sent["t"] == message["t"])


def said_by_a_server() -> list[dict[str, Any]]:
    """One of each message that answers a client or tells of the server."""
    facts = ServerInfo("epoch", limits={"max_frame_bytes": 1, "max_streams": 1}, caps=tuple(CAPS))
    connection = Connection(Encoding.JSON, facts)
    for message in ({"t": "hello", "v": 1}, {"t": "ping"}):
        connection.receive(Encoding.JSON.pack(message), is_text=True)
    connection.opened(1, "rid")
    connection.opened(2, "rid", 256)
    connection.extended(1, 1)
    connection.attached(AttachStream(2, "rid", "epoch", 0), {}, 0, {})
    connection.drain(1.0)
    connection.tell_engine("restarting")
    return output_of(connection)


def test_the_limits_of_the_page_are_the_limits_of_the_code() -> None:
    (welcome,) = (message for message in examples("server") if message["t"] == "welcome")
    limits = DecodeLimits()
    for name in ("max_depth", "max_array_entries", "max_map_entries", "max_values"):
        assert welcome["limits"][name] == getattr(limits, name)
    (said,) = (message for message in said_by_a_server() if message["t"] == "welcome")
    assert said["caps"] == welcome["caps"]
    assert wire_limits().items() >= {k: v for k, v in welcome["limits"].items() if k not in OF_A_SERVER}.items()


def test_the_page_lists_every_limit() -> None:
    listed = {name for cells in rows("### 5.1 `welcome`") for name in re.findall(r"`(\w+)`", cells[0])}
    assert listed >= wire_limits().keys()


def test_the_page_lists_every_error_code_with_its_status() -> None:
    listed = {code.strip("`"): int(status) for code, status, *_ in rows("## 8. Errors") if status.isdigit()}
    sent = {}
    for code, kind in ERRORS_BY_CODE.items():
        facts = {"retry_after_s": 1.0} if issubclass(kind, OverloadError) else {"param": None, "field": "x"}
        sent[code] = error_to_wire(rebuild(code, "message", facts))["status"]
    assert listed == sent


def test_the_page_lists_every_close_code() -> None:
    section = PAGE.partition("\n## 9. Close codes\n")[2].partition("\n## ")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d{4}) \|", section, re.MULTILINE)}
    assert listed == {int(code) for code in CloseCode} | {1007, 1009}


def test_the_page_lists_every_sampling_parameter() -> None:
    listed = {name for cells in rows("### 6.3 Sampling parameters") for name in re.findall(r"`(\w+)`", cells[0])}
    assert listed == set(SamplingParams.__dataclass_fields__)
