"""The Python snippets of the documentation.

A block that cannot run in a test has the comment `<!-- not run: REASON -->` on the line above its fence. A `text` block right behind a
snippet is what it prints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)(?:<!-- not run: (?P<reason>[^\n]*?) -->\n+ *)?```python[^\n]*\n(?P<source>.*?)^ *```$"
    r"(?:\n+ *```text\n(?P<printed>.*?)^ *```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Snippet:
    """One block: its first line in the page, its source, why it is not run (if it is not), and what it prints (if the page says so)."""

    line: int
    source: str
    reason: str | None
    printed: str | None


def snippets_of(page: Path) -> list[Snippet]:
    """The snippets of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        indent = match["indent"]
        source = "".join(line.removeprefix(indent) for line in match["source"].splitlines(keepends=True))
        found.append(Snippet(text.count("\n", 0, match.start("source")) + 1, source, match["reason"], match["printed"]))
    return found


WITH_SNIPPETS = [page for page in PAGES if snippets_of(page)]
