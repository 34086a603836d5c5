"""The record of a session, from which pictures of its run are drawn. It is made when a picture is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rtlang.contract.errors import RtlangError
from rtlang.contract.graph.pure_functions import apply
from rtlang.contract.graph.value_text import text_of_plain
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord
from rtlang.contract.request_graph import Apply, Arg, Const, Node, Operand, Part, Ref, Repeat, Switch, name_of
from rtlang.lang.recordings.recording import Recording
from rtlang.lang.sessions.session import Session
from rtlang.lang.views.notebook import with_cell_names


def record_of(session: Session, partial: Mapping[tuple[int, int], str] | None = None) -> RunRecord:
    """The record of a run that has ended or is still running.

    Args:
        partial: the text so far of completions, by node and choice.
    """
    recording = session.recording
    recorded = tuple(recording.nodes.outer.values())
    nodes: dict[int, NodeRecord] = {}
    names: dict[int, str] = {}
    copies: dict[int, list[int]] = {}
    for node_id, outcome, ended_s in session.endings():
        nodes[node_id] = NodeRecord.of(outcome, ended_s)
        node = recording.nodes.node(node_id)
        name = name_of(node)
        if name is not None:
            names[node_id] = name
        if node.node_id != node_id or node_id in recording.nodes.inner:
            copies.setdefault(node.node_id, []).append(node_id)
    for node_id, name in recording.nodes.names_of_reasoning.items():
        names[node_id] = "reasoning" if name is None else f"reasoning of {name}"
    for attempts in recording.nodes.checked.values():
        names.update((each.node_id, each.path) for each in attempts)
    if isinstance(session.final, RtlangError):
        error = str(session.final)
        for node in recorded:  # that end with the graph
            if node.node_id not in nodes and not isinstance(node, Apply) and name_of(node) is not None:
                nodes[node.node_id] = NodeRecord(error=f"{type(session.final).__name__}: {error}")
    nodes.update(_applied(recorded, session))
    return RunRecord(
        tuple(session.submitted),
        recorded,
        nodes,
        {node_id: tuple(sorted(ran)) for node_id, ran in copies.items()},
        names,
        _node_paths(recording, session.outcome_ids),
        _paths(recorded, recording),
        dict(partial or {}),
        tuple(with_cell_names(str(each)) for each in recording.breaks),
        session.usage,
        session.seconds,
    )


def ended(record: RunRecord, error: BaseException | None, value: Any) -> RunRecord:
    """The record with the end of its run."""
    words = None if error is None else with_cell_names(f"{type(error).__name__}: {error}")
    return replace(record, error=words, returned=None if value is None else repr(value))


def _applied(recorded: tuple[Node, ...], session: Session) -> dict[int, NodeRecord]:
    """The values of pure functions, whose nodes end without an event."""
    values: dict[int, Any] = {}
    missing = object()

    def read(operand: Operand) -> Any:
        match operand:
            case Const():
                return operand.value
            case Ref() if operand.node_id in values:
                return values[operand.node_id]
            case Ref():
                outcome = session.recording.driver.outcome(operand.node_id)
                if outcome is None or isinstance(outcome, RtlangError):
                    return missing
                return outcome.completions[operand.choice].text if outcome.completions else outcome.value
            case Arg():
                return missing

    for node in recorded:
        if isinstance(node, Apply):
            args = [read(each) for each in node.args]
            if all(each is not missing for each in args):
                try:
                    values[node.node_id] = apply(node.function, args)
                except RtlangError:  # the node has failed
                    continue
    return {node_id: NodeRecord(value=text_of_plain(value)) for node_id, value in values.items()}


def _node_paths(recording: Recording, ended: Sequence[int]) -> dict[int, str]:
    """The paths of the nodes, by the ids under which they ran: those outside of blocks that were not dropped, and those that ended."""
    outer, dropped = recording.nodes.outer, recording.outcomes.dropped
    ids = sorted({*outer, *ended}) if recording.nodes.inner else list(outer)
    ids = [node_id for node_id in ids if node_id not in dropped] if dropped else ids
    found = ((node_id, recording.nodes.path_at(node_id)) for node_id in ids)
    return {node_id: path for node_id, path in found if path is not None}


def _paths(recorded: tuple[Node, ...], recording: Recording) -> dict[int, tuple[Part, ...]]:
    """The parts that finished branches and loops added to their sequences."""
    found: dict[int, tuple[Part, ...]] = {}
    for node in recorded:
        if isinstance(node, (Switch, Repeat)):
            try:
                parts = recording.outcomes.parts_of(node)
            except RtlangError:  # a node of it has failed
                continue
            if parts != (Ref(node.node_id),):
                found[node.node_id] = parts
    return found
