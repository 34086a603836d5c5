"""Fields of JSON values that are final before the value ends.

An `Apply` that reads a field of a generated object (`s["order"].city`) needs only that field. While the object is generated, `EarlyFields`
follows its text and gives each field that is read as soon as no further text can change it, so that the nodes that depend on it start then.
"""

from __future__ import annotations

from contextlib import suppress

from rtlang.contract.graph.value_size import Measured, measured
from rtlang.contract.growing_json import GrowingJson, JsonPath, Path, plain_value
from rtlang.contract.request_graph import Apply, Const, Operand, Ref

Text = tuple[int, int]
"""A generated text: the id of its node, and the index of the completion."""


class EarlyFields:
    """The fields of texts that the nodes of a graph read. Used on the engine thread only."""

    def __init__(self) -> None:
        self._paths: dict[int, tuple[Text, Path]] = {}  # by node that parses a text or reads a field
        # by generation and completion: the nodes that have no value yet
        self._readers: dict[int, dict[int, list[int]]] = {}
        self._new: set[Text] = set()  # texts with readers that `read` has not seen
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
        self._readers.setdefault(text[0], {}).setdefault(text[1], []).append(node.node_id)
        self._new.add(text)
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
        return bool(self._readers and self._readers.get(text[0], {}).get(text[1]))

    def read(self, text: Text, so_far: str) -> list[tuple[int, Measured]]:
        """Follow a text that grows; returns the nodes whose field is final, each with its value, once. The text `is_read`.

        Args:
            so_far: the text from its start; longer at each call.
        """
        node_id, choice = text
        growing = self._growing.setdefault(node_id, {}).setdefault(choice, GrowingJson())
        final, _ = growing.push(so_far[growing.length :])
        if not final and text not in self._new:
            return []
        self._new.discard(text)
        found: list[tuple[int, Measured]] = []
        waiting = []
        for reader in self._readers[node_id][choice]:
            place = _place(growing, self._paths[reader][1])
            if place is None or place.end is None:
                waiting.append(reader)
            else:
                with suppress(ValueError, TypeError):  # the node fails when it is computed
                    found.append((reader, measured(plain_value(growing, place))))
        self._readers[node_id][choice] = waiting
        return found

    def forget(self, node_id: int) -> None:
        """Forget the texts of a node that has ended."""
        self._growing.pop(node_id, None)
        self._readers.pop(node_id, None)


def _place(growing: GrowingJson, path: Path) -> JsonPath | None:
    place = growing.root
    for key in path:
        place = None if place is None else place.children.get(key)
    return place
