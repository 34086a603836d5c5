"""Checks of sections 3 to 6: streams, events, graphs, and refusals."""

from __future__ import annotations

from rtlang_bench.conformance.wire import (
    JSON,
    MSGPACK,
    Message,
    Server,
    SkipError,
    check,
    check_offsets,
    expect,
    ids_of,
    text_of,
)

LONG = {"prompt": "Once upon a time", "params": {"max_tokens": 4000, "ignore_eos": True}}
SHORT: Message = {"prompt": "Once upon a time", "params": {"max_tokens": 8, "ignore_eos": True}}


@check("3", "a stream id that is used twice closes with 4409")
def _reused(server: Server) -> None:
    with server.connect() as wire:
        wire.run(2, "generate", SHORT)
        wire.send(t="open", s=1, kind="generate", body=SHORT)
        wire.expect_close(4409)


@check("3", "a message for a stream that was never opened is an error")
def _unopened(server: Server) -> None:
    with server.connect() as wire:
        expect(wire.refusal(t="extend", s=5, nodes=[]).get("s") == 5, "s is missing")


@check("3", "an error of one stream does not touch another one")
def _isolation(server: Server) -> None:
    with server.connect() as wire:
        wire.open(1, "generate", SHORT)
        wire.send(t="open", s=2, kind="generate", body={})
        expect(wire.until(1, "end")[-1]["reason"] == "stop", "the other stream did not finish")


@check("5.3", "a generation streams deltas, ends its node and then the stream, and all agree")
def _generation(server: Server) -> None:
    with server.connect() as wire:
        messages = wire.run(1, "generate", SHORT)
    check_offsets(messages)
    node, end = messages[-2:]
    expect((node["t"], node.get("e")) == ("event", "end"), "no end of the node before the end of the stream")
    completion = node["completions"][0]
    expect(completion["text"] == text_of(messages) == end["values"][node["name"]], "the texts differ")
    expect(completion["ids"] == ids_of(messages), "the token ids differ")
    expect(end["usage"]["completion_tokens"] == 8, f"usage: {end['usage']}")
    expect((end["reason"], completion["reason"], end["failed"]) == ("stop", "length", []), "wrong reasons")


@check("2", "both encodings carry the same output")
def _encodings(server: Server) -> None:
    found = []
    for name in (JSON, MSGPACK):
        with server.connect(name) as wire:
            found.append(ids_of(wire.run(1, "generate", SHORT | {"seed": 4})))
    expect(found[0] == found[1], "the outputs differ")


@check("4.2", "a chat is answered")
def _chat(server: Server) -> None:
    with server.connect() as wire:
        body = {"messages": [{"role": "user", "content": "Name a color."}], "params": {"max_tokens": 4}}
        expect(wire.run(1, "chat", body)[-1]["reason"] == "stop", "no regular end")


@check("4.2", "a seed determines the texts of several choices")
def _seed(server: Server) -> None:
    body = SHORT | {"params": SHORT["params"] | {"n": 2, "temperature": 1.0}, "seed": 77}
    with server.connect() as wire:
        first, second = (wire.run(stream, "generate", body) for stream in (1, 2))
    check_offsets(first)
    for choice in (0, 1):
        expect(text_of(first, choice=choice) == text_of(second, choice=choice), "the texts differ")
    expect(first[-2]["completions"][1]["text"] == text_of(first, choice=1), "the second choice differs from its deltas")


@check("6", "a program forks, refers to texts, takes inputs and selects")
def _program(server: Server) -> None:
    nodes: list[Message] = [
        {"id": 0, "parent": None, "kind": "text", "parts": ["Word: ", {"arg": "word"}, "\n"]},
        {"id": 1, "parent": 0, "kind": "select", "name": "label", "choices": ["good", "bad"]},
        {"id": 2, "parent": 0, "kind": "generate", "name": "more", "params": {"max_tokens": 3}},
        {"id": 3, "parent": 2, "kind": "text", "parts": [" and ", {"ref": 1}, ": "]},
        {"id": 4, "parent": 3, "kind": "generate", "name": "last", "params": {"max_tokens": 3}},
    ]
    with server.connect() as wire:
        messages = wire.run(1, "program", {"graph": {"nodes": nodes, "inputs": ["word"]}, "inputs": {"word": "sun"}})
    ends = {each["n"]: each for each in messages if each.get("e") == "end"}
    expect(set(ends) == {1, 2, 4}, f"nodes that ended: {sorted(ends)}")
    expect(len(ends[1]["scores"]) == 2, "no score for each choice")
    values = messages[-1]["values"]
    expect(values["label"] in ("good", "bad") and set(values) == {"label", "more", "last"}, f"values: {values}")


@check("6.4", "a constraint holds")
def _constraint(server: Server) -> None:
    with server.connect() as wire:
        for stream, kind, source in ((1, "regex", "[0-9]{3}"), (2, "choice", '["red", "blue"]')):
            body = SHORT | {"constraint": {"kind": kind, "source": source}, "params": {"max_tokens": 20}}
            text = wire.run(stream, "generate", body)[-1]["values"]["text"]
            expect(
                (text.isdigit() and len(text) == 3) if kind == "regex" else text in ("red", "blue"), f"text: {text!r}"
            )


