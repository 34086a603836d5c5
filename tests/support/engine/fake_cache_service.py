"""A cache service that keeps what it is asked, and grants half of every prompt."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from rtlang.contract.errors import ContextLengthError, OverloadError
from rtlang.contract.graph.nodes import Part
from rtlang.contract.request_graph import TokenIds
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.cache_report import CacheExplanation, Divergence, PageRun
from rtlang.contract.service.cache_service import PinGrant

MAX_TOKENS = 1000


class FakeCacheService:
    """See `CacheService`. A text has a token for each character.

    Attributes:
        parts: of every prompt.
        may_answer: explanations wait for it.
        num_answering, most_answering: explanations at one time.
    """

    def __init__(self) -> None:
        self.parts: list[tuple[Part, ...]] = []
        self.grants: dict[tuple[str, str], PinGrant] = {}
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.num_answering = self.most_answering = 0
        self._lock = threading.Lock()

    def explain(self, parts: Sequence[Part], principal: Principal) -> CacheExplanation:
        with self._lock:
            self.num_answering += 1
            self.most_answering = max(self.most_answering, self.num_answering)
        assert self.may_answer.wait(30)
        with self._lock:
            self.num_answering -= 1
        num_tokens = self._num_tokens(parts)
        divergence = Divergence(num_tokens // 2, 5, "dog", 6, f"cat of {principal.namespace}")
        return CacheExplanation(num_tokens, num_tokens // 2, divergence, (PageRun(0, 16, "host", 1.5),))

    def pin(self, parts: Sequence[Part], ttl_s: float, principal: Principal) -> PinGrant:
        if len(self.pins(principal)) >= 3:
            raise OverloadError("3 pins", 60.0)
        num_tokens = self._num_tokens(parts)
        grant = PinGrant(f"{len(self.parts):x}", num_tokens, num_tokens // 2, ttl_s, True)
        self.grants[principal.name, grant.pin_id] = grant
        return grant

    def pins(self, principal: Principal) -> list[PinGrant]:
        return [grant for (name, _), grant in self.grants.items() if name == principal.name]

    def unpin(self, pin_id: str, principal: Principal) -> bool:
        return self.grants.pop((principal.name, pin_id), None) is not None

    def tree(self, max_nodes: int, principal: Principal) -> list[dict[str, Any]]:
        return [{"id": number, "text": f"of {principal.name}"} for number in range(min(3, max_nodes))]

    def _num_tokens(self, parts: Sequence[Part]) -> int:
        self.parts.append(tuple(parts))
        count = sum(len(each.ids) if isinstance(each, TokenIds) else len(str(each)) for each in parts)
        if count > MAX_TOKENS:
            raise ContextLengthError(count, 0, MAX_TOKENS)
        return count
