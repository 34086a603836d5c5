"""What a client may send, and what refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.serve.http.errors import HttpError
from rtlang.serve.websocket_mode.frames import FIELDS, Create, error_frame, lane_of, read_create, type_of


def test_the_fields_of_the_transport_leave_the_body() -> None:
    body = {"model": "m", "input": "hi", "store": False}
    sent = body | {"type": "response.create", "stream": True, "background": False, "stream_id": "a.b-C_9"}
    assert read_create(sent, 7) == Create("a.b-C_9", body, True, 7)
    assert read_create(body | {"stream_id": None, "generate": None, "stream": None}, 7) == Create(None, body, True, 7)
    assert not read_create(body | {"generate": False}, 7).generates
    warm = {"prompt_cache_options": {"prewarm": True}}
    assert read_create(body | warm | {"generate": True}, 7) == Create(None, body | warm, False, 7)
    assert {"stream_id", "generate", "background", "stream"} < {*FIELDS.accepted, *FIELDS.fixed, *FIELDS.hints}


@pytest.mark.parametrize("value", ["", "a b", "ä", "x" * 257, "a\n", 3, ["a"], {}, True])
def test_a_lane_has_a_plain_name(value: Any) -> None:
    assert lane_of({"stream_id": value}) is None
    with pytest.raises(HttpError) as caught:
        read_create({"stream_id": value}, 0)
    assert (caught.value.code, caught.value.param, caught.value.status) == ("invalid_stream_id", "stream_id", 400)


@pytest.mark.parametrize(("field", "value"), [("background", True), ("background", 0), ("generate", "no")])
def test_what_would_change_the_answer_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        read_create({field: value}, 0)
    assert caught.value.field == field


@pytest.mark.parametrize("message", [None, 3, "x", [], {}, {"type": "x"}, {"type": ["response.create"]}, {"type": {}}])
def test_only_known_types_are_taken(message: Any) -> None:
    with pytest.raises((HttpError, ParameterError, Exception)) as caught:
        type_of(message)
    assert getattr(caught.value, "code", None) in ("parameter", "protocol")
    assert lane_of(message) is None


def test_an_error_tells_when_to_try_again() -> None:
    frame = error_frame(429, {"error": {"message": "full", "type": "x", "code": "overload", "retry_after": 2.0}}, "a")
    assert b'"headers":{"retry-after":"2.0"}' in frame
    assert b'"stream_id":"a"' in frame
