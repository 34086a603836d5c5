"""What the nodes of a journaled run gave, by path, for comparisons with other runs."""

from __future__ import annotations

import os

from rtlang.cassette.journal_file import MAGIC, JournalFile
from rtlang.contract.pictures.run_diff import NodeText, texts_of
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord
from rtlang.contract.request_graph import all_nodes, nodes_from_plain
from rtlang.lang.recordings.recorded_nodes import RecordedNodes
from rtlang.protocol.plain_values import value_from_wire


def is_journal(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a journal does.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def texts_of_journal(path: str | os.PathLike[str]) -> tuple[str | None, dict[str, NodeText]]:
    """The identity of the arguments of a journaled run, and what its nodes have given so far.

    Raises:
        JournalError: another process writes to the file, or it is damaged. OSError: it cannot be read.
    """
    journal = JournalFile(path)
    try:
        nodes = tuple(nodes_from_plain([value_from_wire(each, "nodes") for _, each in sorted(journal.nodes.items())]))
        recorded = RecordedNodes()
        recorded.outer.update((node.node_id, node) for node in nodes)
        recorded.inner.update((node.node_id, node) for node in all_nodes(nodes) if node.node_id not in recorded.outer)
        paths = {node_id: recorded.path_at(node_id) for node_id in sorted(journal.known)}
        record = RunRecord(
            recorded=nodes,
            nodes={node_id: NodeRecord.of(each.end) for node_id, each in journal.known.items()},
            node_paths={node_id: found for node_id, found in paths.items() if found is not None},
        )
        arguments = journal.head.get("arguments")
        return (arguments if isinstance(arguments, str) else None), texts_of(record)
    finally:
        journal.close()
