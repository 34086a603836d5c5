"""The file of a journal: everything that one run of a program has received, in the order in which it came.

The records (records.py) are arrays whose first entry is their kind. Nodes have places (places.py), which are their paths where they have
one, and keys, which say whether their outcomes still hold:

    ["run", head]        a map: `model` (its identity), `seed`, `inputs`, `program`, `arguments`, `tool_format`, `version` (of rtlang), and
                         `run`, a random text from which idempotency keys are made
    ["nodes", nodes]     nodes that are about to be submitted: place, key and content of each
    ["refused", places]  such nodes that the runtime has refused
    ["begin", place, key]  a generation begins to give out text
    ["delta", place, delta]  a piece of its text that has tokens: a message of the wire protocol without type, stream and node
    ["end", place, key, stored]  the outcome of a node, as in a recording
    ["intent", place, call]  a call of an effect that is about to be made: `function`, `args`, `policy`, `at` (seconds since 1970)
    ["answer", place, answer]  the outcome of a call: `value`, or `code`, `message` and `facts`
    ["unknown", place]   a call that began in an earlier process and has no outcome waits for a person
    ["finished"]         the graph has ended

A record is written before the program gets its event, so a killed process loses nothing that the program has seen. The file is synchronized
with the disk before the call of an effect is made, after it was answered and before the graph gets the answer, and at the end: after a loss
of power, text may be missing and is generated again from the same seed, but no effect that has an outcome is made again, and none that has
begun is forgotten.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rtlang.cassette.outcomes import from_stored, to_stored
from rtlang.cassette.places import PlacedNode
from rtlang.cassette.records import RecordFile
from rtlang.contract.errors import JournalError, ProtocolError
from rtlang.contract.events import NodeFailed, NodeFinished, TextDelta
from rtlang.contract.runs.known import KnownOutcome
from rtlang.protocol.event_codec import event_from_wire, event_to_wire

MAGIC = b"rtlang-journal 2\n"
_EARLIER = b"rtlang-journal 1\n"


class JournalFile:
    """An open journal. Thread-safe.

    Args:
        path: the file; created if it does not exist.
        is_written: whether records are added. Without, the file must exist, and another process may write to it.
    Raises:
        JournalError: another process writes to the file, or it is another file or damaged.
        OSError: it cannot be opened.

    Attributes:
        head: the description of the run in the first record; empty before it.
        nodes: the submitted nodes by place.
        place_of: a place by key.
        known: the outcomes of ended nodes by key.
        ends: the last outcomes of ended nodes by place, in the order of their ends.
        pieces: by place, the key of a running generation, and the text that it has given out.
        intents: the calls of effects that have begun, by place.
        answers: the outcomes of calls by place.
        unknown: places of calls without an outcome that wait for a person.
        is_finished: whether the graph has ended.
    """

    def __init__(self, path: str | os.PathLike[str], *, is_written: bool = True) -> None:
        self.path = os.fspath(path)
        self.head: dict[str, Any] = {}
        self.nodes: dict[str, PlacedNode] = {}
        self.place_of: dict[bytes, str] = {}
        self.known: dict[bytes, KnownOutcome] = {}
        self.ends: dict[str, KnownOutcome] = {}
        self.pieces: dict[str, tuple[bytes, list[TextDelta]]] = {}
        self.intents: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        self.unknown: set[str] = set()
        self.is_finished = False
        self._lock = threading.Lock()
        self._begun: dict[str, bytes] = {}
        self._file = RecordFile(
            path, MAGIC, is_written=is_written, maker="a journal", user="another run writes", new_error=self.error
        )
        try:
            self._check_version()
            for body, at in self._file.read():
                try:
                    self._take(body)
                except (ProtocolError, ValueError, TypeError, KeyError, IndexError) as error:
                    raise self.error(f"the record that ends at byte {at} has an unknown form: {error}") from None
        except BaseException:
            self.close()
            raise
        self._begun = {place: key for place, (key, _) in self.pieces.items()}

    def _check_version(self) -> None:
        with open(self.path, "rb") as file:
            if file.read(len(_EARLIER)) == _EARLIER:
                raise self.error(
                    "it was made by an earlier version of rtlang, which knew nodes by their numbers; finish the run with that version, or "
                    "use another path"
                )

    def error(
        self, reason: str, place: str | None = None, before: str | None = None, now: str | None = None
    ) -> JournalError:
        """An error of this journal."""
        return JournalError(self.path, reason, place, before, now)

    def begin(self, head: Mapping[str, Any]) -> None:
        """Write the description of the run."""
        self.head = dict(head)
        self._append(["run", self.head])

    def note_nodes(self, nodes: Sequence[PlacedNode]) -> None:
        """Note nodes that are about to be submitted."""
        self._append(["nodes", [[each.place, each.key, each.content] for each in nodes]])
        self.is_finished = False
        for each in nodes:
            self._take_node(each)

    def note_refused(self, nodes: Sequence[PlacedNode]) -> None:
        """Note that the nodes were not accepted."""
        places = [each.place for each in nodes]
        self._append(["refused", places])
        self._take(["refused", places])

    def note_delta(self, place: str, key: bytes, delta: TextDelta) -> None:
        """Note a piece of text."""
        message = event_to_wire(1, delta)
        body = {name: value for name, value in message.items() if name not in ("t", "s", "n")}
        with self._lock:
            if self._begun.get(place) != key:
                self._begun[place] = key
                self._file.append(["begin", place, key])
            self._file.append(["delta", place, body])

    def note_end(self, place: str, key: bytes, event: NodeFinished | NodeFailed, deltas: list[TextDelta]) -> None:
        """Note the outcome of a node, whose text came in these pieces."""
        self._append(["end", place, key, to_stored(event, deltas)])

    def note_intents(self, intents: Mapping[str, Mapping[str, Any]]) -> None:
        """Note the calls of effects that are about to be made, and wait until they are on the disk."""
        with self._lock:
            for place, intent in intents.items():
                self._file.append(["intent", place, dict(intent)])
                self.intents[place] = dict(intent)
            self._file.sync()

    def note_unknown(self, place: str) -> None:
        """Note that a call without an outcome waits for a person."""
        if place not in self.unknown:
            self.unknown.add(place)
            self._append(["unknown", place])

    def note_answer(self, place: str, answer: Mapping[str, Any], *, is_effect: bool) -> None:
        """Note the outcome of a call; of an effect, wait until it is on the disk."""
        with self._lock:
            self._file.append(["answer", place, dict(answer)])
            if is_effect:
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

    def _take_node(self, node: PlacedNode) -> None:
        self.nodes[node.place] = node
        self.place_of[node.key] = node.place

    def _take(self, body: Any) -> None:
        match body:
            case ["run", dict(head)] if not self.head:
                self.head = {"model": str(head["model"]), "seed": int(head["seed"]), "run": str(head["run"]), **head}
            case ["nodes", list(nodes)]:
                self.is_finished = False
                for place, key, content in nodes:
                    self._take_node(PlacedNode(str(place), bytes(key), dict(content)))
            case ["refused", list(places)]:
                for place in places:
                    node = self.nodes.pop(place, None)
                    if node is not None:
                        self.place_of.pop(node.key, None)
            case ["begin", str(place), bytes(key)]:
                self.pieces[place] = key, []
            case ["delta", str(place), dict(message)]:
                delta = event_from_wire({"t": "delta", "n": 0, **message}, 0)
                assert isinstance(delta, TextDelta)
                self.pieces[place][1].append(delta)
            case ["end", str(place), bytes(key), stored]:
                self.known[key] = self.ends[place] = from_stored(self.path, stored)
                if place in self.pieces and self.pieces[place][0] == key:
                    del self.pieces[place]
            case ["intent", str(place), dict(intent)]:
                str(intent["function"]), list(intent["args"]), float(intent["at"])
                self.intents[place] = intent
            case ["answer", str(place), dict(answer)]:
                self.answers.setdefault(place, answer)
            case ["unknown", str(place)]:
                self.unknown.add(place)
            case ["finished"]:
                self.is_finished = True
            case _:
                raise ValueError(f"{body!r:.60}")


def placed_deltas(pieces: Sequence[TextDelta], node_id: int, graph_id: int = 0) -> list[TextDelta]:
    """The pieces of text as those of a node."""
    return [replace(piece, graph_id=graph_id, node_id=node_id) for piece in pieces]


def is_in_use(path: str | os.PathLike[str]) -> bool:
    """Whether a process writes to a journal now."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
