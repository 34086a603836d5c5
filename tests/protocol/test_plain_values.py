"""Plain values come back as they were sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtlang.contract.errors import ProtocolError
from rtlang.protocol.plain_values import value_from_wire, value_to_wire
from rtlang.protocol.serialization import DecodeLimits, Encoding

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
KEYS = st.text(max_size=3) | st.sampled_from(["$int", "$", "$$int"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@pytest.mark.parametrize("encoding", list(Encoding))
@given(value=VALUES)
def test_values_come_back(encoding: Encoding, value: Any) -> None:
    packed = encoding.pack({"value": value_to_wire(value)})
    read = encoding.unpack(packed, DecodeLimits())["value"]
    again = value_from_wire(read, "value")
    assert again == value
    assert repr(again) == repr(value)


@pytest.mark.parametrize(
    "wrong", [{"$int": "x"}, {"$int": 3}, {"$int": "9" * 5000}, {"$other": 1}, {"$int": "1", "a": 2}]
)
def test_other_maps_with_a_dollar_are_refused(wrong: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        value_from_wire(wrong, "args")
    assert caught.value.param == "args"
