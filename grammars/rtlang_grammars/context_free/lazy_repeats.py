"""Lazy quantifiers in terminals, read as "up to the first match of what follows".

As languages, `".*?"` and `".*"` are equal, but a lexer stops at the first quote, and that is what the author of a lazy quantifier expects.
In a terminal, `x*?` followed by K therefore repeats x only where K does not match: `(?:(?!K)x)*K`, which is regular. In a group that is
itself repeated K is unknown, and a lazy quantifier stays an ordinary one. If the pattern also has a lookbehind, it must not be copied into
a lookahead; the language is then the strings without a matching proper prefix, which is equal if nothing can follow a match of K (for
instance a closing quote).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_CHARS = 1 << 16
_TOKEN = re.compile(
    r"""(?P<opening>\((?:\?(?:[aiLmsux]*(?:-[imsx]+)?:|P<\w+>|<?[=!]))?)
      | (?P<closing>\))
      | (?P<bar>\|)
      | (?P<repeat>(?:[*+?]|\{(?:[0-9]+,?[0-9]*|,[0-9]+)\})\??)
      | (?P<klass>\[\^?\]?(?:[^\]\\]|\\.)*\])
      | (?P<atom>\\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LAZY = re.compile(r"(?:[*+?]|\{[0-9,]*\})\?")
_COUNTS = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}\?$")


@dataclass(slots=True)
class _Group:
    """A group and its alternatives, each a list of items."""

    opening: str
    alternatives: list[list[_Item]] = field(default_factory=lambda: [[]])


@dataclass(slots=True)
class _Item:
    """An atom or a group, with its quantifier."""

    body: str | _Group
    repeat: str = ""


def terminal_language(pattern: str, budget: Budget) -> Language:
    """Compile the pattern of a terminal, with lazy quantifiers as described above.

    Raises:
        GrammarError: a syntax error or an unsupported construct; or the pattern is too large.
    """
    if "(?<" not in pattern or not _LAZY.search(pattern) or without_lazy_repeats(pattern) == pattern:
        return compile_regex(without_lazy_repeats(pattern), dialect="lark", budget=budget)
    every = compile_regex(pattern, dialect="lark", budget=budget)
    return every.minus(every.concat(Language.any_text().bounded(1, None)))


def without_lazy_repeats(pattern: str) -> str:
    """Rewrite a pattern of the python dialect such that its language respects the lazy quantifiers.

    Raises:
        GrammarError: too many lazy quantifiers in sequence, or lazy quantifiers in a verbose pattern.
    """
    if not _LAZY.search(pattern):
        return pattern
    root = _Group("")
    groups = [root]
    has_lazy = False
    for match in _TOKEN.finditer(pattern):
        items = groups[-1].alternatives[-1]
        kind, text = match.lastgroup, match[0]
        if kind == "opening":
            group = _Group(text)
            items.append(_Item(group))
            groups.append(group)
        elif kind == "closing" and len(groups) > 1:
            groups.pop()
        elif kind == "bar":
            groups[-1].alternatives.append([])
        elif kind == "repeat" and items and not items[-1].repeat:
            items[-1].repeat = text
            has_lazy = has_lazy or (len(text) > 1 and text.endswith("?"))
        else:
            items.append(_Item(text))
    if not has_lazy:
        return pattern
    if re.search(r"\(\?[aiLmsu]*[xaL]", pattern):
        raise GrammarError("lazy quantifiers are not supported with the flag x, a or L")
    return _rewrite(root, "")


def _rewrite(group: _Group, rest: str | None) -> str:
    """Render a group. `rest` is the pattern from its end to the end of the terminal; None if unknown."""
    flags = re.match(r"\(\?([ims]*)(?:-([ims]+))?:", group.opening)
    if flags and rest:
        turned_back = f"-{flags[1]}" if flags[1] else ""
        if flags[1] or flags[2]:
            rest = f"(?{flags[2] or ''}{turned_back}:{rest})"
    alternatives = "|".join(_rewrite_alternative(alternative, rest) for alternative in group.alternatives)
    if len(alternatives) > _MAX_CHARS:
        raise GrammarError("too complex: the pattern has too many consecutive lazy quantifiers")
    return f"{group.opening}{alternatives})" if group.opening else alternatives


def _rewrite_alternative(alternative: list[_Item], rest: str | None) -> str:
    written: list[str] = []
    following = rest
    for item in reversed(alternative):
        is_lazy = len(item.repeat) > 1 and item.repeat.endswith("?")
        if isinstance(item.body, str):
            body = item.body
        else:
            sees_rest = not item.repeat and not re.match(r"\(\?<?[=!]", item.body.opening)
            body = _rewrite(item.body, following if sees_rest else None)
        if is_lazy and following is not None:
            text = _rewrite_lazy(body, item.repeat, following)
        else:
            text = body + (item.repeat[:-1] if is_lazy else item.repeat)
        written.append(text)
        if following is not None:
            following = text + following
            if len(following) > _MAX_CHARS:
                raise GrammarError("too complex: the pattern has too many consecutive lazy quantifiers")
    return "".join(reversed(written))


def _rewrite_lazy(body: str, repeat: str, rest: str) -> str:
    """A lazy quantifier that stops where `rest` matches."""
    once = f"(?:(?!{rest}){body})"
    if repeat == "*?":
        return f"{once}*"
    if repeat == "+?":
        return f"{body}{once}*"
    if repeat == "??":
        return f"{once}?"
    counts = _COUNTS.match(repeat)
    assert counts is not None
    low, high = int(counts[1] or "0"), counts[3]
    required = f"{body}{{{low}}}"
    if not counts[2]:
        return required
    return f"{required}{once}{{0,{max(int(high) - low, 0)}}}" if high else f"{required}{once}*"
