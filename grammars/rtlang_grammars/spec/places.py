"""Places in a source text, as `line:column` from 1:1, for errors."""

from __future__ import annotations

import re

JSON_STRING = r'"(?:[^"\\]|\\.)*"'
"""A string of a JSON text: brackets inside it are no nesting."""


def line_and_column(text: str, at: int) -> str:
    """The place of the character at an index."""
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def deepest_bracket(text: str, skipped: str) -> str:
    """The first place of the deepest nesting of round, square and curly brackets.

    Args:
        skipped: pattern of the parts in which brackets have no meaning: strings, comments.
    """
    depth = deepest = at = 0
    for found in re.finditer(rf"{skipped}|[\[({{]|[\])}}]", text, re.DOTALL):
        if found[0] in ("[", "(", "{"):
            depth += 1
            if depth > deepest:
                deepest, at = depth, found.start()
        elif found[0] in ("]", ")", "}"):
            depth -= 1
    return line_and_column(text, at)
