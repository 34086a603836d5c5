"""Records of runs, and the texts that are read from them."""

from __future__ import annotations

import pickle

from rtlang.contract.errors import RequestError
from rtlang.contract.events import Completion, NodeFinished, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord, TimeSegment, segments
from rtlang.contract.request_graph import Generate, Node, Ref, RoleEnd, RoleStart, Text

PARAMS = SamplingParams(max_tokens=4)


def finished(node_id: int, *texts: str) -> NodeRecord:
    completions = tuple(
        Completion(text, (1, 2), FinishReason.STOP, logprobs=(TokenLogprob(1, -0.5), TokenLogprob(2, -1.0)))
        for text in texts
    )
    event = NodeFinished(0, node_id, "x", completions, Usage(10, 8, 2), Timing(0.1, 0.2, 0.3))
    return NodeRecord.of(event, 1.5)


def shape(found: list[TimeSegment]) -> list[object]:
    """Kinds and texts, and the shapes of stages."""
    return [
        [f"{span.kind}:{span.text}" for span in each.spans] + [shape(stage) for stage in each.stages] for each in found
    ]


NODES: tuple[Node, ...] = (
    Text(0, None, (RoleStart("user"), "Hi", RoleEnd())),
    Text(1, 0, ("a: ",)),
    Generate(2, 1, "idea", PARAMS),
    Text(3, 0, ("b: ",)),
    Generate(4, 3, "idea", PARAMS),
    Text(5, 0, ("best of ", Ref(2), " and ", Ref(4))),
    Generate(6, 5, "best", PARAMS),
)


def test_a_record_holds_what_the_event_says() -> None:
    record = finished(0, "one", "two")
    assert record.texts == ("one", "two")
    assert record.logprobs == (-1.5, -1.5)
    assert record.num_tokens == (2, 2)
    assert record.usage == Usage(10, 8, 2)
    failed = NodeRecord.of(RequestError("no room"), 2.0)
    assert failed.error is not None
    assert "no room" in failed.error
    assert NodeRecord.of(NodeFinished(0, 1, None, (), Usage(), Timing(), value=True)).value == "True"


def test_texts_follow_branches_and_their_join() -> None:
    record = RunRecord(NODES, NODES, {2: finished(2, "A"), 4: finished(4, "B"), 6: finished(6, "C")})
    assert shape(segments(record)) == [
        [
            "role:user",
            "text:Hi",
            "end:",
            [["text:a: ", "generated:A"], ["text:b: ", "generated:B"]],
            [["text:best of ", "text:A", "text: and ", "text:B", "generated:C"]],
        ]
    ]
    assert pickle.loads(pickle.dumps(record)) == record


def test_missing_and_failed_texts_are_marked() -> None:
    record = RunRecord(NODES, NODES, {2: NodeRecord.of(RequestError("no room"))}, partial={(4, 0): "so far"})
    found = segments(record)[0]
    assert [span.kind for stage in found.stages[0] for span in stage.spans] == ["text", "error", "text", "generated"]
    assert [span.text for span in found.stages[1][0].spans][:4] == ["best of ", "{idea}", " and ", "so far"]
    assert found.stages[1][0].spans[-1].kind == "missing"


def test_completions_of_one_node_are_branches() -> None:
    nodes: tuple[Node, ...] = (
        Text(0, None, ("x",)),
        Generate(1, 0, "y", SamplingParams(n=2, temperature=1.0)),
        Text(2, 0, ("z",)),
    )
    record = RunRecord(nodes, nodes, {1: finished(1, "A", "B")})
    found = segments(record)[0]
    assert [[span.text for span in each.spans] for each in found.stages[0][0].stages[0]] == [["A"], ["B"]]
    assert [span.text for span in found.stages[1][0].spans] == ["z"]


def test_a_long_sequence_is_one_segment() -> None:
    nodes = tuple(Text(number, number - 1 if number else None, (str(number),)) for number in range(5_000))
    found = segments(RunRecord(nodes, nodes))
    assert len(found) == 1
    assert len(found[0].spans) == 5_000


def test_runs_of_a_loop_are_found_by_its_node() -> None:
    record = RunRecord(nodes={3: finished(3, "a"), 8: finished(8, "b")}, copies={3: (3, 8)})
    assert [each.texts for each in record.runs_of(3)] == [("a",), ("b",)]
    assert record.runs_of(4) == []
