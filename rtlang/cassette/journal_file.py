"""The file of a journal: everything that one run of a program has received, in the order in which it came.

The records (records.py) are arrays whose first entry is their kind:

    ["run", head]        a map: `model` (its identity), `seed`, `inputs`, `program`, `arguments`, `tool_format`, `version` (of rtlang)
    ["nodes", nodes]     nodes that are about to be submitted, in plain form
    ["refused", ids]     ids of such nodes that the runtime has refused
    ["delta", delta]     a piece of text that has tokens: a message of the wire protocol without type and stream
    ["end", id, stored]  the outcome of a node, as in a recording
    ["answer", id, answer]  the answer to a host call: `value`, or `code`, `message` and `facts`
    ["finished"]         the graph has ended

A record is written before the program gets its event, so a killed process loses nothing that the program has seen. The file is synchronized
with the disk after each answer to a host call, before the graph gets it, and at the end: after a loss of power, text may be missing and is
generated again from the same seed, but no call that has an answer is made again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from rtlang.cassette.outcomes import from_stored, to_stored
from rtlang.cassette.records import RecordFile
from rtlang.contract.errors import JournalError, ProtocolError
from rtlang.contract.events import NodeFailed, NodeFinished, TextDelta
from rtlang.contract.request_graph import Node, nodes_to_plain
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.run_ledger import RunLedger
from rtlang.protocol.event_codec import event_from_wire, event_to_wire
from rtlang.protocol.plain_values import value_to_wire

MAGIC = b"rtlang-journal 1\n"


class JournalFile:
    """An open journal. Thread-safe.

    Args:
        path: the file; created if it does not exist.
    Raises:
        JournalError: another process writes to the file, or it is another file or damaged.
        OSError: it cannot be opened.

    Attributes:
        head: the description of the run in the first record; empty before it.
        nodes: the submitted nodes in plain form, without their marks, by id.
        known: the outcomes of ended nodes.
        pieces: by running generation, the text that it has given out.
        answers: the answers to host calls, by node.
        is_finished: whether the graph has ended.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.head: dict[str, Any] = {}
        self.nodes: dict[int, dict[str, Any]] = {}
        self.known: dict[int, KnownOutcome] = {}
        self.pieces: dict[int, list[TextDelta]] = {}
        self.answers: dict[int, dict[str, Any]] = {}
        self.is_finished = False
        self._lock = threading.Lock()
        self._file = RecordFile(
            path, MAGIC, is_written=True, maker="a journal", user="another run writes", new_error=self.error
        )
        try:
            for body, at in self._file.read():
                try:
                    self._take(body)
                except (ProtocolError, ValueError, TypeError, KeyError, IndexError) as error:
                    raise self.error(f"the record that ends at byte {at} has an unknown form: {error}") from None
        except BaseException:
            self.close()
            raise

    def error(
        self, reason: str, node_id: int | None = None, before: str | None = None, now: str | None = None
    ) -> JournalError:
        """An error of this journal."""
        return JournalError(self.path, reason, node_id, before, now)

    def begin(self, head: Mapping[str, Any]) -> None:
        """Write the description of the run."""
        self.head = dict(head)
        self._append(["run", self.head])

    def continue_from(self, nodes: Sequence[Node]) -> dict[int, list[list[int]]]:
        """The tokens with which the running generations among these nodes, and in their blocks, go on."""
        ledger = RunLedger()
        for pieces in self.pieces.values():
            for piece in pieces:
                ledger.take(piece)
        return ledger.continue_from(nodes)

    def note_nodes(self, nodes: Sequence[Node]) -> None:
        """Note nodes that are about to be submitted."""
        plain = [_shared(each) for each in nodes_to_plain(nodes)]
        self.nodes.update((each["id"], each) for each in plain)
        self._append(["nodes", plain])

    def note_refused(self, nodes: Sequence[Node]) -> None:
        """Note that the nodes were not accepted."""
        for node in nodes:
            self.nodes.pop(node.node_id, None)
        self._append(["refused", [node.node_id for node in nodes]])

    def note_delta(self, delta: TextDelta) -> None:
        """Note a piece of text."""
        message = event_to_wire(1, delta)
        self._append(["delta", {name: value for name, value in message.items() if name not in ("t", "s")}])

    def note_end(self, event: NodeFinished | NodeFailed, deltas: list[TextDelta]) -> None:
        """Note the outcome of a node, whose text came in these pieces."""
        self._append(["end", event.node_id, to_stored(event, deltas)])

    def note_answer(self, node_id: int, answer: Mapping[str, Any]) -> None:
        """Note the answer to a host call, and wait until it is on the disk."""
        with self._lock:
            self._file.append(["answer", node_id, dict(answer)])
            self._file.sync()

    def note_finished(self) -> None:
        """Note that the graph has ended, and wait until all is on the disk."""
        with self._lock:
            self._file.append(["finished"])
            self._file.sync()

    def close(self) -> None:
        """Flush the file to the disk and release it. Idempotent."""
        with self._lock:
            self._file.close()

    def _append(self, body: Any) -> None:
        with self._lock:
            self._file.append(body)

    def _take(self, body: Any) -> None:
        match body:
            case ["run", dict(head)] if not self.head:
                self.head = {"model": str(head["model"]), "seed": int(head["seed"]), **head}
            case ["nodes", list(nodes)]:
                self.nodes.update((int(each["id"]), each) for each in nodes)
            case ["refused", list(ids)]:
                for node_id in ids:
                    self.nodes.pop(node_id, None)
            case ["delta", dict(message)]:
                delta = event_from_wire({"t": "delta", **message}, 0)
                assert isinstance(delta, TextDelta)
                self.pieces.setdefault(delta.node_id, []).append(delta)
            case ["end", int(node_id), stored]:
                self.known[node_id] = from_stored(self.path, stored)
                self.pieces.pop(node_id, None)
            case ["answer", int(node_id), dict(answer)]:
                self.answers.setdefault(node_id, answer)
            case ["finished"]:
                self.is_finished = True
            case _:
                raise ValueError(f"{body!r:.60}")


def _shared(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The plain form of a node as it is read from the file, without hints."""
    wire = value_to_wire({name: value for name, value in plain.items() if name != "marks"})
    found: dict[str, Any] = msgpack.unpackb(msgpack.packb(wire))
    return found


def difference(before: Mapping[str, Any], now: Node) -> tuple[str, str, str] | None:
    """The first field in which a node differs from the recorded one, and both values; None if they are equal."""
    (plain,) = map(_shared, nodes_to_plain([now]))
    for name in (*before, *plain):
        if before.get(name) != plain.get(name):
            return name, f"{before.get(name)!r:.300}", f"{plain.get(name)!r:.300}"
    return None
