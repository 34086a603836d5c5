"""Ready-made Lark grammars that travel with the package, in `library/`."""

from __future__ import annotations

from importlib import resources

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind

LIBRARY = (
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
"""Names that `library_grammar` takes."""


def library_grammar(name: str) -> str:
    """The text of a ready grammar.

    Raises:
        KeyError: no grammar has this name; says which there are.
    """
    if name not in LIBRARY:
        raise KeyError(f"no grammar is called {name!r}; there are {', '.join(LIBRARY)}")
    return (resources.files("rtlang_grammars.context_free") / "library" / f"{name}.lark").read_text(encoding="utf-8")


def library_constraint(name: str) -> Constraint:
    """The same as a constraint.

    Raises:
        KeyError: as `library_grammar`.
    """
    return Constraint(ConstraintKind.LARK, library_grammar(name))
