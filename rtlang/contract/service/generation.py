"""One generation without a program: its request graph, and a handle to wait for it or to read it piece by piece.

`Generation` is a `concurrent.futures.Future` of the finished node, so it works wherever futures do. It is also an iterator of the pieces
of text, and in a coroutine it can be awaited and read with `async for`.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from rtlang.contract.errors import GraphError, ParameterError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.field_names import check_fields
from rtlang.contract.params import MAX_TOKEN_ID, Constraint, SamplingParams
from rtlang.contract.request_graph import Generate, Part, RequestGraph, RoleEnd, RoleStart, Text, TokenIds
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, RunOptions
from rtlang.contract.service.target import GraphRun, Listener, Target

PROMPT_ID, GENERATE_ID = 0, 1
DEFAULT_NAME = "text"

Prompt = str | Sequence[Mapping[str, str]]
"""Text, or chat messages with role and content."""


def token_ids_part(token_ids: Iterable[int]) -> TokenIds:
    """Token ids as a part of a text node; numpy and torch integers are taken as well.

    Raises:
        ParameterError: an item is not an integer from 0 to MAX_TOKEN_ID, or `token_ids` is not a sequence of them.
    """
    if isinstance(token_ids, (str, bytes)) or not isinstance(token_ids, Iterable):
        raise ParameterError("token_ids", token_ids, "expected a sequence of integers")
    found = []
    for each in token_ids:
        try:
            token_id = -1 if isinstance(each, bool) else operator.index(each)
        except TypeError:
            token_id = -1
        if not 0 <= token_id <= MAX_TOKEN_ID:
            raise ParameterError("token_ids", each, f"expected integers from 0 to {MAX_TOKEN_ID}")
        found.append(token_id)
    return TokenIds(tuple(found))


def generation_graph(
    prompt: Prompt | None,
    params: SamplingParams,
    constraint: Constraint | None = None,
    name: str = DEFAULT_NAME,
    *,
    token_ids: Iterable[int] | None = None,
) -> RequestGraph:
    """The graph that continues a prompt, which is text, a list of chat messages, or the tokens `token_ids` as they are.

    Raises:
        GraphError: there is no message, or one lacks role or content.
        ParameterError: not exactly one of `prompt` and `token_ids` is given, or a token id is invalid.
    """
    if (prompt is None) == (token_ids is None):
        raise ParameterError("prompt", prompt, "expected exactly one of prompt and token_ids")
    parts: tuple[Part, ...]
    if token_ids is not None:
        parts = (token_ids_part(token_ids),)
        if parts == (TokenIds(()),):
            raise ParameterError("token_ids", token_ids, "expected at least one token")
    else:
        assert prompt is not None
        parts = (prompt,) if isinstance(prompt, str) else _chat_parts(prompt)
    return RequestGraph(
        (Text(PROMPT_ID, None, parts), Generate(GENERATE_ID, PROMPT_ID, name, params, constraint)),
    )


class Generation(Future[NodeFinished]):
    """A running generation: a future of its `NodeFinished`, and an iterable of its `TextDelta` events.

    Each loop over it yields all pieces from the first one on, and raises the error of the generation at the end. Leaving a loop does not
    stop the generation; `cancel` does. Thread-safe.
    """

    def __init__(self, listener: Listener | None = None) -> None:
        super().__init__()
        self._listener = listener
        self._run: GraphRun | None = None
        self._pieces: list[TextDelta] = []
        self._changed = threading.Condition()
        self._wakes: list[Callable[[], None]] = []

    @classmethod
    def start(
        cls,
        target: Target,
        graph: RequestGraph,
        listener: Listener | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> Generation:
        """Submit a graph of one generate node to a target.

        Args:
            listener: called with every event of the graph.
        """
        generation = cls(listener)
        generation._run = target.submit(graph, generation._listen, options=options)
        return generation

    @property
    def pieces(self) -> Sequence[TextDelta]:
        """The pieces so far."""
        return tuple(self._pieces)

    def cancel(self) -> bool:
        """Stop the generation; False if it has ended. `result` then raises `CancelledError`."""
        is_cancelled = super().cancel()
        if is_cancelled and self._run is not None:
            self._run.cancel()
            self._wake()
        return is_cancelled

    def __iter__(self) -> Iterator[TextDelta]:
        num_read = 0
        while True:
            with self._changed:
                while num_read == len(self._pieces) and not self.done():
                    self._changed.wait()
                pieces = self._pieces[num_read:]
            if not pieces:
                self.result()
                return
            num_read += len(pieces)
            yield from pieces

    async def __aiter__(self) -> AsyncIterator[TextDelta]:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(arrived.set)

        num_read = 0
        with self._changed:
            self._wakes.append(wake)
        try:
            while True:
                arrived.clear()
                is_over = self.done()
                pieces = self._pieces[num_read:]
                num_read += len(pieces)
                for piece in pieces:
                    yield piece
                if is_over and num_read == len(self._pieces):
                    self.result()
                    return
                if not pieces:
                    await arrived.wait()
        finally:
            with self._changed:
                self._wakes.remove(wake)

    def __await__(self) -> Generator[Any, None, NodeFinished]:
        return asyncio.wrap_future(self).__await__()

    def _listen(self, event: Event) -> None:
        with suppress(InvalidStateError):  # it was cancelled
            match event:
                case TextDelta():
                    self._pieces.append(event)
                case NodeFinished():
                    self.set_result(event)
                case NodeFailed() | GraphFailed() if not self.done():
                    self.set_exception(event.error)
        if isinstance(event, (TextDelta, NodeFinished, NodeFailed, GraphFailed, GraphFinished)):
            self._wake()
        if self._listener is not None:
            self._listener(event)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
            wakes = list(self._wakes)
        for wake in wakes:
            wake()


def _chat_parts(messages: Sequence[Mapping[str, str]]) -> tuple[Part, ...]:
    if not messages:
        raise GraphError(None, "messages", "expected at least one message")
    parts: list[Part] = []
    for message in messages:
        check_fields(message, ("role", "content"), "a message")
        for field in ("role", "content"):
            if not isinstance(message.get(field), str):
                raise GraphError(None, f"messages.{field}", "expected a string in every message")
        parts += [RoleStart(message["role"]), message["content"], RoleEnd()]
    return (*parts, RoleStart("assistant"))
