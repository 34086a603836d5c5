"""Whether a text is in the language of a `Cfg`: an Earley recogniser that shares no code with what it is used to check.

It works on the text's bytes by sets of items; terminals are matched by Python's own loop over the rows of their automata. Slow, for small
texts. Rules that match the empty text are handled by completing until nothing changes.
"""

from __future__ import annotations

from rtlang_grammars.context_free.cfg import Cfg, RuleCall, TokenSymbol
from rtlang_grammars.regular.language import Language

Item = tuple[int, int, int, int]  # rule, alternative, dot, origin


def cfg_accepts(cfg: Cfg, text: str | bytes) -> bool:
    """Whether the start rule matches the whole text."""
    data = text.encode() if isinstance(text, str) else text
    sets: list[set[Item]] = [set() for _ in range(len(data) + 1)]
    sets[0] = {(cfg.start, way, 0, 0) for way in range(len(cfg.rules[cfg.start].alternatives))}
    for position in range(len(data) + 1):
        _close(cfg, sets, position)
        ends_of: dict[int, list[int]] = {}
        for rule, way, dot, origin in sets[position]:
            alternative = cfg.rules[rule].alternatives[way]
            if dot == len(alternative):
                continue
            symbol = alternative[dot]
            if isinstance(symbol, TokenSymbol):
                if symbol.terminal not in ends_of:
                    ends_of[symbol.terminal] = _ends(cfg.terminals[symbol.terminal].language, data, position)
                for end in ends_of[symbol.terminal]:
                    sets[end].add((rule, way, dot + 1, origin))
    return any(
        rule == cfg.start and origin == 0 and dot == len(cfg.rules[rule].alternatives[way])
        for rule, way, dot, origin in sets[len(data)]
    )


def _close(cfg: Cfg, sets: list[set[Item]], position: int) -> None:
    """Predict and complete until nothing is added."""
    here = sets[position]
    size = -1
    while size != len(here):
        size = len(here)
        finished = {(rule, origin) for rule, way, dot, origin in here if dot == len(cfg.rules[rule].alternatives[way])}
        for rule, way, dot, _origin in list(here):
            alternative = cfg.rules[rule].alternatives[way]
            symbol = alternative[dot] if dot < len(alternative) else None
            if isinstance(symbol, RuleCall):
                ways = range(len(cfg.rules[symbol.rule].alternatives))
                here.update((symbol.rule, each, 0, position) for each in ways)
        for done, start in finished:
            for rule, way, dot, origin in list(sets[start]):
                alternative = cfg.rules[rule].alternatives[way]
                symbol = alternative[dot] if dot < len(alternative) else None
                if isinstance(symbol, RuleCall) and symbol.rule == done:
                    here.add((rule, way, dot + 1, origin))


def _ends(language: Language, data: bytes, start: int) -> list[int]:
    """The positions behind texts of a terminal that begin at `start`."""
    if language.is_empty():
        return []
    automaton = language.automaton()
    state, ends = automaton.start, []
    if automaton.is_accepting(state):
        ends.append(start)
    for position in range(start, len(data)):
        state = int(automaton.row(state)[data[position]])
        if state < 0:
            break
        if automaton.is_accepting(state):
            ends.append(position + 1)
    assert start not in ends  # terminals of a grammar are never empty
    return ends
