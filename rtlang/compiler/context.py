"""The context of a graph that is compiled, and the effect of the passes on it.

A program may submit its graph in several parts: a `Context` says which nodes later parts may continue, which nodes are needed, and which
nodes earlier parts hold. `Savings` counts the effect of each pass; counts of several parts add up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from rtlang.compiler.merge import Known
from rtlang.contract.request_graph import Part

Pieces = tuple[tuple[Part, ...], ...]
"""The pieces of a text whose order is free, as written."""


class Sharing(NamedTuple):
    """Statistics of a piece of such a text over the instances of a batch.

    Attributes:
        share: the share of the instances that contain it, from 0 to 1.
        rank: its place among pieces with the same share, equal in all instances; None if it stays where it is written.
    """

    share: float
    rank: int | None = None


ShareOf = Callable[[tuple[Part, ...]], Sharing]
"""The sharing of a piece in a batch."""


@dataclass(slots=True)
class Context:
    """The surroundings of one part of a program's graph.

    Attributes:
        keep: ids of nodes that later parts may continue although they already have a child.
        ended: ids of nodes whose sequence no later part continues.
        is_open: whether later parts may follow.
        needed: ids of the nodes whose outcome is read, in this part or an earlier one; None if every node is needed.
        awaited: ids of the nodes that the program waits for; empty if it does not wait.
        free: texts of this part whose pieces have a free order, by node id; None for none.
        share_of: see `ShareOf`; None if the program is not part of a batch.
        known: nodes of earlier parts, which nodes of this part may equal; the nodes of this part are added.
        failed: nodes of earlier parts with errors that the program has seen, which nodes of this part do not equal.
        alone: paths of nodes that equal no others, because their outcomes are given.
        keeps_names: whether every named node must stay, because nothing reads the outcome of an equal one for it.
    """

    keep: Collection[int] = ()
    ended: Collection[int] = ()
    is_open: bool = False
    needed: Collection[int] | None = None
    awaited: Sequence[int] = ()
    free: Mapping[int, Pieces] | None = None
    share_of: ShareOf | None = None
    known: Known | None = None
    failed: Collection[int] = ()
    alone: Collection[str] = ()
    keeps_names: bool = False


@dataclass(slots=True)
class Savings:
    """The effect of the passes.

    Attributes:
        folded_nodes: text nodes that became part of another.
        constant_texts, constant_chars: texts without generated values, which are tokenized once per process.
        pruned_nodes, pruned_generations: nodes that no output needs, and the generations and selects among them.
        pruned_tokens: tokens that these could have generated.
        deferred_nodes: generations and selects that the program did not wait for at a break, so that they run after the others.
        merged_nodes, merged_generations, merged_tokens: the same for nodes that equal an earlier node.
        reordered_texts: texts whose pieces changed places.
        last_uses: generations and selects whose sequence nothing continues.
        kept_sequences: generations and selects whose sequence other nodes continue, or later parts may continue.
        path_tokens: estimated tokens of the longest path of a part; graph_tokens: estimated tokens of all nodes.
        left_out: ids of the nodes that were pruned from this part; a part that is open may need them later.
        aliases: the nodes that were merged, each with the node that it equals.
        orders: the parts of texts that were reordered, by node id.
    """

    folded_nodes: int = 0
    constant_texts: int = 0
    constant_chars: int = 0
    pruned_nodes: int = 0
    pruned_generations: int = 0
    pruned_tokens: int = 0
    deferred_nodes: int = 0
    merged_nodes: int = 0
    merged_generations: int = 0
    merged_tokens: int = 0
    reordered_texts: int = 0
    last_uses: int = 0
    kept_sequences: int = 0
    path_tokens: int = 0
    graph_tokens: int = 0
    left_out: frozenset[int] = frozenset()
    aliases: dict[int, int] = field(default_factory=dict)
    orders: dict[int, tuple[Part, ...]] = field(default_factory=dict)

    def add(self, later: Savings) -> None:
        """Add the effect on a later part of the same program."""
        for name, count in zip(_COUNTS, _counts(later), strict=True):
            if count:
                setattr(self, name, getattr(self, name) + count)
        if later.aliases:
            self.aliases.update(later.aliases)
        if later.orders:
            self.orders.update(later.orders)

    def lines(self, passes: Collection[str]) -> list[str]:
        """One line for each of the passes."""
        return [f"{name + ':':<8} {self.line(name)}" for name in passes]

    def line(self, name: str) -> str:
        """The effect of one pass, in words."""
        match name:
            case "fold":
                return (
                    f"{self.folded_nodes} text nodes joined; {self.constant_texts} constant texts "
                    f"({self.constant_chars} characters) tokenized once per process"
                )
            case "prune":
                return (
                    f"{self.pruned_nodes} nodes dropped ({self.pruned_generations} generations, up to "
                    f"{self.pruned_tokens} tokens); {self.deferred_nodes} generations run after the awaited ones"
                )
            case "merge":
                return (
                    f"{self.merged_nodes} nodes merged ({self.merged_generations} generations, up to "
                    f"{self.merged_tokens} tokens)"
                )
            case "reorder":
                return f"{self.reordered_texts} texts laid out anew, shared pieces first"
            case "retain":
                return (
                    f"pages of {self.kept_sequences} sequences kept until they are continued; "
                    f"pages of {self.last_uses} last uses freed first"
                )
            case "path":
                return f"longest path about {self.path_tokens} tokens of {self.graph_tokens} in all, run before shorter ones"
            case _:
                raise AssertionError(f"{name} is no pass")


_COUNTS = (
    *("folded_nodes", "constant_texts", "constant_chars", "pruned_nodes", "pruned_generations", "pruned_tokens"),
    *("deferred_nodes", "merged_nodes", "merged_generations", "merged_tokens", "reordered_texts", "last_uses"),
    "kept_sequences",
    *("path_tokens", "graph_tokens"),
)
_counts = attrgetter(*_COUNTS)
