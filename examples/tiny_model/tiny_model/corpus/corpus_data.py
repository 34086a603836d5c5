"""The only reader of the corpus data in `data/`: word lists and templates as plain text.

- `texts/NAME.txt`: one template or word list per line. In files with blocks, blocks are separated by blank lines, the first line of a block
  is its name, and `\\n` stands for a line break.
- `templates/NAME.txt`: sections with a heading line `=== HEADING ===`, followed by the raw text of the section. The module `NAME` reads it.

Templates use `[one/two]` for alternatives and `{field}` for values (see `words.Draw.spoken`).
"""

import re
from pathlib import Path

DATA = Path(__file__).parents[2] / "data"
TEXTS, TEMPLATES = DATA / "texts", DATA / "templates"


def lines_of(name: str) -> tuple[str, ...]:
    """The lines of the file of a name, in order."""
    return tuple((TEXTS / f"{name}.txt").read_text(encoding="utf-8").strip().split("\n"))


def blocks_of(name: str) -> dict[str, tuple[str, ...]]:
    """The blocks of the file of a name, which empty lines set apart: the lines of each by its first one."""
    blocks: dict[str, tuple[str, ...]] = {}
    for block in "\n".join(lines_of(name)).split("\n\n"):
        head, *lines = block.split("\n")
        if not head or head in blocks:
            raise ValueError(f"{name}.txt has a block without a name, or two of the name {head!r}")
        blocks[head] = tuple(line.replace("\\n", "\n") for line in lines)
    return blocks


def sections_of(name: str) -> dict[str, str]:
    """The sections of the file `templates/NAME.txt` by heading, as raw text."""
    source = (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")
    parts = re.split(r"^=== (.*) ===\n", source, flags=re.MULTILINE)
    return {heading: text.removesuffix("\n") for heading, text in zip(parts[1::2], parts[2::2], strict=True)}
