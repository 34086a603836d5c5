"""The formats of JSON Schema as languages.

Each is the grammar of its RFC, with what can be said of single values beside it: the days of months and leap years, octets of addresses,
lengths of labels, leap seconds only at 23:59 UTC. They are made when first asked for and kept. Formats that no regular language describes
(`regex`) have none, and are to be checked on the finished text; host names have one that is too small and one that is too large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.string_formats.host_names import LABEL, MAX_LENGTH, is_host_name, loose_host_names
from rtlang_grammars.regular.string_formats.international_formats import idn_hostname
from rtlang_grammars.regular.string_formats.uri_formats import (
    IPV4,
    IPV6,
    IRI,
    IRI_REFERENCE,
    URI,
    URI_REFERENCE,
    URI_TEMPLATE,
)

CHECKED_FORMATS = frozenset({"regex"})
"""Standard formats without a language."""
LOOSE_FORMATS = frozenset({"hostname", "host-name", "idn-hostname"})
"""Formats whose language leaves out some texts, for which there is another that leaves out none and has more in it."""

_DAYS = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26]|0[48])00)"
_YEAR = r"(?:[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])"  # Python's calendar and many others begin with 0001
_DATE = rf"(?:{_YEAR}-{_DAYS}|{_LEAP_YEAR}-02-29)"
_HOUR, _MINUTE, _FRACTION = r"(?:[01]\d|2[0-3])", r"[0-5]\d", r"(?:\.\d+)?"
_TIME = rf"{_HOUR}:{_MINUTE}:[0-5]\d{_FRACTION}(?:[zZ]|[+-]{_HOUR}:{_MINUTE})"
_DURATION_DATE = r"(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)"
_DURATION_TIME = r"T(?:\d+S|\d+M(?:\d+S)?|\d+H(?:\d+M(?:\d+S)?)?)"
_ATOM, _QUOTED = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]", r"\x20\x21\x23-\x5b\x5d-\x7e"
_BEYOND_ASCII = r"\u0080-\u{10ffff}"
_JSON_POINTER = r"(?:/(?:[^~/]|~[01])*)*"


@lru_cache(maxsize=64)
def format_language(name: str) -> Language | None:
    """The texts of a format.

    Args:
        name: as in JSON Schema, older drafts' names included.
    Returns:
        Their language; None for names that are not standard, and for CHECKED_FORMATS.
    """
    make = _MAKERS.get(name)
    return None if make is None else make()


@lru_cache(maxsize=8)
def loose_format_language(name: str) -> Language:
    """A language in which all texts of one of LOOSE_FORMATS are; `is_of_loose_format` says of a text in it whether it is one."""
    return loose_host_names(international=name == "idn-hostname")


def is_of_loose_format(name: str, text: str) -> bool:
    """Whether a text of `loose_format_language` is of the format."""
    assert name in LOOSE_FORMATS
    return is_host_name(text)


def _pattern(pattern: str) -> Callable[[], Language]:
    return lambda: compile_regex(pattern)


def _leap_seconds() -> Language:
    """Times at second 60, which is at 23:59 UTC; hours and minutes follow the offset, each for itself but for one carry."""
    second = rf":60{_FRACTION}"
    hours = "|".join(rf"{hour:02}:{_MINUTE}{second}(?:\+{hour:02}|-{23 - hour:02}):{_MINUTE}" for hour in range(24))
    minutes = "|".join(
        rf"{_HOUR}:{minute:02}{second}(?:\+{_HOUR}:{minute + 1:02}|-{_HOUR}:{59 - minute:02})" for minute in range(59)
    )
    full_hours = "|".join(rf"{hour:02}:59{second}(?:\+{(hour + 1) % 24:02}|-{23 - hour:02}):00" for hour in range(24))
    carried = compile_regex(hours).intersect(compile_regex(minutes))
    return carried.union(compile_regex(full_hours), compile_regex(rf"23:59{second}[zZ]"))


def _time() -> Language:
    return compile_regex(_TIME).union(_leap_seconds())


def _date_time() -> Language:
    return compile_regex(rf"{_DATE}[tT]").concat(_time())


def _hostname() -> Language:
    names = compile_regex(rf"(?:(?!xn--|XN--|xN--|Xn--){LABEL}\.)*(?!xn--|XN--|xN--|Xn--){LABEL}")
    return names.bounded(1, MAX_LENGTH)


def _email(beyond: str) -> Language:
    atom = _ATOM if not beyond else _ATOM[:-1] + beyond + "]"
    local = rf'(?:{atom}+(?:\.{atom}+)*|"(?:[{_QUOTED}{beyond}]|\\[\x20-\x7e])*")'
    literal = rf"\[(?:{IPV4}|[Ii][Pp][Vv]6:{IPV6})\]"
    label = rf"[A-Za-z0-9{beyond}](?:[A-Za-z0-9{beyond}-]*[A-Za-z0-9{beyond}])?"
    return compile_regex(rf"{local}@(?:{label}(?:\.{label})*|{literal})")


_MAKERS: dict[str, Callable[[], Language]] = {
    "date": _pattern(_DATE),
    "time": _time,
    "date-time": _date_time,
    "duration": _pattern(rf"P(?:\d+W|{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME})"),
    "email": lambda: _email(""),
    "idn-email": lambda: _email(_BEYOND_ASCII),
    "hostname": _hostname,
    "host-name": _hostname,
    "idn-hostname": idn_hostname,
    "ipv4": _pattern(IPV4),
    "ip-address": _pattern(IPV4),
    "ipv6": _pattern(IPV6),
    "uri": _pattern(URI),
    "uri-reference": _pattern(URI_REFERENCE),
    "iri": _pattern(IRI),
    "iri-reference": _pattern(IRI_REFERENCE),
    "uri-template": _pattern(URI_TEMPLATE),
    "uuid": _pattern(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    "json-pointer": _pattern(_JSON_POINTER),
    "relative-json-pointer": _pattern(rf"(?:0|[1-9]\d*)(?:#|{_JSON_POINTER})"),
}
