"""Values that a graph computes: large ones beside the engine thread, within the memory of the graph and of its principal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from rtlang.contract.errors import GraphError, OverloadError, ValueMemoryError
from rtlang.contract.events import (
    CallRequested,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    ValueKnown,
)
from rtlang.contract.graph import pure_functions
from rtlang.contract.graph.nodes import NODE_BYTES
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.request_graph import (
    Apply,
    Arg,
    Block,
    Call,
    Const,
    Decide,
    Generate,
    Node,
    Ref,
    Repeat,
    RequestGraph,
    RoleStart,
    Select,
    Switch,
    Text,
)
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.admission import Admission, Share
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.work_slices import SMALL_WORK_US
from rtlang.runtime.runtime import Runtime
from rtlang.work.fair_queue import owner_of

LARGE = "abcd " * 100_000
NUM_HELD = 64
"""Jobs that take all threads of their owner."""


@pytest.fixture(scope="module")
def runtime() -> Any:
    with Runtime("rtlang:tiny", num_pages=128) as runtime:
        yield runtime


class Ran:
    """The events of a graph that has ended."""

    def __init__(self, runtime: Runtime, nodes: list[Node], answer: Any = None, **options: Any) -> None:
        self.events: list[Event] = []
        ended, started = threading.Event(), threading.Event()
        inputs = options.get("inputs", {})

        def listen(event: Event) -> None:
            self.events.append(event)
            if isinstance(event, CallRequested):
                threading.Thread(target=self._answer, args=(started, event, answer), daemon=True).start()
            if isinstance(event, (GraphFinished, GraphFailed)):
                ended.set()

        self.run = runtime.submit(RequestGraph(tuple(nodes), tuple(inputs)), listen, RunOptions(**options))
        started.set()
        assert ended.wait(120)

    def _answer(self, started: threading.Event, event: CallRequested, answer: Any) -> None:
        started.wait()
        self.run.resolve(event.node_id, answer)

    @property
    def errors(self) -> dict[int, str]:
        return {event.node_id: event.error.code for event in self.events if isinstance(event, NodeFailed)}

    @property
    def values(self) -> dict[str, Any]:
        (final,) = (event for event in self.events if isinstance(event, GraphFinished))
        return dict(final.values)


def limited(num_bytes: int, name: str = "small") -> Principal:
    return Principal(name, limits=PrincipalLimits(max_value_bytes=num_bytes))


REFS = [
    ([Apply(0, "split", (Arg("x"),)), Apply(1, "list", (Ref(0),) * 200, "out")], "apply"),
    ([Apply(0, "split", (Arg("x"),)), Apply(1, "list", (Ref(0),) * 1_000, "out")], "apply"),
    ([Apply(0, "format", (Const("{0}" * 2_000), Arg("x")), "out")], "apply"),
    ([Apply(0, "split", (Arg("x"),)), Apply(1, "format", (Const("{0}" * 2_000), Ref(0)), "out")], "apply"),
    (
        [Apply(0, "split", (Arg("x"),)), Apply(1, "max", (Ref(0),) * 4_000, None), Apply(2, "len", (Ref(1),), "out")],
        100_000,
    ),
    ([Apply(0, "split", (Arg("x"),)), Call(1, "f", (Ref(0),) * 200, "out")], "call"),
    (
        [
            Apply(0, "split", (Arg("x"),)),
            Decide(1, "vote", (Ref(0),) * 1_000),
            Apply(2, "item", (Ref(1), Const(0)), "out"),
        ],
        0,
    ),
    ([Apply(0, "split", (Arg("x"),)), Decide(1, "best", (Const(1),), None, (Ref(0),), "out")], "apply"),
    ([Apply(0, "split", (Arg("x"),)), Switch(1, None, Ref(0), ((0, Block(())),), name="out")], "switch"),
    (
        [Apply(0, "split", (Arg("x"),)), Text(1, None, (Ref(0),) * 5_000), Generate(2, 1, "out", SamplingParams())],
        "dependency",
    ),
    ([Apply(0, "split", (Arg("x"),)), Apply(1, "item", (Ref(0), Ref(0)), "out")], "apply"),
]


@pytest.mark.parametrize(("nodes", "expected"), REFS, ids=range(len(REFS)))
def test_many_references_to_one_large_value_end_in_a_value_or_a_typed_error(
    runtime: Runtime, nodes: list[Node], expected: object
) -> None:
    ran = Ran(runtime, nodes, inputs={"x": LARGE})
    if isinstance(expected, str):
        assert ran.errors[nodes[-1].node_id] == expected
        messages = [event.error.message for event in ran.events if isinstance(event, NodeFailed)]
        assert max(map(len, messages)) < 2_000
    else:
        assert ran.values["out"] == expected


@pytest.mark.parametrize("value", ["x" * 999_999, [[1] * 999_997]])
def test_a_winner_that_is_too_large_with_its_number_is_a_typed_error(runtime: Runtime, value: Any) -> None:
    nodes: list[Node] = [Apply(0, "present", (Const(value),)), Decide(1, "first", (Ref(0),), name="out")]
    ran = Ran(runtime, nodes)
    assert ran.errors == {1: "apply"}
    nested: Any = 1
    for _ in range(63):
        nested = [nested]
    assert Ran(runtime, [Decide(0, "vote", (Const(nested),), name="out")]).errors == {0: "apply"}


def test_work_above_a_small_price_leaves_the_engine_thread(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, set[str]] = {}
    price_of, compute = pure_functions.price_of, pure_functions.compute

    def watched(name: str, args: Any, *rest: Any) -> Any:
        size = "large" if price_of(name, args) > SMALL_WORK_US else "small"
        threads.setdefault(size, set()).add(threading.current_thread().name.rpartition("-")[0])
        return compute(name, args, *rest)

    monkeypatch.setattr("rtlang.runtime.executors.value_nodes.compute", watched)
    nodes: list[Node] = [
        Apply(0, "split", (Arg("x"),)),
        Apply(1, "replace", (Arg("x"), Const("a"), Const("b"))),
        Apply(2, "len", (Ref(1),)),
        Apply(3, "add", (Ref(2), Const(1)), "out"),
    ]
    assert Ran(runtime, nodes, inputs={"x": LARGE}).values == {"out": len(LARGE) + 1}
    assert threads["large"] == {"rtlang-work"}
    assert "rtlang-work" not in threads["small"]


def test_the_memory_of_values_is_limited_and_given_back(runtime: Runtime) -> None:
    party = limited(40_000_000)
    nodes: list[Node] = [Apply(each, "replace", (Arg("x"), Const("a"), Const("b"))) for each in range(30)]
    ran = Ran(runtime, [*nodes, Apply(40, "len", (Ref(0),), "out")], inputs={"x": LARGE}, principal=party)
    assert set(ran.errors.values()) == {"value_memory"}
    assert 10 < len(ran.errors) < 20
    (error, *_) = (event.error for event in ran.events if isinstance(event, NodeFailed))
    assert "max_value_bytes / 4 = 10000000" in error.message
    assert Ran(runtime, nodes[:5], inputs={"x": LARGE}, principal=party).errors == {}
    assert runtime._admission.num_accounts == 0


def test_a_value_counts_once_however_many_nodes_name_it_and_again_where_it_is_sent(runtime: Runtime) -> None:
    party = limited(40_000_000)
    copies: list[Node] = [Apply(each, "present", (Arg("x"),)) for each in range(100)]
    assert Ran(runtime, copies, inputs={"x": LARGE}, principal=party).errors == {}
    named: list[Node] = [Apply(each, "present", (Arg("x"),), f"n{each}") for each in range(100)]
    assert len(Ran(runtime, named, inputs={"x": LARGE}, principal=party).errors) > 70
    ran = Ran(runtime, copies, inputs={"x": LARGE}, principal=party, reports_progress=True)
    assert len(ran.errors) > 70


def test_loops_branches_calls_and_known_outcomes_count(runtime: Runtime) -> None:
    party = limited(40_000_000)
    body = Block((Apply(1, "replace", (Arg("x"), Const("a"), Const("b"))),), None, Ref(1))
    ran = Ran(runtime, [Repeat(0, None, body, Const(False), 50, 1)], inputs={"x": LARGE}, principal=party)
    assert set(ran.errors.values()) <= {"value_memory", "dependency"}
    assert ran.errors
    calls: list[Node] = [Call(each, "f", ()) for each in range(30)]
    assert set(Ran(runtime, calls, LARGE, principal=party).errors.values()) == {"value_memory"}
    finished = NodeFinished(0, 0, None, (), *_usage_and_timing(), value=[LARGE] * 1)
    known = {each: KnownOutcome(finished) for each in range(30)}
    with pytest.raises(GraphError, match="max_value_bytes / 4"):
        Ran(runtime, calls, principal=party, known=known)
    with pytest.raises(GraphError, match="known: a value has more than"):
        Ran(
            runtime,
            calls,
            known={0: KnownOutcome(NodeFinished(0, 0, None, (), *_usage_and_timing(), value=["x" * 999_999] * 2))},
        )


def _usage_and_timing() -> tuple[Any, Any]:
    from rtlang.contract.events import Timing
    from rtlang.contract.params import Usage

    return Usage(), Timing(0.0, 0.0, 0.0)


def test_constants_count_when_they_are_added() -> None:
    admission = Admission(100)
    party = limited(40_000)
    share = Share(admission, party)
    share.add([Apply(0, "len", (Const("x" * 5_000),))])
    with pytest.raises(GraphError, match=r"one may have max_value_bytes / 4 = 10000"):
        share.add([Apply(1, "len", (Const("x" * 5_000),))])
    others = [Share(admission, party) for _ in range(4)]
    for other in others[:3]:
        other.reserve(9_000)
    with pytest.raises(OverloadError, match="max_value_bytes = 40000"):
        others[3].add([Apply(1, "len", (Const("x" * 9_000),))])
    with pytest.raises(ValueMemoryError, match="the values of small take 32"):
        others[3].reserve(9_000)
    others[0].reserve(-9_000)
    others[3].reserve(9_000)
    for each in (share, *others):
        each.close()
        each.reserve(10**9)  # work that ends after its graph
    assert admission.num_accounts == 0


def test_nodes_count_as_well_and_those_of_a_loop_when_they_run(runtime: Runtime) -> None:
    share = Share(Admission(100), limited(4 * 50 * NODE_BYTES))
    share.add([Apply(number, "list", ()) for number in range(40)])
    with pytest.raises(GraphError, match="new nodes and constants"):
        share.add([Apply(number, "list", ()) for number in range(40, 60)])
    body = Block(tuple(Apply(number, "list", ()) for number in range(1, 11)), None, Ref(1))
    loop = Repeat(0, None, body, Const(False), 1_000, 10)
    ran = Ran(runtime, [loop], principal=limited(4 * 200 * NODE_BYTES), reports_progress=True)
    assert ran.errors[0] == "value_memory"
    assert 80 < len(runtime_nodes(ran)) < 200


LONG = "x" * 16_000


@pytest.mark.parametrize(
    "make",
    [
        lambda number: Call(number, f"{number}" + LONG, ()),
        lambda number: Call(number, "f", (), f"{number}" + LONG),
        lambda number: Select(number, None, None, (f"{number}" + LONG, "b")),
        lambda number: Generate(number, None, None, SamplingParams(stop=(f"{number}" + LONG,))),
        lambda number: Generate(number, None, None, SamplingParams(), Constraint("regex", f"{number}" + LONG)),
        lambda number: Generate(
            number, None, None, SamplingParams(logit_bias=tuple((i, number / 7) for i in range(100)))
        ),
        lambda number: Text(number, None, (RoleStart("user", tools=f"{number}" + LONG),)),
        lambda number: Text(number, None, (RoleStart("user", template_options=f"{number}" + LONG),)),
        lambda number: Switch(number, None, Const(1), ((f"{number}" + LONG, Block(())),)),
    ],
)
def test_names_choices_and_options_of_nodes_count_as_their_memory(make: Callable[[int], Node]) -> None:
    share = Share(Admission(10_000), limited(4 * 500_000))
    share.add([make(number) for number in range(20)])
    with pytest.raises(GraphError, match="new nodes and constants"):
        share.add([make(number) for number in range(20, 60)])


def test_what_nodes_share_counts_once() -> None:
    share = Share(Admission(10_000), limited(4 * 500_000))
    constraint = Constraint("regex", LONG)
    share.add([Generate(number, None, None, SamplingParams(), constraint) for number in range(200)])


def runtime_nodes(ran: Ran) -> set[int]:
    """The nodes of a graph that have ended in some way, as far as it tells."""
    return {event.node_id for event in ran.events if isinstance(event, (NodeFailed, NodeFinished, ValueKnown))}


def test_the_values_of_many_nodes_are_put_together_beside_the_engine_thread(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    named_values = NodeTable.named_values

    def noted(self: NodeTable) -> dict[str, Any]:
        threads.append(threading.current_thread().name.rpartition("-")[0])
        return named_values(self)

    monkeypatch.setattr(NodeTable, "named_values", noted)
    for count in (1, 1_000):
        nodes: list[Node] = [Apply(each, "list", (), f"n{each}") for each in range(count)]
        assert Ran(runtime, nodes).values == {f"n{each}": [] for each in range(count)}
    assert threads[1] == "rtlang-work" != threads[0]


def test_work_that_has_not_begun_is_dropped_with_its_graph(runtime: Runtime) -> None:
    pool, hold, begun = runtime.work, threading.Event(), list[int]()
    for _ in range(NUM_HELD):
        pool.submit_for(owner_of(None), 0, lambda: (begun.append(1), hold.wait(60)))
    nodes: list[Node] = [Apply(0, "split", (Arg("x"),)), Apply(1, "len", (Ref(0),), "out")]
    ended = threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, (GraphFinished, GraphFailed)):
            ended.set()

    run = runtime.submit(RequestGraph(tuple(nodes), ("x",)), listen, RunOptions(inputs={"x": LARGE}))
    wait_for(lambda: len(begun) + pool.num_waiting == NUM_HELD + 1)
    run.cancel()
    assert ended.wait(60)
    wait_for(lambda: len(begun) + pool.num_waiting == NUM_HELD)
    hold.set()
    wait_for(lambda: pool.num_waiting == 0)
    assert runtime._admission.num_accounts == 0


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never happened")
