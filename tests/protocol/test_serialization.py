"""Both encodings carry the same maps, joined messages read as arrays, and nothing malformed or oversized gets in."""

from __future__ import annotations

import contextlib
import json
import resource
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang.contract.errors import ProtocolError
from rtlang.protocol.serialization import DecodeLimits, Encoding, exact_size

LIMITS = DecodeLimits()
scalars = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text(max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | numbers,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
maps = st.dictionaries(st.text(max_size=5), values, max_size=5)
encodings = st.sampled_from(list(Encoding))


@given(encodings, maps)
def test_a_map_comes_back_as_it_was(encoding: Encoding, message: dict[str, Any]) -> None:
    assert encoding.unpack(encoding.pack(message), LIMITS) == message


@given(encodings, st.lists(maps, min_size=2, max_size=40))
def test_combined_maps_come_back_as_an_array(encoding: Encoding, messages: list[dict[str, Any]]) -> None:
    combined = encoding.combine([encoding.pack(message) for message in messages])
    assert encoding.unpack(combined, LIMITS) == messages


@pytest.mark.parametrize("length", [15, 16, 65_535, 65_536])
def test_array_headers_are_those_of_msgpack(length: int) -> None:
    expected = msgpack.packb([{}] * length)
    assert Encoding.MSGPACK.combine([Encoding.MSGPACK.pack({})] * length) == expected


def test_what_does_not_arrive_as_it_is_has_no_size() -> None:
    assert exact_size({"args": ["é", -(1 << 63)]}) == len(Encoding.MSGPACK.pack({"args": ["é", -(1 << 63)]}))
    with pytest.raises(ProtocolError, match=r"more than 64 bits .*pass it as text"):
        exact_size({"args": [1 << 64]})
    with pytest.raises(ProtocolError, match=r"the text 'a\\udcff' has a lone surrogate"):
        exact_size({"args": ["a\udcff"]})


@pytest.mark.parametrize("encoding", Encoding)
def test_one_map_alone_is_not_wrapped(encoding: Encoding) -> None:
    packed = encoding.pack({"t": "pong"})
    assert encoding.combine([packed]) == packed


@pytest.mark.parametrize("encoding", Encoding)
def test_lone_surrogates_are_replaced_when_encoding(encoding: Encoding) -> None:
    assert encoding.unpack(encoding.pack({"d": "a\ud800b"}), LIMITS) == {"d": "a?b"}


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


MALFORMED_MSGPACK = {
    "empty": b"",
    "cut short": msgpack.packb({"t": "hello"})[:-2],
    "more behind": msgpack.packb({}) + b"\x00",
    "reserved byte": b"\xc1",
    "nan": msgpack.packb({"x": float("nan")}),
    "infinite": msgpack.packb({"x": float("inf")}),
    "integer key": msgpack.packb({1: 2}),
    "binary key": msgpack.packb({b"t": 2}),
    "binary value": msgpack.packb({"x": b"abc"}),
    "extension": msgpack.packb({"x": msgpack.ExtType(5, b"abc")}),
    "timestamp": msgpack.packb({"x": msgpack.Timestamp(1, 2)}),
    "bad text": b"\x81\xa1t\xa2\xff\xfe",
    "surrogate": b"\x81\xa1t\xa3\xed\xa0\x80",
    "same key twice": b"\x82\xa1t\x01\xa1t\x02",
    "array as key": b"\x81\x90\x01",
    "long array": msgpack.packb({"x": [0] * 100_001}),
    "huge announced array": b"\xdd\xff\xff\xff\xff",
    "huge announced map": b"\xdf\xff\xff\xff\xff",
    "huge announced text": b"\xdb\xff\xff\xff\xff",
    "big map": msgpack.packb({str(i): i for i in range(10_001)}),
    "many values": msgpack.packb([[0] * 70_000] * 3),
    "many maps": msgpack.packb([[{}] * 70_000] * 3),
    "deep": msgpack.packb(nested(65)),
    "very deep": b"\x91" * 100_000 + b"\x90",
}
MALFORMED_JSON = {
    "empty": b"",
    "cut short": b'{"t": ',
    "more behind": b"{} {}",
    "nan": b'{"x": NaN}',
    "infinite": b'{"x": -Infinity}',
    "overflowing": b'{"x": 1e999}',
    "surrogate": b'{"x": "\\ud800"}',
    "surrogate key": b'{"\\ud800": 1}',
    "bad text": b'{"x": "\xff"}',
    "same key twice": b'{"t": 1, "t": 2}',
    "endless integer": b'{"x": ' + b"9" * 5000 + b"}",
    "big integer": b'{"x": 18446744073709551616}',
    "long array": json.dumps({"x": [0] * 100_001}).encode(),
    "big map": json.dumps({str(i): i for i in range(10_001)}).encode(),
    "many values": json.dumps([[0] * 70_000] * 3).encode(),
    "many maps": json.dumps([[{}] * 70_000] * 3).encode(),
    "deep": json.dumps(nested(65)).encode(),
    "very deep": b"[" * 100_000 + b"]" * 100_000,
    "byte order mark": b"\xef\xbb\xbf{}",
}


@pytest.mark.parametrize("name", MALFORMED_MSGPACK)
def test_malformed_msgpack_is_one_error(name: str) -> None:
    with pytest.raises(ProtocolError, match="malformed message") as caught:
        Encoding.MSGPACK.unpack(MALFORMED_MSGPACK[name], LIMITS)
    assert caught.value.close_code == 1007


@pytest.mark.parametrize("name", MALFORMED_JSON)
def test_malformed_json_is_one_error(name: str) -> None:
    with pytest.raises(ProtocolError, match="malformed message") as caught:
        Encoding.JSON.unpack(MALFORMED_JSON[name], LIMITS)
    assert caught.value.close_code == 1007


@pytest.mark.parametrize("encoding", Encoding)
def test_the_largest_allowed_message_gets_in(encoding: Encoding) -> None:
    for value in ({"x": [0] * 100_000}, {str(i): i for i in range(10_000)}, {"x": nested(63)}):
        assert encoding.unpack(encoding.pack(value), LIMITS) == value


@given(st.binary(max_size=200))
def test_random_bytes_never_raise_anything_else(data: bytes) -> None:
    for encoding in Encoding:
        with contextlib.suppress(ProtocolError):
            encoding.unpack(data, LIMITS)


def test_nested_announcements_do_not_reserve_memory() -> None:
    """Each level announces 100,000 entries and holds one: the announced arrays must not become resident."""
    level = b"\xdd" + (100_000).to_bytes(4, "big")
    data = level * 500 + b"\xa0" * 200_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ProtocolError):
        Encoding.MSGPACK.unpack(data, LIMITS)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([","] * 29),
        json.dumps([[]] * 29),
        json.dumps(["," * 99 + "[{" * 99]),
        json.dumps(['"' + "," * 99, "\\", ",," * 40, '\\"' + "[" * 50]),
        json.dumps({"a,[": ["b", {"c": "{,"}]}),
    ],
)
def test_commas_and_brackets_in_texts_are_no_values(text: str) -> None:
    assert Encoding.JSON.unpack(text.encode(), DecodeLimits(max_values=31)) == json.loads(text)


@pytest.mark.parametrize("text", ["[1" + ",1" * 31 + "]", json.dumps([[]] * 31), "[" * 32, '["' + '","' * 31, "," * 31])
def test_many_values_are_refused_before_they_are_built(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "loads", None)
    with pytest.raises(ProtocolError, match="more than 31 values"):
        Encoding.JSON.unpack(text.encode(), DecodeLimits(max_values=31))


@settings(deadline=None)
@given(encodings, values)
def test_counting_refuses_the_same_as_looking_at_the_values(encoding: Encoding, value: Any) -> None:
    def count(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + sum(map(count, inner))

    packed, num_values = encoding.pack(value), count(value)
    assert encoding.unpack(packed, DecodeLimits(max_values=num_values)) == value
    if num_values > 1:
        with pytest.raises(ProtocolError, match=f"more than {num_values - 1} values"):
            encoding.unpack(packed, DecodeLimits(max_values=num_values - 1))
