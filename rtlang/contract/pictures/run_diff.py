"""The differences between two runs, or two batches of runs, by the paths of their nodes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import Any

from rtlang.contract.graph.nodes import Repeat, Switch, all_nodes
from rtlang.contract.pictures.labels import printable, shortened
from rtlang.contract.pictures.page import fragment, marked_graph, whole_page
from rtlang.contract.pictures.run_record import RunRecord

MAX_LISTED = 200
MAX_TEXT_CHARS = 2_000
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


class Change(StrEnum):
    """How a node of the second run differs from the node with the same path in the first."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class NodeText:
    """What a node gave.

    Attributes:
        text: its text, the text of its value, or its error.
        is_reused: whether the outcome was taken over from an earlier run or a recording.
        num_tokens: its tokens, 0 for values.
    """

    text: str
    is_reused: bool = False
    num_tokens: int = 0


RunTexts = Mapping[str, NodeText]
"""What the nodes of a run gave, by path; with n > 1 each completion has its own."""


@dataclass(frozen=True, slots=True)
class NodeDiff:
    """The difference between two nodes with the same path.

    Attributes:
        row: the number of the row in a batch, from 0.
        before, after: what the node gave; None where the run has no such node.
        is_reused: whether the second run took the outcome over instead of computing it.
    """

    path: str
    change: Change
    before: str | None
    after: str | None
    is_reused: bool
    row: int = 0


@dataclass(frozen=True, slots=True)
class RunDiff:
    """The differences between two runs, or two batches of runs.

    Attributes:
        nodes: one for each path of either run, in the order of the second, row by row.
        num_rows: rows that were compared; 1 for two runs.
        rows_removed, rows_added: rows that only the first, and only the second batch has.
        num_tokens: the number of tokens that the second run computed.
        record: of the second run, for its picture; None for batches and saved runs.
    """

    nodes: tuple[NodeDiff, ...]
    num_rows: int = 1
    rows_removed: int = 0
    rows_added: int = 0
    num_tokens: int = 0
    record: RunRecord | None = None

    def of(self, change: Change | str) -> tuple[NodeDiff, ...]:
        """The nodes with this change: "same", "changed", "added" or "removed"."""
        wanted = Change(change)
        return tuple(node for node in self.nodes if node.change is wanted)

    @property
    def is_same(self) -> bool:
        """Whether all nodes are the same."""
        return all(node.change is Change.SAME for node in self.nodes) and not (self.rows_added or self.rows_removed)

    @property
    def computed(self) -> tuple[NodeDiff, ...]:
        """The nodes that the second run computed."""
        return tuple(node for node in self.nodes if node.after is not None and not node.is_reused)

    def to_plain(self) -> list[dict[str, Any]]:
        """The nodes as plain data."""
        return [
            {
                "row": node.row,
                "path": node.path,
                "change": node.change.value,
                "before": node.before,
                "after": node.after,
                "is_reused": node.is_reused,
            }
            for node in self.nodes
        ]

    def __str__(self) -> str:
        lines = [self.summary()]
        different = [node for node in self.nodes if node.change is not Change.SAME]
        for node in different[:MAX_LISTED]:
            lines.append(f"{_SIGNS[node.change]} {self._title(node)}")
            for sign, text in (("-", node.before), ("+", node.after)):
                if text is not None:
                    lines.extend(f"    {sign} {line}" for line in shortened(text, MAX_TEXT_CHARS).split("\n"))
        if len(different) > MAX_LISTED:
            lines.append(f"{len(different) - MAX_LISTED} more")
        return "\n".join(lines)

    def summary(self) -> str:
        """The counts, in one line."""
        counts = [f"{len(found)} {change.value}" for change in Change if (found := self.of(change))]
        where = f" in {self.num_rows} rows" if self.num_rows != 1 else ""
        num_after = sum(node.after is not None for node in self.nodes)
        num_computed = len(self.computed)
        words = [
            f"{len(self.nodes)} node{'s' if len(self.nodes) != 1 else ''}{where}: {', '.join(counts) or 'none'}",
            f"{num_computed} computed ({self.num_tokens} tokens), {num_after - num_computed} reused",
        ]
        if self.rows_added or self.rows_removed:
            words.append(f"{self.rows_added} rows added, {self.rows_removed} removed")
        return "; ".join(words)

    def _title(self, node: NodeDiff) -> str:
        row = f"row {node.row}: " if self.num_rows != 1 else ""
        how = "" if node.after is None else " (reused)" if node.is_reused else " (computed)"
        return f"{row}{node.path}{how}"

    def _repr_html_(self) -> str:
        """The changed nodes for a notebook, with the words that differ marked."""
        return fragment(self._table())

    def to_html(self, title: str = "diff") -> str:
        """A self-contained HTML page: the graph of the second run with its changed nodes marked, and all changes."""
        parts = []
        if self.record is not None:
            changed = {node.path for node in self.nodes if node.change is not Change.SAME}
            whole = changed | {path.rpartition("[")[0] for path in changed if path.endswith("]")}
            ids = {node_id for node_id, path in self.record.node_paths.items() if path in whole}
            parts.append(marked_graph(self.record, ids))
        return whole_page(title, self.summary(), [*parts, self._table()])

    def _table(self) -> str:
        different = [node for node in self.nodes if node.change is not Change.SAME]
        rows = "".join(self._row(node) for node in different[:MAX_LISTED])
        head = "<thead><tr><th>node</th><th>before</th><th>after</th></tr></thead>"
        more = f'<div class="rt-soft">{len(different) - MAX_LISTED} more</div>' if len(different) > MAX_LISTED else ""
        table = f'<table class="rt-table">{head}<tbody>{rows}</tbody></table>' if different else ""
        return f'<div class="rt-head">{escape(self.summary())}</div>{table}{more}'

    def _row(self, node: NodeDiff) -> str:
        before, after = marked_words(node.before, node.after)
        title = escape(printable(self._title(node)))
        return f'<tr class="rt-{node.change.value}"><td>{title}</td><td>{before}</td><td>{after}</td></tr>'


