"""The cache service of an engine in another process: its calls as messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rtlang.contract.graph.nodes import Part
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.cache_report import CacheExplanation
from rtlang.contract.service.cache_service import CacheService, PinGrant
from rtlang.fleet.messages.text_calls import Ask, parts_from_plain, parts_to_plain
from rtlang.work.prices import TOKENIZE_S_PER_CHAR, num_chars_in

PREFIX = "cache."
"""The names of all methods begin with it."""


class RemoteCacheService:
    """A `CacheService` in another process."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def explain(self, parts: Sequence[Part], principal: Principal) -> CacheExplanation:
        """See `CacheService.explain`."""
        return CacheExplanation.from_plain(self._call("explain", principal, parts_to_plain(parts)))

    def pin(self, parts: Sequence[Part], ttl_s: float, principal: Principal) -> PinGrant:
        """See `CacheService.pin`."""
        return PinGrant.from_plain(self._call("pin", principal, parts_to_plain(parts), ttl_s))

    def pins(self, principal: Principal) -> list[PinGrant]:
        """See `CacheService.pins`."""
        return [PinGrant.from_plain(each) for each in self._call("pins", principal)]

    def unpin(self, pin_id: str, principal: Principal) -> bool:
        """See `CacheService.unpin`."""
        return bool(self._call("unpin", principal, pin_id))

    def tree(self, max_nodes: int, principal: Principal) -> list[dict[str, Any]]:
        """See `CacheService.tree`."""
        return list(self._call("tree", principal, max_nodes))

    def _call(self, method: str, principal: Principal, *args: Any) -> Any:
        plain = [principal.in_engine().to_plain(), *args]
        return self._ask(PREFIX + method, plain, principal=principal, price=num_chars_in(args) * TOKENIZE_S_PER_CHAR)


def answer_cache_call(service: CacheService, method: str, args: Sequence[Any]) -> Any:
    """Carry out a call of `RemoteCacheService`."""
    principal, rest = Principal.from_plain(args[0]), args[1:]
    match method.removeprefix(PREFIX):
        case "explain":
            return service.explain(parts_from_plain(rest[0]), principal).to_plain()
        case "pin":
            return service.pin(parts_from_plain(rest[0]), rest[1], principal).to_plain()
        case "pins":
            return [each.to_plain() for each in service.pins(principal)]
        case "unpin":
            return service.unpin(rest[0], principal)
        case "tree":
            return service.tree(rest[0], principal)
    raise ValueError(f"unknown method {method}")
