"""Records a generation with checks as nodes of the graph.

    generate       attempt 0, from the sequence as it is
    call           its checks, on the client; the value is None, or the message
    switch         None: the sequence goes on after the attempt
                   else: the turn with the message after the refused text; generate, call and switch again

The outermost switch has the name of the variable; its value is the accepted text. After a repair the sequence goes on with the accepted
text after the original prefix, unless refused attempts are kept. The last call of the last attempt fails with CheckError, which ends the
switch as it ends every node that depends on it. A program among the checks judges in a branch of its own, which continues the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rtlang.contract.errors import TraceError
from rtlang.contract.graph.host_calls import HostFunction
from rtlang.contract.graph.node_paths import mixed_seed
from rtlang.contract.params import MAX_SEED, SamplingParams
from rtlang.contract.request_graph import Block, Const, Operand, Part, Ref, RoleEnd, RoleStart, Switch
from rtlang.lang.lazy_values.values import Value, operand_of, text_value, user_location
from rtlang.lang.output_types.checks import CHAT_TURN, PLAIN_TURN, Check, Checks, check_call, turn_parts, validators_of
from rtlang.lang.program_state import expr as exprs
from rtlang.lang.program_state.expr import Expr, Gen, as_expr
from rtlang.lang.program_state.sequence import NodeSequence
from rtlang.lang.program_state.variables import generated
from rtlang.lang.recordings.recorded_nodes import Attempt, Control
from rtlang.lang.recordings.recording import Recording


class GrowingState(Protocol):
    """What a checked generation needs of a `StateRecord`."""

    recording: Recording
    sequence: NodeSequence

    def block(self, node_id: int, place: str) -> Any:
        """The state of a branch whose control node is `node_id`."""

    def record(self, expr: Expr) -> None:
        """Append an expression to the sequence."""


Generated = tuple[int, int | None]
"""The nodes of an attempt: its generation, and the reasoning before it, if any."""
Attempted = Callable[[int | None, SamplingParams, str], Generated]
"""Records an attempt after a node, with its parameters and its path."""


@dataclass(slots=True)
class _Found:
    """What was recorded: the attempts, and their nodes that are no variables of their own."""

    attempts: list[Attempt] = field(default_factory=list)
    internal: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CheckedGeneration:
    """One completion of a generation with checks.

    Args:
        state: to whose sequence it is recorded. The sequence itself is left as it is.
        name: of the variable in the graph.
        params: of the first attempt; for one completion.
        path: of the first attempt.
        attempt: see `Attempted`.
    """

    state: GrowingState
    gen: Gen
    name: str | None
    params: SamplingParams
    path: str
    attempt: Attempted

    def record(self) -> int:
        """Record all attempts; returns the id of the node that stands for the accepted value."""
        recording, head = self.state.recording, self.state.sequence.head
        found = _Found()
        first = self._attempted(head, 0)
        message = self._checked(first, 0, found)
        with recording.nodes.control(head, user_location()) as control:
            self._add_branches(control, head, first, message, 0, found)
        recording.nodes.add_checked(control.node_id, recording.nodes.types[first[0]], found.attempts, found.internal)
        return control.node_id

    @property
    def _checks(self) -> Checks:
        assert self.gen.checks is not None
        return self.gen.checks

    def _path(self, number: int) -> str:
        return f"{self.path}:repair[{number}]" if number else self.path

    def _attempted(self, parent: int | None, number: int) -> Generated:
        params = self.params
        if number and params.seed is not None:
            params = replace(params, seed=mixed_seed(params.seed, f"repair[{number}]") % (MAX_SEED + 1))
        made = self.attempt(parent, params, self._path(number))
        recording = self.state.recording
        recording.branch_points.add(made[0])
        recording.outcomes.note_handled(made[0])  # a refused text is no error of the run
        return made

    def _add_branches(
        self,
        control: Control,
        parent: int | None,
        attempted: Generated,
        message: int,
        number: int,
        found: _Found,
    ) -> None:
        """Record the blocks of the switch on the message of an attempt."""
        recording, node_id, checks = self.state.recording, attempted[0], self._checks
        with recording.nodes.in_block() as accepted:
            if number == 0 or checks.keep == "all":
                end = recording.add_text(node_id, ("",))
            else:
                texts = tuple(Ref(each) for each in reversed(attempted) if each is not None)
                end = recording.add_text(control.node_id, texts)
        cases = ((None, Block(tuple(accepted), end, Ref(node_id))),)
        repaired = None
        if number < checks.repair:
            with recording.nodes.in_block() as nodes:
                turn_end = self._add_turn(control, node_id, message, number + 1)
                again = self._attempted(turn_end, number + 1)
                next_message = self._checked(again, number + 1, found)
                with recording.nodes.control(control.node_id, user_location()) as inner:
                    self._add_branches(inner, control.node_id, again, next_message, number + 1, found)
            found.internal.append(inner.node_id)
            repaired = Block(tuple(nodes), inner.node_id, Ref(inner.node_id))
        name = None if number else self.name
        control.node = Switch(
            control.node_id, parent, Ref(message), cases, repaired, name, f"{self._path(number)}:value"
        )

    def _add_turn(self, control: Control, node_id: int, message: int, number: int) -> int | None:
        """Record the turn after a refused attempt; returns its last node."""
        state, template = self.state, self._checks.on_repair
        recording, role = state.recording, state.sequence.role
        is_chat = role == "assistant"
        if template is None:
            template = CHAT_TURN if is_chat else PLAIN_TURN
        what = f"the message of the check of {self.gen.name or 'a generation'}"
        said = text_value(recording, (Ref(message),), what)
        if isinstance(template, str):
            texts = turn_parts(template)
            pieces: list[str | Value] = [texts[0]]
            for text in texts[1:]:
                pieces += (said, text)
            turn: Expr = exprs.Pieces(tuple(pieces))
        else:
            turn = as_expr(template(said), "the value of on_repair")
        inner = state.block(control.node_id, self._path(number))
        sequence: NodeSequence = inner.sequence
        sequence.head = node_id
        if not is_chat:
            inner.record(turn)
            return sequence.head
        sequence.append([RoleEnd()])
        sequence.role = None
        is_text = all(isinstance(each, (exprs.Pieces, exprs.FreeText)) for each in exprs.items_of(turn))
        inner.record(exprs.Role(RoleStart("user"), exprs.items_of(turn)) if is_text else turn)
        sequence.append([RoleStart("assistant")])
        return sequence.head

    def _checked(self, attempted: Generated, number: int, found: _Found) -> int:
        """Record the checks of an attempt; returns the node of the message."""
        node_id, recording, checks = attempted[0], self.state.recording, self._checks
        kind = recording.nodes.types[node_id]
        name = self.name or f"node {node_id}"
        groups = checks.groups()
        before: Check | None = None
        operands: tuple[Operand, ...] = (Ref(node_id),)
        found.internal.extend(each for each in attempted if each is not None)
        message = node_id
        for place, (functions, judge) in enumerate(groups):
            is_end = place == len(groups) - 1 and number == checks.repair
            run = check_call(name, kind, functions, before, number + 1 if is_end else None)
            called = (*validators_of(kind), *functions) if before is None else functions
            message = self._add_call(operands, run, f"{self._path(number)}:check", called)
            found.internal.append(message)
            if judge is not None:
                verdict = self._judged(judge, node_id, message, number)
                found.internal.append(verdict)
                before, operands = judge, (Ref(node_id), Ref(verdict))
        found.attempts.append(Attempt(self._path(number), node_id, attempted[1], message))
        return message

    def _add_call(
        self, operands: tuple[Operand, ...], run: HostFunction, path: str, functions: Sequence[Callable[..., Any]] = ()
    ) -> int:
        """Record a call of check functions. They only read their value, so the call is pure and may be repeated."""
        recording, name = self.state.recording, f"check {self.gen.name or ''}".rstrip()
        return recording.add_call(name, operands, run, recording.nodes.new_path("", path), "pure", functions)

    def _judged(self, judge: Any, node_id: int, message: int, number: int) -> int:
        """Record a program that judges an attempt, unless the checks before it have refused; returns the node of its verdict."""
        recording, path = self.state.recording, f"{self._path(number)}:judge"
        path = recording.nodes.new_path("", path)
        kind = recording.nodes.types[node_id]
        what = f"the value of {self.gen.name or 'a generation'}"
        value = generated(recording, node_id, 0, what, kind.constraint, is_text=kind.is_text).value
        with recording.nodes.control(node_id, user_location()) as control:
            inner = self.state.block(control.node_id, path)
            with recording.nodes.in_block() as nodes:
                if inner.sequence.role is not None:
                    inner.sequence.append([RoleEnd()])
                    inner.sequence.role = None
                verdict = _operand(judge._rt_judge(inner, value), recording, judge.name)
            head = inner.sequence.head
            block = Block(tuple(nodes), None if head == control.node_id else head, verdict)
            refused = Block((), None, Ref(message))
            control.node = Switch(control.node_id, node_id, Ref(message), ((None, block),), refused, path=path)
        return control.node_id


def _operand(verdict: object, recording: Recording, name: str) -> Operand:
    """What a program returned as an operand."""
    if verdict is None or isinstance(verdict, (bool, str)):
        return Const(verdict)
    if isinstance(verdict, Value):
        found = operand_of(verdict, recording)
        parts: tuple[Part, ...] | None = verdict._rt_parts
        if found is None and parts is not None and len(parts) == 1 and isinstance(parts[0], Ref):
            found = parts[0]
        if found is not None:
            return found
    raise TraceError(
        f"the check {name} returned {verdict!r:.80}: expected None, True, False, a message, or a lazy value of these",
        user_location(),
    )
