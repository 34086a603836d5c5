"""Checks of sections 7 and 10: streams that outlive their connection, going on from tokens, credit and progress."""

from __future__ import annotations

from secrets import token_hex

from rtlang_bench.conformance.stream_checks import LONG, SHORT
from rtlang_bench.conformance.wire import Message, Server, check, check_offsets, expect, ids_of, text_of

SAMPLED: Message = SHORT | {"params": {"max_tokens": 12, "ignore_eos": True, "temperature": 0.9}, "seed": 21}


def _counted(messages: list[Message]) -> int:
    return sum(each["t"] in ("delta", "event", "end") for each in messages)


@check("7.2", "an attach replays what has not arrived, with offsets that go on")
def _attach(server: Server) -> None:
    with server.connect() as wire:
        wire.needs("attach")
        whole = ids_of(wire.run(1, "generate", SAMPLED))
        ack = wire.open(2, "generate", SAMPLED, detach_ms=60000)
        before = wire.until(2, "delta")
        wire.drop()
    with server.connect() as wire:
        place = {"rid": ack["rid"], "epoch": ack["epoch"], "from": _counted(before)}
        wire.send(t="attach", s=7, **place)
        answer = wire.receive()
        expect((answer["t"], answer.get("from")) == ("ack", place["from"]), f"attach was answered by {answer}")
        after = wire.until(7, "end")
    expect(ids_of(before + after) == whole, "the output differs from an uninterrupted one")
    check_offsets(before + after)


@check("7.2", "an attach takes a stream from a connection that is still there")
def _take_over(server: Server) -> None:
    with server.connect() as old, server.connect() as new:
        old.needs("attach", "credit")
        ack = old.open(1, "generate", SHORT, credit=0, detach_ms=60000)
        new.send(t="attach", s=1, rid=ack["rid"], epoch=ack["epoch"], **{"from": 0})
        expect(new.receive()["t"] == "ack", "not attached")
        error = old.receive()
        expect((error["t"], error["s"], error["code"]) == ("error", 1, "gone"), f"the old connection got {error}")
        new.send(t="cancel", s=1)


@check("7.2", "attach fails with gone for an unknown stream, another epoch and messages that never were")
def _gone(server: Server) -> None:
    with server.connect() as wire:
        wire.needs("attach")
        ack = wire.open(1, "generate", SHORT, detach_ms=60000)
        wire.until(1, "end")
        tries: tuple[tuple[str, Message], ...] = (
            ("rid", {"rid": "0" * 32}),
            ("epoch", {"epoch": "other"}),
            ("from", {"from": 1000}),
        )
        for stream, (param, change) in enumerate(tries, 2):
            place = {"rid": ack["rid"], "epoch": ack["epoch"], "from": 0} | change
            error = wire.refusal(t="attach", s=stream, **place)
            expect((error["code"], error["status"]) == ("gone", 410), f"error: {error}")
            expect(error.get("param") == param, f"param is {error.get('param')!r}, not {param!r}")


@check("7.3", "a repeated open with the same idem runs once; other content is refused")
def _idem(server: Server) -> None:
    fields = {"detach_ms": 60000, "idem": token_hex(16)}
    body = SHORT | {"params": SHORT["params"] | {"temperature": 1.0}}  # without a seed, two runs would differ
    with server.connect() as wire:
        wire.needs("attach")
        ack = wire.open(1, "generate", body, **fields)
        first = ids_of(wire.until(1, "end"))
        again = wire.open(2, "generate", body, **fields)
        expect(again["rid"] == ack["rid"], "another stream")
        expect(ids_of(wire.until(2, "end")) == first, "another output")
        wire.refusal(t="open", s=3, kind="generate", body=body | {"prompt": "y"}, **fields)


@check("7.4", "a repeated extend is applied once; other nodes under its number are refused")
def _extend_once(server: Server) -> None:
    nodes = [{"id": 0, "parent": None, "kind": "text", "parts": ["x"]}]
    more = {"id": 1, "parent": 0, "kind": "generate", "name": "a", "params": {"max_tokens": 1}}
    with server.connect() as wire:
        wire.needs("attach")
        wire.open(1, "program", {"graph": {"nodes": nodes}, "open": True}, detach_ms=60000)
        for _ in range(2):
            wire.send(t="extend", s=1, nodes=[more], q=1)
            expect(wire.until(1, "ack", "error")[-1]["t"] == "ack", "the second one was refused")
        wire.send(t="extend", s=1, nodes=[more | {"name": "b"}], q=1)
        expect(wire.until(1, "error")[-1].get("param") == "q", "other nodes were accepted")
        wire.send(t="cancel", s=1)


