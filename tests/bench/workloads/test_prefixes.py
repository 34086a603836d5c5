"""What the workloads share, counted from the prompts that other engines get."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rtlang.bench.baselines.plain_graphs import running
from rtlang.bench.workloads import prefixes
from rtlang.bench.workloads.prefixes import CASES
from rtlang.bench.workloads.workload import Workload
from tests.support.engine.encoders import Letters


def prompts_of(workload: Workload) -> list[list[list[int]]]:
    """The prompts of each round: a round can start when the one before it has ended. An output is a number of its own."""
    programs = running(workload, Letters())
    rounds: list[list[list[int]]] = []
    while due := programs.take_due(0.0):
        rounds.append([programs.start(key) for key in due])
        for number, key in enumerate(due):
            outputs = [ord("0") + (len(rounds) + number) % 10] * programs.node(key)["max_tokens"]
            programs.finish(key, outputs, 0.0)
    assert programs.is_done
    return rounds


def num_common(prompts: Sequence[list[int]]) -> int:
    shortest = min(map(len, prompts))
    return next((at for at in range(shortest) if len({prompt[at] for prompt in prompts}) > 1), shortest)


def test_each_case_has_its_name_and_less_work_if_it_is_quick() -> None:
    for name, make in CASES.items():
        whole, quick = (make(Letters(), seed=0, quick=each) for each in (False, True))
        assert (whole.name, quick.name) == (name, name)
        assert (whole.is_quick, quick.is_quick) == (False, True)
        sizes = [sum(len(prompt) for each in prompts_of(workload) for prompt in each) for workload in (whole, quick)]
        assert sizes[1] < sizes[0] / 2
        assert make(Letters(), seed=0, quick=True) == quick
        assert make(Letters(), seed=1, quick=True) != quick


def test_the_chat_reads_142_thousand_tokens_in_43_turns() -> None:
    (prompts,) = zip(*prompts_of(prefixes.long_chat(Letters(), seed=0, quick=False)), strict=True)
    assert len(prompts) == 43
    assert 141_500 <= sum(map(len, prompts)) <= 142_500
    assert all(num_common((a, b)) == len(a) for a, b in pairwise(prompts))


def test_short_prefixes_are_shared_to_the_token() -> None:
    (at_once,) = prompts_of(prefixes.short_at_once(Letters(), seed=0, quick=False))
    assert len(at_once) == 32
    assert {len(each) for each in at_once} == {140}
    in_turn = prompts_of(prefixes.short_in_turn(Letters(), seed=0, quick=False))
    assert [len(each) for each in in_turn] == [1] * 32
    for prompts in (at_once, [prompt for (prompt,) in in_turn]):
        assert num_common(prompts) == 100
        own = [prompt[100:] for prompt in prompts]
        assert len({tuple(each[:1]) for each in own}) > 3  # their ends are not alike


def test_a_quick_tree_has_three_levels() -> None:
    rounds = prompts_of(prefixes.tree(Letters(), seed=0, quick=True))
    assert [len(each) for each in rounds] == [3, 9, 27]
    assert {len(prompt) for prompt in rounds[2]} == {256 + 3 * 48 + 2 * 32}
