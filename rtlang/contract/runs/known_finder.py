"""Finds the outcomes that an earlier run has for the nodes of a new one, which may be of an edited program.

Outcomes are found by the keys of nodes (`node_keys`): a node whose inputs are the same has the same key. A node whose outcome depends
on the run, and whose key is not there, takes over the outcome of a recorded node with the same content that has no counterpart any more:
its variable was renamed. Nodes that build on it then have the keys that they had before. The outcome of an edited node is given; its key
says so, and so nothing that builds on it is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import NodeFinished
from rtlang.contract.graph.nodes import Decide, Node, path_of
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.node_keys import Content, Keys, digest


@dataclass(frozen=True, slots=True)
class MovedNode:
    """A recorded node: its key, and its place (`Keys.place_of`)."""

    key: bytes
    place: str | int


class OutcomeStore(Protocol):
    """The outcomes of earlier runs."""

    def get(self, key: bytes, place: str | int) -> KnownOutcome | None:
        """The outcome of a node with this key; that of the node in the same place, if there are several."""

    def cut(self, keys: Keys, node_id: int) -> KnownOutcome | None:
        """The outcome of a node that a decision ended before it was whole."""

    def moved(self, content: Content) -> Sequence[MovedNode]:
        """The recorded nodes that a node of this content may have been before an edit, the likeliest first."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A node whose outcome is given.

    Attributes:
        path: of the node, or of the outermost branch or loop around it.
        offset: the difference between their ids; 0 for the node itself.
        outcome: the outcome.
    """

    path: str
    offset: int
    outcome: KnownOutcome


@dataclass(frozen=True, slots=True)
class Base:
    """What a new run takes over.

    Attributes:
        outcomes: the outcomes of an earlier run.
        edits: the nodes whose outcomes are given instead.
    """

    outcomes: RunOutcomes
    edits: tuple[Edit, ...] = ()


class KnownFinder:
    """Finds the outcomes of one run's nodes. Used by one thread at a time.

    Args:
        keys: the keys of the run; the finder adds its nodes.
        has_budget: whether the run has a budget, with which outcomes that a decision has cut short are not taken.

    Attributes:
        key_of: the keys of the nodes so far.
    """

    def __init__(
        self, keys: Keys, store: OutcomeStore, edits: Sequence[Edit] = (), *, has_budget: bool = False
    ) -> None:
        self.keys, self.key_of = keys, dict[int, bytes]()
        self._store, self._has_budget = store, has_budget
        self._edits = {edit.path: edit for edit in edits}
        self._taken: set[bytes] = set()
        self._found: dict[int, dict[int, KnownOutcome]] = {}  # by node, which may be submitted again

    def add(self, nodes: Sequence[Node]) -> dict[int, KnownOutcome]:
        """The outcomes of nodes that follow those added before, and of the nodes that their blocks may start, by id.

        Nodes may be added again, if they were not accepted.
        """
        known: dict[int, KnownOutcome] = {}
        added: dict[int, bytes] = {}
        for index, node in enumerate(nodes):
            if node.node_id in self._found:
                known.update(self._found[node.node_id])
                continue
            keys = self.keys.add([node])
            if not keys:
                continue
            found_here = self._found[node.node_id] = {}
            place, moved = self.keys.place_of(node.node_id), self._moved(keys[node.node_id], nodes[index:])
            if moved is not None:
                keys, place = self.keys.set(node, moved.key), moved.place
            edit = self._edits.get(path_of(node) or "")
            for node_id, key in keys.items():
                offset = node_id - node.node_id
                if edit is None or 0 < offset < edit.offset:
                    found = self._store.get(key, f"{place}+{offset}" if offset else place)
                    if found is not None:
                        found_here[node_id] = found
            if edit is not None:
                keys = self.keys.set(node, digest([keys[node.node_id], "edited", edit.offset, words_of(edit.outcome)]))
                found_here[node.node_id + edit.offset] = edit.outcome
            known.update(found_here)
            self._taken.update(keys.values())
            added.update(keys)
        self.key_of.update(added)
        self._add_cut(nodes, added, known)
        return known

    def _moved(self, key: bytes, nodes: Sequence[Node]) -> MovedNode | None:
        """The recorded node that the first of these nodes was before an edit; `key` is its key."""
        node = nodes[0]
        content = self.keys.content_of(node.node_id)
        if content is None or self._store.get(key, content.path) is not None:
            return None
        free = [each for each in self._store.moved(content) if each.key not in self._taken]
        if not free:
            return None
        has_counterpart = set(self.keys.copy().add(nodes).values())
        return next((each for each in free if each.key not in has_counterpart), None)

    def _add_cut(self, nodes: Sequence[Node], node_ids: Iterable[int], known: dict[int, KnownOutcome]) -> None:
        """Add the outcomes that decisions have cut short, where the same decisions are made again."""
        if self._has_budget or any(isinstance(node, Decide) and node.node_id not in known for node in nodes):
            return
        for node_id in node_ids:
            if node_id not in known:
                found = self._store.cut(self.keys, node_id)
                if found is not None:
                    known[node_id] = found


@dataclass(slots=True)
class RunOutcomes:
    """The outcomes of one finished run, in memory: an `OutcomeStore`. Plain data that can be pickled.

    Only whole outcomes are kept: failed nodes are computed again. Their usage is zero, because nothing is computed for them.

    Attributes:
        seed: the seed that the run was given; None if it was given none.
        model: the identity of its model, if it is known.
    """

    seed: int | None
    model: str | None
    _whole: dict[bytes, dict[str | int, KnownOutcome]] = field(default_factory=dict)
    _cut: dict[bytes, KnownOutcome] = field(default_factory=dict)
    _contents: dict[bytes, list[tuple[Content, MovedNode]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        nodes: Sequence[Node],
        outcomes: Mapping[int, NodeFinished | RtlangError],
        seed: int | None,
        model: str | None,
    ) -> RunOutcomes:
        """The outcomes of the submitted nodes of a run, by the ids under which they ran."""
        made = cls(seed, model)
        keys = made.new_keys(None)
        for node in nodes:
            added = keys.add([node])
            content, place = keys.content_of(node.node_id), keys.place_of(node.node_id)
            for node_id, key in added.items():
                made._add(key, keys.place_of(node_id), outcomes.get(node_id))
            if content is not None and node.node_id in added:
                moved = MovedNode(added[node.node_id], place)
                if moved.key in made._whole:
                    made._contents.setdefault(content.key, []).append((content, moved))
        return made

    def new_keys(self, seed: int | None) -> Keys:
        """The keys of a run with this seed. Without one it has the seed of this run, or noise of its own where this run had."""
        seed = self.seed if seed is None else seed
        return Keys({}, seed)

    def _add(self, key: bytes, place: str | int, outcome: NodeFinished | RtlangError | None) -> None:
        if not isinstance(outcome, NodeFinished) or outcome.max_tokens is not None:
            return
        known = KnownOutcome(replace(outcome, usage=Usage(), drafts=(), account=None))
        if any(each.finish_reason is FinishReason.CANCELLED for each in outcome.completions):
            self._cut[key] = known
        else:
            self._whole.setdefault(key, {})[place] = known

    def get(self, key: bytes, place: str | int) -> KnownOutcome | None:
        """See `OutcomeStore`. Nodes of one key have different outcomes only if some were edited; these are found in their places only."""
        found = self._whole.get(key)
        if not found:
            return None
        if place in found:
            return found[place]
        first, *others = found.values()
        return first if all(words_of(each) == words_of(first) for each in others) else None

    def cut(self, keys: Keys, node_id: int) -> KnownOutcome | None:
        """See `OutcomeStore`."""
        key = keys.key_of(node_id)
        return None if key is None else self._cut.get(key)

    def moved(self, content: Content) -> Sequence[MovedNode]:
        """See `OutcomeStore`: the node in the same place, or else the only one anywhere."""
        found = self._contents.get(content.key, ())
        near = [moved for each, moved in found if each.in_place == content.in_place]
        return near or ([found[0][1]] if len(found) == 1 else ())


def words_of(outcome: KnownOutcome) -> Any:
    """The texts and the value of an outcome, as plain data."""
    if isinstance(outcome.end, RtlangError):
        return outcome.end.message
    return [[each.text for each in outcome.end.completions], outcome.end.value]
