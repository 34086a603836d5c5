"""Every workload is valid and repeats with its seed."""

from __future__ import annotations

import pytest

from rtlang.bench.workloads.catalogue import NAMES, USUAL, make
from tests.support.engine.encoders import Bytes


@pytest.mark.parametrize("name", NAMES)
def test_graphs_are_valid_and_repeat_with_the_seed(name: str) -> None:
    one, again, other = (make(name, Bytes(), seed=seed, quick=True, max_len=2048) for seed in (1, 1, 2))
    assert one == again
    assert one.name == name
    assert one.graphs != other.graphs
    for graph in one.graphs:
        graph.validate()


def test_the_usual_workloads_have_names() -> None:
    assert set(USUAL) < set(NAMES)


def test_an_unknown_workload_is_named() -> None:
    with pytest.raises(ValueError, match="'chess'"):
        make("chess", Bytes())
