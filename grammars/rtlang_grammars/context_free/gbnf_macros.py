"""Macros of xgrammar's EBNF in GBNF: `Token(1, 2)`, `ExcludeToken(1)`, `TagDispatch(...)`, `TokenTagDispatch(...)`, `Regex(...)` and
`Substring(...)`.

A dispatch is free text in which a rule follows each tag: `TagDispatch(("<call>", body), loop_after_dispatch=true, excludes=("</p>",))`.

Source: xgrammar's docs/defining_structures/ebnf_grammar.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rtlang_grammars.context_free.ebnf import EbnfRepeat, Expression, Name, choice, sequence
from rtlang_grammars.context_free.notation.terminal_expressions import runs_of
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.errors import GrammarError

MACROS = ("TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring")
"""Names that begin a macro where a bracket follows at once."""

_PART = re.compile(
    r"""(?:[ \t\r\n]+|\#[^\n]*)*
        (?:(?P<text>"(?:\\.|[^"\\\n])*")|(?P<number>\d{1,9})|(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)|(?P<sign>[(),=]))""",
    re.VERBOSE | re.DOTALL,
)
_MAX_NESTING = 8


@dataclass(frozen=True, slots=True)
class MacroText:
    """A string in the arguments of a macro."""

    text: str


@dataclass(frozen=True, slots=True)
class MacroName:
    """A name in the arguments of a macro, with its place in the source."""

    name: str
    at: int


