"""Finds the nodes that are read once a body has ended: its outputs.

By default everything that a result can show is an output: each named generation, the returned value, the variables, and the sequences of
the program and of its forks. With `outputs=` only the variables with these names, the nodes with these paths or in these places, and the
returned value are.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from rtlang.contract.errors import TraceError
from rtlang.contract.request_graph import Generate, Select, Switch, choices_of, name_of, parent_of
from rtlang.lang.lazy_values.values import Value, needs_of
from rtlang.lang.program_state.state import State, record_of
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.program_state.variables import Generated, Plain, TextVariable
from rtlang.lang.recordings.recording import Recording
from rtlang.lang.sessions.compilation import is_output


def needed_nodes(state: StateRecord, returned: object, outputs: Collection[str] | None) -> set[int] | None:
    """Ids of the nodes that are read after the body; None if all are.

    Raises:
        TraceError: `outputs` has an item that is no variable and no path.
    """
    recording = state.recording
    if outputs is None:
        if not recording.has_unnamed:
            return None
        needed = {node.node_id for node in _generations(recording) if node.name is not None}
        heads = [state.sequence.head, *(each.head for each in recording.fork_sequences)]
        needed.update(head for head in heads if head is not None)
        needed.update(_needs([*state.variables.values(), returned], set()))
        needed = _outside_blocks(recording, needed)
        return needed | _side_branches(recording, needed)
    needed = set(_needs(returned, set()))
    missing = dict.fromkeys(outputs)
    for node in recording.nodes.outer.values():
        found = [name for name in outputs if is_output(node, name)]
        if found:
            needed.add(node.node_id)
            missing = {name: None for name in missing if name not in found}
    for name in outputs:
        if name in state.variables:
            needed.update(_needs(state.variables[name], set()))
            missing.pop(name, None)
    for name in missing:
        nodes = (*_generations(recording), *recording.nodes.inner.values())
        names = dict.fromkeys([*state.variables, *(known for node in nodes if (known := name_of(node)))])
        raise TraceError(
            f"outputs: there is no variable and no path {name!r}; existing variables: {', '.join(names) or 'none'}"
        )
    return _outside_blocks(recording, needed)


def asked_nodes(state: StateRecord, returned: object, outputs: Collection[str] | None) -> set[int]:
    """Ids of the nodes that the returned value holds or that are variables in `outputs`: no decision ends them."""
    recording = state.recording
    if not recording.has_decisions:
        return set()
    asked = set(_needs(returned, set()))
    for name in outputs or ():
        if name in state.variables:
            asked.update(_needs(state.variables[name], set()))
        asked.update(each.node_id for each in recording.nodes.outer.values() if is_output(each, name))
    return _outside_blocks(recording, asked)


def _outside_blocks(recording: Recording, node_ids: set[int]) -> set[int]:
    """The nodes, where those within a branch or a loop are replaced by the control node, whose id is the last one before theirs."""
    nodes = recording.nodes.outer
    if all(node_id in nodes for node_id in node_ids):
        return node_ids
    outer = sorted(nodes)
    return {node_id if node_id in nodes else outer[bisect(outer, node_id) - 1] for node_id in node_ids}


def _generations(recording: Recording) -> Iterator[Generate | Select | Switch]:
    """The generations outside of blocks; of one with checks, the node that stands for its value."""
    checked = recording.nodes.checked
    for node in recording.nodes.outer.values():
        if isinstance(node, (Generate, Select)) or (isinstance(node, Switch) and node.node_id in checked):
            yield node


def _side_branches(recording: Recording, needed: set[int]) -> set[int]:
    """Generations with n > 1 beside a needed sequence: they are read by position."""
    seen: set[int] = set()
    for start in needed:
        node_id: int | None = start
        while node_id is not None and node_id not in seen:
            seen.add(node_id)
            node_id = parent_of(recording.nodes.outer[node_id])
    return {
        node.node_id
        for node in _generations(recording)
        if choices_of(node) > 1 and (node.parent is None or node.parent in seen)
    }


def _needs(item: Any, seen: set[int]) -> Iterator[int]:
    """The nodes that the values in an object need; looks into containers, dataclasses and objects with attributes, each once."""
    todo: list[Any] = [item]
    while todo:
        each = todo.pop()
        if isinstance(each, Value):
            yield from needs_of(each)
            continue
        if each is None or isinstance(each, (str, bytes, int, float, type)) or id(each) in seen:
            continue
        seen.add(id(each))
        match each:
            case State():
                record = record_of(each)
                if record.sequence.head is not None:
                    yield record.sequence.head
                todo.extend(record.visible().values())
            case TextVariable() | Generated():
                todo.extend((each.value, each.text))
            case Plain():
                todo.append(each.value)
            case dict():
                todo.extend((*each.keys(), *each.values()))
            case list() | tuple() | set() | frozenset():
                todo.extend(each)
            case _ if is_dataclass(each):
                todo.extend(getattr(each, field.name, None) for field in fields(each))
            case _:
                todo.extend(getattr(each, "__dict__", {}).values())
