"""Seeds of nodes: fixed by the run's seed and the node's id, and spread over 64 bits."""

from __future__ import annotations

from rtlang.runtime.executors.seeds import new_run_seed, node_seed


def test_a_node_seed_depends_on_both_numbers_and_nothing_else() -> None:
    assert node_seed(7, 3) == node_seed(7, 3)
    found = {node_seed(run, node) for run in range(40) for node in range(40)}
    assert len(found) == 1600
    assert node_seed(1, 23) != node_seed(12, 3)


def test_seeds_have_64_bits() -> None:
    found = [node_seed(run, 0) for run in range(2000)]
    assert all(0 <= seed < 1 << 64 for seed in found)
    for bit in range(64):
        assert 800 < sum(seed >> bit & 1 for seed in found) < 1200


def test_a_run_seed_is_new_each_time() -> None:
    assert len({new_run_seed() for _ in range(100)}) == 100
