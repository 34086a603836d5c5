"""Requests are counted in with their nodes and out with what ends, whatever happens in between."""

from __future__ import annotations

import threading

import pytest

from rtlang.contract.errors import GraphError, OverloadError
from rtlang.contract.graph import Generate, Select, Text
from rtlang.contract.params import SamplingParams, SelectMethod
from rtlang.runtime.admission import RETRY_AFTER_S, Admission, Share


def generate(node_id: int, n: int) -> Generate:
    return Generate(node_id, None, None, SamplingParams(n=n, temperature=1.0))


def test_nodes_take_a_place_for_each_request_they_make() -> None:
    admission = Admission(100)
    select = Select(2, None, None, ("a", "b", "c"))
    twice = Select(3, None, None, ("a", "b", "c"), SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED)
    share = Share(admission)
    share.add([Text(0, None, ("x",)), generate(1, 8), select, twice])
    assert admission.num_open == 8 + 3 + 6
    share.end_node(1)
    share.end_node(1)
    share.end_node(0)
    assert admission.num_open == 9
    share.close()
    share.close()
    assert admission.num_open == 0
    share.add([generate(4, 8)])  # of a graph that has ended: nothing will give it back
    assert admission.num_open == 0


def test_what_does_not_fit_is_refused_whole_and_what_never_fits_is_another_error() -> None:
    admission = Admission(10)
    first, second = Share(admission), Share(admission)
    first.add([generate(0, 6)])
    with pytest.raises(OverloadError, match="max_waiting = 10") as refused:
        second.add([generate(0, 2), generate(1, 3)])
    assert refused.value.retry_after_s == RETRY_AFTER_S
    with pytest.raises(GraphError, match="max_waiting = 10") as never:
        second.add([generate(0, 11)])
    assert never.value.field == "nodes"
    assert admission.num_open == 6
    first.end_node(0)
    second.add([generate(0, 5), generate(1, 5)])
    assert admission.num_open == 10


def test_shares_of_many_threads_add_up() -> None:
    admission = Admission(64)

    def work() -> None:
        for _ in range(200):
            share = Share(admission)
            try:
                share.add([generate(0, 8), generate(1, 8)])
            except OverloadError:
                continue
            assert 16 <= admission.num_open <= 64
            share.end_node(0)
            share.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert admission.num_open == 0
