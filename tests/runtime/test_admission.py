"""Requests are counted in with their nodes and out with what ends, whatever happens in between."""

from __future__ import annotations

import contextlib
import random
import threading
from dataclasses import replace

import pytest

from rtlang.contract.errors import GraphError, OverloadError
from rtlang.contract.events import NodeFinished, TextDelta, Timing
from rtlang.contract.params import SamplingParams, SelectMethod, Usage
from rtlang.contract.request_graph import Generate, Node, RequestGraph, Select, Text, TokenIds
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.runtime.admission import NUM_RESERVED, RETRY_AFTER_S, Admission, Share, admit_extension


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


def limited(**limits: int) -> Principal:
    return Principal("a", limits=PrincipalLimits(**limits))


def test_no_client_can_take_all_places() -> None:
    admission = Admission(1000)
    clients = [Principal("a", client=str(number)) for number in range(20)]
    shares = [Share(admission, each) for each in clients]
    taken = [0] * 20
    for index, share in enumerate(shares):
        for _ in range(1000):
            try:
                share.add([generate(taken[index], 1)])
            except OverloadError:
                break
            taken[index] += 1
    assert taken[0] == 1000, "one client has what max_waiting says"
    assert min(taken) >= NUM_RESERVED
    assert sum(taken) <= 4 * 1000 + 20 * NUM_RESERVED
    for share in shares:
        share.close()
    assert admission.num_open == admission.num_accounts == 0


@pytest.mark.parametrize(
    ("limits", "fits", "never"),
    [
        ({"max_places": 10}, generate(0, 6), generate(1, 11)),
        ({"max_output_tokens": 100}, Generate(0, None, None, SamplingParams(max_tokens=60)), generate(1, 128)),
        ({"max_prompt_bytes": 10}, Text(0, None, ("äöü",)), Text(1, None, ("x" * 11,))),
    ],
)
def test_limits_of_a_principal_hold_for_all_of_its_clients(limits: dict[str, int], fits: Node, never: Node) -> None:
    admission = Admission(100_000)
    principal = limited(**limits)
    first, second = Share(admission, principal), Share(admission, replace(principal, client="other"))
    (name,) = limits
    with pytest.raises(GraphError, match=name):
        first.add([never])
    first.add([fits])
    with pytest.raises(OverloadError, match=name):
        second.add([fits])
    Share(admission, Principal("b")).add([fits])
    first.close()
    second.add([fits])


def test_inputs_count_once_and_texts_until_the_graph_ends() -> None:
    admission = Admission(100)
    share = Share(admission, limited(max_prompt_bytes=10), {"x": "12345"})
    share.add([Text(0, None, ("12",))])
    share.add([Text(1, None, ("123", TokenIds(())))])
    share.end_node(0)
    with pytest.raises(OverloadError, match="max_prompt_bytes = 10"):
        share.add([Text(2, None, ("1",))])


def test_computed_tokens_are_charged_once_and_refill() -> None:
    now = 0.0
    admission = Admission(100, lambda: now)
    principal = limited(tokens_per_minute=60)
    share = Share(admission, principal)
    share.add([generate(0, 1)])
    for _ in range(20):
        share.note(TextDelta(1, 0, 0, "x", (5,)))
    ended = NodeFinished(1, 0, None, (), Usage(100, 90, 25), Timing(0.0, 0.0, 0.0))
    share.note(ended)  # 10 tokens of the prompt, and five that no delta had
    share.note(TextDelta(1, 1, 0, "x", tuple(range(25))))
    with pytest.raises(OverloadError, match="tokens_per_minute = 60") as refused:
        Share(admission, principal).add([generate(0, 1)])
    now = refused.value.retry_after_s + 0.01
    Share(admission, principal).add([generate(0, 1)])
    assert 0 < now < 1
    share.note(replace(ended, node_id=2, is_replayed=True))
    Share(admission, principal).add([generate(0, 1)])


def test_random_graphs_give_back_all_they_have_taken() -> None:
    rng = random.Random(1)
    admission = Admission(200)
    principals = [Principal(f"p{n % 2}", client=str(n), limits=PrincipalLimits(max_places=150)) for n in range(4)]
    open_shares: list[tuple[Share, list[int]]] = []
    for number in range(2000):
        share = Share(admission, rng.choice(principals))
        with contextlib.suppress(OverloadError):
            nodes = [generate(3 * number + k, rng.randint(1, 9)) for k in range(3)]
            share.add(nodes)
            open_shares.append((share, [node.node_id for node in nodes]))
        if rng.random() < 0.6 and open_shares:
            ended, node_ids = open_shares.pop(rng.randrange(len(open_shares)))
            for node_id in rng.sample(node_ids, rng.randint(0, 3)):
                ended.end_node(node_id)
            ended.close()
            ended.end_node(node_ids[0])
        if not any(each is share for each, _ in open_shares):
            share.close()
    for share, _ in open_shares:
        share.close()
    assert admission.num_open == admission.num_accounts == 0


def test_an_extension_that_is_refused_changes_nothing() -> None:
    admission = Admission(4)
    share, checks = Share(admission), RequestGraph((Text(0, None, ("a",)),)).validate()
    scores = SamplingParams(max_tokens=8192, n=2, logprobs=20)
    refused = [
        (Generate(1, 7, "x", SamplingParams()), None, GraphError),  # an unknown parent
        (Generate(1, 0, "x", SamplingParams(n=3)), None, OverloadError),
        (Generate(1, 0, "x", scores), 1 << 30, GraphError),
    ]
    share.add((generate(5, 2),))
    for node, max_model_len, error in refused:
        with pytest.raises(error):
            admit_extension((node,), checks, share, max_model_len)
        assert admission.num_open == 2
    admit_extension((Generate(1, 0, "x", SamplingParams(n=2)),), checks, share, None)
    assert admission.num_open == 4