_SIGNS = {Change.CHANGED: "~", Change.ADDED: "+", Change.REMOVED: "-", Change.SAME: "="}


def texts_of(record: RunRecord) -> dict[str, NodeText]:
    """What the nodes of a run gave, by path. Branches and loops are left out: what they give follows from their nodes."""
    found: dict[str, NodeText] = {}
    controls = {node.node_id for node in all_nodes(record.recorded) if isinstance(node, (Switch, Repeat))}
    controls |= {run_id for node_id in controls for run_id in record.copies.get(node_id, ())}
    for node_id, path in record.node_paths.items():
        node = record.nodes.get(node_id)
        if node is None or node_id in controls:
            continue
        if node.error is not None or not node.texts:
            found[path] = NodeText(node.error or node.value or "", node.is_replayed)
            continue
        for choice, text in enumerate(node.texts):
            own = path if len(node.texts) == 1 else f"{path}[{choice}]"
            shown = "(cancelled)" if node.finish[choice] == "cancelled" else text
            found[own] = NodeText(shown, node.is_replayed, node.num_tokens[choice])
    return found


def diff_runs(
    pairs: Sequence[tuple[RunTexts, RunTexts]],
    *,
    rows_removed: int = 0,
    rows_added: int = 0,
    record: RunRecord | None = None,
) -> RunDiff:
    """The differences between runs: pairs of the first and the second."""
    nodes = [node for row, (before, after) in enumerate(pairs) for node in _compared(before, after, row)]
    num_tokens = sum(each.num_tokens for _, after in pairs for each in after.values() if not each.is_reused)
    return RunDiff(tuple(nodes), len(pairs), rows_removed, rows_added, num_tokens, record)


def _compared(before: RunTexts, after: RunTexts, row: int) -> Iterator[NodeDiff]:
    for path, new in after.items():
        old = before.get(path)
        if old is None:
            yield NodeDiff(path, Change.ADDED, None, new.text, new.is_reused, row)
        else:
            change = Change.SAME if old.text == new.text else Change.CHANGED
            yield NodeDiff(path, change, old.text, new.text, new.is_reused, row)
    for path, old in before.items():
        if path not in after:
            yield NodeDiff(path, Change.REMOVED, old.text, None, False, row)


def marked_words(before: str | None, after: str | None) -> tuple[str, str]:
    """Both texts as HTML, with the words that only one of them has marked."""
    if before is None or after is None:
        return _safe(before or ""), _safe(after or "")
    old, new = (_WORD.findall(shortened(text, MAX_TEXT_CHARS)) for text in (before, after))
    found: tuple[list[str], list[str]] = ([], [])
    for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, words, tag in ((0, old[i:j], "del"), (1, new[k:m], "ins")):
            if words:
                text = _safe("".join(words))
                found[side].append(text if kind == "equal" else f"<{tag}>{text}</{tag}>")
    return "".join(found[0]), "".join(found[1])


def _safe(text: str) -> str:
    return escape(printable(shortened(text, MAX_TEXT_CHARS)))
