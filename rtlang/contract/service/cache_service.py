"""The prefix cache of a target as a server offers it to its clients: explanations, pins, and the tree.

A target with a cache offers a `CacheService` as its `cache_service`. Every call is on behalf of a principal: nothing in an answer depends
on what principals of other namespaces have stored. Arguments and results are plain data or parts of text nodes, so that they can cross a
process boundary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.nodes import Part
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.cache_report import CacheExplanation

DEFAULT_TTL_S, MAX_TTL_S = 600.0, 86_400.0
"""Seconds for which a client's pin is kept: if it names none, and at most."""
MAX_PINS = 64
"""Pins of one principal."""
MAX_TREE_NODES = 4096
"""Nodes of the tree in one answer."""


@dataclass(frozen=True, slots=True)
class PinGrant:
    """A prompt whose pages are kept for a client.

    Attributes:
        pin_id: names the pin; other principals cannot use it.
        num_tokens: of the prompt.
        num_granted_tokens: tokens at its start that are kept.
        ttl_s: seconds until the pin ends.
        is_kept: False if running requests needed all pages.
    """

    pin_id: str
    num_tokens: int
    num_granted_tokens: int
    ttl_s: float
    is_kept: bool

    def to_plain(self) -> dict[str, Any]:
        """The grant as a map."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> PinGrant:
        """The grant of a map made by `to_plain`; further fields are ignored."""
        return cls(**{item.name: plain[item.name] for item in fields(cls)})


class CacheService(Protocol):
    """The prefix cache of a target. Thread-safe; calls block for as long as encoding takes, so call it on a thread of its own.

    Calls raise EngineDeadError without an engine, and what the graph with a text node of these parts would fail with.
    """

    def explain(self, parts: Sequence[Part], principal: Principal) -> CacheExplanation:
        """Explain which part of a prompt is cached.

        Raises:
            ContextLengthError: the prompt is longer than the model's context.
        """

    def pin(self, parts: Sequence[Part], ttl_s: float, principal: Principal) -> PinGrant:
        """Keep the cached pages of a prompt from eviction.

        A principal has at most `MAX_PINS` pins, which together keep at most half of `retention_share` if it has a namespace of its own.

        Raises:
            OverloadError: the principal has too many pins.
        """

    def pins(self, principal: Principal) -> list[PinGrant]:
        """The pins of a principal, the oldest first."""

    def unpin(self, pin_id: str, principal: Principal) -> bool:
        """End a pin; False if the principal has no such pin (any more)."""

    def tree(self, max_nodes: int, principal: Principal) -> list[dict[str, Any]]:
        """The radix tree as plain maps, parents before children; see `CacheView.tree`.

        A principal with a namespace gets its own nodes, and the public ones that they continue. One without is an operator's: it gets all
        nodes, with texts of its own only.
        """


def cache_service_of(target: object) -> CacheService | None:
    """The cache service that a target offers as `cache_service`; None if it has none."""
    return getattr(target, "cache_service", None)


def checked_ttl_s(ttl_s: object, longest: float = MAX_TTL_S) -> float:
    """A time to live in seconds.

    Raises:
        ParameterError: it is not a positive number, or longer than `longest`.
    """
    if isinstance(ttl_s, bool) or not isinstance(ttl_s, int | float) or not 0 < ttl_s <= longest:
        raise ParameterError("ttl_s", ttl_s, f"expected a positive number of seconds, at most {longest:g}")
    return float(ttl_s)


def checked_max_nodes(max_nodes: object) -> int:
    """A number of nodes of the tree.

    Raises:
        ParameterError: it is not an integer from 1 to MAX_TREE_NODES.
    """
    if isinstance(max_nodes, bool) or not isinstance(max_nodes, int) or not 1 <= max_nodes <= MAX_TREE_NODES:
        raise ParameterError("max_nodes", max_nodes, f"expected an integer from 1 to {MAX_TREE_NODES}")
    return max_nodes
