"""Fields of JSON values that are final before the value ends.

An `Apply` that reads a field of a generated object (`s["order"].city`) needs only that field. While the object is generated, `EarlyFields`
follows its text and gives each field that is read as soon as no further text can change it, so that the nodes that depend on it start then.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from rtlang.contract.graph.value_size import Measured, measured
from rtlang.contract.growing_json import GrowingJson, JsonPath, Path
from rtlang.contract.request_graph import Apply, Const, Operand, Ref

Text = tuple[int, int]
"""A generated text: the id of its node, and the index of the completion."""

MAX_READ_CHARS = 2_000
"""Characters of a text that are read at one time. A text that is read late is caught up with as it grows."""


class FinalField(NamedTuple):
    """A field that no further text changes: its JSON, and the nodes that read it."""

    readers: list[int]
    json: str


class _Readers:
    """The nodes that read fields of one text and have no value yet.

    Attributes:
        by_path: them, by the path of their field.
        new: paths that were added since the text was read.
    """

    def __init__(self) -> None:
        self.by_path: dict[Path, list[int]] = {}
        self.new: list[Path] = []

    def add(self, path: Path, node_id: int) -> None:
        self.by_path.setdefault(path, []).append(node_id)
        self.new.append(path)


class EarlyFields:
    """The fields of texts that the nodes of a graph read. Used on the engine thread only."""

    def __init__(self) -> None:
        self._paths: dict[int, tuple[Text, Path]] = {}  # by node that parses a text or reads a field
        self._readers: dict[int, dict[int, _Readers]] = {}  # by generation and completion
        self._growing: dict[int, dict[int, GrowingJson]] = {}

    def add(self, node: Apply) -> Text | None:
        """Learn of a node. Returns the text if it reads a field of one, which may be final already: then `read` the text."""
        found = self._path(node.function, node.args)
        if found is None:
            return None
        self._paths[node.node_id] = found
        text, path = found
        if not path:
            return None
        self._readers.setdefault(text[0], {}).setdefault(text[1], _Readers()).add(path, node.node_id)
        return text

    def _path(self, function: str, args: tuple[Operand, ...]) -> tuple[Text, Path] | None:
        of = args[0] if args else None
        if not isinstance(of, Ref):
            return None
        if function == "parse_json" and len(args) == 1:
            return (of.node_id, of.choice), ()
        if function not in ("field", "item") or len(args) < 2 or of.node_id not in self._paths:
            return None
        text, path = self._paths[of.node_id]
        key = args[1].value if isinstance(args[1], Const) else None
        return (text, (*path, key)) if isinstance(key, (str, int)) else None

    def is_read(self, text: Text) -> bool:
        """Whether a node reads a field of this text and has no value yet."""
        readers = self._readers.get(text[0], {}).get(text[1])
        return readers is not None and bool(readers.by_path)

    def num_unread(self, text: Text, so_far: str) -> int:
        """Characters that `read` would look at."""
        growing = self._growing.get(text[0], {}).get(text[1])
        return min(MAX_READ_CHARS, len(so_far) - (0 if growing is None else growing.length))

    def read(self, text: Text, so_far: str) -> list[FinalField]:
        """Follow a text that grows; returns each field that is read and has become final, once. The text `is_read`.

        Args:
            so_far: the text from its start; longer at each call.
        """
        node_id, choice = text
        growing = self._growing.setdefault(node_id, {}).setdefault(choice, GrowingJson())
        final, _ = growing.push(so_far[growing.length : growing.length + MAX_READ_CHARS])
        readers = self._readers[node_id][choice]
        paths, readers.new = readers.new, []
        found: list[FinalField] = []
        for place in (*(_place(growing, path) for path in paths), *final):
            if place is not None and place.end is not None and place.path in readers.by_path:
                found.append(FinalField(readers.by_path.pop(place.path), growing.text(place.start, place.end)))
        return found

    def forget(self, node_id: int) -> None:
        """Forget the texts of a node that has ended."""
        self._growing.pop(node_id, None)
        self._readers.pop(node_id, None)


def early_value(field: FinalField) -> Measured:
    """The value of a final field.

    Raises:
        ValueError, TypeError: it cannot be a value of a graph; the nodes that read it fail when they are computed.
    """
    return measured(json.loads(field.json))


def _place(growing: GrowingJson, path: Path) -> JsonPath | None:
    place = growing.root
    for key in path:
        place = None if place is None else place.children.get(key)
    return place
