"""Lark grammars that ship with the package, in `library/` and `library/lexed/`, and how each is read."""

from __future__ import annotations

from importlib import resources

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Indentation, Lexer

_ANYWHERE = (
    "arithmetic",
    "chess_san",
    "csv",
    "dates",
    "email_header",
    "ini",
    "json",
    "markdown_table",
    "python_subset",
    "sql_select",
    "url",
    "xml_subset",
)
_LEXED = {
    "command_line": None,
    "mermaid": None,
    "python3": Indentation(
        "_NL", "_INDENT", "_DEDENT", ("LPAR", "LSQB", "LBRACE"), ("RPAR", "RSQB", "RBRACE"), tab_len=1000
    ),
    "sql_core": None,
    "sql_select_mysql": None,
    "sql_select_postgres": None,
    "sql_select_sqlite": None,
    "typescript_types": None,
    "yaml_subset": Indentation("_NL", "_INDENT", "_DEDENT"),
}
"""Grammars for the lexer `longest`, with their indentation."""

LIBRARY = tuple(sorted((*_ANYWHERE, *_LEXED)))
"""Names that `library_grammar` accepts."""


def library_grammar(name: str) -> str:
    """The text of a library grammar.

    Raises:
        KeyError: unknown name; lists the known ones.
    """
    if name not in LIBRARY:
        raise KeyError(f"library grammar = {name!r}: expected one of {', '.join(LIBRARY)}")
    folder = resources.files("rtlang_grammars.context_free") / "library"
    return ((folder / "lexed" if name in _LEXED else folder) / f"{name}.lark").read_text(encoding="utf-8")


def library_constraint(name: str) -> Constraint:
    """A library grammar as a constraint, with the lexer and the indentation that it is written for.

    Raises:
        KeyError: as `library_grammar`.
    """
    source = library_grammar(name)
    if name in _ANYWHERE:
        return Constraint(ConstraintKind.LARK, source, lexer=Lexer.ANYWHERE)
    return Constraint(ConstraintKind.LARK, source, indentation=_LEXED[name])
