"""The table of run options in messages: what one side writes, the other reads; and the fields of a message as they were."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from rtlang.contract.accounts.request_context import RequestContext
from rtlang.contract.errors import ProtocolError
from rtlang.contract.runs.budget import Budget
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.runs.session_options import SessionOptions
from rtlang.protocol.run_options import (
    _TABLE,
    Place,
    deadline_ms,
    fields_of,
    options_beside,
    options_from_engine,
    options_from_open,
    options_to_engine,
)

FULL = RunOptions(
    {"who": "Ada"},
    priority=2,
    seed=7,
    budget=Budget(tokens=5, seconds=1.5),
    cache_salt="red",
    reports_progress=True,
    principal=Principal("ana"),
    context=RequestContext("a-1", "open"),
    session=SessionOptions(("<tool_call>",), "chat-7", 300.0),
)


def test_every_option_is_in_the_table_or_written_by_its_sender() -> None:
    by_sender = {"is_open", "begun_at", "known", "continue_from", "identity"}
    assert {item.option for item in _TABLE} == {item.name for item in fields(RunOptions)} - by_sender


def test_an_open_message_says_what_its_reader_finds() -> None:
    body, beside = fields_of(FULL, Place.BODY), fields_of(FULL, Place.BESIDE)
    assert list(body) == ["inputs", "priority", "seed", "budget", "cache_salt"]
    assert beside == {"progress": True, "context": {"request_id": "a-1", "door": "open"}}
    read = options_from_open(body, options_beside(beside | {"deadline_ms": 1500, "credit": 3}), {}, is_open=True)
    assert read == replace(FULL, principal=RunOptions().principal, session=None, is_open=True, deadline_s=1.5, credit=3)


def test_options_that_are_not_given_are_left_out_of_an_open_message() -> None:
    assert fields_of(RunOptions(), Place.BODY) == {"inputs": {}, "priority": 0}
    assert fields_of(RunOptions(), Place.BESIDE) == {}


@pytest.mark.parametrize("options", [RunOptions(), FULL])
def test_an_engine_reads_what_it_is_sent(options: RunOptions) -> None:
    written = options_to_engine(options)
    names = ["inputs", "priority", "seed", "budget", "cache_salt", "principal", "session", "progress", "context"]
    assert list(written) == names
    assert options_from_engine(written | {"open": False}) == options
    live = {"open": True, "deadline_s": 2.5, "credit": 4}
    assert options_from_engine(written | live) == replace(options, is_open=True, deadline_s=2.5, credit=4)


def test_what_is_left_of_a_deadline_is_written_in_milliseconds() -> None:
    options = RunOptions(deadline_s=1.5).begun(10.0)
    assert [deadline_ms(options, now) for now in (10.0, 11.0, 99.0)] == [1500, 500, 1]
    assert deadline_ms(RunOptions().begun(0.0), 1.0) is None


@pytest.mark.parametrize("wrong", [{"deadline_ms": 0}, {"credit": "x"}, {"deadline_ms": 1.5}])
def test_a_wrong_field_beside_the_body_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as refused:
        options_beside(wrong)
    assert refused.value.param in wrong
