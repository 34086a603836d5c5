"""Admission control: limits the unfinished work of accepted graphs, of each client and of each principal.

What nodes may need is counted when their graph is accepted, long before they start, and released when they end. Nodes that would exceed
a limit are refused as a whole. Every client may have `max_waiting` unfinished requests; all clients together have four times as many, of
which one client gets no more than is still free, so that no client can take all places.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from rtlang.contract.errors import GraphError, OverloadError, ValueMemoryError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph.checks import NodeChecks
from rtlang.contract.graph.value_size import text_measure
from rtlang.contract.request_graph import (
    Const,
    Generate,
    Node,
    Operand,
    Repeat,
    Switch,
    Text,
    TokenIds,
    all_nodes,
    blocks_of,
    held_data,
    node_bytes,
    num_requests,
    operands_of,
)
from rtlang.contract.runs.known import Known
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.runtime.result_size import check_result_sizes
from rtlang.work.token_bucket import TokenBucket

RETRY_AFTER_S = 1.0
TOTAL_FACTOR = 4
"""All clients together may have so many times `max_waiting` unfinished requests."""
NUM_RESERVED = 64
"""Unfinished requests that every client may have, whatever the others have."""
GRAPH_PART = 4
"""One graph may have the values of a whole principal divided by this."""
_TOKEN_BYTES = 4  # of a token id in a prompt


@dataclass(frozen=True, slots=True)
class Demand:
    """Work of nodes: unfinished requests, bytes of texts, tokens that may be generated, and bytes of values."""

    places: int = 0
    prompt_bytes: int = 0
    output_tokens: int = 0
    value_bytes: int = 0

    def __add__(self, other: Demand) -> Demand:
        return Demand(
            self.places + other.places,
            self.prompt_bytes + other.prompt_bytes,
            self.output_tokens + other.output_tokens,
            self.value_bytes + other.value_bytes,
        )

    def __neg__(self) -> Demand:
        return Demand(-self.places, -self.prompt_bytes, -self.output_tokens, -self.value_bytes)


NOTHING = Demand()


@dataclass(slots=True)
class _Account:
    """The unfinished work of one principal, and its quota of computed tokens."""

    used: Demand = NOTHING
    quota: TokenBucket | None = None
    num_shares: int = 0
    places: Counter[str] = field(default_factory=Counter)  # by client


class Admission:
    """Counts the unfinished work of all accepted graphs. Safe to use from several threads.

    Args:
        limit: maximum number of unfinished requests of one client.
        clock: seconds, monotonic.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock = limit, clock
        self._num_open = 0
        self._accounts: dict[str, _Account] = {}
        self._lock = threading.Lock()

    @property
    def num_open(self) -> int:
        """Number of admitted requests of nodes that have not ended."""
        return self._num_open

    @property
    def num_accounts(self) -> int:
        """Number of principals with unfinished work or a quota."""
        return len(self._accounts)

    def open(self, principal: Principal) -> None:
        """Start counting a graph of a principal.

        Raises:
            OverloadError: the principal has as many as it may.
        """
        name, limit = principal.name, principal.limits.max_streams
        with self._lock:
            account = self._accounts.setdefault(name, _Account())
            if limit is not None and account.num_shares >= limit:
                raise OverloadError(
                    f"{name} has {account.num_shares} unfinished graphs; at most max_streams = {limit} are allowed",
                    RETRY_AFTER_S,
                )
            account.num_shares += 1

    def close(self, principal: Principal) -> None:
        """Stop counting a graph of a principal."""
        with self._lock:
            account = self._accounts[principal.name]
            account.num_shares -= 1
            if not account.num_shares and account.quota is None:
                del self._accounts[principal.name]

    def admit(self, demand: Demand, principal: Principal = LOCAL) -> None:
        """Admit more work of a principal, all or nothing.

        Raises:
            GraphError: the work exceeds a limit by itself. OverloadError: there is no room for it now.
        """
        count, limit = demand.places, self._limit
        if count > limit:
            raise GraphError(
                None,
                "nodes",
                f"the nodes need {count} requests (n, or the number of choices, for each); at most max_waiting = {limit} are allowed",
            )
        with self._lock:
            account = self._accounts[principal.name]
            own = account.places[principal.client]
            if own + count > limit:
                raise OverloadError(
                    f"{own} requests are unfinished and the nodes need {count} more; at most max_waiting = {limit} are allowed",
                    RETRY_AFTER_S,
                )
            if own + count > max(NUM_RESERVED, TOTAL_FACTOR * limit - self._num_open):
                raise OverloadError(
                    f"{self._num_open} requests of all clients are unfinished, {own} of them of this one; the nodes need {count} more",
                    RETRY_AFTER_S,
                )
            _check_limits(account.used, demand, principal)
            self._check_quota(account, principal)
            self._count(account, principal, demand)

    def reserve(self, num_bytes: int, principal: Principal) -> None:
        """Count bytes of values of a principal.

        Raises:
            ValueMemoryError: there is no room for them.
        """
        limit = principal.max_value_bytes
        with self._lock:
            account = self._accounts[principal.name]
            used = account.used.value_bytes
            if used + num_bytes > limit:
                raise ValueMemoryError(principal.name, "max_value_bytes", limit, used, num_bytes)
            account.used += Demand(value_bytes=num_bytes)

    def add(self, demand: Demand, principal: Principal = LOCAL) -> None:
        """Count more work of a graph that was admitted before, whatever the limits; negative work releases."""
        with self._lock:
            self._count(self._accounts[principal.name], principal, demand)

    def charge(self, num_tokens: int, principal: Principal) -> None:
        """Charge computed tokens to the quota of a principal."""
        with self._lock:
            account = self._accounts.get(principal.name)
            if account is not None and account.quota is not None:
                account.quota.charge(num_tokens, self._clock())

    def _count(self, account: _Account, principal: Principal, demand: Demand) -> None:
        account.used += demand
        self._num_open += demand.places
        account.places[principal.client] += demand.places
        if not account.places[principal.client]:
            del account.places[principal.client]

    def _check_quota(self, account: _Account, principal: Principal) -> None:
        rate = principal.limits.tokens_per_minute
        if rate is None:
            account.quota = None
            return
        now = self._clock()
        if account.quota is None:
            account.quota = TokenBucket(rate, now)
        account.quota.set_rate(rate)
        wait_s = account.quota.wait_s(now)
        if wait_s:
            raise OverloadError(f"{principal.name} has used up tokens_per_minute = {rate}", round(wait_s, 3))


