"""Holds back the operands of votes that may not be needed.

Samples of one question are decoded side by side and end together, so cancelling the late ones saves little. A vote therefore starts only as
many operands as can decide it, and the others as the known values make them necessary. An operand is held back only if nothing but the
vote needs it, and if its own work has not begun.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from rtlang.contract.graph import Decide, Generate, Node, Ref
from rtlang.runtime.nodes.ballot import Ballot
from rtlang.runtime.nodes.losers import needless, operand_slots


@dataclass(slots=True)
class _Stage:
    """The operands that a vote holds back, in the order in which they will start, and the work that only they need."""

    vote: Decide
    operands: list[int]
    node_ids: set[int] = field(default_factory=set)
    choices: set[tuple[int, int]] = field(default_factory=set)


class Staging:
    """The operands that the running votes of a graph hold back."""

    def __init__(self) -> None:
        self._stages: dict[int, _Stage] = {}
        self._parked: set[int] = set()
        self._parked_choices: set[tuple[int, int]] = set()

    @property
    def vote_ids(self) -> list[int]:
        """The votes that hold something back."""
        return list(self._stages)

    def add(self, vote: Decide) -> None:
        """A vote whose operands may be held back from the next `update` on."""
        operands = [index for index, operand in enumerate(vote.of) if isinstance(operand, Ref)]
        if vote.how == "vote" and len(operands) > 1:
            self._stages[vote.node_id] = _Stage(vote, operands)

    def is_due(self, vote_id: int, ballot: Ballot, *, is_over: bool) -> bool:
        """Whether a new value, or the end of the vote, changes what it holds back."""
        stage = self._stages.get(vote_id)
        if stage is None:
            return False
        held = [index for index in stage.operands if ballot.is_open(index)]
        return is_over or len(held) < len(stage.operands) or ballot.num_needed(held) > 0

    def update(
        self,
        vote_id: int,
        ballot: Ballot,
        running: Mapping[int, Node],
        parts: Mapping[int, Collection[int]],
        outputs: Collection[int],
        begun: Collection[int],
    ) -> None:
        """Find again what a vote holds back, because of a new node or a known value.

        Args:
            running, parts, outputs: as for `needless`; the vote itself may be among the running nodes.
            begun: the nodes that have started.
        """
        stage = self._stages[vote_id]
        stage.operands = [index for index in stage.operands if ballot.is_open(index)]
        while stage.operands:
            held = set(stage.operands)
            others = tuple(operand for index, operand in enumerate(stage.vote.of) if index not in held)
            seen = {**running, vote_id: replace(stage.vote, of=others, need=None)}
            lost = operand_slots(stage.vote.of[index] for index in held)
            stage.node_ids, stage.choices = needless(lost, seen, parts, outputs)
            stage.choices = {slot for slot in stage.choices if slot[0] not in begun or slot in self._parked_choices}
            stage.choices = {slot for slot in stage.choices if _is_divisible(running[slot[0]])}
            kept = [index for index in stage.operands if self._is_held(stage, index, begun)]
            if kept == stage.operands:
                num_needed = ballot.num_needed(kept)
                if not num_needed:
                    return
                kept = kept[num_needed:]
            stage.operands = kept
        del self._stages[vote_id]

    def _is_held(self, stage: _Stage, index: int, begun: Collection[int]) -> bool:
        operand = stage.vote.of[index]
        assert isinstance(operand, Ref)
        slot = (operand.node_id, operand.choice)
        return slot in stage.choices or (operand.node_id in stage.node_ids and operand.node_id not in begun)

    def end(self, vote_id: int) -> None:
        """Hold nothing back for a vote any more."""
        self._stages.pop(vote_id, None)

    def park(self, node_id: int) -> bool:
        """Whether a node that is ready has to wait; it is then returned by `released` once it need not wait any more."""
        is_held = any(node_id in stage.node_ids for stage in self._stages.values())
        if is_held:
            self._parked.add(node_id)
        return is_held

    def park_choices(self, node_id: int) -> set[int]:
        """The completions of a starting node that have to wait, until `released_choices` returns them."""
        held = {slot for stage in self._stages.values() for slot in stage.choices if slot[0] == node_id}
        self._parked_choices |= held
        return {choice for _, choice in held}

    def released(self) -> list[int]:
        """The nodes that waited and need not any more."""
        found = sorted(self._parked - {each for stage in self._stages.values() for each in stage.node_ids})
        self._parked.difference_update(found)
        return found

    def released_choices(self) -> list[tuple[int, int]]:
        """The completions that waited and need not any more."""
        found = sorted(self._parked_choices - {slot for stage in self._stages.values() for slot in stage.choices})
        self._parked_choices.difference_update(found)
        return found


def _is_divisible(node: Node) -> bool:
    """Whether completions of a node can start one after the other: the first one's request also scores the prompt."""
    return isinstance(node, Generate) and node.params.prompt_logprobs is None
