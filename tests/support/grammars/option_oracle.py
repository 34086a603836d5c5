"""A brute-force interpreter of rules with options, over sets of short words, and random grammars for it.

A grammar is a small automaton over terminals; a terminal is the set of its words of at most `_LONGEST` letters. The interpreter shares
nothing with the library but the order in which equally long matches win, which it is given.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LETTERS = "ab!"
_LONGEST = 8
_MAX_LEXEME = 5
_MAX_SEARCH = 300
_BODIES = ("[ab]+", "[ab]{1,3}", "(?:ab|b)+", "a*b?", "a", "[ab!]*", "b!?", "(?:a!)+", "b+", "[ab]{2}")
_MARKERS = ("!", "b", "!!", "ab", "a?!")
_WORDS = tuple("".join(each) for count in range(_LONGEST + 1) for each in itertools.product(LETTERS, repeat=count))


@functools.cache
def words_of(pattern: str) -> frozenset[str]:
    """The words of a pattern."""
    return frozenset(word for word in _WORDS if re.fullmatch(pattern, word))


@functools.cache
def prefixes_of(words: frozenset[str]) -> frozenset[str]:
    """What can be read of words that are longer."""
    return frozenset(word[:end] for word in words for end in range(len(word)))


@dataclass(frozen=True)
class OptionTerminal:
    """A literal or a rule with options."""

    name: str
    words: frozenset[str]
    body: frozenset[str]
    is_lazy: bool = False
    max_tokens: int | None = None
    marker: frozenset[str] = frozenset()

    def first_end(self, text: str) -> int | None:
        """Where a lazy terminal ends in a text; None where it has not."""
        return next((end for end in range(1, len(text) + 1) if text[:end] in self.words), None)

    def captured(self, text: str) -> str:
        """A text without its marker."""
        for at in range(len(text) + 1):
            if self.marker and text[at:] in self.marker and text[:at] in self.body:
                return text[:at]
        return text


@dataclass
class OptionGrammar:
    """A random grammar.

    Attributes:
        source: Lark text.
        terminals: by name.
        moves: of the automaton: for each state terminals and the states after them; "" for no terminal.
        final: the last state.
    """

    source: str = ""
    terminals: dict[str, OptionTerminal] = field(default_factory=dict)
    moves: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    final: int = 0


class OptionPlace(NamedTuple):
    """A place in a text: states of the automaton, the present lexeme with its last match, tokens in it, and where budgets ran out in it."""

    states: frozenset[int]
    lexeme: str
    match: tuple[int, str] | None
    num_tokens: int
    expired: tuple[tuple[str, int], ...]
    ended: tuple[tuple[str, str], ...]


def random_option_grammar(rng: random.Random) -> OptionGrammar:
    """A sequence of literals and rules with options, some of them optional or repeated."""
    grammar, lines = OptionGrammar(), []
    seen: set[tuple[object, ...]] = set()
    for index in range(rng.randint(1, 3)):
        body = rng.choice(_BODIES)
        marker = rng.choice([None, None, *_MARKERS])
        is_lazy = marker is None and rng.random() < 0.3
        most = rng.choice([None, None, 0, 1, 2, 3])
        max_tokens = rng.choice([None, 1, 2, 3])
        key = (body, marker, is_lazy, most, max_tokens)
        shortest = len(min(words_of(body), key=len)) + (len(min(words_of(marker), key=len)) if marker else 0)
        if key in seen or (most is not None and most < shortest):
            continue
        seen.add(key)
        options = [f"capture=r{index}".replace("=r", '="r') + '"']
        options += [f"{rng.choice(['suffix', 'stop'])}=/{marker}/"] if marker else []
        options += ["lazy"] if is_lazy else []
        options += [f"max_chars={most}"] if most is not None else []
        options += [f"max_tokens={max_tokens}"] if max_tokens is not None else []
        rng.shuffle(options)
        lines.append(f"r{index}[{', '.join(options)}]: /{body}/")
        inner = words_of(body)
        words = words_of(f"(?:{body})(?:{marker})") if marker else inner
        if most is not None:
            within = frozenset(word for word in words if len(word) <= most)
            words = within | frozenset(word for word in inner if len(word) == most) if marker else within
            inner = frozenset(word for word in inner if len(word) <= most)
        if "" in words and (is_lazy or marker):
            words = frozenset([""])  # it ends at once
        ends = words_of(marker) if marker else frozenset()
        grammar.terminals[f"r{index}"] = OptionTerminal(
            f"r{index}", words, inner, is_lazy or marker is not None, max_tokens, ends
        )
    for text in rng.sample(["!", "b", "ab", "!a"], 2):
        grammar.terminals[f'"{text}"'] = OptionTerminal(f'"{text}"', frozenset([text]), frozenset([text]))
    parts, state = [], 0
    # Each terminal stands once: where a rule stands twice, LALR joins what may follow either.
    for name in rng.sample(list(grammar.terminals), min(len(grammar.terminals), rng.randint(2, 4))):
        sign = rng.choice(["", "", "", "?", "+", "*"])
        parts.append(name + sign)
        terminal = grammar.terminals[name]
        is_empty = "" in terminal.words
        before, after, state = state + 1, state + 2, state + 3
        grammar.moves[before - 1] = [("", before), *([("", state)] if sign in ("?", "*") or is_empty else [])]
        grammar.moves[before] = [(name, after)]
        grammar.moves[after] = [("", state), *([("", before)] if sign in ("+", "*") else [])]
    grammar.final = state
    grammar.moves[state] = []
    grammar.source = "\n".join([f"start: {' '.join(parts)}", *lines, ""])
    return grammar


class OptionInterpreter:
    """Follows texts token by token."""

    def __init__(self, grammar: OptionGrammar, order: Mapping[str, int]) -> None:
        """`order`: who wins among equally long matches, by name of the terminal."""
        self._grammar, self._order = grammar, order
        self._completable: dict[OptionPlace, bool | None] = {}
        self.start = OptionPlace(self._closed({0}), "", None, 0, (), ())

    def after(self, place: OptionPlace, token: str) -> OptionPlace | None:
        """The place after a token; None where no lexeme goes on."""
        found = self._read(place, token)
        if found is None:
            return None
        reached, is_new = found
        count = 0 if not reached.lexeme else 1 if is_new or not place.lexeme else place.num_tokens + 1
        expired = dict(reached.expired)
        for terminal in self._expected(reached.states):
            text = reached.lexeme
            is_begun = text in prefixes_of(terminal.words) or text in terminal.words
            has_ended_lazily = terminal.is_lazy and terminal.first_end(text) is not None
            is_used_up = terminal.max_tokens is not None and count >= terminal.max_tokens
            if text and is_used_up and is_begun and not has_ended_lazily and terminal.name not in expired:
                expired[terminal.name] = len(text)
        return reached._replace(num_tokens=count, expired=tuple(sorted(expired.items())))

    def is_complete(self, place: OptionPlace) -> bool:
        """Whether the text may end there."""
        ended = self._finished(place)
        return ended is not None and self._grammar.final in ended.states

    def captures(self, place: OptionPlace) -> dict[str, list[str]]:
        """The texts of rules in a complete text, without empty ones."""
        ended = self._finished(place)
        assert ended is not None
        found: dict[str, list[str]] = {}
        for name, text in ended.ended:
            captured = self._grammar.terminals[name].captured(text)
            if name.startswith("r") and captured:
                found.setdefault(name, []).append(captured)
        return found

    def is_completable(self, place: OptionPlace) -> bool | None:
        """Whether some letters complete the text, each a token; None where a short search does not tell."""
        start = place._replace(ended=())
        if start not in self._completable:
            self._completable[start] = self._search(start)
        return self._completable[start]

    def _search(self, start: OptionPlace) -> bool | None:
        seen, todo, is_cut = {start}, deque([start]), False
        while todo:
            place = todo.popleft()
            if self.is_complete(place):
                return True
            if len(seen) > _MAX_SEARCH or len(place.lexeme) > _MAX_LEXEME:
                is_cut = True
                continue
            for letter in LETTERS:
                reached = self.after(place, letter)
                if reached is not None:
                    reached = reached._replace(ended=())
                    if reached not in seen:
                        seen.add(reached)
                        todo.append(reached)
        return None if is_cut else False

    def _closed(self, states: set[int]) -> frozenset[int]:
        todo = list(states)
        while todo:
            for name, to in self._grammar.moves[todo.pop()]:
                if not name and to not in states:
                    states.add(to)
                    todo.append(to)
        return frozenset(states)

    def _expected(self, states: frozenset[int]) -> Iterator[OptionTerminal]:
        names = {name for state in states for name, _ in self._grammar.moves[state] if name}
        return (self._grammar.terminals[name] for name in sorted(names))

    def _shifted(self, states: frozenset[int], name: str) -> frozenset[int]:
        return self._closed({to for state in states for each, to in self._grammar.moves[state] if each == name})

    def _matches(self, place: OptionPlace, terminal: OptionTerminal) -> bool:
        """Whether a terminal may end after the present lexeme."""
        text, expired = place.lexeme, dict(place.expired).get(terminal.name)
        if expired is not None:
            return self._expired_end(terminal, text, expired) == len(text)
        if terminal.is_lazy:
            return terminal.first_end(text) == len(text)
        return text in terminal.words

    def _expired_end(self, terminal: OptionTerminal, text: str, begin: int) -> int | None:
        ends = terminal.words | (terminal.body if terminal.marker else frozenset())
        return next((end for end in range(begin, len(text) + 1) if text[:end] in ends), None)

    def _goes_on(self, place: OptionPlace, terminal: OptionTerminal, letter: str) -> bool:
        text, expired = place.lexeme, dict(place.expired).get(terminal.name)
        if terminal.is_lazy and terminal.first_end(text) is not None:
            return False
        if expired is not None and self._expired_end(terminal, text, expired) is not None:
            return False
        following = text + letter
        return following in terminal.words or following in prefixes_of(terminal.words)

    def _winner(self, place: OptionPlace) -> tuple[OptionTerminal | None, bool]:
        """The terminal that ends after the present lexeme, if it ended here, and whether it must."""
        found = [each for each in self._expected(place.states) if place.lexeme and self._matches(place, each)]
        lazy = [each for each in found if each.is_lazy and each.name not in dict(place.expired)]
        return min(lazy or found, key=lambda each: self._order[each.name], default=None), bool(lazy)

    def _read(self, place: OptionPlace, text: str, *, is_final: bool = False) -> tuple[OptionPlace, bool] | None:
        """The place after letters, and whether a lexeme ended in them."""
        has_ended = False
        while text or is_final:
            winner, is_over = self._winner(place)
            if winner is not None:
                place = place._replace(match=(len(place.lexeme), winner.name))
            letter = text[:1]
            goes_on = bool(text) and not is_over
            if goes_on and any(self._goes_on(place, each, letter) for each in self._expected(place.states)):
                place = place._replace(lexeme=place.lexeme + letter)
                text = text[1:]
                continue
            if is_final and not text and not place.lexeme:
                break
            if place.match is None:
                return None
            end, name = place.match
            text = place.lexeme[end:] + text
            ended = (*place.ended, (name, place.lexeme[:end]))
            place = OptionPlace(self._shifted(place.states, name), "", None, 0, (), ended)
            has_ended = True
        return place, has_ended

    def _finished(self, place: OptionPlace) -> OptionPlace | None:
        found = self._read(place, "", is_final=True)
        return None if found is None else found[0]


def option_vocabulary(rng: random.Random, count: int) -> Sequence[bytes]:
    """The letters, and some tokens of several."""
    tokens = {letter.encode() for letter in LETTERS}
    while len(tokens) < count:
        tokens.add("".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 3))).encode())
    return sorted(tokens)


def order_of_terminals(grammar: OptionGrammar) -> dict[str, int]:
    """Who wins among equally long matches: literals, then rules by the names of their terminals, which are those of the rules."""
    return {
        name: index for index, name in enumerate(sorted(grammar.terminals, key=lambda name: (name[0] == "r", name)))
    }