_LIMITS = (
    ("max_places", "unfinished requests", attrgetter("places")),
    ("max_prompt_bytes", "bytes of texts", attrgetter("prompt_bytes")),
    ("max_output_tokens", "tokens to generate", attrgetter("output_tokens")),
    ("max_value_bytes", "bytes of nodes and constants", attrgetter("value_bytes")),
)


def _check_limits(used: Demand, demand: Demand, principal: Principal) -> None:
    for name, what, amount in _LIMITS:
        limit = principal.max_value_bytes if name == "max_value_bytes" else getattr(principal.limits, name)
        if limit is None or not amount(demand):
            continue
        if amount(demand) > limit:
            raise GraphError(
                None,
                "nodes",
                f"they have {amount(demand)} {what}; at most {name} = {limit} are allowed to {principal.name}",
            )
        if amount(used) + amount(demand) > limit:
            raise OverloadError(
                f"{principal.name} has {amount(used)} {what} and the nodes have {amount(demand)} more; "
                f"at most {name} = {limit} are allowed",
                RETRY_AFTER_S,
            )


class Share:
    """The admitted work of one graph. Safe to use from several threads.

    Args:
        inputs: texts of the graph's inputs, which count with its first nodes.
    """

    def __init__(
        self, admission: Admission, principal: Principal = LOCAL, inputs: Mapping[str, str] | None = None
    ) -> None:
        self._admission, self._principal = admission, principal
        self._counts: dict[int, Demand] = {}
        self._kept = NOTHING  # until the graph ends
        self._value_bytes = 0  # likewise
        self._inputs: Iterable[str] = tuple((inputs or {}).values())
        self._num_delivered: Counter[int] = Counter()  # tokens that were charged, by node
        self._is_closed = False
        self._lock = threading.Lock()
        admission.open(principal)

    @property
    def principal(self) -> Principal:
        """The party whose work is counted."""
        return self._principal

    def add(self, nodes: Sequence[Node], known: Known | None = None) -> None:
        """Admit the work of nodes and the memory of known outcomes, all or none; does nothing once the graph has ended.

        Raises:
            GraphError, OverloadError: as `Admission.admit`.
        """
        value_bytes = (
            _num_value_bytes(nodes)
            + _num_known_bytes(known or {})
            + sum(text_measure(each).num_bytes for each in self._inputs)
        )
        kept = Demand(prompt_bytes=_num_bytes(nodes) + sum(map(_size, self._inputs)), value_bytes=value_bytes)
        counts = _counts(nodes)
        with self._lock:
            if self._is_closed:
                return
            total = sum(counts.values(), kept)
            limit = self._principal.max_value_bytes // GRAPH_PART
            if self._value_bytes + value_bytes > limit:
                raise GraphError(
                    None,
                    "nodes",
                    f"the values of the graph take {self._value_bytes} bytes, its new nodes and constants {value_bytes}; one may have "
                    f"max_value_bytes / {GRAPH_PART} = {limit}",
                )
            if total != NOTHING:
                self._admission.admit(total, self._principal)
            self._counts.update(counts)
            self._kept += replace(kept, value_bytes=0)
            self._value_bytes += value_bytes
            self._inputs = ()

    def reserve(self, num_bytes: int) -> None:
        """Count bytes of values of the graph; a negative number gives some back. Does nothing once the graph has ended.

        Raises:
            ValueMemoryError: the graph or its principal has no room for them.
        """
        with self._lock:
            if self._is_closed:
                return
            if num_bytes > 0:
                limit = self._principal.max_value_bytes // GRAPH_PART
                if self._value_bytes + num_bytes > limit:
                    name = f"max_value_bytes / {GRAPH_PART}"
                    raise ValueMemoryError("the graph", name, limit, self._value_bytes, num_bytes)
                self._admission.reserve(num_bytes, self._principal)
            else:
                self._admission.add(Demand(value_bytes=num_bytes), self._principal)
            self._value_bytes += num_bytes

    def admit(self, nodes: Sequence[Node], known: Known | None = None) -> None:
        """`add` for the nodes with which the graph is submitted; a refusal ends the share."""
        try:
            self.add(nodes, known)
        except BaseException:
            self.close()
            raise

    def expand(self, control_id: int, nodes: Sequence[Node]) -> None:
        """Count the nodes of a block that a control node starts, instead of the control node. Never refused: the graph was admitted."""
        counts = _counts(nodes)
        with self._lock:
            if not self._is_closed:
                self._admission.add(sum(counts.values(), -self._counts.pop(control_id, NOTHING)), self._principal)
                self._counts.update(counts)

    def end_node(self, node_id: int) -> None:
        """Release the work of a node. Idempotent."""
        with self._lock:
            if not self._is_closed:
                self._admission.add(-self._counts.pop(node_id, NOTHING), self._principal)

    def note(self, event: Event) -> None:
        """Release what has ended with an event, and charge the tokens that were computed for it."""
        match event:
            case TextDelta():
                self._num_delivered[event.node_id] += len(event.token_ids)
                self._admission.charge(len(event.token_ids), self._principal)
            case NodeFinished():
                self.end_node(event.node_id)
                usage = event.usage
                num_tokens = usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens
                num_tokens = 0 if event.is_replayed else num_tokens
                self._admission.charge(num_tokens - self._num_delivered.pop(event.node_id, 0), self._principal)
            case NodeFailed():
                self.end_node(event.node_id)
            case GraphFinished() | GraphFailed():
                self.close()

    def close(self) -> None:
        """Release everything, because the graph has ended. Idempotent."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            kept = replace(self._kept, value_bytes=self._value_bytes)
            self._admission.add(-sum(self._counts.values(), kept), self._principal)
            self._counts.clear()
        self._admission.close(self._principal)


def admit_extension(
    nodes: Sequence[Node],
    checks: NodeChecks,
    share: Share,
    max_model_len: int | None,
    known: Known | None = None,
) -> None:
    """Check nodes that are added to an open graph, and count them; changes nothing if they are refused. Not thread-safe.

    Args:
        checks, share: those of the graph.
        max_model_len: tokens of the longest sequence; None if that is not known.
        known: outcomes that are given for nodes.
    Raises:
        GraphError: the nodes are invalid, or their results too large, or as `Share.add`. OverloadError: as `Share.add`.
    """
    checks.add(nodes)
    try:
        if max_model_len is not None:
            check_result_sizes(nodes, max_model_len)
        share.add(nodes, known)
    except BaseException:
        checks.remove(nodes)
        raise


def _counts(nodes: Sequence[Node]) -> dict[int, Demand]:
    """The work of each node; one request for a control node, until its block starts."""
    return {
        node.node_id: Demand(places=count, output_tokens=_num_output_tokens(node))
        for node in nodes
        if (count := num_requests(node) or len(blocks_of(node)[:1]))
    }


def _num_output_tokens(node: Node) -> int:
    return node.params.n * node.params.max_tokens if isinstance(node, Generate) else 0


def _num_bytes(nodes: Sequence[Node]) -> int:
    """Bytes of the texts of nodes and of their blocks."""
    return sum(
        _size(part) if isinstance(part, str) else _TOKEN_BYTES * len(part.ids)
        for node in all_nodes(nodes)
        if isinstance(node, Text)
        for part in node.parts
        if isinstance(part, (str, TokenIds))
    )


def _num_value_bytes(nodes: Sequence[Node]) -> int:
    """Bytes of nodes, of what they hold and of their constants, and of those of their blocks. What several nodes share counts once."""
    num_bytes, held = 0, dict[int, int]()
    for node in all_nodes(nodes):
        num_bytes += node_bytes(node)
        held.update((id(each), size) for each, size in held_data(node))
    return (
        num_bytes
        + sum(held.values())
        + sum(operand.measured().measure.num_bytes for operand in _operands(nodes) if isinstance(operand, Const))
    )


def _num_known_bytes(known: Known) -> int:
    """Bytes of known outcomes."""
    total = 0
    for node_id, outcome in known.items():
        try:
            total += outcome.num_bytes
        except (ValueError, TypeError) as error:
            raise GraphError(node_id, "known", str(error)) from None
    return total


def _operands(nodes: Sequence[Node]) -> Iterator[Operand | None]:
    for node in all_nodes(nodes):
        yield from operands_of(node)
        yield from (block.value for block in blocks_of(node))
        if isinstance(node, Repeat):
            yield node.until
        if isinstance(node, Switch):
            yield from (Const(key) for key, _ in node.cases)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
