"""Actions run once everything that they wait for is there, and no sooner."""

from __future__ import annotations

from functools import partial
from random import Random

from rtlang.contract.graph import Generate, Text
from rtlang.contract.params import SamplingParams
from rtlang.runtime.nodes.agenda import Agenda
from rtlang.runtime.nodes.losers import Slot


def test_an_action_runs_once_when_the_last_slot_is_there() -> None:
    random = Random(5)
    for _ in range(200):
        there: set[Slot] = {(node_id, None) for node_id in range(3)}
        agenda = Agenda(there.__contains__)
        slots: list[Slot] = [(random.randrange(8), random.choice([None, 0, 1])) for _ in range(8)]
        ran: list[int] = []
        needs = [set(random.sample(slots, random.randrange(4))) for _ in range(10)]
        for number, after in enumerate(needs):
            agenda.add(partial(ran.append, number), after=after)
        for slot in [None, *random.sample(slots, len(slots))]:
            if slot is not None and slot not in there:
                there.add(slot)
                agenda.release(slot)
            while agenda:
                agenda.take(generations_last=random.random() < 0.5)()
            assert sorted(ran) == [number for number, after in enumerate(needs) if after <= there]
        assert sorted(ran) == list(range(10))


def test_generations_may_come_last_and_are_counted() -> None:
    agenda = Agenda(lambda slot: True)
    ran: list[str] = []
    agenda.add(partial(ran.append, "text"), Text(1, None, ("a",)))
    agenda.add(partial(ran.append, "three"), Generate(2, 1, "b", SamplingParams(n=3)))
    agenda.add(partial(ran.append, "one"), Generate(3, 1, "c", SamplingParams()))
    assert agenda.num_ready_requests == 4
    agenda.take(generations_last=True)()
    assert ran == ["text"]
    agenda.take(generations_last=True)()
    assert agenda.num_ready_requests in (1, 3)
    assert len(agenda) == 1
