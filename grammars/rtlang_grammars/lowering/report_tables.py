"""The options of rules that matchers report, by the numbers of the parser's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rtlang_grammars.context_free.notation.rule_options import RuleOptions
from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.machine.lexer_run.lexer_tables import Capture, RuleReports


def reports_of(
    heads: Sequence[str],
    origins: Mapping[str, tuple[str, float | None]],
    options: Mapping[str, RuleOptions],
    built: Mapping[str, BuiltTerminal],
    *,
    has_budgets: bool,
) -> RuleReports:
    """What is reported of the rules of a grammar.

    Args:
        heads: the names of the parser's rules, by number.
        origins: the names of these in the grammar, and their temperatures; see `inherited_temperatures`.
        options: of the rules of the grammar.
        built: the terminals of rules that are one.
        has_budgets: whether some terminal has a budget of tokens.
    """
    captures: dict[int, Capture] = {}
    temperatures: dict[int, float] = {}
    for number, written in enumerate(heads):
        name, temperature = origins.get(written, (written, None))
        if temperature is not None:
            temperatures[number] = temperature
        found = options.get(name)
        if found is None or not found.has_captures:
            continue
        terminal = built.get(name) if found.marker else None
        captures[number] = Capture(
            found.capture,
            None if terminal is None else terminal.body,
            None if terminal is None else terminal.marker,
            found.marker_capture,
            found.is_hidden,
        )
    return RuleReports(temperatures, captures, has_budgets)