Value: TypeAlias = "MacroText | MacroName | int | tuple[Value, ...]"


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro.

    Attributes:
        name: one of `MACROS`.
        values: the arguments without a key.
        options: those with one.
        end: where it ends in the source.
    """

    name: str
    values: tuple[Value, ...]
    options: dict[str, Value]
    end: int


def read_macro(source: str, name: str, at: int) -> Macro:
    """Read the arguments of a macro.

    Args:
        at: the place of the bracket.
    Raises:
        GrammarError: the arguments are malformed; without a place.
    """
    return _Reader(source, at).macro(name)


class _Reader:
    def __init__(self, source: str, at: int) -> None:
        self._source, self._at = source, at

    def _next(self, *expected: str) -> re.Match[str]:
        found = _PART.match(self._source, self._at)
        if found is None or (expected and found["sign"] not in expected):
            wanted = " or ".join(expected) or "a string, a number, a name or a bracket"
            raise GrammarError(f"arguments of a macro: expected {wanted}")
        self._at = found.end()
        return found

    def macro(self, name: str) -> Macro:
        self._next("(")
        values: list[Value] = []
        options: dict[str, Value] = {}
        sign = ""
        while sign != ")":
            found = _PART.match(self._source, self._at)
            if found is not None and found["sign"] == ")":
                self._at = found.end()
                break
            value = self._value(0)
            sign = str(self._next(",", ")", "=")["sign"])
            if sign == "=":
                if not isinstance(value, MacroName):
                    raise GrammarError("arguments of a macro: expected a name before =")
                if value.name in options:
                    raise GrammarError(f"{name}: {value.name} is given more than once")
                options[value.name] = self._value(0)
                sign = str(self._next(",", ")")["sign"])
            else:
                values.append(value)
        return Macro(name, tuple(values), options, self._at)

    def _value(self, depth: int) -> Value:
        found = self._next()
        if found["text"] is not None:
            try:
                return MacroText(json.loads(found["text"]))
            except ValueError:
                raise GrammarError(f"{found['text'][:40]}: expected a string with the escapes of JSON") from None
        if found["number"] is not None:
            return int(found["number"])
        if found["name"] is not None:
            return MacroName(found["name"], found.start("name"))
        if found["sign"] != "(" or depth > _MAX_NESTING:
            raise GrammarError("arguments of a macro: expected a string, a number, a name or a bracket")
        values: list[Value] = []
        while True:
            ahead = _PART.match(self._source, self._at)
            if ahead is not None and ahead["sign"] == ")":
                self._at = ahead.end()
                return tuple(values)
            values.append(self._value(depth + 1))
            if self._next(",", ")")["sign"] == ")":
                return tuple(values)


class MacroBuilder:
    """The operations that a reader of grammars offers to macros."""

    def text(self, key: str, language: Language) -> Expression:
        """A terminal of some texts; `key` tells terminals apart."""
        raise NotImplementedError

    def tokens(self, ids: Sequence[int], *, is_excluded: bool) -> Expression:
        """One of some tokens, or any other."""
        raise NotImplementedError

    def rule(self, name: MacroName) -> Name:
        """A rule."""
        raise NotImplementedError


def expand(macro: Macro, build: MacroBuilder) -> Expression:
    """The expression that a macro stands for.

    Raises:
        GrammarError: an argument is missing, unknown or not allowed; without a place.
    """
    if macro.name in ("Token", "ExcludeToken"):
        if macro.options:
            raise GrammarError(f"{macro.name}: expected ids of tokens only")
        return build.tokens(_ids(macro.name, macro.values, at_least=1), is_excluded=macro.name == "ExcludeToken")
    if macro.name == "Regex":
        return build.text("regex", _regex(macro))
    if macro.name == "Substring":
        chunks = [each.text for each in macro.values if isinstance(each, MacroText)]
        if macro.options or not chunks or len(chunks) < len(macro.values):
            raise GrammarError("Substring: expected one or more strings and nothing else")
        return build.text("substring", runs_of(chunks))
    known: tuple[str, ...] = ("excludes", "loop_after_dispatch")
    if macro.name == "TagDispatch":
        known += ("stop_eos", "stop_str", "stops")
    for key in macro.options:
        if key not in known:
            raise GrammarError(f"{macro.name}: option {key!r}: expected one of {', '.join(known)}")
    pairs = []
    for value in macro.values:
        if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[1], MacroName):
            raise GrammarError(f"{macro.name}: expected pairs of a tag and a rule")
        pairs.append((value[0], build.rule(value[1])))
    if not pairs:
        raise GrammarError(f"{macro.name}: expected pairs of a tag and a rule")
    is_loop = _flag(macro, "loop_after_dispatch")
    if macro.name == "TokenTagDispatch":
        return _token_dispatch(macro, pairs, build, is_loop=is_loop)
    return _dispatch(macro, pairs, build, is_loop=is_loop)


def _regex(macro: Macro) -> Language:
    for key in macro.options:
        if key not in ("flags", "json_string"):
            raise GrammarError(f"Regex: option {key!r}: expected one of flags, json_string")
    (pattern,) = _texts("Regex", macro.values) if len(macro.values) == 1 else [""]
    flags = macro.options.get("flags", MacroText(""))
    if not pattern or not isinstance(flags, MacroText) or not set(flags.text) <= set("imsx"):
        raise GrammarError("Regex: expected one pattern, and flags of the letters i, m, s and x")
    written = f"(?{flags.text}:{pattern})" if flags.text else pattern
    language = compile_regex(written, dialect="python")
    is_in_string = "json_string" in macro.options and _flag(macro, "json_string")
    return language.in_json_string() if is_in_string else language


def _dispatch(macro: Macro, pairs: list[tuple[Value, Name]], build: MacroBuilder, *, is_loop: bool) -> Expression:
    tags = _texts(macro.name, [tag for tag, _ in pairs])
    stops = _texts(macro.name, _listed(macro, "stops") or _listed(macro, "stop_str"))
    excludes = _texts(macro.name, _listed(macro, "excludes"))
    ends_anywhere = _flag(macro, "stop_eos")
    if not stops and not ends_anywhere:
        raise GrammarError("TagDispatch: stop_eos = false: expected the option stops, or the text could never end")
    every = Language.any_text()
    marks = Language.literals([*tags, *stops, *excludes])
    before = every.concat(marks, every.bounded(1, None))

    def until(mark: str) -> Expression:
        """Text up to the first mark, which is this one."""
        found = every.concat(Language.literal(mark)).minus(before)
        if excludes:
            found = found.minus(every.concat(Language.literals(excludes)))
        return build.text(f"until {mark}", found)

    calls = choice([sequence([until(tag), rule]) for tag, (_, rule) in zip(tags, pairs, strict=True)])
    tails = [until(stop) for stop in stops]
    if ends_anywhere:
        tails.append(build.text("free", every.minus(every.concat(marks, every))))
    tail = choice(tails)
    return sequence([EbnfRepeat(calls, 0, None), tail]) if is_loop else choice([calls, tail])


def _token_dispatch(macro: Macro, pairs: list[tuple[Value, Name]], build: MacroBuilder, *, is_loop: bool) -> Expression:
    triggers = _ids(macro.name, [trigger for trigger, _ in pairs], at_least=1)
    excludes = _ids(macro.name, _listed(macro, "excludes"), at_least=0)
    if both := sorted(set(triggers) & set(excludes)):
        raise GrammarError(f"{macro.name}: excludes contains the trigger {both[0]}; expected other tokens")
    free = EbnfRepeat(build.tokens([*triggers, *excludes], is_excluded=True), 0, None)
    calls = choice(
        [
            sequence([free, build.tokens([trigger], is_excluded=False), rule])
            for trigger, (_, rule) in zip(triggers, pairs, strict=True)
        ]
    )
    return sequence([EbnfRepeat(calls, 0, None), free]) if is_loop else choice([calls, free])


def _listed(macro: Macro, option: str) -> tuple[Value, ...]:
    value = macro.options.get(option, ())
    if not isinstance(value, tuple):
        raise GrammarError(f"{macro.name}: {option}: expected values in brackets, separated by commas")
    return value


def _flag(macro: Macro, option: str) -> bool:
    value = macro.options.get(option, MacroName("true", 0))
    if not isinstance(value, MacroName) or value.name not in ("true", "false"):
        raise GrammarError(f"{macro.name}: {option}: expected true or false")
    return value.name == "true"


def _texts(name: str, values: Sequence[Value]) -> list[str]:
    found = [each.text for each in values if isinstance(each, MacroText) and each.text]
    if len(found) < len(values):
        raise GrammarError(f"{name}: expected strings that are not empty")
    return found


def _ids(name: str, values: Sequence[Value], *, at_least: int) -> list[int]:
    found = [each for each in values if isinstance(each, int)]
    if len(found) < max(at_least, len(values)):
        raise GrammarError(f"{name}: expected ids of tokens")
    return found
