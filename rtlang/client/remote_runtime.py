"""A runtime on a server, used through the Target interface.

One socket carries all graphs. Each graph is a stream of `rtlang.v1` whose id is the local graph id; a reader thread runs the body that
both clients share (client_session.py) and calls the listeners. `submit` and `extend` wait for the server's answer, so a refusal is
raised by the call that caused it. If the connection breaks, every running graph ends with GraphFailed(ConnectionLostError); if the
server closed it because a listener blocked the reader, with GraphFailed(SlowConsumerError). With `resume_s`, the reader reconnects first,
to the same server or to another one, and every graph continues where it was.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import ConnectionClosed

from rtlang.client.address import CLOSE_TIMEOUT_S, ServerAddresses
from rtlang.client.client_protocol import ClientProtocol
from rtlang.client.client_session import ClientSession, Link, completed
from rtlang.client.remote_cache import CacheRequests, RemoteCache
from rtlang.client.remote_run import Answer, RemoteGraphRun
from rtlang.contract.errors import ConnectionLostError, RtlangError
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.pictures.page import table_fragment
from rtlang.contract.request_graph import Node, Part, RequestGraph
from rtlang.contract.runs.known import ContinueFrom, Known
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.generation import Generation, Prompt, generation_graph
from rtlang.contract.service.target import Listener


class _ThreadTransport:
    """The I/O of a client for threads: it blocks. A fork of the process sends nothing, because the socket belongs to its parent."""

    def __init__(self, dial: Callable[[str], Link]) -> None:
        self._dial, self._pid = dial, os.getpid()
        self.closing = threading.Event()

    @property
    def is_closing(self) -> bool:
        """See `Transport.is_closing`."""
        return self.closing.is_set()

    async def dial(self, url: str) -> Link:
        """See `Transport.dial`; blocks."""
        return self._dial(url)

    async def receive(self, link: Link) -> str | bytes:
        """See `Transport.receive`; blocks."""
        return link.websocket.recv()  # type: ignore[no-any-return]

    async def close(self, link: Link) -> None:
        """See `Transport.close`; blocks."""
        link.websocket.close()

    async def pause(self, seconds: float) -> None:
        """See `Transport.pause`; blocks."""
        self.closing.wait(seconds)

    def flush(self, session: ClientSession) -> None:
        """See `Transport.flush`; blocks."""
        assert session.link is not None
        self.send(session.link, *session.protocol.take_output())

    def send(self, link: Link, *packed: bytes) -> None:
        """Send messages; does nothing if the connection is broken."""
        if self._pid != os.getpid():
            return
        with contextlib.suppress(ConnectionClosed, OSError):
            for data in packed:
                link.websocket.send(data)

    def later(self, seconds: float, act: Callable[[], None]) -> threading.Timer:
        """See `Transport.later`."""
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.start()
        return timer


class PendingAck(Answer):
    """An answer that a thread can wait for: `done` is set with it. The reader thread itself must not wait."""

    def __init__(self, is_awaited: bool) -> None:
        super().__init__(is_awaited)
        self.done = threading.Event()

    def wake(self) -> None:
        """See `Answer.wake`."""
        self.done.set()


class RemoteRuntime:
    """A connection to a server that implements Target. Safe to use from any thread; created by `connect`.

    Attributes:
        cache: the prefix cache of the server, for this client's namespace.
    """

    def __init__(
        self,
        servers: ServerAddresses,
        dial: Callable[[str], Link],
        timeout_s: float,
        resume_s: float | None,
        cache_requests: CacheRequests | None = None,
    ) -> None:
        """Connect.

        Args:
            dial: opens a connection to the server at a URL.
            resume_s: how long to reconnect after a connection breaks, in seconds; None disables it.
            cache_requests: the requests of `cache`.
        Raises:
            ConnectionLostError: raised by `dial` for every address.
        """
        self._servers = servers
        self._cache_requests = cache_requests or CacheRequests(servers.url, None, timeout_s)
        self.cache = RemoteCache(self._cache_requests)
        self._lock = threading.Lock()  # guards the protocol and the order of messages
        self._transport = _ThreadTransport(dial)
        self._session = ClientSession(servers, self._cache_requests, self._transport, resume_s, self._lock)
        completed(self._session.open())
        self._protocol: ClientProtocol = self._session.protocol
        self.models, self.limits = self._protocol.models, self._protocol.limits
        self.tool_format: str | None = next((each.get("tool_format") for each in self.models), None)
        self._timeout_s, self._pid = timeout_s, os.getpid()
        self._reader = threading.Thread(target=self._read, name="rtlang-client", daemon=True)

    @property
    def url(self) -> str:
        """The URL of the server that is used."""
        return self._servers.url

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`: what the first server announced."""
        return self._protocol.abilities

    @property
    def model_identity(self) -> str:
        """See `Target.abilities`.

        Raises:
            AttributeError: the server does not say it, or takes no results of earlier runs.
        """
        found = self._protocol.model_identity
        if found is None or Ability.KNOWN not in self.abilities:
            raise AttributeError("the server does not say the identity of its model", name="model_identity", obj=self)
        return found

    def start(self) -> None:  # `connect` calls it once
        """Start the reader thread."""
        self._reader.start()

    def __repr__(self) -> str:
        return f"<RemoteRuntime {self.url}, {self._state}>"

    def _repr_html_(self) -> str:
        """The server and its models for a notebook."""
        rows = [
            (
                "model",
                str(each.get("model", ""))
                + (f", up to {each['max_model_len']} tokens" if "max_model_len" in each else ""),
            )
            for each in self.models
        ]
        return table_fragment(f"Runtime at {self.url}", (), rows, self._state)

    @property
    def _state(self) -> str:
        return "connected" if self.is_alive else "closed" if self._transport.is_closing else "connection lost"

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return not self._transport.is_closing and self._session.lost is None and not self._is_forked

    @property
    def _is_forked(self) -> bool:
        """Whether this process was forked after connecting: the parent owns the socket, and no reader runs here."""
        return self._pid != os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> RemoteGraphRun:
        """Run a graph on the server; see `rtlang.contract.service.target.Target`. Waits until the server has accepted it.

        Called from a listener, it does not wait: there a refusal ends the graph with GraphFailed instead.

        Raises:
            GraphError: the graph is malformed or too large for the server. OverloadError: the server is full or draining.
            ConnectionLostError: the connection is lost, or the server did not answer within the timeout.
        """
        graph.validate()
        with self._lock:
            self._check_connected()
            run = self._protocol.submit(self, graph, listener, self._new_answer, options)
            self._flush()
        self._await(run.opening, run)
        return run

    def count_tokens(self, parts: Sequence[Part]) -> int:
        """The number of tokens of a sequence that begins with these parts of a text node, as the server counts their texts.

        The whole text is tokenized, as `POST /tokenize` does, which may differ by a few tokens from the tokens that a model generated.

        Raises:
            ConnectionLostError: the server is not reachable. RtlangError: the chat template refuses the messages.
        """
        return self._cache_requests.count_tokens(parts)

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        """The text of each token, or the name of a special token; bytes that are no text give U+FFFD.

        Raises:
            ParameterError: an id is not in the vocabulary. ConnectionLostError: the server is not reachable.
        """
        return self._cache_requests.token_texts(token_ids)

    def extend(self, run: RemoteGraphRun, nodes: Sequence[Node], known: Known, continue_from: ContinueFrom) -> None:
        """Add `nodes` to `run`; called by `RemoteGraphRun.extend`."""
        with self._lock:
            self._check_connected()
            extensions = self._protocol.extend(run, nodes, self._new_answer, known, continue_from)
            self._flush()
        try:
            for extension in extensions:
                self._await(extension.answer, run)
        except RtlangError:
            with self._lock:
                self._protocol.take_back(run, nodes)
            raise

    def close_graph(self, run: RemoteGraphRun) -> None:
        """Close `run`; called by `RemoteGraphRun.close`."""
        self._session.act(lambda protocol: protocol.close_graph(run))

    def cancel(self, run: RemoteGraphRun) -> None:
        """Cancel `run`; called by `RemoteGraphRun.cancel`."""
        self._session.act(lambda protocol: protocol.cancel(run))

    def grant(self, run: RemoteGraphRun, num_tokens: int) -> None:
        """Grant credit to `run`; called by `RemoteGraphRun.grant`."""
        self._session.act(lambda protocol: protocol.grant(run, num_tokens))

    def answer_call(self, run: RemoteGraphRun, node_id: int, answer: Mapping[str, Any]) -> None:
        """Send the answer to a host call of `run`; called by its `resolve` and `reject`. Answers of ended nodes are ignored."""
        self._session.act(lambda protocol: protocol.answer_call(run, node_id, answer))

    def generate(
        self,
        prompt: Prompt | None = None,
        *,
        token_ids: Iterable[int] | None = None,
        params: SamplingParams | None = None,
        constraint: Constraint | None = None,
        listener: Listener | None = None,
        priority: int = 0,
        deadline_s: float | None = None,
        seed: int | None = None,
    ) -> Generation:
        """Continue a prompt, tokens, or chat messages; see `Runtime.generate`.

        Raises:
            As `submit` and `generation_graph`.
        """
        graph = generation_graph(prompt, params or SamplingParams(), constraint, token_ids=token_ids)
        return Generation.start(self, graph, listener, RunOptions(priority=priority, deadline_s=deadline_s, seed=seed))

    def close(self) -> None:
        """Close the connection; running graphs end with GraphFailed(AbortedError). Idempotent; does nothing in a forked process."""
        if self._is_forked:
            return
        with self._lock:
            was_closing = self._transport.is_closing
            self._transport.closing.set()
            if not was_closing and self._session.lost is None:
                self._protocol.bye()
                self._flush()
        if threading.current_thread() is not self._reader:
            self._reader.join(CLOSE_TIMEOUT_S)  # the server answers bye by closing
            self._link.websocket.close()
            if not self._session.backoff.is_over.is_set():  # the reader may be waiting for an unresponsive server
                self._session.lose("closed")
                return
            self._reader.join()

    # Writing. All of it under the lock.

    def _check_connected(self) -> None:
        if self._is_forked:
            raise ConnectionLostError(
                f"{self.url}: the connection belongs to pid {self._pid}, from which this process was forked; "
                "call connect again in this process"
            )
        if self._transport.is_closing:
            raise ConnectionLostError(f"{self.url}: the connection was closed by this client")
        if self._session.lost is not None:
            raise ConnectionLostError(str(self._session.lost))

    def _flush(self) -> None:
        self._transport.flush(self._session)

    def _new_answer(self) -> PendingAck:
        return PendingAck(threading.current_thread() is not self._reader)

    def _await(self, answer: Answer, run: RemoteGraphRun) -> None:
        """Wait for an answer; call without holding the lock."""
        if not answer.is_awaited or not isinstance(answer, PendingAck):
            return
        while not answer.done.wait(self._timeout_s):
            if not self._session.backoff.is_over.is_set():  # reconnecting; the answer follows
                continue
            run.cancel()
            with self._lock:
                self._protocol.finish(run)
            raise ConnectionLostError(f"{self.url}: no answer within {self._timeout_s:g} s")
        if answer.error is not None:
            raise answer.error

    def _read(self) -> None:
        try:
            completed(self._session.read())
        finally:
            self._link.websocket.close()

    @property
    def _link(self) -> Link:
        assert self._session.link is not None
        return self._session.link
