"""The simulated replicas against a plain model: caches as lists, and queues computed call by call."""

from __future__ import annotations

from random import Random

import pytest

from rtlang_bench.fleet.rules import RULES, Uniform
from rtlang_bench.fleet.simulated_fleet import SimulatedFleet, simulate
from rtlang_bench.fleet.simulated_load import OUTPUT_WEIGHT, LoadShape, SimulatedLoad, make_load


def two_documents(**changes: int) -> SimulatedLoad:
    """Two programs of two calls on one template, each with a document of its own."""
    shape = LoadShape(num_replicas=1, num_programs=2, num_templates=1, num_documents=2, **changes)
    return SimulatedLoad(shape, [0, 1], [0, 0], [100], [1000, 2000], [0, 2, 4], [10, 20, 30, 40], [1, 2, 3, 4], 1000.0)


class Only:
    """Always the same replica."""

    name, is_per_program = "only", True

    def choose(self, fleet: SimulatedFleet, program: int, call: int) -> int:
        return 0


def test_times_and_hits_of_two_programs_on_one_replica() -> None:
    outcome = simulate(two_documents(), [0.0, 100.0], Only())
    first = 100 + 1000 + 10 + 4 * 1  # nothing is cached
    second = first + 2000 + 30 + 4 * 3  # of the other program: the template is cached; it waits for the first
    third = second + 20 + 4 * 2  # context and output of its first call are cached
    fourth = third + 40 + 4 * 4
    assert outcome.mean * 1000.0 == pytest.approx((third + fourth - 100) / 2)
    prompts = (1110, 2130, 1100 + 11 + 20, 2100 + 33 + 40)
    assert outcome.hit_rate == pytest.approx((0 + 100 + 1111 + 2133) / sum(prompts))
    assert (outcome.balance, outcome.used) == (1.0, pytest.approx(1.0))
    assert outcome.num_programs == 2


def test_work_that_piles_up_ends_the_simulation() -> None:
    load = make_load(LoadShape(2, 4000, 5, 50), 0)
    outcome = simulate(load, load.arrivals(30.0, 1), Uniform(load.shape, Random(0)))
    assert outcome.is_saturated
    assert outcome.num_programs < 4000


@pytest.mark.parametrize("capacity", [3_000, 9_000, 40_000])
def test_caches_agree_with_lists(capacity: int) -> None:
    shape = LoadShape(num_replicas=2, num_programs=60, num_templates=3, num_documents=12, cache_tokens=capacity)
    load, random = make_load(shape, 1), Random(0)
    fleet = SimulatedFleet(load)
    lists: list[list[tuple[str, int, int]]] = [[], []]  # kind, number and tokens; the least recently used first
    for program, document in enumerate(load.documents):
        context = 0
        for index in range(load.first_calls[program], load.first_calls[program + 1]):
            replica, template = random.randrange(2), load.templates[document]
            held = {(kind, number): size for kind, number, size in lists[replica]}
            cached = held.get(("template", template), 0)
            if ("document", document) in held:
                cached += held["document", document] + held.get(("context", program), 0)
            assert fleet.num_cached(replica, program) == cached
            before, prompt_before = fleet.work[replica], fleet.num_prompt
            fleet.serve(replica, program, context, index)
            prompt = fleet.num_prompt - prompt_before
            prefix = load.template_tokens[template] + load.document_tokens[document]
            assert prompt == prefix + context + load.message_tokens[index]
            assert fleet.work[replica] - before == prompt - cached + OUTPUT_WEIGHT * load.output_tokens[index]
            context += load.message_tokens[index] + load.output_tokens[index]
            for kind, number, size in (
                ("context", program, context),
                ("document", document, load.document_tokens[document]),
                ("template", template, load.template_tokens[template]),
            ):
                lists[replica] = [each for each in lists[replica] if each[:2] != (kind, number)]
                lists[replica].append((kind, number, size))
            while sum(size for _, _, size in lists[replica]) > capacity:
                del lists[replica][0]
    for document in range(shape.num_documents):
        expected = {replica for replica in (0, 1) if any(each[:2] == ("document", document) for each in lists[replica])}
        assert set(fleet.holders.get(document, ())) == expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_program_ends_under_every_rule_and_the_same_seed_gives_the_same_outcome(rule: type) -> None:
    load = make_load(LoadShape(8, 200, 5, 40, cache_tokens=60_000), 0)
    arrivals = load.arrivals(0.2, 1)
    first, second = (simulate(load, arrivals, rule(load.shape, Random(5))) for _ in range(2))
    assert first.num_programs == 200
    assert not first.is_saturated
    assert 0 < first.hit_rate < 1
    assert 0 < first.used < 1
    assert first.balance >= 1
    figures = ("hit_rate", "balance", "used", "mean", "p99")
    assert [getattr(first, name) for name in figures] == [getattr(second, name) for name in figures]
