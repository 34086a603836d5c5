"""Reads Lark grammars without a lexer: a string matches if some division into terminals satisfies the rules.

Accepts what lark's Earley parser with the dynamic_complete lexer accepts. The priorities and the longest match of lark's other lexers
are not modelled: use a look-ahead in the terminal of a name to exclude keywords, or a lexer (`lexing`). `lark` itself reads the text.
A terminal is the set of strings that its pattern matches in full, which differs from lark as follows:

- all alternatives count, not only the first that Python's `re` finds (`a|ab` matches `ab`); for lazy quantifiers see `lazy_repeats`,
- assertions see only the string of their own token, and any strings of the ignored terminals may be ignored,
- a terminal may match the empty string, which makes it optional.
"""

from __future__ import annotations

from lark.grammar import NonTerminal
from lark.grammar import Symbol as LarkSymbol
from lark.grammar import Terminal as LarkTerminal

from rtlang_grammars.context_free import lark_source
from rtlang_grammars.context_free.cfg import Cfg, Symbol, Terminal, with_ignored
from rtlang_grammars.context_free.ebnf import CfgBuilder
from rtlang_grammars.context_free.folding import regular_languages
from rtlang_grammars.context_free.lazy_repeats import terminal_language
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import SpecialTokens

_MAX_SYMBOLS = 20_000  # of a grammar as one regular language


def read_lark(
    source: str,
    *,
    start: str = "start",
    budget: Budget | None = None,
    tokens: SpecialTokens | None = None,
    splits: bool = False,
) -> Cfg:
    """Read a Lark grammar.

    Args:
        source: the text of the grammar.
        start: the start rule.
        budget: the limits of the reader.
        tokens: of the vocabulary; None: every token is taken for known.
        splits: see `lark_source.read_source`.
    Returns:
        A pruned grammar. Left recursion is kept: see `left_recursion`.
    Raises:
        GrammarError: a syntax error or an unsupported feature, with `line:column`; the language is empty; or the grammar is too large.
    """
    budget = budget or Budget()
    return with_ignored(*_read(source, start, budget, tokens, splits=splits))


def read_lark_apart(
    source: str, *, budget: Budget | None = None, tokens: SpecialTokens | None = None
) -> tuple[Cfg, tuple[Terminal, ...]]:
    """`read_lark` with the ignored terminals apart: any of them may stand before each terminal of the grammar, and at the end.

    None of them matches the empty string.
    """
    return _read(source, "start", budget or Budget(), tokens, splits=False)


def _read(
    source: str, start: str, budget: Budget, tokens: SpecialTokens | None, *, splits: bool
) -> tuple[Cfg, tuple[Terminal, ...]]:
    budget.check_source(source)
    found = lark_source.read_source(source, start=start, budget=budget, tokens=tokens, splits=splits)
    for name, options in found.options.items():
        if (
            options.capture
            or options.marker_capture
            or options.is_hidden
            or options.temperature is not None
            or options.max_tokens
        ):
            raise GrammarError(
                f"Lark grammar: rule {name}: capture, temperature, max_tokens and stop need a lexer; lexer=anywhere has none"
            )
    builder = CfgBuilder(budget)
    terminals = {each.name: each for each in found.terminals}
    ignored = [_terminal(terminals[name], budget) for name in sorted(found.ignored)]
    alternatives: dict[str, list[tuple[LarkSymbol, ...]]] = {}
    for rule in found.rules:
        budget.spend(states=1)
        alternatives.setdefault(rule.origin.name, []).append(tuple(rule.expansion))
    rules = {name: builder.new_rule(name) for name in alternatives}

    def resolve(symbol: LarkSymbol) -> Symbol:
        if isinstance(symbol, LarkTerminal):
            return builder.terminal(symbol.name, lambda: _terminal(terminals[symbol.name], budget))
        return rules[symbol.name]

    for name, listed in alternatives.items():
        for alternative in _recursive_at_the_end(name, listed):
            builder.add(rules[name], tuple(map(resolve, alternative)))
    return builder.build(rules[start]), tuple(_runs(ignored, budget))


def _runs(ignored: list[Terminal], budget: Budget) -> list[Terminal]:
    """Terminals for one or more of some, as few as possible."""
    found = [each for each in ignored if each.tokens is not None]
    texts = [each for each in ignored if each.tokens is None]
    if texts:
        try:
            run = texts[0].language.union(*(each.language for each in texts[1:])).repeat(1).bounded(1, None)
            texts = [Terminal(" | ".join(each.name for each in texts), run)]
        except GrammarError:  # one looks behind itself
            texts = [Terminal(each.name, each.language.bounded(1, None)) for each in texts]
    return found + [each for each in texts if not each.language.is_empty(budget)]


def lark_language(source: str, budget: Budget | None = None) -> Language:
    """The texts of a Lark grammar as a regular language, divided into terminals in any way, as with `Lexer.ANYWHERE`.

    Raises:
        GrammarError: as `read_lark`; or the grammar is not regular: a rule contains itself in its middle, or it is too large.
    """
    budget = budget or Budget()
    cfg = read_lark(source, budget=budget, splits=True)
    found = regular_languages(cfg, budget, max_size=_MAX_SYMBOLS).get(cfg.start)
    if found is None:
        raise GrammarError(
            "Lark grammar: it is not regular: a rule contains itself other than at its beginning or end, a terminal looks at the text "
            f"around it, or there are more than {_MAX_SYMBOLS} symbols once all rules are written out"
        )
    return found


def _recursive_at_the_end(name: str, alternatives: list[tuple[LarkSymbol, ...]]) -> list[tuple[LarkSymbol, ...]]:
    """A rule `r: a | r a`, as lark writes repeats, as `r: a | a r`; any other rule as it is."""
    once = [each for each in alternatives if each[:1] != (NonTerminal(name),)]
    again = [each[1:] for each in alternatives if each[:1] == (NonTerminal(name),)]
    if sorted(once, key=str) != sorted(again, key=str):
        return alternatives
    return [*once, *((*each, NonTerminal(name)) for each in once)]


def _terminal(terminal: lark_source.SourceTerminal, budget: Budget) -> Terminal:
    if terminal.tokens is not None:
        return Terminal.of_tokens(terminal.name, terminal.tokens)
    try:
        language = _language(terminal, budget)
        language.is_empty(budget)
    except RecursionError:
        raise GrammarError(f"Lark grammar: terminal {terminal.name[:80]} is too complex", terminal.location) from None
    except GrammarError as error:
        budget.check()
        raise GrammarError(f"Lark grammar: terminal {terminal.name[:80]}: {error.reason}", terminal.location) from None
    return Terminal(terminal.name, language, terminal.priority)


def _language(terminal: lark_source.SourceTerminal, budget: Budget) -> Language:
    if terminal.built is None:
        return terminal_language(terminal.pattern, budget)
    language = terminal.built.language
    if not terminal.built.is_lazy:
        return language
    return language.minus(language.concat(Language.any_text().bounded(1, None)))