@check("4.5", "cancel ends a stream with the reason cancelled")
def _cancel(server: Server) -> None:
    with server.connect() as wire:
        wire.open(1, "generate", LONG)
        wire.until(1, "delta")
        wire.send(t="cancel", s=1)
        expect(wire.until(1, "end")[-1]["reason"] == "cancelled", "another reason")


@check("4.2", "a deadline ends a stream with the reason deadline")
def _deadline(server: Server) -> None:
    with server.connect() as wire:
        end = wire.run(1, "generate", LONG, credit=1, deadline_ms=50)[-1]
        expect((end["reason"], end["code"], end["status"]) == ("deadline", "deadline", 504), f"end: {end}")


@check("3", "streams beyond max_streams are refused with 429")
def _too_many(server: Server) -> None:
    with server.connect() as wire:
        limit = wire.welcome["limits"]["max_streams"]
        if limit > 512:
            raise SkipError(f"max_streams is {limit}")
        program = {"graph": {"nodes": [{"id": 0, "parent": None, "kind": "text", "parts": ["x"]}]}, "open": True}
        for stream in range(1, limit + 1):
            wire.open(stream, "program", program)
        error = wire.refusal(t="open", s=limit + 1, kind="program", body=program)
        expect((error["code"], error["status"]) == ("overload", 429), f"error: {error}")
        expect(isinstance(error.get("retry_after"), (int, float)), "no retry_after")


def _strict(name: str, body: Message, param: str, kind: str = "generate") -> None:
    @check("2", f"{name} is an error that names it")
    def run(server: Server) -> None:
        with server.connect() as wire:
            error = wire.refusal(t="open", s=1, kind=kind, body=body)
            expect(error["status"] == 400 and error.get("s") == 1, f"error: {error}")
            expect(str(error.get("param", "")).endswith(param), f"param is {error.get('param')!r}, not {param!r}")


_TEXT = {"id": 0, "parent": None, "kind": "text", "parts": ["x"]}
_strict("an option beside params", SHORT | {"max_tokens": 3}, "max_tokens")
_strict("an unknown option in params", {"prompt": "x", "params": {"max_token": 3}}, "max_token")
_strict("an option out of its range", {"prompt": "x", "params": {"temperature": -1}}, "temperature")
_strict("an unknown field of a constraint", SHORT | {"constraint": {"kind": "regex", "source": "a", "is": 1}}, "is")
_strict("an unknown kind of constraint", SHORT | {"constraint": {"kind": "magic", "source": "a"}}, "kind")
_strict("an unknown field of a node", {"graph": {"nodes": [_TEXT | {"text": "x"}]}}, "text", "program")
_strict("an unknown kind of node", {"graph": {"nodes": [_TEXT | {"kind": "magic"}]}}, "kind", "program")
_strict("a missing input", {"graph": {"nodes": [_TEXT], "inputs": ["a"]}}, "inputs", "program")


@check("4.3", "nodes are added, a refused extend leaves the graph as it was, and close ends it")
def _extend(server: Server) -> None:
    with server.connect() as wire:
        wire.open(1, "program", {"graph": {"nodes": [_TEXT]}, "open": True})
        more = {"id": 1, "parent": 0, "kind": "generate", "name": "a", "params": {"max_tokens": 2}}
        wire.send(t="extend", s=1, nodes=[more], q=1)
        expect(wire.until(1, "ack")[-1].get("q") == 1, "no ack with q")
        wire.send(t="extend", s=1, nodes=[more], q=2)
        expect(wire.until(1, "error", "end")[-1].get("q") == 2, "a node was added twice")
        wire.send(t="close", s=1)
        expect(set(wire.until(1, "end")[-1]["values"]) == {"a"}, "wrong values")


@check("4.6", "calls are answered by resolve, input and reject; only the first answer counts")
def _calls(server: Server) -> None:
    calls = [
        {"id": node, "kind": "call", "function": "f", "args": [{"value": node}], "name": f"v{node}"}
        for node in (1, 2, 3)
    ]
    with server.connect() as wire:
        wire.open(1, "program", {"graph": {"nodes": calls}})
        asked = [wire.until(1, "call")[-1] for _ in calls]
        expect(sorted(each["n"] for each in asked) == [1, 2, 3], f"asked: {asked}")
        expect(all(each["args"] == [each["n"]] and each["function"] == "f" for each in asked), f"asked: {asked}")
        wire.send(t="resolve", s=1, n=1, value={"a": [1, None]})
        wire.send(t="resolve", s=1, n=1, value="too late")
        wire.send(t="input", s=1, n=2, value="typed")
        wire.send(t="reject", s=1, n=3, code="call", message="no such thing")
        end = wire.until(1, "end")[-1]
    expect(end["values"] == {"v1": {"a": [1, None]}, "v2": "typed"}, f"values: {end['values']}")
    expect(end["failed"] == [3], f"failed: {end['failed']}")
