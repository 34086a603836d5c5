"""The prefix cache of a runtime for its users: explanations of prompts, pins, and the tree.

print(runtime.cache.explain("You are a helpful assistant. ..."))
pinned = runtime.cache.pin("You are a helpful assistant. ...", ttl_s=600)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rtlang.contract.errors import EngineDeadError, ParameterError
from rtlang.contract.params import MAX_DEADLINE_S, SamplingParams
from rtlang.contract.request_graph import Text
from rtlang.contract.service.cache_report import CacheExplanation
from rtlang.contract.service.cache_service import checked_ttl_s
from rtlang.contract.service.generation import Generation, Prompt, generation_graph
from rtlang.engine.prefix_report import explain_prefix, plain_node
from rtlang.engine.program_pages import Hold, ProgramPages
from rtlang.runtime.process.loop import EngineLoop, Timer
from rtlang.runtime.texts.text_service import TokenizerTextService

MAX_TREE_NODES = 1 << 16
PIN_RANK = float("-inf")
"""Pins are revoked after the holds of open programs."""


class Pinned:
    """A prompt whose pages are kept. A context manager that releases them.

    Attributes:
        num_tokens: of the prompt.
        num_granted_tokens: tokens at its start that are kept, as far as the share for kept pages (`retention_share`) has room.
    """

    def __init__(self, loop: EngineLoop, pages: ProgramPages, hold: Hold | None, num_tokens: int) -> None:
        self.num_tokens = num_tokens
        self.num_granted_tokens = 0 if hold is None else hold.num_tokens
        self._loop, self._pages, self._hold = loop, pages, hold
        self._timer: Timer | None = None

    def __enter__(self) -> Pinned:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<Pinned {self.num_granted_tokens} of {self.num_tokens} tokens>"

    @property
    def is_kept(self) -> bool:
        """Whether the pages are still kept: not after `release` or the time to live, or if running requests needed all pages."""
        return self._hold is not None and self._hold.is_granted

    def release(self) -> None:
        """Keep the pages no longer; they stay cached until others need their place. Idempotent."""
        try:
            self._loop.run(self._release)
        except EngineDeadError:
            self._hold = None

    def _release(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            self._pages.release(hold)
        if self._timer is not None:
            self._timer.cancel()


class CacheView:
    """See `Runtime.cache`. Thread-safe.

    Args:
        loop_of: the running loop of the runtime; starts it if needed.
        text_service_of, decode, generate: of the runtime.
        is_broken: whether its engine has failed.
    """

    def __init__(
        self,
        loop_of: Callable[[], EngineLoop],
        text_service_of: Callable[[], TokenizerTextService],
        decode: Callable[[Iterable[int]], str],
        generate: Callable[..., Generation],
        is_broken: Callable[[], bool],
    ) -> None:
        self._loop_of, self._text_service_of, self._decode = loop_of, text_service_of, decode
        self._generate, self._is_broken = generate, is_broken

    def explain(
        self, prompt: Prompt | None = None, *, token_ids: Iterable[int] | None = None, namespace: str = ""
    ) -> CacheExplanation:
        """Explain which part of a prompt is cached: text, chat messages, or tokens.

        Args:
            namespace: of the principal whose prompt it is.
        Raises:
            ParameterError: not exactly one of prompt and token_ids is given, or a token id is invalid.
        """
        loop = self._loop_of()
        found = self._tokens(prompt, token_ids)
        return explain_prefix(loop.engine, loop.run, self._decode, found, namespace)

    def pin(
        self,
        prompt: Prompt | None = None,
        *,
        token_ids: Iterable[int] | None = None,
        ttl_s: float | None = None,
        computes: bool = True,
    ) -> Pinned:
        """Keep the pages of a prompt from eviction: text, chat messages, or tokens.

        What is pinned counts within `retention_share`, before what open programs keep. If the share has no room for the whole prompt, its
        start is kept; the answer says how much. A request that cannot run otherwise may still take the pages.

        Args:
            ttl_s: seconds after which the pages are released; None: with `Pinned.release` or the runtime.
            computes: compute what is not cached yet, and wait for it. Otherwise only what is cached is kept.
        Raises:
            ParameterError: as `explain`, or ttl_s is not a positive number.
            RtlangError: the prompt cannot be computed.
        """
        if ttl_s is not None:
            checked_ttl_s(ttl_s, MAX_DEADLINE_S)
        loop = self._loop_of()
        tokens = self._tokens(prompt, token_ids)
        if computes and tokens:
            self._generate(token_ids=tokens, params=SamplingParams(max_tokens=1)).result()
        engine = loop.engine
        pages = ProgramPages(engine.cache, PIN_RANK, self._is_broken)

        def hold() -> Pinned:
            pinned = Pinned(loop, pages, largest_hold(pages, tokens), len(tokens))
            if ttl_s is not None:
                pinned._timer = loop.call_at(loop.clock() + ttl_s, pinned._release)
            return pinned

        return loop.run(hold)

    def tree(self, max_nodes: int = 1000) -> list[dict[str, Any]]:
        """The radix tree as plain maps, parents before children: those in use first, then level by level.

        Each has `id`, `parent` (None at the start of sequences), `num_tokens`, `num_pages`, `num_users`, `is_held`, `num_children`,
        `last_access`, `namespace`, and `text`, the beginning of its text.
        """
        if not isinstance(max_nodes, int) or not 1 <= max_nodes <= MAX_TREE_NODES:
            raise ParameterError("max_nodes", max_nodes, f"expected an integer from 1 to {MAX_TREE_NODES}")
        loop = self._loop_of()
        engine = loop.engine

        def look() -> list[tuple[Any, str]]:
            ends = [request.pages.node for request in engine.scheduler.running if request.pages.node is not None]
            return [(node, engine.namespaces.name(node.namespace)) for node in engine.cache.outline(ends, max_nodes)]

        return [plain_node(node, namespace, self._decode(node.head)) for node, namespace in loop.run(look)]

    def clear(self) -> None:
        """Drop every cached page that no running request uses, and begin to count `most_pages_in_use` anew; the tiers keep their pages."""
        loop = self._loop_of()
        engine = loop.engine

        def act() -> None:
            engine.cache.clear()
            engine.scheduler.most_pages_in_use = engine.cache.num_in_use

        loop.run(act)

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port where other engines may fetch pages; None without `cache_listen`."""
        transfers = self._loop_of().engine.transfers
        return None if transfers is None or transfers.server is None else transfers.server.address

    def set_peers(self, addresses: Iterable[tuple[str, int]]) -> None:
        """Name engines whose pages may be fetched, as (host, port), besides those of `cache_peers`. Replaces those of the last call.

        Has no effect without `cache_listen` and `cache_peers`.
        """
        transfers = self._loop_of().engine.transfers
        if transfers is not None:
            transfers.set_peers([(str(host), int(port)) for host, port in addresses])

    def _tokens(self, prompt: Prompt | None, token_ids: Iterable[int] | None) -> list[int]:
        node = generation_graph(prompt, SamplingParams(), token_ids=token_ids).nodes[0]
        assert isinstance(node, Text)
        return self._text_service_of().encode_parts(node.parts)


def largest_hold(pages: ProgramPages, tokens: Sequence[int]) -> Hold | None:
    """A hold on as many whole pages at the start of a sequence as are granted, or on all of it."""
    found = pages.hold(tokens)
    if found is not None:
        return found
    granted, refused = 0, -(-len(tokens) // pages.page_size)  # numbers of pages
    while refused - granted > 1:
        middle = (granted + refused) // 2
        more = pages.hold(tokens[: middle * pages.page_size])
        if more is None:
            refused = middle
            continue
        if found is not None:
            pages.release(found)
        found, granted = more, middle
    return found
