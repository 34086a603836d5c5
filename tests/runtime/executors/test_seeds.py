"""Seeds of nodes: fixed by the run's seed and the node's path or id, and spread over 64 bits."""

from __future__ import annotations

from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate
from rtlang.runtime.executors.seeds import new_run_seed, node_seed

HOT = SamplingParams(temperature=1.0)


def node(node_id: int, path: str | None = None, params: SamplingParams = HOT) -> Generate:
    return Generate(node_id, None, None, params, path=path)


def test_without_a_path_a_seed_depends_on_the_run_and_the_id_and_nothing_else() -> None:
    assert node_seed(7, node(3)) == node_seed(7, node(3))
    found = {node_seed(run, node(node_id)) for run in range(40) for node_id in range(40)}
    assert len(found) == 1600
    assert node_seed(1, node(23)) != node_seed(12, node(3))


def test_with_a_path_the_id_does_not_matter() -> None:
    assert node_seed(7, node(3, "fork[0]/x")) == node_seed(7, node(9, "fork[0]/x"))
    assert node_seed(7, node(3, "fork[0]/x")) != node_seed(7, node(3, "fork[1]/x"))


def test_a_seed_of_its_own_comes_first_and_greedy_text_depends_on_no_run() -> None:
    assert node_seed(7, node(3, "x", SamplingParams(temperature=1.0, seed=5))) == 5
    greedy = SamplingParams(temperature=0.0)
    assert node_seed(7, node(3, "x", greedy)) == node_seed(8, node(4, "y", greedy))
    several = SamplingParams(temperature=0.0, n=2)
    assert node_seed(7, node(3, "x", several)) != node_seed(8, node(3, "x", several))


def test_seeds_have_64_bits() -> None:
    found = [node_seed(run, node(0)) for run in range(2000)]
    assert all(0 <= seed < 1 << 64 for seed in found)
    for bit in range(64):
        assert 800 < sum(seed >> bit & 1 for seed in found) < 1200


def test_a_run_seed_is_new_each_time() -> None:
    assert len({new_run_seed() for _ in range(100)}) == 100