@check("7.5", "a generation goes on from delivered tokens with the same text")
def _continue(server: Server) -> None:
    with server.connect() as wire:
        wire.needs("continue")
        whole = wire.run(1, "generate", SAMPLED)
        ids = ids_of(whole)
        rest = wire.run(2, "generate", SAMPLED, continue_from=[{"n": 1, "ids": [ids[:5]]}])
    expect(ids_of(rest) == ids[5:], "the rest differs")
    expect(rest[-1]["values"] == whole[-1]["values"], "the whole text differs")
    check_offsets(rest)


@check("10.1", "a stream delivers exactly its credit and then says that it waits")
def _credit(server: Server) -> None:
    with server.connect() as wire:
        wire.needs("credit")
        whole = ids_of(wire.run(1, "generate", SAMPLED))
        wire.open(2, "generate", SAMPLED, credit=3)
        first = wire.until(2, "waiting")
        expect(len(ids_of(first)) == 3, f"{len(ids_of(first))} tokens for a credit of 3")
        wire.expect_silence(2)
        wire.send(t="credit", s=2, n=4)
        second = wire.until(2, "waiting")
        expect(len(ids_of(second)) == 4, f"{len(ids_of(second))} tokens for 4 more")
        wire.send(t="credit", s=2, n=1000)
        expect(ids_of(first + second + wire.until(2, "end")) == whole, "the output differs from one without waiting")


@check("10.1", "without credit nothing is delivered, and other streams go on")
def _no_credit(server: Server) -> None:
    with server.connect() as wire:
        wire.needs("credit")
        wire.open(1, "generate", SAMPLED, credit=0)
        wire.open(2, "generate", SAMPLED)
        expect(len(ids_of(wire.until(2, "end"))) == 12, "the other stream did not finish")
        wire.expect_silence(1)
        wire.send(t="credit", s=1, n=100)
        expect(len(ids_of(wire.until(1, "end"))) == 12, "the stream did not go on")


@check("10.1", "the default credit is that of welcome")
def _default_credit(server: Server) -> None:
    with server.connect() as wire:
        wire.needs("credit")
        wire.open(1, "generate", LONG)
        messages = wire.until(1, "waiting", "end")
        if messages[-1]["t"] == "event":  # else the model is too short for it
            found, default = len(ids_of(messages)), wire.welcome["limits"]["default_credit"]
            expect(found == default, f"{found} tokens, default_credit is {default}")


@check("10.1", "a detached stream waits with its credit spent, and acks report what was granted")
def _detached_credit(server: Server) -> None:
    with server.connect() as wire:
        wire.needs("attach", "credit")
        ack = wire.open(1, "generate", SAMPLED, credit=5, detach_ms=60000)
        expect(ack.get("granted") == 5, f"ack: {ack}")
        wire.drop()
    with server.connect() as wire:
        wire.send(t="attach", s=1, rid=ack["rid"], epoch=ack["epoch"], **{"from": 0})
        expect(wire.receive().get("granted") == 5, "granted is missing")
        expect(len(ids_of(wire.until(1, "waiting"))) == 5, "another number of tokens")
        wire.send(t="cancel", s=1)


@check("5.4", "progress reports start and cached prompt before the first delta")
def _progress(server: Server) -> None:
    with server.connect() as wire:
        wire.needs("progress")
        messages = wire.run(1, "generate", SHORT, progress=True)
    kinds = [each.get("e", each["t"]) for each in messages]
    expect(kinds[:3] == ["start", "cached", "delta"], f"first messages: {kinds[:3]}")
    cached = messages[1]
    expect(0 <= cached["cached_tokens"] <= cached["prompt_tokens"], f"event: {cached}")


@check("5.3", "deltas carry the log-probabilities of their tokens if asked for")
def _logprobs(server: Server) -> None:
    with server.connect() as wire:
        messages = wire.run(1, "generate", SHORT | {"params": SHORT["params"] | {"logprobs": 2}})
    deltas = [each for each in messages if each["t"] == "delta"]
    expect([item[0] for each in deltas for item in each.get("lp", ())] == ids_of(messages), "lp does not match ids")
    expect(all(len(item[2]) == 2 for each in deltas for item in each["lp"]), "not two alternatives each")
    expect(text_of(messages) == messages[-1]["values"]["text"], "the texts differ")
