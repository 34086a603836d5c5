"""Reads Lark grammars without a lexer: a string matches if some division into terminals satisfies the rules.

The language is that of lark's Earley parser with the dynamic_complete lexer. The priorities and the longest match of lark's other lexers
are not modelled: use a look-ahead in the terminal of a name to exclude keywords, or a lexer (`lexing`). `lark` itself reads the text.
A terminal is the set of strings that its pattern matches in full, which differs from lark as follows:

- all alternatives count, not only the first that Python's `re` finds (`a|ab` matches `ab`); for lazy quantifiers see `lazy_repeats`,
- assertions see only the string of their own token, and any strings of the ignored terminals may be ignored,
- a terminal may match the empty string, which makes it optional.
"""

from __future__ import annotations

from lark.grammar import Terminal as LarkTerminal

from rtlang_grammars.context_free import lark_source
from rtlang_grammars.context_free.cfg import Call, Cfg, Symbol, Terminal
from rtlang_grammars.context_free.ebnf import CfgBuilder
from rtlang_grammars.context_free.lazy_repeats import terminal_language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import SpecialTokens


def read_lark(
    source: str, *, start: str = "start", budget: Budget | None = None, tokens: SpecialTokens | None = None
) -> Cfg:
    """Read a Lark grammar.

    Args:
        source: the text of the grammar.
        start: the start rule.
        budget: the limits of the reader.
        tokens: of the vocabulary; None: every token is taken for known.
    Returns:
        A pruned grammar. Left recursion is kept: see `left_recursion`.
    Raises:
        GrammarError: a syntax error or an unsupported feature, with `line:column`; the language is empty; or the grammar is too large.
    """
    budget = budget or Budget()
    budget.check_source(source)
    found = lark_source.read_source(source, start=start, budget=budget, tokens=tokens)
    builder = CfgBuilder(budget)
    terminals = {each.name: each for each in found.terminals}
    if found.ignored:
        builder.ignore([_terminal(terminals[name], budget) for name in sorted(found.ignored)])
    rules: dict[str, Call] = {}
    for rule in found.rules:
        if rule.origin.name not in rules:
            rules[rule.origin.name] = builder.new_rule(rule.origin.name)

    def resolve(name: str) -> Symbol:
        return builder.terminal(name, lambda: _terminal(terminals[name], budget))

    for rule in found.rules:
        budget.spend(states=1)
        builder.add(
            rules[rule.origin.name],
            tuple(
                resolve(symbol.name) if isinstance(symbol, LarkTerminal) else rules[symbol.name]
                for symbol in rule.expansion
            ),
        )
    return builder.build(rules[start])


def _terminal(terminal: lark_source.Terminal, budget: Budget) -> Terminal:
    if terminal.tokens is not None:
        return Terminal.of_tokens(terminal.name, terminal.tokens)
    try:
        language = terminal_language(terminal.pattern, budget)
        language.is_empty(budget)
    except RecursionError:
        raise GrammarError(f"Lark grammar: terminal {terminal.name[:80]} is too complex") from None
    except GrammarError as error:
        budget.check()
        raise GrammarError(f"Lark grammar: terminal {terminal.name[:80]}: {error.reason}") from None
    return Terminal(terminal.name, language, terminal.priority)
