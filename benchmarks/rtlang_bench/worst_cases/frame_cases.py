"""Messages on a WebSocket that are much work, by their type: large ones, many, in an order that no honest client sends them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rtlang_bench.worst_cases.draws import MAX_VALUE, Draws, nested
from rtlang_bench.worst_cases.graph_cases import (
    ARGUMENTS,
    NODES,
    GraphDraft,
    call_value,
    constraint,
    function_graph,
    graph_body,
    node_graph,
)
from rtlang_bench.worst_cases.requests import DEADLINE_MS, Frames

Plain = dict[str, Any]
MAX_STREAMS = 256

_MESSAGES = 2_000  # of one case at most


def open_program(stream: int, draft: GraphDraft, **fields: Any) -> Plain:
    """An `open` message of a graph."""
    body = graph_body(draft)
    return {"t": "open", "s": stream, "kind": "program", "body": body, "deadline_ms": DEADLINE_MS} | fields


def _opened(stream: int, **fields: Any) -> Plain:
    body = {"prompt": f"Stream {stream}: ", "params": {"max_tokens": 4}}
    return {"t": "open", "s": stream, "kind": "generate", "body": body, "deadline_ms": DEADLINE_MS} | fields


def _graph(draws: Draws) -> GraphDraft:
    if draws.chance(0.5):
        return function_graph(draws, draws.pick(*ARGUMENTS))
    return node_graph(draws, draws.pick(*NODES))


def _open(draws: Draws) -> list[Any]:
    match draws.rng.randrange(4):
        case 0:
            return [_opened(stream) for stream in range(1, draws.size(MAX_STREAMS) + 1)]
        case 1:
            body = {"prompt": draws.text(draws.size(MAX_VALUE)), "constraint": constraint(draws)}
            return [_opened(1) | {"body": body}]
        case 2:
            messages = [{"role": "user", "content": "a" * draws.size(1_000)}] * draws.size(1_000)
            return [_opened(1) | {"kind": "chat", "body": {"messages": messages, "params": {"max_tokens": 2}}}]
        case _:
            return [open_program(stream, _graph(draws)) for stream in range(1, draws.size(4) + 1)]


def _resumable(draws: Draws) -> list[Any]:
    detach = {"detach_ms": draws.size(3_000)}
    graphs = [open_program(stream, _graph(draws), **detach) for stream in range(1, draws.size(3) + 1)]
    return [*graphs, _opened(9, **detach, idem="a" * 16), _opened(10, **detach, idem="a" * 16)]


def _extend(draws: Draws) -> list[Any]:
    draft = GraphDraft(draws)
    draft.add("text", parent=None, parts=["a"])
    messages: list[Any] = [open_program(1, draft, detach_ms=1_000)]
    messages[0]["body"]["open"] = True
    each = draws.size(500)
    for number in range(draws.size(_MESSAGES) if each < 10 else draws.size(20)):
        more = GraphDraft(draws, next_id=draft.next_id + 1)
        for _ in range(each):
            more.add("text", parent=0, parts=["b"])
        draft.next_id = more.next_id
        messages.append({"t": "extend", "s": 1, "q": number + 1, "nodes": more.nodes})
    return [*messages, {"t": "close", "s": 1}]


def _calls(draws: Draws) -> list[Any]:
    draft = node_graph(draws, "call")
    calls = [node["id"] for node in draft.nodes if node["kind"] == "call"]
    answers: list[Any] = []
    if draws.chance(0.3):  # before they are asked for, several times
        value = call_value(draws)
        kind = draws.pick("resolve", "input", "reject")
        given = {"code": "call", "message": "no"} if kind == "reject" else {"value": value}
        answers = [{"t": kind, "s": 1, "n": node_id} | given for node_id in calls[:2]] * draws.size(3)
    return [open_program(1, draft), *answers]


def _cancel(draws: Draws) -> list[Any]:
    count = draws.size(MAX_STREAMS)
    opened: list[Any] = [_opened(stream) for stream in range(1, count + 1)]
    ends: list[Any] = [{"t": draws.pick("cancel", "close"), "s": stream} for stream in range(1, count + 1)]
    if draws.chance(0.5):
        return [message for pair in zip(opened, ends, strict=True) for message in pair]
    return opened + ends * draws.size(5)


def _credit(draws: Draws) -> list[Any]:
    messages: list[Any] = [_opened(1, credit=draws.pick(0, 1, 2**53 - 1))]
    return messages + [{"t": "credit", "s": 1, "n": draws.pick(1, 1, 2**53 - 1)}] * draws.size(_MESSAGES)


def _attach(draws: Draws) -> list[Any]:
    attach = {"rid": "0" * draws.size(2_000), "epoch": "e" * 16, "from": draws.size(2**40)}
    return [{"t": "attach", "s": stream} | attach for stream in range(1, draws.size(_MESSAGES) + 1)]


def _ping(draws: Draws) -> list[Any]:
    return [{"t": "ping", "n": number} for number in range(draws.size(5_000))]


def _malformed(draws: Draws) -> list[Any]:
    size = draws.size(4 << 20)
    message: Any = draws.pick(
        {"t": "x" * size},
        {"t": "open", "s": 1, "kind": "generate", "body": {"prompt": nested(draws.size(300), 1)}},
        b"[" * size,
        b"\x91" * size,
        [],
        {f"k{number}": number for number in range(min(size, 100_000))},
        {"t": "resolve", "s": 1, "n": 1, "value": draws.plain(draws.size(MAX_VALUE))},
        {"t": "hello", "v": 1},
    )
    return [_opened(1), message]


FRAMES: dict[str, Callable[[Draws], list[Any]]] = {
    "open": _open,
    "resumable": _resumable,
    "extend": _extend,
    "calls": _calls,
    "cancel": _cancel,
    "credit": _credit,
    "attach": _attach,
    "ping": _ping,
    "malformed": _malformed,
}
"""What the messages of a case are about."""


def frames(draws: Draws, name: str) -> Frames:
    """The messages of a case, on a connection that answers calls, and may leave early."""
    messages = FRAMES[name](draws)
    if draws.chance(0.2):
        messages.append({"t": "bye"})
    encoding = draws.pick("rtlang.v1.json", "rtlang.v1.msgpack")
    return Frames(encoding, tuple(messages), call_value(draws), draws.chance(0.1), draws.chance(0.1))
