"""Options of rules: `name[capture, max_tokens=10, temperature=0.7, suffix="</a>"]: ...`, as llguidance and xgrammar spell them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rtlang_grammars.context_free.notation.scanner import NotationToken, TokenKind
from rtlang_grammars.spec.errors import GrammarError

MAX_TOKENS = 1_000_000
"""Largest `max_tokens`."""
MAX_CHARS = 1_000_000
"""Largest `max_chars`; a body that cannot be counted so far within the limits of a compile is refused before that."""

_CAPTURE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_KNOWN = ("capture", "lazy", "max_chars", "max_tokens", "stop", "stop_capture", "suffix", "temperature")


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """The options of one rule.

    Attributes:
        capture: the name under which its texts are reported; None: they are not.
        temperature: of tokens that are sampled inside it; None: that of the request.
        max_tokens: once so many tokens have bytes of the rule's text, it ends where it first can.
        max_chars: most characters of its text.
        is_lazy: it ends where it first can.
        marker: tokens of the terminal that ends it, `suffix` or `stop`; empty without.
        is_hidden: the marker is not part of captures of enclosing rules (`stop`).
        marker_capture: the name under which the marker is reported (`stop_capture`).
    """

    capture: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    max_chars: int | None = None
    is_lazy: bool = False
    marker: tuple[NotationToken, ...] = ()
    is_hidden: bool = False
    marker_capture: str | None = None

    @property
    def shapes_text(self) -> bool:
        """Whether the options decide which texts the rule has, so that it must be a terminal."""
        return bool(self.is_lazy or self.marker or self.max_tokens is not None or self.max_chars is not None)

    @property
    def is_reported(self) -> bool:
        """Whether matchers report something of the rule."""
        return self.temperature is not None or self.has_captures

    @property
    def has_captures(self) -> bool:
        """Whether the options decide about captures, of the rule or of enclosing ones."""
        return bool(self.capture or self.marker_capture or self.is_hidden)


def read_options(tokens: Sequence[NotationToken], rule: str) -> RuleOptions:
    """The options between square brackets.

    Args:
        rule: the name of the rule: the name of a capture without a name of its own.
    Raises:
        GrammarError: an option is unknown, malformed or given twice, or options exclude each other; without a place.
    """
    found: dict[str, tuple[NotationToken, ...]] = {}
    for part in _parts(tokens):
        name, value = part[0].text, part[2:]
        if name not in _KNOWN:
            raise GrammarError(f"option {name!r}: expected one of {', '.join(_KNOWN)}")
        if name in found:
            raise GrammarError(f"option {name} is given more than once")
        if len(part) > 1 and (part[1].text != "=" or not value):
            raise GrammarError(f"option {name}: expected = and a value")
        if name != "lazy" and name != "capture" and not value:
            raise GrammarError(f"option {name}: expected = and a value")
        if name == "lazy" and value:
            raise GrammarError("option lazy: expected no value")
        found[name] = tuple(value)
    if "suffix" in found and "stop" in found:
        raise GrammarError("options suffix and stop exclude each other")
    if "stop_capture" in found and not found.keys() & {"suffix", "stop"}:
        raise GrammarError("option stop_capture: expected suffix or stop beside it")
    marker = found.get("suffix", found.get("stop", ()))
    is_to_end = [each.text for each in marker] == ['""']
    if is_to_end and "suffix" in found:
        raise GrammarError("option suffix: expected a terminal that is not empty")
    return RuleOptions(
        capture=(_name("capture", found["capture"]) if found["capture"] else rule) if "capture" in found else None,
        temperature=_number("temperature", found, 0, math.inf),
        max_tokens=_count("max_tokens", found, 1, MAX_TOKENS),
        max_chars=_count("max_chars", found, 0, MAX_CHARS),
        is_lazy="lazy" in found or bool(marker and not is_to_end),
        marker=() if is_to_end else marker,  # stop="": the rule ends where the text goes on or ends
        is_hidden="stop" in found,
        marker_capture=_name("stop_capture", found["stop_capture"]) if "stop_capture" in found else None,
    )


def _parts(tokens: Sequence[NotationToken]) -> list[list[NotationToken]]:
    parts: list[list[NotationToken]] = [[]]
    for token in tokens:
        if token.text == ",":
            parts.append([])
        elif token.kind is not TokenKind.NEWLINE:
            parts[-1].append(token)
    if not all(parts):
        raise GrammarError(f"options: expected one or more of {', '.join(_KNOWN)}, separated by commas")
    return parts


def _name(option: str, value: Sequence[NotationToken]) -> str:
    text = value[0].text[1:-1] if len(value) == 1 and value[0].kind is TokenKind.STRING else ""
    if not _CAPTURE_NAME.fullmatch(text):
        raise GrammarError(f"option {option}: expected a string of letters, digits, _, - and .")
    return text


def _number(option: str, found: dict[str, tuple[NotationToken, ...]], low: float, high: float) -> float | None:
    if option not in found:
        return None
    written = "".join(each.text for each in found[option])
    try:
        number = float(written)
    except ValueError:
        number = math.nan
    if not low <= number < high:
        raise GrammarError(f"option {option} = {written}: expected a finite number from {low}")
    return number


def _count(option: str, found: dict[str, tuple[NotationToken, ...]], low: int, high: int) -> int | None:
    if option not in found:
        return None
    written = "".join(each.text for each in found[option])
    if not written.isdecimal() or not low <= int(written[:12]) <= high:
        raise GrammarError(f"option {option} = {written}: expected an integer from {low} to {high}")
    return int(written)
