"""What the nodes of a journaled run gave, by path, for comparisons with other runs."""

from __future__ import annotations

import os

from rtlang.cassette.journal_file import MAGIC, JournalFile
from rtlang.cassette.places import KEY_MARK
from rtlang.contract.pictures.run_diff import NodeText, texts_of
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord


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
        controls = {place for place, node in journal.nodes.items() if node.content["kind"] in ("switch", "repeat")}
        ends = [
            (place, outcome)
            for place, outcome in journal.ends.items()
            if not place.startswith(KEY_MARK) and place not in controls
        ]
        record = RunRecord(
            nodes={number: NodeRecord.of(outcome.end) for number, (_, outcome) in enumerate(ends)},
            node_paths={number: place for number, (place, _) in enumerate(ends)},
        )
        arguments = journal.head.get("arguments")
        return (arguments if isinstance(arguments, str) else None), texts_of(record)
    finally:
        journal.close()
