"""Loads the definitions of a Lark grammar and of its imports.

As in lark, an imported name keeps its name if it is imported explicitly and is otherwise prefixed with the name of its grammar. Only
grammars that ship with this package or with lark can be imported; a grammar never causes any other file to be opened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources

from rtlang_grammars.context_free import lark_syntax
from rtlang_grammars.context_free.ebnf import Choice, Expression, names_in
from rtlang_grammars.context_free.lark_syntax import Ignore, Import, Mode, parse_lark
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_IMPORT_DEPTH = 8
_LARK_GRAMMARS = ("common",)


@dataclass(eq=False, slots=True)
class Definition:
    """A rule, a template or a terminal. Only changed while loading, by `%extend`.

    Attributes:
        scope: resolves the names in a terminal. The names in a rule are resolved in the whole grammar.
    """

    name: str
    is_terminal: bool
    parameters: tuple[str, ...]
    priority: int
    expression: Expression
    location: str
    scope: dict[str, Definition]


@dataclass(slots=True)
class Module:
    """A grammar with its imports.

    Attributes:
        definitions: rules and terminals by name.
        ignored: the expressions of `%ignore` and their locations.
    """

    definitions: dict[str, Definition] = field(default_factory=dict)
    ignored: list[tuple[Expression, str]] = field(default_factory=list)


def load_module(source: str, budget: Budget) -> Module:
    """Load the definitions of a grammar and check that every name in them is defined.

    Raises:
        GrammarError: a syntax error, an unknown import, or an undefined or duplicate name; with `line:column`.
    """
    module = _Loader(budget).load(source, "", str, 0)
    for definition in module.definitions.values():
        known = definition.scope if definition.is_terminal else module.definitions
        _check_names(definition.expression, known, definition.parameters, budget)
        for parameter in definition.parameters:
            if parameter in module.definitions:
                raise GrammarError(
                    f"Lark grammar: template parameter {parameter} has the same name as a rule", definition.location
                )
    for expression, _ in module.ignored:
        _check_names(expression, module.definitions, (), budget)
    return module


def _check_names(
    expression: Expression, known: dict[str, Definition], parameters: tuple[str, ...], budget: Budget
) -> None:
    for name in names_in(expression):
        budget.spend()
        if name.name not in known and name.name not in parameters:
            raise GrammarError(f"Lark grammar: {name.name} is not defined", name.location)


class _Loader:
    """The state of one call of `load_module`."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.extended: list[tuple[Definition, dict[str, Definition]]] = []

    def load(self, source: str, origin: str, rename: Callable[[str], str], depth: int) -> Module:
        statements = parse_lark(source, self.budget, origin=origin, rename=rename)
        module = Module()
        self._import_all([each for each in statements if isinstance(each, Import)], module, rename, depth)
        scope = dict(module.definitions)
        for statement in statements:
            self.budget.spend(states=1)
            if isinstance(statement, lark_syntax.Definition):
                self._define(statement, module, scope)
            elif isinstance(statement, Ignore):
                module.ignored.append((statement.expression, statement.location))
        scope.update(module.definitions)
        # The extension of an imported terminal may use names of this grammar and of the imported one.
        for definition, added in self.extended:
            definition.scope = {**added, **definition.scope}
        self.extended.clear()
        return module

    def _define(self, statement: lark_syntax.Definition, module: Module, scope: dict[str, Definition]) -> None:
        before = module.definitions.get(statement.name)
        what = "terminal" if statement.is_terminal else "rule"
        if statement.mode is Mode.DEFINE and before is not None:
            raise GrammarError(f"Lark grammar: {what} {statement.name} is defined twice", statement.location)
        if statement.mode is not Mode.DEFINE and before is None:
            raise GrammarError(
                f"Lark grammar: %override and %extend require a definition of the {what} {statement.name}",
                statement.location,
            )
        if statement.mode is Mode.EXTEND:
            assert before is not None
            if before.parameters != statement.parameters:
                raise GrammarError(
                    f"Lark grammar: %extend of {statement.name} must have the same parameters as its definition",
                    statement.location,
                )
            before.expression = Choice((statement.expression, before.expression))
            if before.scope is not scope:
                self.extended.append((before, scope))
            return
        module.definitions[statement.name] = Definition(
            statement.name,
            statement.is_terminal,
            statement.parameters,
            statement.priority,
            statement.expression,
            statement.location,
            scope,
        )

    def _import_all(self, imports: list[Import], module: Module, rename: Callable[[str], str], depth: int) -> None:
        by_path: dict[tuple[str, ...], list[Import]] = {}
        for each in imports:
            by_path.setdefault(each.path, []).append(each)
        for path, statements in by_path.items():
            if depth >= _MAX_IMPORT_DEPTH:
                raise GrammarError(
                    f"Lark grammar: imports are nested too deeply: more than {_MAX_IMPORT_DEPTH} levels",
                    statements[0].location,
                )
            aliases = {name: alias for each in statements for name, alias in each.names}
            mangle = _mangler("__".join(path), aliases, rename)
            text = _library_text(path, statements[0].location)
            imported = self.load(text, f"{'.'.join(path)}.lark ", mangle, depth + 1)
            for each in statements:
                for name, _ in each.names:
                    if mangle(name) not in imported.definitions:
                        raise GrammarError(
                            f"Lark grammar: the grammar {'.'.join(path)} does not define {name}", each.location
                        )
            for name in _dependencies(imported, [mangle(name) for name in aliases]):
                if name in module.definitions:
                    raise GrammarError(f"Lark grammar: {name} is imported twice", statements[0].location)
                module.definitions[name] = imported.definitions[name]


def _mangler(prefix: str, aliases: dict[str, str], rename: Callable[[str], str]) -> Callable[[str], str]:
    """Return the function that renames the definitions of an imported grammar."""

    def mangle(name: str) -> str:
        if name in aliases:
            return rename(aliases[name])
        return rename(f"_{prefix}__{name[1:]}" if name.startswith("_") else f"{prefix}__{name}")

    return mangle


def _dependencies(module: Module, names: list[str]) -> list[str]:
    """The names of a module on which some names depend, themselves included."""
    found = dict.fromkeys(names)
    worklist = list(names)
    while worklist:
        definition = module.definitions[worklist.pop()]
        for name in names_in(definition.expression):
            if name.name not in found and name.name in module.definitions:
                found[name.name] = None
                worklist.append(name.name)
    return list(found)


def _library_text(path: tuple[str, ...], location: str) -> str:
    """The source of a grammar that ships with this package or with lark."""
    library = resources.files("rtlang_grammars.context_free") / "library"
    file = library / f"{path[0]}.lark"
    if path[0] in _LARK_GRAMMARS:
        file = resources.files("lark") / "grammars" / f"{path[0]}.lark"
    if len(path) > 1 or not file.is_file():
        known = sorted(each.name.removesuffix(".lark") for each in library.iterdir() if each.name.endswith(".lark"))
        raise GrammarError(
            f"Lark grammar: unknown grammar {'.'.join(path)} in %import; available are {', '.join([*_LARK_GRAMMARS, *known])}",
            location,
        )
    return file.read_text(encoding="utf-8")
