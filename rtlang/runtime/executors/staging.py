"""Holds back the operands of votes that may not be needed.

Samples of one question are decoded side by side and end together, so cancelling the late ones saves little. A vote therefore starts only as
many operands as can decide it, and the others as the known values make them necessary. An operand is held back only if nothing but the
vote needs it, and if its own work has not begun. A vote of more than `MAX_STAGED` holds nothing back: what it may hold is found anew
for each value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from rtlang.contract.request_graph import Decide, Generate, Node, Ref
from rtlang.runtime.executors.decision_state import DecisionState
from rtlang.runtime.nodes.slots import operand_slots
from rtlang.runtime.nodes.uses import Uses

MAX_STAGED = 256
"""Operands of a vote that holds some of them back."""


@dataclass(slots=True)
class _Stage:
    """The operands that a vote holds back, in the order in which they will start, and the work that only they need."""

    vote: Decide
    operands: list[int]
    node_ids: set[int] = field(default_factory=set)
    choices: set[tuple[int, int]] = field(default_factory=set)

    @property
    def held_ids(self) -> set[int]:
        """The nodes that wait, or of which completions wait."""
        return self.node_ids | {node_id for node_id, _ in self.choices}


class Staging:
    """The operands that the running votes of a graph hold back.

    Args:
        uses, is_output: see `Uses.needless`.
        begun: the nodes that have started.
    """

    def __init__(self, uses: Uses, is_output: Callable[[int], bool], begun: Collection[int]) -> None:
        self._uses, self._is_output, self._begun = uses, is_output, begun
        self._stages: dict[int, _Stage] = {}
        self._new: list[int] = []  # votes that were never updated
        self._holders: dict[int, set[int]] = {}  # the votes that hold a node or choices of it back
        self._parked: set[int] = set()
        self._parked_choices: set[tuple[int, int]] = set()
        self._freed: set[int] = set()  # nodes that a vote has let go, since `released` and `released_choices`

    def due(self, used: Iterable[int]) -> list[int]:
        """The votes to update after new nodes, which use these nodes."""
        found = dict.fromkeys(self._new)
        self._new.clear()
        if self._holders:
            for node_id in used:
                found.update(dict.fromkeys(self._holders.get(node_id, ())))
        return [vote_id for vote_id in found if vote_id in self._stages]

    def add(self, vote: Decide) -> None:
        """A vote whose operands may be held back from the next `update` on."""
        operands = [index for index, operand in enumerate(vote.of) if isinstance(operand, Ref)]
        if vote.how == "vote" and 1 < len(operands) <= MAX_STAGED:
            self._stages[vote.node_id] = _Stage(vote, operands)
            self._new.append(vote.node_id)

    def num_operands(self, vote_id: int) -> int:
        """The operands that a vote looks at for each one that becomes known."""
        stage = self._stages.get(vote_id)
        return 0 if stage is None else len(stage.operands)

    def is_due(self, vote_id: int, state: DecisionState, *, is_over: bool) -> bool:
        """Whether a new value, or the end of the vote, changes what it holds back."""
        stage = self._stages.get(vote_id)
        if stage is None:
            return False
        held = [index for index in stage.operands if state.is_open(index)]
        return is_over or len(held) < len(stage.operands) or state.num_needed(held) > 0

    def update(self, vote_id: int, state: DecisionState) -> None:
        """Find again which operands a vote holds back, because of a new node or a known value."""
        before = self._stages[vote_id].held_ids
        self._find(vote_id, state)
        stage = self._stages.get(vote_id)
        self._note(vote_id, before, set() if stage is None else stage.held_ids)

    def _note(self, vote_id: int, before: set[int], now: set[int]) -> None:
        for node_id in before - now:
            self._holders[node_id].discard(vote_id)
            if not self._holders[node_id]:
                del self._holders[node_id]
        self._freed |= before
        for node_id in now - before:
            self._holders.setdefault(node_id, set()).add(vote_id)

    def _find(self, vote_id: int, state: DecisionState) -> None:
        stage = self._stages[vote_id]
        stage.operands = [index for index in stage.operands if state.is_open(index)]
        while stage.operands:
            held = set(stage.operands)
            others = operand_slots(operand for index, operand in enumerate(stage.vote.of) if index not in held)
            lost = operand_slots(stage.vote.of[index] for index in held)
            stage.node_ids, stage.choices = self._uses.needless(lost, self._is_output, vote_id, others)
            stage.choices = {
                slot for slot in stage.choices if slot[0] not in self._begun or slot in self._parked_choices
            }
            stage.choices = {slot for slot in stage.choices if _is_divisible(self._uses.running[slot[0]])}
            kept = [index for index in stage.operands if self._is_held(stage, index)]
            if kept == stage.operands:
                num_needed = state.num_needed(kept)
                if not num_needed:
                    return
                kept = kept[num_needed:]
            stage.operands = kept
        del self._stages[vote_id]

    def _is_held(self, stage: _Stage, index: int) -> bool:
        operand = stage.vote.of[index]
        assert isinstance(operand, Ref)
        slot = (operand.node_id, operand.choice)
        return slot in stage.choices or (operand.node_id in stage.node_ids and operand.node_id not in self._begun)

    def end(self, vote_id: int) -> None:
        """Hold nothing back for a vote any more."""
        stage = self._stages.pop(vote_id, None)
        if stage is not None:
            self._note(vote_id, stage.held_ids, set())

    def park(self, node_id: int) -> bool:
        """Whether a node that is ready has to wait; it is then returned by `released` once it need not wait any more."""
        is_held = any(node_id in self._stages[each].node_ids for each in self._holders.get(node_id, ()))
        if is_held:
            self._parked.add(node_id)
        return is_held

    def park_choices(self, node_id: int) -> set[int]:
        """The completions of a starting node that have to wait, until `released_choices` returns them."""
        held = self._held_choices(node_id)
        self._parked_choices |= held
        return {choice for _, choice in held}

    def _held_choices(self, node_id: int) -> set[tuple[int, int]]:
        holders = self._holders.get(node_id, ())
        return {slot for each in holders for slot in self._stages[each].choices if slot[0] == node_id}

    def released(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The nodes, and the completions, that waited and need not any more."""
        freed, self._freed = self._freed, set()
        nodes = [
            node_id
            for node_id in sorted(self._parked & freed)
            if not any(node_id in self._stages[each].node_ids for each in self._holders.get(node_id, ()))
        ]
        choices = []
        for node_id in freed.intersection(slot[0] for slot in self._parked_choices) if self._parked_choices else ():
            held = self._held_choices(node_id)
            choices += [slot for slot in self._parked_choices if slot[0] == node_id and slot not in held]
        self._parked.difference_update(nodes)
        self._parked_choices.difference_update(choices)
        return nodes, sorted(choices)


def _is_divisible(node: Node) -> bool:
    """Whether completions of a node can start one after the other: the first one's request also scores the prompt."""
    return isinstance(node, Generate) and node.params.prompt_logprobs is None
