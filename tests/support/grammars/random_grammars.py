"""Hypothesis strategies for small Lark grammars and words, and lark's Earley parser as the judge of both."""

from __future__ import annotations

import lark
from hypothesis import strategies as st

RULES = ("start", "a", "b", "c")
LETTERS = "xyz"
_ATOMS = ['"x"', '"y"', '"z"', '"xy"', "/[xy]/", "/x+y?/", "/y(?=z)z/", "T", "a", "b", "c", "a", "b"]


@st.composite
def lark_grammars(draw: st.DrawFn) -> str:
    """A grammar with rules that call one another in all ways: left, right, hidden behind optional parts, or without end."""

    def expression(depth: int) -> str:
        ways = []
        for _ in range(draw(st.integers(1, 2))):
            items = [item(depth) for _ in range(draw(st.integers(0 if depth < 2 else 1, 3)))]
            ways.append(" ".join(items))
        return " | ".join(ways)

    def item(depth: int) -> str:
        atom = draw(st.sampled_from(_ATOMS))
        if depth > 0 and draw(st.integers(0, 4)) == 0:
            atom = f"({expression(depth - 1) or atom})"
        return atom + draw(st.sampled_from(["", "", "", "", "?", "*", "+", "~2", "~1..3", "~0..1"]))

    lines = [f"{rule}: {expression(1)}" for rule in RULES]
    lines.append('T: "z" | "x" "z"')
    if draw(st.integers(0, 4)) == 0:
        lines.append('%ignore "."')
    return "\n".join(lines)


def words(max_size: int = 6) -> st.SearchStrategy[str]:
    """Texts over the letters of `lark_grammars` and the ignored one."""
    return st.text(alphabet=f"{LETTERS}.", max_size=max_size)


def lark_parser(source: str) -> lark.Lark | None:
    """lark's parser; None where lark refuses the grammar."""
    try:
        return lark.Lark(source, parser="earley", lexer="dynamic_complete")
    except lark.exceptions.LarkError:
        return None


def lark_accepts(parser: lark.Lark, text: str) -> bool:
    """Whether lark parses the text. The recogniser alone is asked: building a tree of an endless derivation would be another question."""
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True
