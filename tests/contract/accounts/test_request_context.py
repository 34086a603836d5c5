"""A request keeps its identity, and nothing that a client sends as one can harm a log line, a header or a trace."""

from __future__ import annotations

import pytest

from rtlang.contract.accounts.request_context import PROGRAM, RequestContext, request_id_of, trace_ids
from rtlang.contract.errors import ParameterError
from rtlang.contract.runs.run_options import RunOptions

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("given", ["a", "req_1/2:3", "~" * 128, '"quoted"'])
def test_a_valid_id_is_kept(given: str) -> None:
    assert request_id_of(given) == given


@pytest.mark.parametrize("given", [None, "", " ", "a b", "a\nb", "a\r", "\x00", "é", "x" * 129, "\x7f"])
def test_an_invalid_id_is_made_anew(given: str | None) -> None:
    made = request_id_of(given)
    assert made != given
    assert made != request_id_of(given)
    assert len(made) == 32


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        "00",
        TRACE.upper(),
        TRACE + "-00",
        "ff" + TRACE[2:],
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
        TRACE.replace("-", "_"),
        TRACE[:-1] + "g",
    ],
)
def test_an_invalid_trace_is_left_out_with_its_state(traceparent: str) -> None:
    context = RequestContext.of("a", traceparent=traceparent, tracestate="vendor=1")
    assert (context.traceparent, context.tracestate, context.trace_id) == (None, None, None)


def test_a_trace_is_kept_and_read() -> None:
    context = RequestContext.of("a", traceparent=TRACE, tracestate="vendor=1")
    assert context.trace_id == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert context.tracestate == "vendor=1"
    assert trace_ids(TRACE) == (0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, 1)
    assert RequestContext.of("a", traceparent=TRACE, tracestate="x" * 513).tracestate is None


def test_a_context_comes_through_as_plain_data() -> None:
    context = RequestContext.of("a", "POST /v1/completions", TRACE, "vendor=1")
    assert RequestContext.from_plain(context.to_plain()) == context
    assert RequestContext.from_plain({"request_id": "a", "unknown": 1, "traceparent": 5}) == RequestContext(
        "a", PROGRAM
    )


def test_options_take_nothing_else_as_a_context() -> None:
    with pytest.raises(ParameterError, match="context"):
        RunOptions(context="a")  # type: ignore[arg-type]
