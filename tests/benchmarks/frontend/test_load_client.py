"""The client of the load: what it counts of bytes that arrive in any pieces, over both kinds of connections."""

from __future__ import annotations

import json
import random

import pytest

from rtlang_bench.frontend.load_client import Load, SocketChannel, SseChannel, Tally, channels_of


def sse(*chunks: dict[str, object]) -> bytes:
    events = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    body = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in [*events, b": \n\n", b"data: [DONE]\n\n"])
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


def choice(text: str, *ids: int) -> dict[str, object]:
    return {"choices": [{"text": text, "token_ids": list(ids)}]}


def frames(*messages: object) -> bytes:
    head = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
    payloads = [json.dumps(message).encode() for message in messages]
    return head + b"".join(
        b"\x81" + (bytes([len(each)]) if len(each) < 126 else b"\x7e" + len(each).to_bytes(2, "big")) + each
        for each in payloads
    )


def pieces(data: bytes, dice: random.Random) -> list[bytes]:
    cuts = sorted(dice.sample(range(1, len(data)), 12))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_tokens_are_counted_in_any_pieces(seed: int) -> None:
    dice = random.Random(seed)
    load = Load("http://h:1", {"prompt": "a"}, num_streams=1, num_tokens=4, num_rounds=2)
    tally = Tally(load)
    channel = SseChannel(load, 0, tally)
    answer = sse(choice("a", 1), choice("", 2), choice("bc", 3, 4), {"choices": []})
    assert channel.begin().endswith(b'{"prompt": "a"}')
    sent = [channel.take(piece) for piece in pieces(answer, dice)]
    assert [each for each in sent if each] == [channel.begin()], "the next request follows the end"
    assert [channel.take(piece) for piece in pieces(answer, dice)][-1] is None
    report = tally.report
    assert (report.num_tokens, report.tokens_at_half, report.failures, tally.num_done) == (8, [4], [], 1)
    assert len(report.first_s) == 2


def test_a_stream_that_ends_before_its_tokens_has_failed() -> None:
    load = Load("http://h:1", {"prompt": "a"}, num_streams=1, num_tokens=4, num_rounds=2)
    tally = Tally(load)
    channel = SseChannel(load, 0, tally)
    assert channel.take(sse(choice("a", 1), {"error": {"message": "the engine is dead"}})) is None
    (reason,) = tally.report.failures
    assert reason.startswith("1 tokens of 4: ")
    assert "engine is dead" in reason


@pytest.mark.parametrize("seed", range(20))
def test_streams_of_a_socket_are_told_apart(seed: int) -> None:
    load = Load("ws://h:1", {"prompt": "a"}, num_streams=3, num_tokens=2, streams_a_socket=2)
    tally = Tally(load)
    first, second = channels_of(load, tally)
    assert isinstance(first, SocketChannel)
    deltas = [{"t": "delta", "s": stream, "ids": [5]} for stream in (1, 2, 2)]
    message = frames({"t": "welcome"}, deltas, {"t": "end", "s": 2}, {"t": "delta", "s": 1, "ids": [7], "d": "x" * 300})
    for piece in pieces(message, random.Random(seed)):
        assert first.take(piece) is not None
    assert first.take(frames({"t": "end", "s": 1})[36:]) is None
    assert second.take(frames({"t": "error", "s": 1, "code": "overload"})) is not None
    assert tally.report.num_tokens == 4
    assert tally.report.tokens_at_half == [1, 2, 0]
    slow, fast, none = tally.report.rates_at_half
    assert 0 == none < slow < fast, "tokens a second since the request"
    assert tally.num_done == 2


def test_a_chunk_with_text_is_a_token_without_ids() -> None:
    load = Load("http://h:1", {}, num_streams=1, num_tokens=2, counts_ids=False)
    tally = Tally(load)
    assert SseChannel(load, 0, tally).take(sse(choice("a", 1), choice("", 2), choice("b"))) is None
    assert tally.report.num_tokens == 2


def test_refusals_and_lost_connections_are_failures() -> None:
    load = Load("http://h:1", {}, num_streams=2, num_tokens=2)
    tally = Tally(load)
    refused, lost = channels_of(load, tally)
    assert refused.take(b"HTTP/1.1 429 Too Many\r\n\r\n") is None
    assert lost.take(b"") is None
    assert len(tally.report.failures) == 2


def test_random_prompts_differ_by_stream_and_request() -> None:
    load = Load("http://h:1", {}, num_streams=2, num_tokens=1, num_prompt_tokens=8)
    tally = Tally(load)
    sent = [channel.begin() for channel in channels_of(load, tally) for _ in range(2)]
    assert len(set(sent)) == 4
    again = [channel.begin() for channel in channels_of(load, Tally(load)) for _ in range(2)]
    assert again == sent
