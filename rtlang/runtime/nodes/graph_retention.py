"""Keeps the pages of a graph's sequences while nodes may continue them, and makes them the first to be evicted afterwards.

A sequence is needed while a node that continues it has not ended: a generation that waits or runs, or text that waits for a tool. It is
needed as well while a running block ends with it, and, if its lifetime is the program, as long as the graph is open. Each needed sequence
has a hold on what is stored of it; the hold of a continuation is taken before that of its origin ends.

Text is not computed before a generation behind it is, so text counts as part of the sequence that it continues. Only nodes with a lifetime
are kept; in a graph without such marks nothing is held and nothing is given up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtlang.contract.request_graph import Generate, Node, Repeat, Select, Switch, Text, parent_of
from rtlang.engine.program_pages import Hold, ProgramPages
from rtlang.runtime.texts.token_sequence import TokenSequence


@dataclass(slots=True, eq=False)
class _Kept:
    """The sequence of a generation, select or control node, or the text at the start of a sequence.

    Attributes:
        origin: the sequence that it continues.
        may_go_on: whether later parts of the graph may continue it.
        num_open: nodes that continue it and have not ended, and running blocks that end with it.
        sequence: its tokens, once it has ended.
        num_given: its tokens before the first generated one; None if none is generated.
    """

    origin: _Kept | None
    may_go_on: bool
    num_open: int = 0
    sequence: TokenSequence | None = None
    num_given: int | None = None
    hold: Hold | None = None


class GraphRetention:
    """The needed sequences of one graph. Used on the engine thread only.

    Args:
        pages: the graph's access to the cache; None keeps nothing.
        is_open: whether nodes may be added later.
    """

    def __init__(self, pages: ProgramPages | None, is_open: bool) -> None:
        self._pages, self._is_open = pages, is_open
        self._is_marked = False  # whether a node had a lifetime
        self._kept: dict[int, _Kept] = {}  # by node; text behind a sequence has the entry of the sequence
        self._block_ends: dict[int, _Kept] = {}  # by control node

    def add(self, nodes: Sequence[Node]) -> None:
        """Nodes were added to the graph, each after the node that it continues."""
        if self._pages is None:
            return
        for node in nodes:
            origin = self._origin(node)
            if origin is not None:
                origin.num_open += 1
            match node:
                case Text():
                    self._kept[node.node_id] = _Kept(None, False) if origin is None else origin
                case Generate() | Select():
                    lifetime = node.marks.lifetime
                    self._is_marked = self._is_marked or lifetime != "unknown"
                    self._kept[node.node_id] = _Kept(origin, lifetime == "program")
                case Switch() | Repeat():
                    self._kept[node.node_id] = _Kept(origin, True)

    def run_block(self, control_id: int, end_id: int | None) -> None:
        """A control node has started a block that ends with the sequence of the node `end_id`; its nodes are added."""
        before = self._block_ends.pop(control_id, None)
        end = None if end_id is None else self._kept.get(end_id)
        if end is not None:
            end.num_open += 1
            self._block_ends[control_id] = end
        if before is not None:
            self._leave(before, end)

    def end(
        self, node: Node, num_before: int, sequence: TokenSequence | None, computed: Sequence[Sequence[int]] = ()
    ) -> None:
        """A node has ended.

        Args:
            num_before: tokens of the sequence that it continues.
            sequence: the sequence behind it; None if it failed.
            computed: the tokens of its requests.
        """
        kept, origin = self._kept.get(node.node_id), self._origin(node)
        if kept is None:
            return
        if kept is not origin and kept.sequence is None:
            kept.sequence = sequence
            if not isinstance(node, Text):
                is_given = origin is None or origin.num_given is None
                kept.num_given = num_before if is_given else origin.num_given  # type: ignore[union-attr]
                self._refresh(kept)
        block_end = self._block_ends.pop(node.node_id, None)
        if block_end is not None:
            self._leave(block_end, kept)
        if origin is not None:
            self._leave(origin, kept, gives_up=not computed)
            if computed:
                self._refresh(origin)
        for token_ids in computed:
            self._give_up(token_ids, kept)

    def close(self) -> None:
        """No nodes will be added any more."""
        self._is_open = False
        for kept in self._entries():
            if kept.may_go_on and not kept.num_open:
                self._let_go(kept)

    def end_graph(self) -> None:
        """The graph has ended: nothing is needed any more."""
        self._is_open = False
        needed = [kept for kept in self._entries() if kept.hold is not None or self._is_needed(kept)]
        for kept in needed:
            kept.num_open, kept.may_go_on = 0, False
            if kept.hold is not None:
                self._release(kept.hold)
        for kept in needed:
            if kept.sequence is not None and kept.num_given is not None:
                self._give_up(kept.sequence.token_ids, kept)
        self._kept.clear()
        self._block_ends.clear()

    def _entries(self) -> Iterator[_Kept]:
        return iter(dict.fromkeys(self._kept.values()))

    def _origin(self, node: Node) -> _Kept | None:
        parent = parent_of(node)
        return None if parent is None else self._kept.get(parent)

    def _is_needed(self, kept: _Kept) -> bool:
        return kept.num_open > 0 or (kept.may_go_on and self._is_open)

    def _leave(self, kept: _Kept, heir: _Kept | None, *, gives_up: bool = True) -> None:
        """Something that needed a sequence has ended; `heir` continues it. `gives_up`: its pages are not given up otherwise."""
        kept.num_open -= 1
        if kept is heir or self._is_needed(kept):
            return
        is_continued = heir is not None and self._is_needed(heir)
        if is_continued and heir is not None and heir.hold is None:
            heir.hold, kept.hold = kept.hold, None  # there is too little room for one of its own
        self._let_go(kept, gives_up=gives_up and not is_continued)

    def _let_go(self, kept: _Kept, *, gives_up: bool = True) -> None:
        """End the hold of a sequence that is not needed any more."""
        hold, kept.hold = kept.hold, None
        if hold is not None:
            self._release(hold)
        if gives_up and kept.sequence is not None and kept.num_given is not None:
            self._give_up(kept.sequence.token_ids, kept)

    def _refresh(self, kept: _Kept) -> None:
        """Hold what is stored of a needed sequence, unless most of it is held already."""
        if not self._is_marked or self._pages is None or kept.sequence is None or not self._is_needed(kept):
            return
        hold = kept.hold
        if hold is None or not hold.is_granted or hold.num_tokens + self._pages.page_size < len(kept.sequence):
            found = self._pages.hold(kept.sequence.token_ids)
            if found is not None:
                kept.hold = found
                if hold is not None:
                    self._release(hold)

    def _give_up(self, token_ids: Sequence[int], kept: _Kept) -> None:
        """Give up the pages of a sequence behind what is given in it, and behind the last sequence before it that is needed."""
        if not self._is_marked or self._pages is None:
            return
        start = kept.num_given or 0
        at: _Kept | None = kept
        while at is not None:
            if at.sequence is not None and self._is_needed(at):
                start = max(start, len(at.sequence))
                break
            at = at.origin
        if start < len(token_ids) - 1:  # the last token is not computed
            self._pages.give_up(token_ids, start)

    def _release(self, hold: Hold) -> None:
        assert self._pages is not None
        self._pages.release(hold)
