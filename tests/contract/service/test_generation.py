"""A single generation: its graph, and its handle as a future, an iterable and an awaitable."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import Any, cast

import numpy as np
import pytest

from rtlang.contract.errors import AbortedError, NumericsError, ParameterError
from rtlang.contract.events import (
    Completion,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    TextDelta,
    Timing,
)
from rtlang.contract.params import Constraint, ConstraintKind, FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Generate, RequestGraph, RoleEnd, RoleStart, Text, TokenIds
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.generation import Generation, generation_graph, token_ids_part
from rtlang.contract.service.target import Listener

PARAMS = SamplingParams(max_tokens=7, stop=("\n",))
REGEX = Constraint(ConstraintKind.REGEX, "[0-9]+")
TIMEOUT_S = 10.0


# graphs


def test_a_prompt_is_continued() -> None:
    graph = generation_graph("2 + 2 = ", PARAMS, REGEX)
    graph.validate()
    assert graph.nodes == (Text(0, None, ("2 + 2 = ",)), Generate(1, 0, "text", PARAMS, REGEX))


def test_tokens_are_continued_as_they_are() -> None:
    graph = generation_graph(None, PARAMS, token_ids=[5, 0, 5])
    graph.validate()
    assert graph.nodes[0] == Text(0, None, (TokenIds((5, 0, 5)),))


def test_chat_messages_are_followed_by_an_assistant_turn() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    graph = generation_graph(messages, PARAMS)
    graph.validate()
    text = graph.nodes[0]
    assert isinstance(text, Text)
    assert text.parts == (
        RoleStart("system"), "Be brief.", RoleEnd(), RoleStart("user"), "Hi", RoleEnd(), RoleStart("assistant"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("prompt", "token_ids", "message"),
    [
        (None, None, "prompt = None: expected exactly one of prompt and token_ids"),
        ("x", [1], "prompt = 'x': expected exactly one of prompt and token_ids"),
        (None, [], r"token_ids = \[\]: expected at least one token"),
        (None, [1, -1], "token_ids = -1: expected integers from 0 to 2147483647"),
        (None, [1 << 31], "token_ids = 2147483648: expected integers from 0 to 2147483647"),
        (None, [True], "token_ids = True: expected integers"),
        (None, [1.0], "token_ids = 1.0: expected integers"),
        (None, "12", "token_ids = '12': expected a sequence of integers"),
        (None, 12, "token_ids = 12: expected a sequence of integers"),
    ],
)
def test_a_wrong_prompt_is_named(prompt: Any, token_ids: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        generation_graph(prompt, PARAMS, token_ids=token_ids)


def test_integers_of_numpy_are_token_ids() -> None:
    assert token_ids_part(np.array([3, 7], dtype=np.int32)) == TokenIds((3, 7))
    assert all(type(each) is int for each in token_ids_part(np.array([3, 7])).ids)


# the handle


class _Target:
    """Accepts one graph, whose events the test sends."""

    graph_id = 1

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.num_cancelled = 0

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions) -> Any:
        self.listener, self.options = listener, options
        return self

    def cancel(self) -> None:
        self.num_cancelled += 1

    def send(self, *events: Event) -> None:
        assert self.listener is not None
        for event in events:
            self.listener(event)


FINISHED = NodeFinished(1, 1, "text", (Completion("ab", (1, 2), FinishReason.STOP),), Usage(1, 2), Timing())
PIECES = TextDelta(1, 1, 0, "a", (1,)), TextDelta(1, 1, 0, "b", (2,))
END = GraphFinished(1, {"text": "ab"}, Usage(1, 2))


def _started(listener: Listener | None = None, **options: Any) -> tuple[_Target, Generation]:
    target = _Target()
    return target, Generation.start(cast(Any, target), generation_graph("x", PARAMS), listener, RunOptions(**options))


def test_a_generation_is_a_future_and_an_iterable_that_can_be_read_again() -> None:
    heard: list[Event] = []
    target, generation = _started(heard.append, seed=3)
    assert target.options == RunOptions(seed=3)
    sender = threading.Thread(target=target.send, args=(*PIECES, FINISHED, END))
    pieces = iter(generation)
    sender.start()
    assert list(pieces) == list(PIECES)
    sender.join()
    assert generation.result(0) == FINISHED
    assert tuple(generation) == generation.pieces == PIECES
    assert heard == [*PIECES, FINISHED, END]


def test_the_error_of_a_generation_ends_its_loops() -> None:
    target, generation = _started()
    target.send(PIECES[0], NodeFailed(1, 1, "text", NumericsError("not finite")), END)
    pieces = iter(generation)
    assert next(pieces) == PIECES[0]
    with pytest.raises(NumericsError):
        next(pieces)
    target, generation = _started()
    target.send(GraphFailed(1, AbortedError("closed")))
    with pytest.raises(AbortedError):
        generation.result(0)


def test_a_cancelled_generation_stops_its_graph_once() -> None:
    target, generation = _started()
    assert generation.cancel()
    target.send(PIECES[0], GraphFailed(1, AbortedError("cancelled")))
    assert target.num_cancelled == 1
    with pytest.raises(CancelledError):
        generation.result(0)
    target, generation = _started()
    target.send(FINISHED, END)
    assert not generation.cancel()
    assert target.num_cancelled == 0


def test_coroutines_await_a_generation_and_read_its_pieces() -> None:
    target, generation = _started()
    failing, failed = _started()

    async def read() -> tuple[list[TextDelta], NodeFinished]:
        pieces = []
        sender = threading.Thread(target=target.send, args=(*PIECES, FINISHED, END))
        asyncio.get_running_loop().call_soon(sender.start)
        async for piece in generation:
            pieces.append(piece)
        sender.join()
        failing.send(GraphFailed(1, AbortedError("closed")))
        with pytest.raises(AbortedError):
            await anext(aiter(failed))
        return pieces, await generation

    assert asyncio.run(asyncio.wait_for(read(), TIMEOUT_S)) == (list(PIECES), FINISHED)
