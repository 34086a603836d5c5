"""Numbers of the terminals of a grammar whose lines are indented.

The column of a line is part of the lexer's state inside the newline terminal, so each column has a number of its own: the newline terminal
with its text up to the last line break, and c columns of blanks after it. Parsers know column 0 only, whose number the rules use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]

from rtlang_grammars.context_free.lark_source import LarkSource, SourceTerminal
from rtlang_grammars.spec.errors import GrammarError

NUM_COLUMNS = 121
"""Lines outside brackets may be indented by fewer columns than this."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The numbers that a grammar's indentation takes part in.

    Attributes:
        newline: number of the newline terminal at column 0; column c has newline + c. Newline + NUM_COLUMNS stands for columns beyond,
            and for a text without a line break.
        indent, dedent: numbers of the terminals that follow it.
        brackets: what each terminal adds to the depth of brackets, 1 or -1.
        tab_len: columns of a tab.
    """

    newline: int
    indent: int
    dedent: int
    brackets: Mapping[int, int] = field(default_factory=dict)
    tab_len: int = 8

    def after(self, column: int, symbol: int) -> int:
        """The column after a byte of the newline terminal."""
        if symbol == 10:
            return 0
        if column == NUM_COLUMNS or symbol not in (9, 32):
            return column
        return min(column + (1 if symbol == 32 else self.tab_len), NUM_COLUMNS)

    def is_newline(self, terminal: int) -> bool:
        """Whether a number stands for the newline terminal at some column."""
        return self.newline <= terminal <= self.newline + NUM_COLUMNS


def numbered(terminals: Sequence[SourceTerminal], source: LarkSource) -> tuple[list[str], Columns | None]:
    """Names of terminals by their numbers, columns and declared terminals (`%declare`) included, and the indentation.

    Args:
        terminals: of the lexer, by who wins.
    """
    names = [each.name for each in terminals]
    indentation = source.indentation
    if indentation is None:
        return names, None
    newline = names.index(indentation.newline)
    _check_look_ahead(terminals[newline])
    names[newline + 1 : newline + 1] = [f"{indentation.newline} {column}" for column in range(1, NUM_COLUMNS + 1)]
    names += [indentation.indent, indentation.dedent]
    brackets = {names.index(name): 1 for name in indentation.open}
    brackets |= {names.index(name): -1 for name in indentation.close if name not in indentation.open}
    return names, Columns(newline, len(names) - 2, len(names) - 1, brackets, indentation.tab_len)


def _check_look_ahead(terminal: SourceTerminal) -> None:
    for operation, argument in sre_parser.parse(terminal.pattern):
        if operation in (ops.ASSERT, ops.ASSERT_NOT) and argument[1].getwidth()[1] > 1:
            raise GrammarError(
                f"Lark grammar: terminal {terminal.name}: a look-ahead of several characters in the newline terminal is not supported"
            )
