"""Tables of grammars without a lexer: GBNF, EBNF, and Lark with `Lexer.ANYWHERE`. Any division of a text into terminals counts.

Terminals are made as large as the rules allow (`context_free.regular_terminals`); tables and parser are those of grammars with a lexer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lark.grammar import NonTerminal, Rule
from lark.grammar import Terminal as LarkTerminal

from rtlang_grammars.context_free.cfg import Cfg, Terminal, TokenSymbol
from rtlang_grammars.context_free.left_recursion import without_left_recursion
from rtlang_grammars.context_free.lexer_build.anywhere_automaton import AnywhereAutomaton
from rtlang_grammars.context_free.lexer_build.inherited_temperatures import with_temperatures
from rtlang_grammars.context_free.lexer_build.parser_tables import ParserTables
from rtlang_grammars.context_free.regular_terminals import with_regular_terminals
from rtlang_grammars.lowering.lexed_tables import LexedTables
from rtlang_grammars.lowering.report_tables import reports_of
from rtlang_grammars.machine.lexer_run.lexer_layout import ANYWHERE
from rtlang_grammars.machine.lexer_run.lexer_tables import RuleReports
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MANY_BYTES = 24


class AnywhereTables(LexedTables):
    """The tables of one grammar; see `LexedTables`."""

    def __init__(self, cfg: Cfg, budget: Budget, ignored: Sequence[Terminal] = ()) -> None:
        """Compile a grammar.

        Args:
            ignored: terminals that may stand before all others and at the end. A grammar with such keeps its terminals as they are.
        Raises:
            GrammarError: it cannot be made within the limits.
        """
        self.cfg = cfg if ignored else with_regular_terminals(cfg, budget)
        try:
            rules, self.reports = _parser(self.cfg, ignored, budget)
        except GrammarError as error:
            budget.check()
            if cfg.has_options:  # without left recursion, rules are not what is written
                reason = re.sub(r"^Lark grammar: |(?<=rule )\d+ ", "", error.reason)
                raise GrammarError(
                    f"options of rules: {reason}; make what is repeated or comes first not empty"
                ) from None
            self.cfg = without_left_recursion(
                self.cfg, budget
            )  # rules that begin with themselves after parts that may be empty
            rules, self.reports = _parser(self.cfg, ignored, budget)
        terminals = (*self.cfg.terminals, *ignored)
        self.names = [each.name for each in terminals]
        self.token_sets = {each.tokens for each in terminals if each.tokens is not None}
        self.ignored, self.columns = frozenset(range(len(self.cfg.terminals), len(terminals))), None
        self._automaton = automaton = AnywhereAutomaton(terminals, budget)
        automaton.end_only_before(_followers(rules, self.ignored))
        self._join_up(rules, automaton, ANYWHERE, budget)

    @property
    def may_ignore_anything(self) -> bool:
        """Whether ignored terminals may hold most other text and end anywhere, as comments can: a token then has too many readings."""
        return any(self._automaton.may_end_within_runs(each, _MANY_BYTES) for each in self.ignored)


def _parser(cfg: Cfg, ignored: Sequence[Terminal], budget: Budget) -> tuple[ParserTables, RuleReports]:
    names = [f"{number} {each.name}" for number, each in enumerate((*cfg.terminals, *ignored))]
    heads = [f"{number} {each.name}" for number, each in enumerate(cfg.rules)]
    rules = [
        Rule(
            NonTerminal(heads[number]),
            [
                LarkTerminal(names[each.terminal]) if isinstance(each, TokenSymbol) else NonTerminal(heads[each.rule])
                for each in alternative
            ],
        )
        for number, rule in enumerate(cfg.rules)
        for alternative in rule.alternatives
    ]
    options = {heads[number]: rule.options for number, rule in enumerate(cfg.rules) if rule.options is not None}
    built = {
        heads[number]: terminal
        for number, rule in enumerate(cfg.rules)
        for alternative in rule.alternatives
        if len(alternative) == 1 and isinstance(alternative[0], TokenSymbol)
        if (terminal := cfg.terminals[alternative[0].terminal].built) is not None
    }
    plain, start, origins = with_temperatures(tuple(rules), heads[cfg.start], options, budget)
    tables = ParserTables(plain, start, names, budget)
    return tables, reports_of(tables.head_names, origins, options, built, has_budgets=_has_budgets(cfg))


def _has_budgets(cfg: Cfg) -> bool:
    return any(each.built is not None and each.built.max_tokens is not None for each in cfg.terminals)


def _followers(rules: ParserTables, ignored: frozenset[int]) -> list[set[int]]:
    """For each terminal those that may follow it. Ignored ones take as much as they can of what is ignored."""
    followers: list[set[int]] = []
    for terminal, column in enumerate(rules.shifts.T[:-1]):
        contexts = set(rules.contexts[column[column >= 0]].tolist())
        followers.append({each for context in contexts for each in rules.rows[context]} | ignored)
        if terminal in ignored:
            others = set(range(rules.num_terminals)) - ignored
            followers[-1] = others if len(ignored) == 1 else others | ignored
    return followers
