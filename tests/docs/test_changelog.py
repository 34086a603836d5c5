"""The changelog says each thing once: merges of its lists tend to keep both sides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def test_no_line_of_an_entry_stands_twice() -> None:
    lines = CHANGELOG.read_text(encoding="utf-8").split("\n")
    counts = Counter(line for line in lines if line.startswith(("- ", "  ")))
    assert [line for line, count in counts.items() if count > 1] == []
