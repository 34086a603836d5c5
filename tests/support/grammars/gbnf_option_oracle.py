"""A brute-force interpreter of rules with options in GBNF, where a rule may end wherever its text does, and random grammars for it.

It follows all readings of a text, each with the place in the grammar, the text of the rule in progress and its tokens.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.grammars.option_oracle import OptionTerminal, prefixes_of, words_of

LETTERS = "ab!()"
_BODIES = {
    "[ab]+": "[ab]+",
    "[ab]{1,3}": "[ab]{1,3}",
    '("ab" | "b")+': "(?:ab|b)+",
    '"a"* "b"?': "a*b?",
    '"a"': "a",
    "[ab!]*": "[ab!]*",
    '"b" "!"?': "b!?",
    '("a!")+': "(?:a!)+",
    '"b" tail | "b"': "b[ab]*",
}
_TAIL = 'tail ::= [ab] tail | ""'
_MARKERS = ("!", "b", "!!", "ab")


@dataclass
class GbnfOptionGrammar:
    """A random grammar: `root ::= "(" root ")" | parts`.

    Attributes:
        source: GBNF text.
        parts: the names of terminals, each with "", "?", "+" or "*".
        terminals: by name; without options those of literals and of rules that are only reported.
    """

    source: str = ""
    parts: list[tuple[str, str]] = field(default_factory=list)
    terminals: dict[str, OptionTerminal] = field(default_factory=dict)


class Reading(NamedTuple):
    """A reading of a text.

    Attributes:
        depth: brackets that are open.
        part: the part that is read or comes next.
        has_one: whether that part was there at least once.
        text: of the terminal in progress; None between terminals.
        num_tokens: tokens with characters of it.
        expired: where its budget ran out; -1 if it did not.
        captures: the texts of rules so far, without empty ones.
        has_text: whether anything was read, so that no bracket may open.
    """

    depth: int = 0
    part: int = 0
    has_one: bool = False
    text: str | None = None
    num_tokens: int = 0
    expired: int = -1
    captures: tuple[tuple[str, str], ...] = ()
    has_text: bool = False


def random_gbnf_option_grammar(rng: random.Random) -> GbnfOptionGrammar:
    """A bracketed sequence of literals and rules with options."""
    grammar, lines = GbnfOptionGrammar(), []
    for index in range(rng.randint(1, 3)):
        body = rng.choice(list(_BODIES))
        inner = words_of(_BODIES[body])
        marker = rng.choice([None, None, *_MARKERS])
        is_lazy = marker is None and rng.random() < 0.3
        most = rng.choice([None, None, 0, 1, 2, 3])
        max_tokens = rng.choice([None, 1, 2, 3])
        shortest = len(min(inner, key=len)) + len(marker or "")
        if most is not None and most < shortest:
            most = None
        options = [f'capture="r{index}"']
        options += [f'{rng.choice(["suffix", "stop"])}="{marker}"'] if marker else []
        options += ["lazy"] if is_lazy else []
        options += [f"max_chars={most}"] if most is not None else []
        options += [f"max_tokens={max_tokens}"] if max_tokens is not None else []
        rng.shuffle(options)
        lines.append(f"r{index}[{', '.join(options)}] ::= {body}")
        words = words_of(f"(?:{_BODIES[body]}){marker}") if marker else inner
        if most is not None:
            within = frozenset(word for word in words if len(word) <= most)
            words = within | frozenset(word for word in inner if len(word) == most) if marker else within
            inner = frozenset(word for word in inner if len(word) <= most)
        if "" in words and (is_lazy or marker):
            words = frozenset([""])
        ends = frozenset([marker]) if marker else frozenset()
        grammar.terminals[f"r{index}"] = OptionTerminal(
            f"r{index}", words, inner, is_lazy or marker is not None, max_tokens, ends
        )
    for text in rng.sample(["!", "b", "ab", "!a"], 2):
        grammar.terminals[f'"{text}"'] = OptionTerminal(f'"{text}"', frozenset([text]), frozenset([text]))
    names = list(grammar.terminals)
    grammar.parts = [(rng.choice(names), rng.choice(["", "", "", "?", "+", "*"])) for _ in range(rng.randint(1, 4))]
    parts = " ".join(name + sign for name, sign in grammar.parts)
    grammar.source = "\n".join([f'root ::= "(" root ")" | {parts}', *lines, _TAIL, ""])
    return grammar


class GbnfOptionInterpreter:
    """Follows texts token by token. A place is a set of readings; the text is dead where there is none."""

    def __init__(self, grammar: GbnfOptionGrammar) -> None:
        self._grammar = grammar
        self.start = self._closed({Reading()})

    def after(self, place: frozenset[Reading], token: str) -> frozenset[Reading]:
        """The place after a token."""
        readings = set(place)
        for letter in token:
            readings = set(self._closed({each for reading in readings for each in self._read(reading, letter)}))
        return self._closed({self._counted(each) for each in readings})

    def is_complete(self, place: frozenset[Reading]) -> bool:
        """Whether the text may end there."""
        return bool(self.captures(place))

    def captures(self, place: frozenset[Reading]) -> list[dict[str, list[str]]]:
        """The captures of all readings of a complete text."""
        found = []
        for each in place:
            if each.text is None and each.depth == 0 and each.part == len(self._grammar.parts):
                named: dict[str, list[str]] = {}
                for name, text in each.captures:
                    named.setdefault(name, []).append(text)
                found.append(named)
        return found

    def _terminal(self, reading: Reading) -> OptionTerminal:
        return self._grammar.terminals[self._grammar.parts[reading.part][0]]

    def _read(self, reading: Reading, letter: str) -> list[Reading]:
        parts = self._grammar.parts
        if reading.text is None:
            if not reading.has_text and letter == "(":
                return [reading._replace(depth=reading.depth + 1)]
            if reading.part == len(parts):
                closes = letter == ")" and reading.depth > 0
                return [reading._replace(depth=reading.depth - 1, has_text=True)] if closes else []
            reading = reading._replace(text="", num_tokens=0, expired=-1)
        terminal, text = self._terminal(reading), reading.text
        assert text is not None
        following = text + letter
        must_end = text and self._may_end(terminal, reading) and (terminal.is_lazy or reading.expired >= 0)
        if must_end or following not in terminal.words | prefixes_of(terminal.words):
            return []
        return [reading._replace(text=following, has_text=True)]

    def _may_end(self, terminal: OptionTerminal, reading: Reading) -> bool:
        if reading.expired >= 0:
            return reading.text in terminal.words or bool(terminal.marker and reading.text in terminal.body)
        return reading.text in terminal.words

    def _counted(self, reading: Reading) -> Reading:
        """A reading after the token that it has read."""
        if not reading.text:
            return reading
        terminal, count = self._terminal(reading), reading.num_tokens + 1
        reading = reading._replace(num_tokens=count)
        has_ended = terminal.is_lazy and reading.expired < 0 and reading.text in terminal.words
        is_used_up = terminal.max_tokens is not None and count >= terminal.max_tokens
        if is_used_up and not has_ended and reading.expired < 0:
            reading = reading._replace(expired=len(reading.text))
        return reading

    def _closed(self, readings: set[Reading]) -> frozenset[Reading]:
        """Readings with those after the ends of terminals and of parts."""
        todo = list(readings)
        while todo:
            for each in self._silent(todo.pop()):
                if each not in readings:
                    readings.add(each)
                    todo.append(each)
        return frozenset(readings)

    def _silent(self, reading: Reading) -> list[Reading]:
        parts = self._grammar.parts
        if reading.part == len(parts):
            return []
        name, sign = parts[reading.part]
        terminal = self._grammar.terminals[name]
        following = Reading(reading.depth, reading.part + 1, captures=reading.captures, has_text=reading.has_text)
        if reading.text is None:
            may_skip = reading.has_one or sign in ("?", "*") or "" in terminal.words
            return [following] if may_skip else []
        if not self._may_end(terminal, reading):
            return []
        captured = terminal.captured(reading.text) if name.startswith("r") else ""
        captures = (*reading.captures, *([(name, captured)] if captured else []))
        again = following._replace(part=reading.part, has_one=True, captures=captures)
        return [following._replace(captures=captures), *([again] if sign in ("+", "*") else [])]
