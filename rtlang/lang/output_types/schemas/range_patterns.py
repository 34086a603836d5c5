"""Regexes of ranges: integers, decimals and texts of one form between two bounds, such as dates and durations.

All patterns are ECMA-262, without anchors. They hold one spelling of each value: no leading zeros and no `-0`, and decimals without zeros
at their end, so that different texts are different values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

NOTHING = ""
"""Instead of a pattern, where there is no value."""
MAX_LISTED = 500
"""Multiples of a step that are listed one by one."""
_WHOLE_DIGITS, _PLACES = 9, 6
_MAX_DIGITS = 15
"""Digits of a decimal that a float keeps."""


def either(*patterns: str) -> str:
    """The texts of any of the patterns, of which some may be NOTHING."""
    found = list(dict.fromkeys(each for each in patterns if each != NOTHING))
    return f"({'|'.join(found)})" if len(found) > 1 else found[0] if found else NOTHING


def between(low: str, high: str) -> str:
    """The texts between two texts of the same form, such as 2024-01-31: digits vary, and texts are ordered as texts."""
    if low > high:
        return NOTHING
    if low == high:
        return _literal(low)
    if low[0] == high[0]:
        return _literal(low[0]) + between(low[1:], high[1:])
    first, last = int(low[0]), int(high[0])
    parts = []
    if low[1:] != _extreme(low[1:], "0"):
        parts.append(low[0] + between(low[1:], _extreme(low[1:], "9")))
        first += 1
    is_cut = high[1:] != _extreme(high[1:], "9")
    last -= is_cut
    if first <= last:
        parts.append(_digits(first, last) + _any_like(low[1:]))
    if is_cut:
        parts.append(high[0] + between(_extreme(high[1:], "0"), high[1:]))
    return either(*parts)


def _extreme(text: str, digit: str) -> str:
    """The first or last text of a form."""
    return "".join(digit if each.isdigit() else each for each in text)


def _any_like(text: str) -> str:
    runs = ("".join(run) for _, run in itertools.groupby(text, str.isdigit))
    return "".join(_repeated(len(run)) if run.isdigit() else _literal(run) for run in runs)


def _repeated(count: int) -> str:
    return "[0-9]" if count == 1 else f"[0-9]{{{count}}}"


def _digits(first: int, last: int) -> str:
    return str(first) if first == last else f"[{first}-{last}]"


def _literal(text: str) -> str:
    return text.replace(".", "[.]").replace("+", "[+]")


def integers(low: int | None, high: int | None) -> str:
    """The integers from `low` to `high`, both included; None: no bound."""
    if low is not None and high is not None and low > high:
        return NOTHING
    negative = NOTHING
    if low is None or low < 0:
        most = None if low is None else -low
        least = 1 if high is None or high >= 0 else -high
        negative = _naturals(least, most)
    zero_up = NOTHING if high is not None and high < 0 else _naturals(max(low or 0, 0), high)
    return either(f"-{negative}" if negative != NOTHING else NOTHING, zero_up)


def _naturals(low: int, high: int | None) -> str:
    parts = []
    length = len(str(low))
    if high is None:
        if low == 0:
            return "(0|[1-9][0-9]*)"
        return either(between(str(low), "9" * length), f"[1-9][0-9]{{{length},}}")
    whole: list[int] = []  # numbers of digits of which every number is in the range
    for size in range(length, len(str(high)) + 1):
        least, most = 10 ** (size - 1), 10**size - 1
        if size > 1 and low <= least and most <= high:
            whole.append(size)
        else:
            parts.append(between(str(max(low, least if size > 1 else 0)), str(min(high, most))))
    if whole:
        parts.append(f"[1-9][0-9]{{{whole[0] - 1},{whole[-1] - 1}}}")
    return either(*parts)


def decimals(
    low: Fraction | None,
    high: Fraction | None,
    *,
    open_low: bool = False,
    open_high: bool = False,
    whole_digits: int | None = None,
    places: int | None = None,
) -> str:
    """The decimals between two bounds, of at most 15 digits, so that different ones are different floats.

    Args:
        open_low, open_high: the bound itself is not included.
        whole_digits: digits before the point; None: up to 15, or up to 9 if there are some after it.
        places: digits after the point; None: up to 6.
    """
    places = _PLACES if places is None else min(places, _PLACES)
    limit = 10 ** (_MAX_DIGITS if whole_digits is None else min(whole_digits, _MAX_DIGITS)) - 1
    first, last = _whole_bounds(low, high, open_low, open_high)
    first, last = -limit if first is None else max(first, -limit), limit if last is None else min(last, limit)
    parts = [integers(first, last)]
    if places:
        fraction = f"[.]([0-9]{{0,{places - 1}}}[1-9])"
        most = 10 ** min(_WHOLE_DIGITS, _WHOLE_DIGITS if whole_digits is None else whole_digits) - 1
        # from n to n + 1 every fraction is within the bounds, if both ends are
        up_from = max(math.ceil(low) if low is not None else 0, 0)
        up_to = most if high is None else min(math.floor(high) - 1, most)
        down_from = max(math.ceil(-high) if high is not None else 0, 0)
        down_to = most if low is None else min(math.floor(-low) - 1, most)
        upper, lower = (integers(up_from, up_to), integers(down_from, down_to))
        parts += [f"{upper}{fraction}" if upper != NOTHING else NOTHING]
        parts += [f"-{lower}{fraction}" if lower != NOTHING else NOTHING]
    found = either(*parts)
    return found if found != NOTHING or not places else _within_one(low, high, open_low, open_high, places)


def _within_one(low: Fraction | None, high: Fraction | None, open_low: bool, open_high: bool, places: int) -> str:
    """The decimals with all of their places between two bounds without an integer between them."""
    if low is None or high is None:
        return NOTHING
    scale = 10**places
    first, last = _whole_bounds(low * scale, high * scale, open_low, open_high)
    assert first is not None
    assert last is not None
    sign = "-" if last <= 0 else ""
    first, last = (-last, -first) if sign else (first, last)
    if first > last:
        return NOTHING
    texts = [f"{each // scale}.{each % scale:0{places}d}" for each in (first, last)]
    return sign + between(*texts)


def _whole_bounds(
    low: Fraction | None, high: Fraction | None, open_low: bool, open_high: bool
) -> tuple[int | None, int | None]:
    first = None if low is None else math.floor(low) + 1 if open_low else math.ceil(low)
    last = None if high is None else math.ceil(high) - 1 if open_high else math.floor(high)
    return first, last


def multiples(step: Fraction, low: int | None, high: int | None) -> Iterator[Fraction]:
    """The multiples of a step nearest to zero within bounds, which are multiples too (None: no bound); at most MAX_LISTED."""
    first = 0 if low is None or low <= 0 else low
    first = min(first, high) if high is not None else first
    count = 0
    for distance in range(MAX_LISTED):
        for number in {first + distance, first - distance}:
            if count < MAX_LISTED and (low is None or number >= low) and (high is None or number <= high):
                count += 1
                yield number * step
