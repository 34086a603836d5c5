"""Every event and every error crosses both encodings and comes back equal."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtlang.contract.errors import (
    ERRORS_BY_CODE,
    AbortedError,
    BudgetError,
    CapacityError,
    ConstraintError,
    ContextLengthError,
    DeadlineError,
    DependencyError,
    GraphError,
    OverloadError,
    ProtocolError,
    RtlangError,
    ValueParseError,
)
from rtlang.contract.events import (
    Completion,
    CreditSpent,
    DraftUse,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    PromptComputed,
    TextDelta,
    Timing,
    TokenLogprob,
    ValueKnown,
)
from rtlang.contract.params import FinishReason, Usage
from rtlang.protocol.event_codec import (
    error_from_wire,
    error_to_wire,
    event_from_wire,
    event_to_wire,
    logprobs_from_wire,
    logprobs_to_wire,
    read_messages,
)
from rtlang.protocol.serialization import DecodeLimits, Encoding

LIMITS = DecodeLimits()
counts = st.integers(0, 1 << 40)
seconds = st.floats(0, 1e6, allow_nan=False)
node_ids = st.integers(0, (1 << 53) - 1)
# Text as engines emit it: any characters, never half of one.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.none() | texts.filter(bool)
token_ids = st.lists(st.integers(0, 1 << 31), max_size=5).map(tuple)
scores = st.floats(allow_nan=False)  # -inf is a score
logprobs = st.lists(
    st.builds(TokenLogprob, counts, scores, st.lists(st.tuples(counts, scores), max_size=3).map(tuple)), max_size=3
).map(tuple)
usages = st.builds(Usage, counts, counts, counts)
completions = st.builds(
    Completion, texts, token_ids, st.sampled_from(FinishReason), st.none() | texts | counts, st.none() | logprobs
)
errors = st.one_of(
    st.builds(RtlangError, texts),
    st.builds(GraphError, st.none() | node_ids, texts, texts),
    st.builds(ConstraintError, texts, st.none() | texts),
    st.builds(BudgetError, counts, st.none() | counts),
    st.builds(ValueParseError, texts, texts, texts),
    st.builds(ContextLengthError, counts, counts, counts),
    st.builds(CapacityError, counts, counts),
    st.builds(DependencyError, node_ids, texts, texts),
    st.builds(DeadlineError, texts),
    st.builds(AbortedError, texts),
    st.builds(OverloadError, texts, seconds),
)
values = st.dictionaries(texts, texts | st.lists(texts, max_size=3), max_size=3)


def events(graph_id: int = 9) -> st.SearchStrategy[Event]:
    graph = st.just(graph_id)
    return st.one_of(
        st.builds(TextDelta, graph, node_ids, st.integers(0, 127), texts, token_ids, st.none() | logprobs.filter(bool)),
        st.builds(
            NodeFinished,
            graph,
            node_ids,
            names,
            st.lists(completions, min_size=1, max_size=3).map(tuple),
            usages,
            st.builds(Timing, seconds, seconds, seconds),
            st.none() | st.lists(scores, max_size=4).map(tuple),
            st.none() | st.lists(scores, max_size=4).map(tuple),
            st.none() | logprobs,
            choice_logprobs=st.none() | st.lists(logprobs, max_size=3).map(tuple),
            unconditional_logprobs=st.none() | st.lists(logprobs, max_size=3).map(tuple),
            drafts=st.lists(st.builds(DraftUse, st.text(max_size=9), node_ids, node_ids), max_size=2).map(tuple),
        ),
        st.builds(NodeFailed, graph, node_ids, names, errors),
        st.builds(NodeStarted, graph, node_ids, names),
        st.builds(PromptComputed, graph, node_ids, node_ids, node_ids),
        st.builds(ValueKnown, graph, node_ids, st.none() | st.text(max_size=9) | st.lists(st.integers(), max_size=3)),
        st.builds(CreditSpent, graph, node_ids),
        st.builds(GraphFinished, graph, values, usages, st.lists(node_ids, max_size=3).map(tuple)),
        st.builds(GraphFailed, graph, errors),
    )


def assert_same_error(one: RtlangError, other: RtlangError) -> None:
    assert type(one) is type(other)
    assert (one.code, one.message, one.facts, str(one)) == (other.code, other.message, other.facts, str(other))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events(), st.sampled_from(list(Encoding)))
def test_every_event_comes_back_equal_under_the_clients_graph_id(event: Event, encoding: Encoding) -> None:
    wire = encoding.unpack(encoding.pack(event_to_wire(3, event)), LIMITS)
    assert wire["s"] == 3
    back = event_from_wire(wire, 77)
    match event:
        case NodeFailed() | GraphFailed():
            assert isinstance(back, (NodeFailed, GraphFailed))
            assert_same_error(event.error, back.error)
            assert replace(back, error=event.error) == replace(event, graph_id=77)
        case _:
            assert back == replace(event, graph_id=77)


def test_an_unknown_kind_of_event_is_ignored() -> None:
    assert event_from_wire({"t": "event", "s": 1, "n": 2, "e": "new in a later server"}, 1) is None


def test_a_score_that_is_no_number_survives_json() -> None:
    done = Completion("a", (1,), FinishReason.STOP)
    event = NodeFinished(1, 2, "x", (done,), Usage(), Timing(), (math.nan, -math.inf, math.inf), None, None)
    wire = Encoding.JSON.unpack(Encoding.JSON.pack(event_to_wire(1, event)), LIMITS)
    back = event_from_wire(wire, 1)
    assert isinstance(back, NodeFinished)
    assert back.scores is not None
    assert math.isnan(back.scores[0])
    assert back.scores[1:] == (-math.inf, math.inf)


@pytest.mark.parametrize("code", sorted(ERRORS_BY_CODE))
def test_every_error_code_is_rebuilt_as_its_class(code: str) -> None:
    wire = {"t": "error", "code": code, "message": "why", "facts": {"field": "x", "nested": [1, None]}}
    error = error_from_wire(wire)
    assert type(error) is ERRORS_BY_CODE[code]
    assert (error.message, str(error)) == ("why", "why")
    assert error.facts == {"field": "x", "nested": [1, None]}


def test_facts_cannot_replace_what_an_error_is() -> None:
    facts = {"code": "x", "message": "x", "facts": "x", "args": "x", "__class__": "x", "with_traceback": "x", "a b": 1}
    error = error_from_wire({"code": "graph", "message": "why", "facts": facts})
    assert type(error) is GraphError
    assert (error.code, error.message, error.args, error.facts) == ("graph", "why", ("why",), {})


def test_facts_that_are_not_plain_become_text() -> None:
    error = RtlangError("why")
    error.__dict__.update(big=1 << 80, inf=math.inf, obj=Usage(), pair=(1, {2}))
    wire = error_to_wire(error)
    for encoding in Encoding:
        facts = encoding.unpack(encoding.pack(wire), LIMITS)["facts"]
        assert facts["big"] == str(1 << 80)
        assert facts["inf"] == "inf"
        assert facts["pair"] == [1, "{2}"]


def test_an_error_says_where_it_belongs_and_what_it_costs() -> None:
    wire = error_to_wire(OverloadError("full", 2.5), stream=4, request=7)
    assert (wire["s"], wire["q"], wire["status"], wire["retry_after"]) == (4, 7, 429, 2.5)
    wire = error_to_wire(GraphError(3, "parent", "gone"), is_fatal=True)
    assert (wire["status"], wire["param"], wire["fatal"]) == (400, "parent", True)
    assert "s" not in wire


GOOD = event_to_wire(
    1,
    NodeFinished(
        1,
        2,
        "x",
        (
            Completion(
                "a",
                (1,),
                FinishReason.STOP,
                None,
                (TokenLogprob(1, -1.0, ((2, -2.0),)),),
                ((0.5, 1), (0.0, 1)),
                {"name": ("a", "é"), "none": ()},
            ),
        ),
        Usage(),
        Timing(),
        (1.0,),
        choice_logprobs=((TokenLogprob(1, -1.0),),),
    ),
)


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """GOOD with what is at `path` replaced."""
    copy: dict[str, Any] = Encoding.JSON.unpack(Encoding.JSON.pack(GOOD), LIMITS)
    inner: Any = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("n",), -1),
        (("completions", 0, "captures"), ["a"]),
        (("completions", 0, "captures"), {"name": "a"}),
        (("completions", 0, "captures", "name"), [1]),
        (("n",), "2"),
        (("completions",), None),
        (("completions", 0), "a"),
        (("completions", 0, "reason"), "because"),
        (("completions", 0, "ids"), ["1"]),
        (("completions", 0, "stop"), 1.5),
        (("completions", 0, "logprobs"), [[1, 2]]),
        (("completions", 0, "logprobs"), [["1", 2, []]]),
        (("completions", 0, "logprobs"), [[1, "x", []]]),
        (("completions", 0, "logprobs"), [[1, 2, [[1]]]]),
        (("usage",), [1, 2, 3]),
        (("usage", "prompt_tokens"), -1),
        (("timing", "total_s"), "1"),
        (("scores",), [None]),
        (("choice_logprobs",), [[1, -1.0, []]]),
        (("choice_logprobs", 0, 0), 7),
        (("name",), 3),
        (("t",), "unknown"),
    ],
)
def test_a_malformed_event_is_one_error(path: tuple[Any, ...], value: Any) -> None:
    assert isinstance(event_from_wire(changed((), None) if not path else GOOD, 1), NodeFinished)
    with pytest.raises(ProtocolError):
        event_from_wire(changed(path, value), 1)


def test_a_server_message_is_maps_only() -> None:
    pack = Encoding.MSGPACK.pack
    assert read_messages(pack({"a": 1})) == [{"a": 1}]
    assert read_messages(Encoding.MSGPACK.combine([pack({"a": 1}), pack({"b": 2})])) == [{"a": 1}, {"b": 2}]
    for data in ("{}", b"\x90", b"\x91\x01", b"\x01", b"\xc1"):
        with pytest.raises(ProtocolError):
            read_messages(data)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ([3, -0.5, []], TokenLogprob(3, -0.5)),
        ([3, -0.5, [[4, -1.5], [5, -2.5]]], TokenLogprob(3, -0.5, ((4, -1.5), (5, -2.5)))),
        ([3, -1, [[4, -2], [5, "-inf"]]], TokenLogprob(3, -1.0, ((4, -2.0), (5, -math.inf)))),
        ([3, "-inf", [[4, -1.5]]], TokenLogprob(3, -math.inf, ((4, -1.5),))),
        ((3, -0.5, ((4, -1.5),)), TokenLogprob(3, -0.5, ((4, -1.5),))),
        ([3, -0.5, [[4, -1.5, 0]]], None),
        ([3, -0.5, [[4.0, -1.5]]], None),
        ([3, -0.5, [[4, "x"]]], None),
        ([3, -0.5, [7]], None),
        ([3, -0.5], None),
    ],
)
def test_log_probabilities_of_every_form_are_read_or_refused(item: Any, expected: TokenLogprob | None) -> None:
    if expected is None:
        with pytest.raises(ProtocolError, match="lp contains"):
            logprobs_from_wire({"lp": [item]}, "lp")
    else:
        (found,) = logprobs_from_wire({"lp": [item]}, "lp")
        assert found == expected
        assert all(type(value) is float for _, value in found.top)
        assert logprobs_from_wire({"lp": logprobs_to_wire([found])}, "lp") == (found,)
