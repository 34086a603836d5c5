"""Where the texts of a grammar end that begin at a place of a given text: an Earley recognizer.

Items are kept by the position that they have reached. A rule that derives the empty text is passed where it is predicted, so that only
rules that began earlier are completed. Sources: Earley 1970; Aycock and Horspool 2002 (empty rules).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from rtlang_grammars.context_free.cfg import Cfg, RuleCall, nullable_rules
from rtlang_grammars.spec.limits import Budget

_Item = tuple[int, int, int, int]
"""A rule, one of its alternatives, the number of symbols that were matched, and the position where it began."""


def prefix_ends(cfg: Cfg, at: int, terminal_ends: Callable[[int, int], Iterable[int]], budget: Budget) -> list[int]:
    """The positions where a text of the start rule that begins at `at` may end, in order.

    Args:
        terminal_ends: the positions where a terminal, given by its index, may end that begins at a position; later ones only.
        budget: charged for each item.
    Raises:
        GrammarError: the budget ran out.
    """
    nullable = nullable_rules(cfg)
    items: dict[int, dict[_Item, None]] = {}
    waiting: list[int] = []
    callers: dict[tuple[int, int], list[_Item]] = {}
    found = {at} if cfg.start in nullable else set[int]()

    def add(position: int, item: _Item) -> bool:
        if position not in items:
            items[position] = {}
            heapq.heappush(waiting, position)
        if item in items[position]:
            return False
        budget.spend(states=1)
        items[position][item] = None
        return True

    for way in range(len(cfg.rules[cfg.start].alternatives)):
        add(at, (cfg.start, way, 0, at))
    while waiting:
        position = heapq.heappop(waiting)
        here = list(items[position])
        ends_of: dict[int, list[int]] = {}
        for rule, way, dot, origin in here:  # grows during iteration
            alternative = cfg.rules[rule].alternatives[way]
            reached: list[_Item] = []
            if dot == len(alternative):
                if origin < position:
                    if rule == cfg.start and origin == at:
                        found.add(position)
                    reached = [(*each[:2], each[2] + 1, each[3]) for each in callers.get((origin, rule), ())]
            elif isinstance(symbol := alternative[dot], RuleCall):
                if (position, symbol.rule) not in callers:
                    callers[position, symbol.rule] = []
                    ways = range(len(cfg.rules[symbol.rule].alternatives))
                    reached = [(symbol.rule, each, 0, position) for each in ways]
                callers[position, symbol.rule].append((rule, way, dot, origin))
                if symbol.rule in nullable:
                    reached.append((rule, way, dot + 1, origin))
            else:
                if symbol.terminal not in ends_of:
                    ends_of[symbol.terminal] = list(terminal_ends(symbol.terminal, position))
                for end in ends_of[symbol.terminal]:
                    add(end, (rule, way, dot + 1, origin))
            here += [each for each in reached if add(position, each)]
        del items[position]
    return sorted(found)
