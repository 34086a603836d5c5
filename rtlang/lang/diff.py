"""`rt.diff`: what differs between two runs or two batches, and the files of runs that `rtlang diff` compares."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.pictures.run_diff import NodeText, RunDiff, RunTexts, diff_runs, texts_of
from rtlang.lang.execution.result import Result

FORMAT = "rtlang-run 1"


def diff(before: Result[Any] | Sequence[Result[Any]], after: Result[Any] | Sequence[Result[Any]]) -> RunDiff:
    """What differs between two results, or between two lists of results, by the paths of their nodes.

        changes = rt.diff(first, second)
        print(changes)
        assert [node.path for node in changes.of("changed")] == ["fork[1]/tip"]

    Rows of lists are compared with those that have the same arguments, or else the same index. The changes have a readable `str`, are a
    table in a notebook, an HTML page (`to_html`) and plain data (`to_plain`).

    Raises:
        ParameterError: one is no result and no list of results, or only one of them is a list.
    """
    if isinstance(before, Result) and isinstance(after, Result):
        record = after.record()
        return diff_runs([(texts_of(before.record()), texts_of(record))], record=record)
    old, new = _listed("before", before), _listed("after", after)
    return diff_rows(*([(each.arguments_digest, texts_of(each.record())) for each in rows] for rows in (old, new)))


def diff_rows(before: Sequence[tuple[str | None, RunTexts]], after: Sequence[tuple[str | None, RunTexts]]) -> RunDiff:
    """What differs between rows, each with a digest of its arguments."""
    by_arguments: dict[str | None, deque[int]] = defaultdict(deque)
    for index, (arguments, _) in enumerate(before):
        by_arguments[arguments].append(index)
    partners: list[int | None] = []
    for arguments, _ in after:
        same = by_arguments.get(arguments) if arguments is not None else None
        partners.append(same.popleft() if same else None)
    free = set(range(len(before))) - {each for each in partners if each is not None}
    for index, partner in enumerate(partners):
        if partner is None and index in free:
            partners[index] = index
            free.remove(index)
    pairs = [(before[partner][1], after[index][1]) for index, partner in enumerate(partners) if partner is not None]
    return diff_runs(pairs, rows_removed=len(free), rows_added=len(after) - len(pairs))


def _listed(name: str, given: Any) -> list[Result[Any]]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, Result) for each in given):
        raise ParameterError(name, given, "expected a result, or a list of results on both sides")
    return list(given)


def saved_runs(results: Sequence[Result[Any]]) -> str:
    """What the nodes of runs gave, as the JSON text of a file that `rtlang diff` reads."""
    rows = [
        {
            "arguments": each.arguments_digest,
            "nodes": {
                path: [node.text, node.is_reused, node.num_tokens] for path, node in texts_of(each.record()).items()
            },
        }
        for each in results
    ]
    return json.dumps({"format": FORMAT, "rows": rows}, ensure_ascii=False)


def read_runs(path: str | Path) -> list[tuple[str | None, RunTexts]]:
    """The rows of a file of `saved_runs`: a digest of the arguments, and what the nodes gave.

    Raises:
        ParameterError: it is no such file.
        OSError: it cannot be read.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise ValueError(f"its format is {found['format']!r:.40}, not {FORMAT!r}")
        return [
            (row["arguments"], {node_path: NodeText(*node) for node_path, node in row["nodes"].items()})
            for row in found["rows"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParameterError("path", str(path), f"expected a file of saved runs: {error}") from None
