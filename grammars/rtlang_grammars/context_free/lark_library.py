"""Lark grammars that ship with the package, in `library/`."""

from __future__ import annotations

from importlib import resources

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer

LIBRARY = (
    "arithmetic",
    "chess_san",
    "csv",
    "dates",
    "email_header",
    "ini",
    "json",
    "markdown_table",
    "python",
    "python_subset",
    "sql_core",
    "sql_select",
    "sql_select_mysql",
    "sql_select_postgres",
    "sql_select_sqlite",
    "url",
    "xml_subset",
)
"""Names that `library_grammar` accepts."""


def library_grammar(name: str) -> str:
    """The text of a library grammar.

    Raises:
        KeyError: unknown name; lists the known ones.
    """
    if name not in LIBRARY:
        raise KeyError(f"library grammar = {name!r}: expected one of {', '.join(LIBRARY)}")
    return (resources.files("rtlang_grammars.context_free") / "library" / f"{name}.lark").read_text(encoding="utf-8")


def library_constraint(name: str) -> Constraint:
    """A library grammar as a constraint.

    Raises:
        KeyError: as `library_grammar`.
    """
    return Constraint(ConstraintKind.LARK, library_grammar(name), lexer=Lexer.ANYWHERE)
