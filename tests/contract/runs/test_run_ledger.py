"""The ledger of a graph: what the next run is given, and which of its events the listener has already."""

from __future__ import annotations

from rtlang.contract.errors import DependencyError, RequestError
from rtlang.contract.events import CallRequested, Completion, NodeFailed, NodeFinished, TextDelta, Timing
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Block, Const, Generate, Repeat, Select, Text
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.run_ledger import RunLedger

NODES = (
    Text(0, None, ("a",)),
    Generate(1, 0, "x", SamplingParams(n=2)),
    Select(2, 0, "y", ("b", "c")),
    Generate(3, 0, "z", SamplingParams(best_of=2, temperature=1.0)),
)


def delta(node_id: int, text: str, *ids: int, choice: int = 0) -> TextDelta:
    return TextDelta(1, node_id, choice, text, ids)


def finished(node_id: int, text: str, *ids: int) -> NodeFinished:
    return NodeFinished(1, node_id, None, (Completion(text, ids, FinishReason.STOP),), Usage(1, 0, len(ids)), Timing())


def test_running_generations_are_continued_by_choice_and_ended_nodes_are_known() -> None:
    ledger = RunLedger()
    assert ledger.is_empty
    for event in (delta(1, "a", 5), delta(1, "", 6, choice=1), delta(1, "b", 7), delta(2, "c", 8), finished(2, "c", 8)):
        assert ledger.take(event)
    assert ledger.continue_from(NODES) == {1: [[5, 7], [6]]}
    assert ledger.known[2].end == finished(2, "c", 8)
    assert not ledger.known[2].is_replayed
    assert not ledger.take(delta(2, "c", 8))
    assert not ledger.take(finished(2, "c", 8))
    assert ledger.take(delta(1, "d", 9))
    assert ledger.continue_from(NODES) == {1: [[5, 7, 9], [6]]}


def test_what_the_first_run_was_given_is_given_to_the_next_one_too() -> None:
    ledger = RunLedger()
    replayed = KnownOutcome(finished(2, "c", 8))
    ledger.give({2: replayed}, {1: [[3]], 3: [[4]]})
    assert ledger.is_empty
    assert ledger.continue_from(NODES) == {1: [[3]], 3: [[4]]}
    assert ledger.take(delta(1, "a", 5, choice=1))
    assert ledger.take(delta(1, "b", 6))
    assert ledger.continue_from(NODES) == {1: [[3, 6], [5]], 3: [[4]]}
    assert ledger.known == {2: replayed}
    assert ledger.take(finished(2, "c", 8))
    assert not ledger.take(finished(2, "c", 8))
    ledger.give({}, {4: [[7]]})  # with nodes that were added
    assert ledger.continue_from(NODES) == {1: [[3, 6], [5]], 3: [[4]], 4: [[7]]}


def test_text_that_the_next_run_repeats_is_dropped_once() -> None:
    ledger = RunLedger()
    for node_id in (2, 3):
        assert ledger.take(delta(node_id, "cd", 8, 9))
    assert ledger.continue_from(NODES) == {}
    for node_id in (2, 3):
        assert not ledger.take(delta(node_id, "cd", 8, 9))
        assert ledger.take(finished(node_id, "cd", 8, 9))


def test_text_behind_the_last_token_is_dropped_if_it_comes_again() -> None:
    ledger = RunLedger()
    assert ledger.take(delta(1, "a", 5))
    assert ledger.take(delta(1, "tail"))
    assert ledger.continue_from(NODES) == {1: [[5], []]}
    assert not ledger.take(delta(1, "tail"))
    assert ledger.take(delta(1, "tail", 6, choice=1))


def test_calls_are_requested_once_and_failures_known_unless_others_caused_them() -> None:
    ledger = RunLedger()
    call, error = CallRequested(1, 4, "f", ()), RequestError("no")
    assert ledger.take(call)
    assert not ledger.take(call)
    assert ledger.take(NodeFailed(1, 5, None, error))
    assert ledger.take(NodeFailed(1, 6, None, DependencyError(5, "request", "no")))
    assert ledger.known.keys() == {5}
    assert not ledger.take(NodeFailed(1, 6, None, DependencyError(5, "request", "no")))


def test_generations_of_later_iterations_are_found_by_their_stride() -> None:
    body = Block((Generate(11, None, "x", SamplingParams()), Select(12, 11, "y", ("b", "c"))), None, 12)
    loop = Repeat(10, None, body, 3, Const(False), 5)
    ledger = RunLedger()
    assert ledger.take(delta(16, "a", 1))
    assert ledger.take(delta(17, "b", 2))
    assert ledger.continue_from((loop,)) == {16: [[1]]}
