"""The table of nodes: what is stored, what waits, and in which order it starts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import pytest

from rtlang.contract.errors import AbortedError, RequestError
from rtlang.contract.graph.value_size import measured
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Apply, Arg, Call, Const, Generate, Node, Ref, Select, Text, choices_of
from rtlang.runtime.nodes import node_table
from rtlang.runtime.nodes.node_table import NodeTable, Waits, named_values
from rtlang.runtime.nodes.slots import CANCELLED, Slot
from rtlang.runtime.nodes.work_slices import ACTION_US, STEP_US, WorkSlices
from rtlang.runtime.process.turn_work import TURN_WORK_US, TurnWork
from rtlang.runtime.texts.token_sequence import TokenSequence
from tests.support.long_tests import sized

TURN_WORK = int(TURN_WORK_US / ACTION_US)
NODES_A_TURN = int(TURN_WORK_US / STEP_US)


def text(node_id: int, parent: int | None = None) -> Text:
    return Text(node_id, parent, ("a",))


def gen(node_id: int, parent: int | None = None, n: int = 1) -> Generate:
    return Generate(node_id, parent, None, SamplingParams(n=n, temperature=1.0))


class World:
    """A table whose actions write down their names, drained as on the engine thread."""

    def __init__(self, *, generations_last: bool = False, is_sliced: bool = False) -> None:
        self.table = NodeTable(generations_last=generations_last)
        self.done: list[str] = []
        self.later: deque[Callable[[], None]] = deque()
        self.num_idle = 0
        later = self.later.append if is_sliced else None
        self.work = TurnWork()
        self.slices = WorkSlices(self.table.waits, self.idle, lambda: self.table.is_over, later, turn=self.work)

    def idle(self) -> None:
        self.num_idle += 1

    def turn(self) -> None:
        """What was put off runs in the next turn."""
        self.work.begin()
        self.later.popleft()()

    def add(self, *nodes: Node) -> None:
        for node in nodes:
            self.table.add(node)

    def wait(
        self, name: str, slots: list[Slot], act: Callable[[], None] = lambda: None, node: Node | None = None
    ) -> None:
        def run() -> None:
            self.done.append(name)
            act()

        self.table.wait(slots, run, node)

    def drain(self) -> list[str]:
        """What runs now."""
        before = len(self.done)
        self.slices.drain()
        self.table.check()
        return self.done[before:]


def test_1_a_filled_slot_is_not_waited_for() -> None:
    world = World()
    world.add(text(0), gen(1, 0, n=2), gen(2))
    world.table.end(text(0), TokenSequence())
    world.table.know(1, 0, "early")
    world.table.lose(1, 1)
    world.wait("all are filled", [(0, None), (1, 0), (1, 1)])
    world.wait("one is not", [(0, None), (2, 0)])
    assert world.drain() == ["all are filled"]
    world.table.end(gen(2), TokenSequence(), ["x"])
    assert world.drain() == ["one is not"]


def test_2_the_end_of_a_node_fills_its_end_first_and_then_its_choices() -> None:
    world = World()
    world.add(gen(0, n=3))
    for name, slot in (("choice 2", (0, 2)), ("choice 0", (0, 0)), ("end", (0, None)), ("choice 1", (0, 1))):
        world.wait(name, [slot])
    world.table.end(gen(0, n=3), TokenSequence(), ["x", "y", "z"])
    assert world.drain() == ["end", "choice 0", "choice 1", "choice 2"]


def test_3_actions_of_one_slot_are_ready_in_the_order_in_which_they_were_added() -> None:
    world = World()
    world.add(text(0), text(1))
    world.wait("both", [(1, None), (0, None)])
    world.wait("first", [(0, None)])
    world.wait("second", [(1, None)])
    world.wait("third", [(1, None)])
    world.table.end(text(1), TokenSequence())
    assert world.drain() == ["second", "third"]
    world.table.end(text(0), TokenSequence())
    assert world.drain() == ["both", "first"]


@pytest.mark.parametrize("has_budget", [False, True])
def test_4_with_a_budget_generations_come_after_everything_else_that_is_ready(has_budget: bool) -> None:
    world = World(generations_last=has_budget)
    world.add(gen(0), text(1), gen(2, n=3), text(3))
    for node in tuple(world.table.nodes.values()):
        act = partial(world.wait, "released", []) if node.node_id == 0 else lambda: None
        world.wait(str(node.node_id), [], act, node)
    assert world.table.waits.num_ready_requests == (4 if has_budget else 0)
    expected = ["1", "3", "0", "released", "2"] if has_budget else ["0", "1", "2", "3", "released"]
    assert world.drain() == expected
    assert world.table.waits.num_ready_requests == 0


def test_5_an_action_never_runs_inside_another_one() -> None:
    world = World()
    world.add(text(0), text(1))

    def end_both() -> None:
        world.table.end(text(0), TokenSequence())
        world.slices.drain()
        world.table.end(text(1), TokenSequence())
        world.slices.drain()
        world.done.append("action over")

    world.wait("ends both", [], end_both)
    world.wait("ready before", [])
    world.wait("of 0", [(0, None)])
    world.wait("of 1", [(1, None)])
    assert world.drain() == ["ends both", "action over", "ready before", "of 0", "of 1"]


def test_6_a_drain_goes_on_in_a_later_turn_and_no_other_drain_runs_before() -> None:
    world = World(is_sliced=True)
    for number in range(TURN_WORK + 2):
        world.wait(str(number), [])
    assert len(world.drain()) == TURN_WORK
    assert world.drain() == []
    world.turn()
    assert world.done == [str(number) for number in range(TURN_WORK + 2)]


def test_7_nodes_of_a_submission_start_when_all_of_them_are_there() -> None:
    world = World(is_sliced=True)

    def add(nodes: Sequence[Node]) -> None:
        for node in nodes:
            world.table.add(node)
            world.wait(str(node.node_id), [])

    nodes = [text(number) for number in range(NODES_A_TURN + 1)]
    world.slices.add_later(iter(nodes), len(nodes), add, lambda: None)
    assert world.done == []
    world.turn()
    assert world.done[0] == "0"


def test_8_the_graph_is_idle_when_nothing_is_ready_and_nothing_arrives() -> None:
    world = World(is_sliced=True)
    world.add(text(0))
    for number in range(TURN_WORK + 1):
        world.wait(str(number), [])
    world.drain()
    assert world.num_idle == 0
    world.turn()
    assert world.num_idle == 1
    assert not world.table.is_done
    world.table.end(text(0), TokenSequence())
    assert world.table.is_done


def test_random_operations_keep_the_invariants_and_run_each_action_once() -> None:
    for seed in range(sized(200, usual=100)):
        operate_randomly(seed)


def operate_randomly(seed: int) -> None:
    """The oracle holds the filled slots in a set, and looks at all waiting actions after each operation."""
    random = Random(seed)
    world = World(generations_last=bool(seed % 2))
    table = world.table
    filled: set[Slot] = set()
    waiting: dict[str, set[Slot]] = {}
    expected: set[str] = set()
    running: list[Node] = []
    open_slots: list[Slot] = []

    def fill(*slots: Slot) -> None:
        filled.update(slots)
        for name in [name for name, missing in waiting.items() if missing <= filled]:
            expected.add(name)
            del waiting[name]

    for step in range(120):
        kind = random.choice(("add", "add", "wait", "wait", "begin", "know", "lose", "end", "fail", "cancel", "drain"))
        if kind == "add" or not running:
            parent = random.choice([None, *table.sequences])
            n = random.randint(1, 3)
            made: list[Node] = [
                text(step, parent),
                gen(step, parent, n),
                Select(step, parent, "s", ("a", "b")),
                Call(step, "f", ()),
            ]
            node = random.choice(made)
            table.add(node)
            running.append(node)
            open_slots += [(step, None), *((step, choice) for choice in range(choices_of(node)))]
            continue
        node = random.choice(running)
        node_id = node.node_id
        choices = [choice for choice in range(choices_of(node)) if (node_id, choice) not in filled]
        if kind == "wait":
            slots = random.sample(open_slots, min(len(open_slots), random.randint(0, 3)))
            waiting[str(step)] = set(slots)
            starts = gen(1000 + step) if random.random() < 0.5 else None
            world.wait(str(step), slots, node=starts)
            fill()
        elif kind == "begin":
            table.begin(node_id)
        elif kind in ("know", "lose") and choices:
            choice = random.choice(choices)
            if kind == "know":
                table.know(node_id, choice, "x")
            else:
                table.lose(node_id, choice)
            fill((node_id, choice))
        elif kind in ("end", "fail", "cancel"):
            running.remove(node)
            if kind == "end":
                table.end(node, TokenSequence(), ["x"] * choices_of(node))
            elif kind == "fail":
                table.end(node, error=RequestError("broken"))
            else:
                table.cancel(node_id)
                table.end(node)
            fill((node_id, None), *((node_id, choice) for choice in range(choices_of(node))))
        elif kind == "drain":
            world.drain()
        table.check()
    world.drain()
    assert len(world.done) == len(set(world.done))
    assert set(world.done) == expected
    assert table.failed == {key for key, error in table.errors.items() if not isinstance(error, AbortedError)}


def test_check_finds_a_table_that_breaks_its_rules() -> None:
    world = World()
    world.add(text(0))
    world.wait("of 0", [(0, None)])
    world.table.check()
    world.table.ended.add(0)
    with pytest.raises(AssertionError):
        world.table.check()
    world.table.uses.end(0)
    world.table._works.clear()
    world.table.work_ahead = type(world.table.work_ahead)()
    with pytest.raises(AssertionError, match="which is filled"):
        world.table.check()


def test_the_cause_of_a_failure_is_the_first_node_that_failed_by_itself() -> None:
    table = NodeTable()
    for node in (text(0), gen(1, 0), gen(2, 0, n=2), gen(3, 1)):
        table.add(node)
    assert table.cause_of([(1, None), (2, 1)]) is None
    table.lose(2, 1)
    cause = table.cause_of([(2, 1)])
    assert cause is not None
    assert (cause.node_id, cause.cause_code, cause.cause_message) == (2, AbortedError.code, CANCELLED)
    assert table.cause_of([(2, 0), (2, None)]) is None, "the other choice and the end of the node are not lost"
    table.end(gen(1, 0), error=RequestError("broken"))
    cause = table.cause_of([(2, 1), (1, 0)])
    assert cause is not None
    assert (cause.node_id, cause.cause_message) == (1, "broken")
    table.end(gen(3, 1), error=cause)
    cause = table.cause_of([(3, None)])
    assert cause is not None
    assert (cause.node_id, cause.cause_message) == (1, "broken"), "the cause of a dependent node is not that node"


def test_text_and_applied_functions_that_depend_on_a_cancelled_node_end_silently() -> None:
    nodes: list[Node] = [text(1, 0), Apply(2, "upper", (Ref(0),)), gen(3, 0), Call(4, "f", ())]
    assert [node.node_id for node in nodes if NodeTable.is_silent(node)] == [1, 2]


def test_operands_have_the_values_of_inputs_constants_and_nodes() -> None:
    table = NodeTable({"question": "red"})
    table.add(gen(1, n=2))
    table.end(gen(1, n=2), TokenSequence(), ["a", "b"])
    assert [table.value(each) for each in (Const(3), Arg("question"), Ref(1, 1))] == [3, "red", "b"]
    assert [table.measured(each).size for each in (Const([1, "ab"]), Arg("question"), Ref(1))] == [5, 4, 2]


def test_a_value_is_measured_once_unless_its_size_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    table, seen = NodeTable(), list[object]()
    told = measured([1, 2])
    monkeypatch.setattr(node_table, "measure", lambda value: (seen.append(value), measured(value).measure)[1])
    for node in (Apply(1, "list", ()), Apply(2, "list", ())):
        table.add(node)
    table.end(Apply(1, "list", ()), None, [told])
    table.end(Apply(2, "list", ()), None, [[3]])
    assert [table.measured(Ref(each)).value for each in (1, 2, 2)] == [[1, 2], [3], [3]]
    assert (table.value(Ref(1)), seen) == ([1, 2], [[3]])


def test_many_nodes_of_one_name_give_one_list() -> None:
    nodes: dict[int, Node] = {each: Apply(each, "list", (), "x") for each in range(5)}
    values = named_values(nodes, {(each, 0): each for each in range(5)})
    assert values == {"x": [0, 1, 2, 3, 4]}


def test_work_is_ahead_until_a_node_begins_or_ends() -> None:
    table = NodeTable({"question": "q" * 40})
    nodes: tuple[Node, ...] = (
        Text(0, None, (Arg("question"),)),
        Apply(2, "upper", (Ref(1),)),
        Generate(1, 0, None, SamplingParams(max_tokens=9, ignore_eos=True)),
    )
    for node in nodes:
        table.add(node)
    ahead = [table.work_ahead]
    table.begin(0)
    table.end(nodes[0], TokenSequence())
    table.begin(2)
    ahead.append(table.work_ahead)
    table.end(nodes[2], error=RequestError("broken"))
    ahead.append(table.work_ahead)
    assert ahead == [(10, 9), (0, 9), (0, 0)]


def test_an_action_is_ready_once_all_its_slots_are_there() -> None:
    waits, done = Waits(), list[str]()
    waits.add([], lambda: done.append("at once"))
    waits.add([(1, None), (2, 0)], lambda: done.append("both"))
    waits.add([(2, 0)], lambda: done.append("one"))
    waits.take()()
    assert not waits.is_ready
    waits.release((2, 0))
    waits.release((2, 0))
    waits.take()()
    waits.release((1, 0))
    assert not waits.is_ready, "a value is there, but its node has not ended"
    waits.release((1, None))
    waits.take()()
    assert done == ["at once", "one", "both"]


def test_generations_may_come_after_everything_else_that_is_ready() -> None:
    waits, done = Waits(generations_last=True), list[int]()
    for number in range(4):
        node = Generate(number, None, None, SamplingParams(n=3)) if number % 2 == 0 else Text(number, None, ("a",))
        waits.add([], lambda number=number: done.append(number), node)  # type: ignore[misc]
    assert waits.num_ready_requests == 6
    while waits.is_ready:
        waits.take()()
    assert done == [1, 3, 0, 2]
    assert waits.num_ready_requests == 0


NODES: dict[int, Node] = {
    0: Text(0, None, ("a",)),
    1: Generate(1, 0, "x", SamplingParams()),
    2: Generate(2, 1, "many", SamplingParams(n=2, temperature=1.0)),
    3: Select(3, 1, "x", ("a", "b")),
    4: Apply(4, "list", (), "value"),
    5: Generate(5, 1, None, SamplingParams()),
}


def test_names_of_several_values_have_lists_in_the_order_of_nodes() -> None:
    found = {(1, 0): "one", (2, 0): "m", (2, 1): "n", (3, 0): "a", (4, 0): [], (5, 0): "unnamed"}
    assert named_values(NODES, found) == {"x": ["one", "a"], "many": ["m", "n"], "value": []}


def test_what_was_cancelled_is_an_empty_text_or_none() -> None:
    assert named_values(NODES, {(2, 0): "m"}) == {"x": ["", ""], "many": ["m", ""], "value": None}
