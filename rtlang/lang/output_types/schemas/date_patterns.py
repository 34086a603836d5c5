"""Regexes of dates, times and durations. Python's and pydantic's types accept every match, including leap years.

Where a core schema of pydantic has bounds, the patterns match the values within the bounds, by order of their texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from fractions import Fraction
from typing import Any, TypeVar

from rtlang.lang.output_types.schemas.range_patterns import NOTHING, between, either, integers, multiples

_Point = TypeVar("_Point", date, datetime, time, int)
_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
DATE = (
    f"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)
"""A date from year 0001 to 9999, such as 2024-02-29."""

TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
"""A time of day with seconds, such as 09:30:00."""

_MICROS = r"(\.[0-9]{1,6})?"
_OFFSET = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_OFFSETS = {"naive": "", "aware": _OFFSET, None: f"{_OFFSET}?"}  # by the constraint of the type
_SECONDS = f"[0-9]{{1,6}}{_MICROS}S"
_CLOCK = f"T({_SECONDS}|[0-9]{{1,5}}M({_SECONDS})?|[0-9]{{1,4}}H([0-9]{{1,5}}M)?({_SECONDS})?)"
DURATION = f"P([0-9]{{1,6}}D({_CLOCK})?|{_CLOCK})"
"""An ISO 8601 duration of days, hours, minutes and seconds, such as P3DT12H or PT0.5S."""

_CANONICAL_MICROS = r"(\.[0-9]{0,5}[1-9])?"
_SECOND = timedelta(seconds=1)
_UNITS = (("D", 86_400_000_000), ("H", 3_600_000_000), ("M", 60_000_000), ("S", 1_000_000))
_MAX_COUNT = 999_999


def date_range(schema: Mapping[str, Any]) -> str | None:
    """The dates within the bounds of a core schema, whether they exist or not; None: no bounds. Days begin as in its time zone."""
    low, high = schema.get("ge"), schema.get("le")
    low = _later(low, schema["gt"] + timedelta(days=1)) if schema.get("gt") is not None else low
    high = _earlier(high, schema["lt"] - timedelta(days=1)) if schema.get("lt") is not None else high
    today = _now(schema).date()
    if schema.get("now_op") == "past":
        high = _earlier(high, today - timedelta(days=1))
    elif schema.get("now_op") == "future":
        low = _later(low, today + timedelta(days=1))
    if low is None and high is None:
        return None
    return between((low or date.min).isoformat(), (high or date.max).isoformat())


def datetime_pattern(schema: Mapping[str, Any], *, is_canonical: bool) -> str:
    """The datetimes of a core schema, as ISO 8601 texts.

    Those with bounds are of the kind of the bounds, without an offset or in UTC.

    Args:
        is_canonical: each value has one text.
    """
    zone, kinds = schema.get("tz_constraint"), {"naive": "", "aware": "Z", None: "Z?"}
    low, high = _bound(schema, "ge", "gt", 1), _bound(schema, "le", "lt", -1)
    if schema.get("now_op"):
        return _relative_to_now(schema, low, high)
    if low is None and high is None:
        offsets = kinds if is_canonical else _OFFSETS
        micros = _CANONICAL_MICROS if is_canonical else _MICROS
        offset = offsets.get(zone, offsets["aware"])
        return f"{DATE}T{TIME}{micros}{offset}"
    is_aware = any(each is not None and each.tzinfo is not None for each in (low, high))
    is_aware = zone != "naive" and (is_aware or zone is not None)
    return _datetimes(low, high, "Z" if is_aware else "")


def _relative_to_now(schema: Mapping[str, Any], low: datetime | None, high: datetime | None) -> str:
    """Datetimes before now, or from tomorrow on: a text may be written later on the day on which the type was read."""
    parts = []
    for zone, offset in ((None, ""), (UTC, "Z")):
        if schema.get("tz_constraint") == ("aware" if zone is None else "naive"):
            continue
        now = _now(schema)
        first, last = (each and _moved(each, zone) for each in (low, high))
        if schema["now_op"] == "past":
            last = _earlier(last, _moved(now, zone) - _SECOND)
        else:
            tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            first = _later(first, _moved(tomorrow, zone))
        parts.append(_datetimes(first, last, offset))
    return either(*parts)


def _datetimes(low: datetime | None, high: datetime | None, offset: str) -> str:
    zone = UTC if offset else None
    first = datetime.min if low is None else _moved(low, zone).replace(tzinfo=None)
    last = datetime.max if high is None else _moved(high, zone).replace(tzinfo=None)
    if first.microsecond:
        first = first.replace(microsecond=0) + _SECOND
    last = last.replace(microsecond=0)
    if first > last:
        return NOTHING
    exact = between(first.isoformat(), last.isoformat())
    parts = [exact + offset]
    if first < last and last > datetime.min + _SECOND:
        parts.append(between(first.isoformat(), (last - _SECOND).isoformat()) + f"[.][0-9]{{0,5}}[1-9]{offset}")
    return f"(?={DATE}T{TIME})" + either(*parts)


def time_pattern(schema: Mapping[str, Any], *, is_canonical: bool) -> str:
    """The times of day of a core schema. Those with bounds have no offset, unless one is required."""
    zone = schema.get("tz_constraint")
    low = _later(_no_zone(schema.get("ge")), _stepped(schema.get("gt"), 1))
    high = _earlier(_no_zone(schema.get("le")), _stepped(schema.get("lt"), -1))
    if low is None and high is None:
        offset = ("" if zone != "aware" else "Z") if is_canonical else _OFFSETS.get(zone, _OFFSET)
        return f"{TIME}{_CANONICAL_MICROS if is_canonical else _MICROS}{offset}"
    first, last = low or time.min, (high or time.max).replace(microsecond=0)
    if first.microsecond:
        first = (datetime.combine(date.min, first.replace(microsecond=0)) + _SECOND).time()
    found = between(first.isoformat(), last.isoformat())
    return f"(?={TIME}){found}{'Z' if zone == 'aware' else ''}" if found else NOTHING


def duration_pattern(schema: Mapping[str, Any]) -> str:
    """The durations of a core schema. Those with bounds are counts of one unit: P2D, PT48H, PT90M, PT5400S."""
    low, high, step = (
        None if (given := schema.get(key)) is None else round(given / timedelta(microseconds=1))
        for key in ("ge", "le", "multiple_of")
    )
    if (above := schema.get("gt")) is not None:
        low = _later(low, round(above / timedelta(microseconds=1)) + 1)
    if (below := schema.get("lt")) is not None:
        high = _earlier(high, round(below / timedelta(microseconds=1)) - 1)
    if low is None and high is None and step is None:
        return DURATION
    parts: list[str] = []
    for name, size in _UNITS:
        first = -(-low // size) if low is not None else -_MAX_COUNT if high is not None and high < 0 else 0
        last = high // size if high is not None else max(_MAX_COUNT, 10 * first)
        if step is None or size % step == 0:
            parts += [_duration("", name, max(first, 0), last), _duration("-", name, max(-last, 1), -first)]
            continue
        least, most = None if low is None else -(-low // step), None if high is None else high // step
        for each in multiples(Fraction(step), least, most):
            count, rest = divmod(abs(int(each)), size)
            parts += [] if rest else [_duration("-" if each < 0 else "", name, count, count)]
    found = either(*parts)
    if found != NOTHING:
        return found
    exact = [each for each in (low, high) if each is not None and (step is None or each % step == 0)]
    texts = [f"{'-' if each < 0 else ''}PT{abs(each) // 10**6}[.]{abs(each) % 10**6:06d}S" for each in exact]
    return either(*texts)


def _duration(sign: str, unit: str, first: int, last: int) -> str:
    """The durations of `first` to `last` units."""
    count = integers(first, last)
    if count == NOTHING:
        return NOTHING
    return f"{sign}P{count}D" if unit == "D" else f"{sign}PT{count}{unit}"


def _now(schema: Mapping[str, Any]) -> datetime:
    offset = schema.get("now_utc_offset")
    return datetime.now(timezone(timedelta(seconds=offset))) if offset is not None else datetime.now().astimezone()


def _moved(value: datetime, zone: timezone | None) -> datetime:
    """A datetime in UTC or without an offset; one without counts as in UTC where it stands beside one with an offset."""
    if zone is None:
        return value.replace(tzinfo=None)
    return value.astimezone(zone) if value.tzinfo is not None else value.replace(tzinfo=zone)


def _bound(schema: Mapping[str, Any], closed: str, opened: str, sign: int) -> datetime | None:
    """A bound that is included; a second is kept off one that is not, since texts are compared by seconds."""
    value: datetime | None = schema.get(closed)
    if schema.get(opened) is not None:
        outside: datetime = schema[opened]
        inside = outside + sign * (_SECOND if sign > 0 or not outside.microsecond else timedelta(0))
        value = inside if value is None else max(value, inside) if sign > 0 else min(value, inside)
    return value


def _stepped(value: time | None, sign: int) -> time | None:
    if value is None:
        return None
    moved = datetime.combine(date(2000, 1, 1), _no_zone(value)) + sign * _SECOND  # type: ignore[arg-type]
    return moved.time() if moved.day == 1 else time.max if sign > 0 else time.min


def _no_zone(value: time | None) -> time | None:
    return None if value is None else value.replace(tzinfo=None)


def _later(one: _Point | None, other: _Point | None) -> _Point | None:
    return other if one is None else one if other is None else max(one, other)


def _earlier(one: _Point | None, other: _Point | None) -> _Point | None:
    return other if one is None else one if other is None else min(one, other)
