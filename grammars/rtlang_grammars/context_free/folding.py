"""Finds the rules of a grammar that are regular, and their languages.

Rules that are not recursive, and sets of rules that are only right-recursive or only left-recursive, are regular. Their equations are
solved by substitution and Arden's lemma: X = aX | b has the solution a*b. Rules that exceed the size limit are left
out, and so are rules with a terminal that has a lookbehind, because it must not move within a string. Source: Arden 1961.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rtlang_grammars.context_free.cfg import (
    Cfg,
    RuleCall,
    Symbol,
    TokenSymbol,
    strongly_connected_components,
)
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_LINEAR_RULES = 12
_MAX_DEPTH = 60


@dataclass(frozen=True, slots=True)
class _Part:
    """A language under construction, with the number of its symbols and a bound on its operator depth."""

    language: Language
    size: int
    depth: int


_EMPTY = _Part(Language.literal(""), 0, 0)
_Equation = dict[int, _Part]
"""The equation of a rule: the coefficient of each rule of its component, and under -1 the constant part."""
_NO_CALL = -1


def regular_languages(cfg: Cfg, budget: Budget | None = None, *, max_size: int = 2000) -> dict[int, Language]:
    """The languages of the rules that are found to be regular and have no options, nor have the rules that they call.

    Args:
        cfg: the grammar.
        budget: charged for the construction.
        max_size: the maximal number of symbols of a language; larger rules and the rules that use them are left out.
    Raises:
        GrammarError: the budget ran out.
    """
    return {index: part.language for index, part in _Folding(cfg, budget or Budget(), max_size).parts.items()}


class _Folding:
    """The state of one call of `regular_languages`."""

    def __init__(self, cfg: Cfg, budget: Budget, max_size: int) -> None:
        self.cfg, self.budget, self.max_size = cfg, budget, max_size
        self.parts: dict[int, _Part] = {}
        calls = [
            list(dict.fromkeys(each.rule for way in rule.alternatives for each in way if isinstance(each, RuleCall)))
            for rule in cfg.rules
        ]
        for component in strongly_connected_components(len(cfg.rules), lambda index: calls[index]):
            if len(component) <= _MAX_LINEAR_RULES and not any(cfg.rules[index].options for index in component):
                self._fold(component)

    def _fold(self, component: Sequence[int]) -> None:
        for at_end in (True, False):
            equations = {index: self._equation(index, set(component), at_end) for index in component}
            known = {index: equation for index, equation in equations.items() if equation is not None}
            if len(known) == len(component):
                self._solve(known, at_end)
                return

    def _equation(self, index: int, members: set[int], at_end: bool) -> _Equation | None:
        """The equation of a rule; None if it is not linear on this side, or too large."""
        equation: _Equation = {}
        for alternative in self.cfg.rules[index].alternatives:
            self.budget.spend(states=1)
            rest, target = alternative, _NO_CALL
            edge = alternative[-1 if at_end else 0] if alternative else None
            if isinstance(edge, RuleCall) and edge.rule in members:
                rest, target = (alternative[:-1] if at_end else alternative[1:]), edge.rule
            part: _Part | None = _EMPTY
            for symbol in rest:
                part = self._concatenate(part, self._symbol(symbol, members))
            if part is None:
                return None
            if target in equation:
                joined = self._union(equation[target], part)
                if joined is None:
                    return None
                part = joined
            equation[target] = part
        return equation

    def _symbol(self, symbol: Symbol, members: set[int]) -> _Part | None:
        if isinstance(symbol, TokenSymbol):
            terminal = self.cfg.terminals[symbol.terminal]
            return _Part(terminal.language, 1, 1) if terminal.is_plain else None
        return None if symbol.rule in members else self.parts.get(symbol.rule)

    def _solve(self, equations: dict[int, _Equation], at_end: bool) -> None:
        """Eliminate the rules in turn, then substitute back."""
        order = list(equations)
        for at, index in enumerate(order):
            solved = self._solve_loop(equations[index], index, at_end)
            if solved is None:
                return
            equations[index] = solved
            for other in order[at + 1 :]:
                substituted = self._substitute(equations[other], index, solved, at_end)
                if substituted is None:
                    return
                equations[other] = substituted
        for index in reversed(order):
            total: _Part | None = None
            for target, part in equations[index].items():
                whole: _Part | None = part
                if target != _NO_CALL:
                    after = self.parts.get(target)
                    if after is None:
                        return
                    whole = self._concatenate(part, after) if at_end else self._concatenate(after, part)
                if whole is not None and total is not None:
                    whole = self._union(total, whole)
                if whole is None:
                    return
                total = whole
            if total is None:
                return
            self.parts[index] = total

    def _solve_loop(self, equation: _Equation, index: int, at_end: bool) -> _Equation | None:
        """Solve X = aX | b as X = a*b."""
        loop = equation.get(index)
        if loop is None:
            return equation
        star = self._build(lambda: loop.language.repeat(), loop.size + 1, loop.depth + 1)
        solved: _Equation = {}
        for target, part in equation.items():
            if target != index:
                joined = self._concatenate(star, part) if at_end else self._concatenate(part, star)
                if joined is None:
                    return None
                solved[target] = joined
        return solved

    def _substitute(self, equation: _Equation, index: int, solved: _Equation, at_end: bool) -> _Equation | None:
        before = equation.get(index)
        if before is None:
            return equation
        result = {target: part for target, part in equation.items() if target != index}
        for target, part in solved.items():
            joined = self._concatenate(before, part) if at_end else self._concatenate(part, before)
            if joined is not None and target in result:
                joined = self._union(result[target], joined)
            if joined is None:
                return None
            result[target] = joined
        return result

    def _concatenate(self, one: _Part | None, other: _Part | None) -> _Part | None:
        if one is None or other is None:
            return None
        if one is _EMPTY or other is _EMPTY:
            return other if one is _EMPTY else one
        return self._build(
            lambda: one.language.concat(other.language), one.size + other.size, max(one.depth, other.depth + 1)
        )

    def _union(self, one: _Part, other: _Part) -> _Part | None:
        return self._build(
            lambda: one.language.union(other.language), one.size + other.size, max(one.depth, other.depth) + 1
        )

    def _build(self, make: Callable[[], Language], size: int, depth: int) -> _Part | None:
        self.budget.spend(states=1)
        if size > self.max_size or depth > _MAX_DEPTH:
            return None
        try:
            language = make()
        except GrammarError:
            self.budget.check()  # raises if the budget was the cause; otherwise it is a lookbehind, which cannot move
            return None
        return _Part(language, size, depth)
