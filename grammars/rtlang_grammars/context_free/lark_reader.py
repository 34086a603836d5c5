r"""Reader of Lark grammars.

The language is that of lark's Earley parser with the dynamic_complete lexer: a string is accepted if some division into tokens satisfies
the rules. The priorities and the longest match of lark's standard lexer, which decide between a keyword and a name, are not modelled; use
a lookahead in the terminal of the name to exclude keywords. A terminal is the set of strings that its pattern matches in full, which
differs from lark as follows:

- all alternatives count, not only the first that Python's `re` finds (`a|ab` matches `ab`); for lazy quantifiers see `lazy_repeats`,
- assertions see only the string of their own token, and any strings of the ignored terminals may be ignored,
- a backslash in a regular expression is read literally (`\\"` is a backslash and a quote),
- a terminal may match the empty string, which makes it optional.

Aliases, `?`, `!` and priorities affect parse trees, not the language; they are parsed and dropped. `%import` finds lark's `common` and the
grammars of this package's library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rtlang_grammars.context_free.cfg import Call, Cfg, Symbol, Terminal
from rtlang_grammars.context_free.ebnf import CfgBuilder, Name, Pattern
from rtlang_grammars.context_free.lark_modules import Definition, Module, load_module
from rtlang_grammars.context_free.lark_terminals import TerminalPatterns
from rtlang_grammars.context_free.lazy_repeats import terminal_language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget


@dataclass(frozen=True, slots=True)
class _Template:
    """A template passed as an argument to another template."""

    definition: Definition


_Argument = Symbol | _Template
_Environment = dict[str, _Argument]


def read_lark(source: str, *, start: str = "start", budget: Budget | None = None) -> Cfg:
    """Read a Lark grammar.

    Args:
        source: the text of the grammar.
        start: the start rule.
        budget: the limits of the reader.
    Returns:
        A pruned grammar. Left recursion is kept: see `left_recursion`.
    Raises:
        GrammarError: a syntax error or an unsupported feature, with `line:column`; the language is empty; or the grammar is too large.
    """
    budget = budget or Budget()
    module = load_module(source, budget)
    return _Reader(module, budget).read(start)


class _Reader:
    """The state of one call of `read_lark`."""

    def __init__(self, module: Module, budget: Budget) -> None:
        self.module, self.budget = module, budget
        self.builder = CfgBuilder(budget)
        self.patterns = TerminalPatterns(budget)
        self.rules: dict[tuple[object, ...], Call] = {}
        self.worklist: list[tuple[Call, Definition, _Environment]] = []

    def read(self, start: str) -> Cfg:
        definition = self.module.definitions.get(start)
        if definition is None or definition.is_terminal or definition.parameters:
            raise GrammarError(f"Lark grammar: start rule {start} is not defined")
        if self.module.ignored:
            self.builder.ignore(
                [
                    self._terminal(
                        f"ignored {index}", 0, self.patterns.of_expression(expression, self.module), location
                    )
                    for index, (expression, location) in enumerate(self.module.ignored)
                ]
            )
        root = self._rule(definition, ())
        while self.worklist:
            rule, definition, environment = self.worklist.pop()
            self.builder.define(rule, definition.expression, self._resolver(environment))
        return self.builder.build(root)

    def _resolver(self, environment: _Environment) -> Callable[[Name | Pattern], Symbol]:
        def resolve(part: Name | Pattern) -> Symbol:
            found = self._resolve(part, environment)
            if isinstance(found, _Template):
                assert isinstance(part, Name)
                raise GrammarError(f"Lark grammar: template {part.name} requires arguments", part.location)
            return found

        return resolve

    def _resolve(self, part: Name | Pattern, environment: _Environment) -> _Argument:
        self.budget.spend(states=1)
        if isinstance(part, Pattern):
            return self.builder.terminal(
                ("pattern", part.source), lambda: self._terminal(part.source, 0, part.source, part.location)
            )
        bound = environment.get(part.name)
        if bound is not None and not isinstance(bound, _Template):
            if part.arguments:
                raise GrammarError(f"Lark grammar: {part.name} is not a template", part.location)
            return bound
        definition = bound.definition if isinstance(bound, _Template) else self.module.definitions[part.name]
        if definition.is_terminal:
            return self.builder.terminal(
                ("terminal", id(definition)),
                lambda: self._terminal(
                    definition.name, definition.priority, self.patterns.of(definition), definition.location
                ),
            )
        if definition.parameters and not part.arguments:
            return _Template(definition)
        if len(definition.parameters) != len(part.arguments):
            raise GrammarError(
                f"Lark grammar: {part.name} takes {len(definition.parameters)} arguments, but {len(part.arguments)} were given",
                part.location,
            )
        arguments: list[_Argument] = []
        for argument in part.arguments:
            assert isinstance(argument, Name | Pattern)
            arguments.append(self._resolve(argument, environment))
        return self._rule(definition, tuple(arguments))

    def _rule(self, definition: Definition, arguments: tuple[_Argument, ...]) -> Call:
        key = (
            id(definition),
            *[("t", id(each.definition)) if isinstance(each, _Template) else each for each in arguments],
        )
        rule = self.rules.get(key)
        if rule is None:
            rule = self.rules[key] = self.builder.new_rule(definition.name)
            self.worklist.append((rule, definition, dict(zip(definition.parameters, arguments, strict=True))))
        return rule

    def _terminal(self, name: str, priority: int, pattern: str, location: str) -> Terminal:
        try:
            language = terminal_language(pattern, self.budget)
            language.is_empty(self.budget)
        except RecursionError:
            raise GrammarError(f"Lark grammar: terminal {name[:80]} is too complex", location) from None
        except GrammarError as error:
            self.budget.check()
            raise GrammarError(f"Lark grammar: terminal {name[:80]}: {error.reason}", location) from None
        return Terminal(name, language, priority)
