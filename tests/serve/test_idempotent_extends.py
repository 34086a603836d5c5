"""ExtendLog of a stream: each is done once, and an answer is what it was."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from rtlang.contract.errors import GoneError, GraphError, InternalError, ProtocolError, RtlangError
from rtlang.protocol.messages import ExtendNodes
from rtlang.serve.idempotent_extends import MAX_KNOWN, ExtendLog, answer_of

WRONG = GraphError(None, "nodes", "wrong")


def said(request: int, *nodes: int, closes: bool = False) -> ExtendNodes:
    return ExtendNodes(1, list(nodes), request, closes)


def apply_once(extends: ExtendLog, message: ExtendNodes, add: Callable[[], None]) -> RtlangError | None:
    answer = extends.answer_to(message)
    if answer is None:
        answer = answer_of(add)
        extends.note(message, answer)
    return answer.refusal


class Adding:
    """Counts what it adds; refuses with `error`, if there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.num_done = error, 0

    def __call__(self) -> None:
        if self.error is not None:
            raise self.error
        self.num_done += 1


def test_a_repeated_extend_gets_its_first_answer() -> None:
    extends, adding = ExtendLog(), Adding()
    for _ in range(2):
        assert apply_once(extends, said(2, 7), adding) is None
    assert (adding.num_done, extends.last_acknowledged) == (1, 2)
    for _ in range(2):
        assert apply_once(extends, said(3, 8), Adding(WRONG)) is WRONG
    assert apply_once(extends, said(3, 8), adding) is WRONG
    assert apply_once(extends, said(2, 7), adding) is None
    assert (adding.num_done, extends.last_acknowledged) == (1, 3)
    assert extends.refused_after(0) == {3: WRONG}
    assert extends.refused_after(3) == {}


@pytest.mark.parametrize("other", [said(5, 8), said(5), said(5, 7, closes=True), said(4, 7), said(1, 7)])
def test_a_request_number_that_does_not_increase_is_refused(other: ExtendNodes) -> None:
    extends, adding = ExtendLog(), Adding()
    apply_once(extends, said(5, 7), adding)
    with pytest.raises(ProtocolError) as caught:
        apply_once(extends, other, adding)
    assert caught.value.param == "q"
    assert (adding.num_done, extends.last_acknowledged) == (1, 5)


def test_an_unexpected_exception_is_reported_as_a_refusal() -> None:
    extends = ExtendLog()
    refusal = apply_once(extends, said(1), Adding(IndexError()))
    assert type(refusal) is InternalError
    assert extends.refused_after(0) == {1: refusal}
    assert apply_once(extends, said(1), Adding()) is refusal


def test_forgotten_answers_are_reported_as_gone() -> None:
    extends = ExtendLog()
    apply_once(extends, said(1), Adding(WRONG))
    for request in range(2, MAX_KNOWN + 2):
        apply_once(extends, said(request), Adding())
    with pytest.raises(ProtocolError, match="no longer"):
        apply_once(extends, said(1), Adding())
    with pytest.raises(GoneError) as caught:
        extends.refused_after(0)
    assert caught.value.param == "q"
    assert extends.refused_after(1) == {}  # the client has that answer


def test_a_refusal_does_not_keep_the_refused_nodes_alive() -> None:
    class Nodes:
        pass

    def refuse() -> None:
        nodes = Nodes()
        alive.append(weakref.ref(nodes))
        try:
            raise ValueError(nodes)
        except ValueError as error:
            raise GraphError(None, "nodes", "wrong") from error

    alive: list[weakref.ref[Nodes]] = []
    extends = ExtendLog()
    for _ in range(3):
        refusal = apply_once(extends, said(1), refuse)
    assert refusal is not None
    assert refusal.__traceback__ is None
    gc.collect()
    assert [ref() for ref in alive] == [None]
