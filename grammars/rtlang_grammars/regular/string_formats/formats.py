"""The `format` values of JSON Schema as regular languages.

Each follows the grammar of its RFC (3339, 5321, 1123, 3986, 3987, 4122, 6570, 6901) together with the constraints that a regular language
can express: days per month and leap years, octets of addresses, label lengths, leap seconds only at 23:59 UTC. Languages are built on
first use and cached. `regex` is not regular and must be checked on the finished string. Host names have two languages: a subset of the
format and a superset of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.string_formats.host_names import MAX_LENGTH, is_host_name, loose_host_names
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
"""Formats whose language is a proper subset, for which `loose_format_language` is a superset."""

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
    """Return the language of a format.

    Args:
        name: a format of JSON Schema, including the names of older drafts.
    Returns:
        The language; None for unknown formats and for CHECKED_FORMATS.
    """
    make = _MAKERS.get(name)
    return None if make is None else make()


@lru_cache(maxsize=8)
def loose_format_language(name: str) -> Language:
    """Return a superset of one of LOOSE_FORMATS; `is_of_loose_format` decides which of its strings conform."""
    return loose_host_names(international=name == "idn-hostname")


def is_of_loose_format(name: str, text: str) -> bool:
    """Whether a string of `loose_format_language` conforms to the format."""
    assert name in LOOSE_FORMATS
    return is_host_name(text)


def _pattern(pattern: str) -> Callable[[], Language]:
    return lambda: compile_regex(pattern)


def _leap_seconds() -> Language:
    """Times with second 60, that is 23:59 UTC: the offset determines hour and minute, apart from one carry between them."""
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
    # Labels without the prefix xn-- in any case, written without a lookahead, so that lengths far from their bounds share states.
    letter, any_of, end = "[A-Za-z0-9]", "[A-Za-z0-9-]", "[A-Za-z0-9]"
    after_hyphen = f"{end}|{letter}{any_of}{{0,58}}{end}"
    after_n = f"{end}|{letter}{any_of}{{0,59}}{end}|-(?:{after_hyphen})"
    after_x = f"{end}|[A-MO-Za-mo-z0-9-]{any_of}{{0,60}}{end}|[nN](?:{after_n})"
    label = f"(?:[A-WYZa-wyz0-9](?:{any_of}{{0,61}}{end})?|[xX](?:{after_x})?)"
    return compile_regex(rf"{label}(?:\.{label})*").bounded(1, MAX_LENGTH)


def _mailbox(beyond: str) -> str:
    """A pattern of the part before the @, with the sign; `beyond`: characters beyond ASCII, as in a character class."""
    atom = rf"[{beyond}{_ATOM[1:]}"
    return rf'(?:{atom}+(?:\.{atom}+)*|"(?:[{_QUOTED}{beyond}]|\\[\x20-\x7e])*")@'


def _email(beyond: str = "") -> Language:
    """Mailboxes of RFC 5321 with domains in ASCII."""
    literal = rf"\[(?:{IPV4}|[Ii][Pp][Vv]6:{IPV6})\]"
    label = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
    return compile_regex(rf"{_mailbox(beyond)}(?:{label}(?:\.{label})*|{literal})")


def _idn_email() -> Language:
    """The same, with any character in the mailbox (RFC 6531) and internationalized domains, without A-labels beside U-labels."""
    return _email(_BEYOND_ASCII).union(compile_regex(_mailbox(_BEYOND_ASCII)).concat(idn_hostname()))


_MAKERS: dict[str, Callable[[], Language]] = {
    "date": _pattern(_DATE),
    "time": _time,
    "date-time": _date_time,
    "duration": _pattern(rf"P(?:\d+W|{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME})"),
    "email": _email,
    "idn-email": _idn_email,
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
