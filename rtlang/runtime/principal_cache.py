"""The prefix cache of a runtime for the principals of a server: explanations, pins and the tree, of what each may see.

Texts are encoded and explained on the thread of the caller; the engine thread does bounded look-ups between two steps. Pins are kept by
principal, each for a limited time, and together within a share of the pool, so that no principal takes what is kept for the others.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rtlang.contract.errors import OverloadError
from rtlang.contract.graph.nodes import Part
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.cache_report import CacheExplanation
from rtlang.contract.service.cache_service import MAX_PINS, PinGrant, checked_max_nodes, checked_ttl_s
from rtlang.engine.prefix_report import explain_prefix, plain_node
from rtlang.engine.program_pages import Hold, ProgramPages
from rtlang.runtime.cache_view import PIN_RANK, largest_hold
from rtlang.runtime.process.loop import EngineLoop, Timer
from rtlang.runtime.texts.text_service import TokenizerTextService

PRINCIPAL_SHARE = 0.5
"""Share of the pages under holds that the pins of one principal keep, if it has a namespace of its own."""
_RETRY_S = 60.0


class _Pin:
    """A pin. Used on the engine thread."""

    def __init__(self, pages: ProgramPages, num_tokens: int, hold: Hold | None, ends_at: float) -> None:
        self.pages, self.num_tokens, self.hold, self.ends_at = pages, num_tokens, hold, ends_at
        self.pin_id = secrets.token_hex(8)
        self.num_granted_tokens = 0 if hold is None else hold.num_tokens
        self.timer: Timer | None = None

    @property
    def is_kept(self) -> bool:
        return self.hold is not None and self.hold.is_granted

    def grant(self, now: float) -> PinGrant:
        seconds = round(max(0.0, self.ends_at - now), 3)
        return PinGrant(self.pin_id, self.num_tokens, self.num_granted_tokens, seconds, self.is_kept)


class PrincipalCache:
    """See `CacheService`.

    Args:
        loop_of: the running loop of the runtime; starts it if needed.
        text_service_of, decode: of the runtime.
        is_broken: whether its engine has failed.
    """

    def __init__(
        self,
        loop_of: Callable[[], EngineLoop],
        text_service_of: Callable[[], TokenizerTextService],
        decode: Callable[[Iterable[int]], str],
        is_broken: Callable[[], bool],
    ) -> None:
        self._loop_of, self._text_service_of, self._decode = loop_of, text_service_of, decode
        self._is_broken = is_broken
        self._pins: dict[str, dict[str, _Pin]] = {}  # by name of the principal and id; used on the engine thread

    def explain(self, parts: Sequence[Part], principal: Principal) -> CacheExplanation:
        """See `CacheService.explain`."""
        loop, tokens = self._loop_of(), self._tokens(parts)
        return explain_prefix(loop.engine, loop.run, self._decode, tokens, principal.namespace)

    def pin(self, parts: Sequence[Part], ttl_s: float, principal: Principal) -> PinGrant:
        """See `CacheService.pin`."""
        seconds = checked_ttl_s(ttl_s)
        loop, tokens = self._loop_of(), self._tokens(parts)
        return loop.run(lambda: self._pin(loop, tokens, seconds, principal))

    def pins(self, principal: Principal) -> list[PinGrant]:
        """See `CacheService.pins`."""
        loop = self._loop_of()
        return loop.run(lambda: [each.grant(loop.clock()) for each in self._pins.get(principal.name, {}).values()])

    def unpin(self, pin_id: str, principal: Principal) -> bool:
        """See `CacheService.unpin`."""
        return self._loop_of().run(lambda: self._end(principal.name, pin_id))

    def tree(self, max_nodes: int, principal: Principal) -> list[dict[str, Any]]:
        """See `CacheService.tree`."""
        checked_max_nodes(max_nodes)
        loop = self._loop_of()
        engine = loop.engine

        def look() -> list[tuple[Any, str]]:
            cache, namespaces = engine.cache, engine.namespaces
            if principal.namespace:
                found = cache.outline_of_namespace(namespaces.scope(principal.namespace, ()).number, max_nodes)
            else:
                ends = [request.pages.node for request in engine.scheduler.running if request.pages.node is not None]
                found = cache.outline(ends, max_nodes)
            return [(node, namespaces.name(node.namespace)) for node in found]

        shown = ("", principal.namespace)
        return [
            plain_node(node, namespace, self._decode(node.head) if namespace in shown else "")
            for node, namespace in loop.run(look)
        ]

    def _tokens(self, parts: Sequence[Part]) -> list[int]:
        service = self._text_service_of()
        return service.encode_parts(parts, max_tokens=service.info.max_model_len)

    # -- engine thread

    def _pin(self, loop: EngineLoop, tokens: Sequence[int], ttl_s: float, principal: Principal) -> PinGrant:
        name, engine, now = principal.name, loop.engine, loop.clock()
        own = self._pins.get(name, {})
        if len(own) >= MAX_PINS:
            for pin_id in [each.pin_id for each in own.values() if not each.is_kept]:
                self._end(name, pin_id)
        if len(own) >= MAX_PINS:
            raise OverloadError(f"{name} has {len(own)} pins; at most {MAX_PINS} are allowed", _RETRY_S)
        scope = engine.namespaces.scope(principal.namespace, tokens)
        pages = ProgramPages(engine.cache, PIN_RANK, self._is_broken, lambda _: scope)
        kept = tokens
        if principal.namespace and not self._is_broken():
            retention = engine.cache.retention
            num_pages = retention.num_pages_within(
                [each.hold for each in own.values() if each.hold is not None],
                scope.pack(tokens),
                int(retention.max_pages * PRINCIPAL_SHARE),
            )
            kept = tokens[: num_pages * pages.page_size]
        pin = _Pin(pages, len(tokens), largest_hold(pages, kept) if kept else None, now + ttl_s)
        self._pins.setdefault(name, {})[pin.pin_id] = pin
        pin.timer = loop.call_at(pin.ends_at, lambda: self._expire(name, pin.pin_id))
        return pin.grant(now)

    def _expire(self, name: str, pin_id: str) -> None:
        self._end(name, pin_id)

    def _end(self, name: str, pin_id: str) -> bool:
        own = self._pins.get(name, {})
        pin = own.pop(pin_id, None)
        if pin is None:
            return False
        if not own:
            del self._pins[name]
        if pin.timer is not None:
            pin.timer.cancel()
        if pin.hold is not None:
            pin.pages.release(pin.hold)
        return True
