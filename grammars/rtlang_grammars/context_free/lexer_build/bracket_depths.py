"""Refuses indented grammars whose brackets are not balanced, where a text may have no way on.

Newlines mean nothing inside brackets, and a bracket cannot close without an open one. So a rule that opens brackets in one alternative only
leaves texts in which the newline that must come next is never found, or the closing bracket is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtlang_grammars.context_free.lexer_build.indentation import Columns
from rtlang_grammars.context_free.lexer_build.parser_tables import ParserTables
from rtlang_grammars.spec.errors import GrammarError

_LOWEST = -64


def check_brackets(rules: ParserTables, columns: Columns, names: Sequence[str]) -> None:
    """Check that each rule changes the depth of brackets equally in all alternatives, and closes none that it did not open at the start.

    Raises:
        GrammarError: the brackets are not balanced.
    """
    heads = rules.heads.tolist()
    listed = ", ".join(sorted({names[each] for each, change in columns.brackets.items() if change})) or "none"
    changes: dict[int, int] = {}

    def change_of(symbol: int) -> int | None:
        return columns.brackets.get(symbol, 0) if symbol >= 0 else changes.get(-1 - symbol)

    def unbalanced(head: int, reason: str) -> GrammarError:
        rule = rules.head_names[head]
        return GrammarError(
            f"Lark grammar: rule {rule[:80]}: {reason}, so texts may have no way on: newlines mean nothing inside brackets. "
            f"List matching brackets in open and close of the indentation (listed: {listed})"
        )

    num_known = -1
    while num_known < len(changes):
        num_known = len(changes)
        for head, symbols in zip(heads, rules.rule_symbols, strict=True):
            found = [change_of(symbol) for symbol in symbols]
            change = sum(each for each in found if each is not None)
            if None not in found and changes.setdefault(head, change) != change:
                raise unbalanced(head, "its alternatives do not open and close equally many brackets")
    lowest = dict.fromkeys(changes, 0)
    before: dict[int, int] = {}
    while before != lowest:
        before = dict(lowest)
        for head, symbols in zip(heads, rules.rule_symbols, strict=True):
            depth = 0
            for symbol in symbols:
                low = lowest[-1 - symbol] if symbol < 0 else min(change_of(symbol) or 0, 0)
                lowest[head] = max(min(lowest[head], depth + low), _LOWEST)
                depth += change_of(symbol) or 0
    start = int(rules.start_head)
    if changes[start] > 0:
        raise unbalanced(start, "it opens more brackets than it closes")
    if lowest[start] < 0:
        raise unbalanced(start, "it closes more brackets than it opens")
