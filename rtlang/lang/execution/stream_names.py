"""Which events `stream().text(name)` means: by the name of a variable, by a path or by a place."""

from __future__ import annotations

from typing import Any

from rtlang.contract.errors import TraceError
from rtlang.contract.graph.node_paths import is_named_by, sequence_of
from rtlang.contract.request_graph import Node, choices_of, name_of, path_of
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.recordings.recording import Recording

_MAX_LISTED = 8


class StreamNames:
    """Answers for one stream. Nodes may still be recorded meanwhile."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._known: set[str] = set()
        self._seen: dict[str, str] = {}  # the first path of each name, as a sequence

    def check(self, asked: str, *, is_complete: bool) -> None:
        """Check a name, a path or a place.

        Args:
            is_complete: whether all nodes were recorded.
        Raises:
            TraceError: no node has it; lists the names.
        """
        if not is_complete or asked in self._known:
            return
        nodes = self._nodes()
        if not any(_means(node, asked) for node in nodes):
            known = ", ".join(sorted({name for node in nodes if (name := name_of(node))})) or "none"
            raise TraceError(
                f"the program generates nothing named {asked!r}; its generations: {known}", user_location()
            )
        self._known.add(asked)

    def is_asked(self, event: Any, asked: str) -> bool:
        """Whether an event with `name` and `path` is one of these."""
        return event.name == asked or is_named_by(event.path, asked)

    def check_alone(self, event: Any, asked: str) -> None:
        """Check that the text of an event does not grow beside others of the same name.

        Raises:
            TraceError: it does; lists their paths.
        """
        if event.name != asked or event.path == asked:
            return
        own = sequence_of(event.path)
        if asked not in self._seen:
            self._seen[asked] = own
            self._refuse_others(asked)
        elif own != self._seen[asked]:
            self._refuse_others(asked, event.path)

    def _refuse_others(self, name: str, *paths: str) -> None:
        found = dict.fromkeys(paths)
        sequences: set[str] = {self._seen[name]} if paths else set()
        for node in self._nodes():
            path = path_of(node)
            if name_of(node) == name and path is not None:
                count = choices_of(node)
                own = [f"{path}[{choice}]" for choice in range(count)] if count > 1 else [path]
                found |= dict.fromkeys(own)
                sequences |= {sequence_of(each) for each in own}
        if len(sequences) > 1 or paths:
            listed = [*found][:_MAX_LISTED] + (["..."] if len(found) > _MAX_LISTED else [])
            raise TraceError(
                f"{name!r} grows in several places at once: {', '.join(listed)}; name one of these paths, or read `path` of the events",
                user_location(),
            )

    def _nodes(self) -> list[Node]:
        recorded = self._recording.nodes
        with recorded.lock:
            return [*recorded.outer.values(), *recorded.inner.values()]


def _means(node: Node, asked: str) -> bool:
    path = path_of(node)
    return name_of(node) == asked or (path is not None and is_named_by(path, asked))
