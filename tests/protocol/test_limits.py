"""The limits in `welcome` are those of the code that refuses."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import ProtocolError
from rtlang.protocol.limits import wire_limits
from rtlang.protocol.serialization import DecodeLimits, Encoding


def test_limits_are_positive_integers_with_those_of_the_server() -> None:
    limits = wire_limits(max_frame_bytes=5)
    assert limits["max_frame_bytes"] == 5
    assert all(type(value) is int and value > 0 for value in limits.values())


def test_a_message_at_the_reported_depth_is_read_and_a_deeper_one_is_not() -> None:
    depth = wire_limits()["max_depth"]

    def nested(levels: int) -> bytes:
        return b"[" * levels + b"]" * levels

    Encoding.JSON.unpack(nested(depth), DecodeLimits())
    with pytest.raises(ProtocolError, match="nested"):
        Encoding.JSON.unpack(nested(depth + 1), DecodeLimits())
