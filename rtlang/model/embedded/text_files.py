"""Templates and words of the corpus that lie in text files, in the folder `texts` beside this module.

A line is a template, written as `words.Draw.spoken` reads it. In a file of blocks the first line of each is its name, and `\\n` stands
for a line break; words.txt has words parted by `|`. Held-out texts are not there, but in the modules that use the files.
"""

from pathlib import Path

TEXTS = Path(__file__).parent / "texts"


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
