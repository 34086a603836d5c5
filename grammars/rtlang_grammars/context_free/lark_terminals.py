"""Translates the terminals of a Lark grammar to regular expressions.

As in lark, the pattern of a terminal is assembled as text from the patterns of the terminals it uses, so an assertion in one part sees the
next part. Text is charged to the budget each time it is copied into another pattern.
"""

from __future__ import annotations

from rtlang_grammars.context_free.ebnf import Choice, Expression, Name, Pattern, Repeat, Sequence, names_in
from rtlang_grammars.context_free.lark_modules import Definition, Module
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget


class TerminalPatterns:
    """The patterns of terminals, each assembled once. Owned by one reader."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._patterns: dict[int, str] = {}

    def of(self, definition: Definition) -> str:
        """The pattern of a terminal, in the python dialect.

        Raises:
            GrammarError: the terminal is recursive, uses a rule, or is too long.
        """
        is_open: set[int] = set()
        stack = [definition]
        while stack:
            top = stack[-1]
            if id(top) in self._patterns:
                stack.pop()
                continue
            used = [
                each
                for name in names_in(top.expression)
                if id(each := _terminal(name, top.scope)) not in self._patterns
            ]
            if not used:
                self._patterns[id(top)] = self._render(top.expression, top.scope)
                continue
            if id(top) in is_open or any(each is top for each in used):
                raise GrammarError(
                    f"Lark grammar: terminal {top.name} is recursive; only rules may be recursive", top.location
                )
            is_open.add(id(top))
            stack.extend(used)
        return self._patterns[id(definition)]

    def of_expression(self, expression: Expression, module: Module) -> str:
        """The pattern of an expression over terminals.

        Raises:
            GrammarError: as `of`.
        """
        for name in names_in(expression):
            self.of(_terminal(name, module.definitions))
        return self._render(expression, module.definitions)

    def _render(self, expression: Expression, scope: dict[str, Definition]) -> str:
        match expression:
            case Pattern():
                text = expression.source
            case Name():
                text = f"(?:{self._patterns[id(_terminal(expression, scope))]})"
            case Sequence():
                text = "".join(self._render(item, scope) for item in expression.items)
            case Choice():
                text = f"(?:{'|'.join(self._render(way, scope) for way in expression.alternatives)})"
            case Repeat():
                high = "" if expression.high is None else expression.high
                text = f"(?:{self._render(expression.item, scope)}){{{expression.low},{high}}}"
        if len(text) > self._budget.limits.max_source_bytes:
            raise GrammarError(
                f"too long: a terminal, with the terminals that it uses, may have at most {self._budget.limits.max_source_bytes} bytes"
            )
        self._budget.spend(num_bytes=len(text))
        return text


def _terminal(name: Name, scope: dict[str, Definition]) -> Definition:
    definition = scope.get(name.name)
    if definition is None:
        raise GrammarError(f"Lark grammar: {name.name} is not defined", name.location)
    if not definition.is_terminal:
        raise GrammarError(f"Lark grammar: a terminal cannot use the rule {name.name}", name.location)
    return definition
