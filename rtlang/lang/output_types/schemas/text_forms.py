"""Regexes of the texts that pydantic's own types read: URLs, UUIDs, networks, encoded bytes, addresses, colors, sizes.

All are of ECMA-262, without anchors. They match the spellings that people and programs use; where the type reads several spellings of one
value, such as letters of both cases in a UUID, the pattern has the one that the type itself writes.
"""

from __future__ import annotations

import functools
import re
import zoneinfo
from collections.abc import Callable

from rtlang.lang.output_types.schemas.range_patterns import NOTHING, either

# URLs that the URL types accept. A host whose last label starts with a digit is parsed as an IP address, and "--" marks an encoded name.
_LABELS = r"([A-Za-z0-9]+(-[A-Za-z0-9]+)*\.)*"
_NAME = f"{_LABELS}[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_USER = "([A-Za-z0-9._~-]+(:[A-Za-z0-9._~-]*)?@)?"
_PORT = "(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?"
_IPV4 = rf"{_BYTE}(\.{_BYTE}){{3}}"
_HOST = f"({_NAME}|{_IPV4})"
_ANY_PATH, _PLAIN_PATH = "[!-~]", "[A-Za-z0-9/?&=._~+,;:@%-]"
_SPECIAL = "https?|wss?|ftp"  # schemes that require a host


def url_pattern(
    schemes: list[str] | None, *, needs_host: bool = False, is_tight: bool = False, is_plain: bool = False
) -> str:
    """The URLs that URL types accept.

    Args:
        schemes: those that are allowed; None: any.
        needs_host: a host is required.
        is_tight: the URL has its path and no character that is escaped, so that the type writes the same text, of the same length.
        is_plain: it has no quotes and backslashes.
    """
    any_path = _PLAIN_PATH if is_tight or is_plain else _ANY_PATH
    rest = f"/{any_path}*" if is_tight else f"([/?#]{any_path}*)?"
    user = "" if is_tight else _USER
    host = r"([a-z0-9]+(-[a-z0-9]+)*\.)*[a-z][a-z0-9]*(-[a-z0-9]+)*" if is_tight else _HOST
    place = f"{user}{host}{'' if is_tight else _PORT}{rest}"
    file = f"file://({_NAME})?/{any_path}*"
    if schemes:
        ways = [file] if "file" in schemes else []
        others = [_escaped(scheme) for scheme in schemes if scheme != "file"]
        return "|".join([*ways, f"({'|'.join(others)})://{place}"] if others else ways)
    other = f"//{place}" if needs_host else f"(//{place}|[A-Za-z0-9+]{any_path}*)"
    return f"({_SPECIAL})://{place}|{file}|(?!({_SPECIAL}|file):)[a-z][a-z0-9+.-]*:{other}"


def _escaped(scheme: str) -> str:
    return "".join(f"[{letter}]" if letter in "+.-" else letter for letter in scheme)


def uuid_pattern(version: int | None) -> str:
    """The UUIDs of a version, None: of any."""
    rest = "[0-9a-f]{4}-[0-9a-f]{4}" if version is None else f"{version}[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}"
    return f"[0-9a-f]{{8}}-[0-9a-f]{{4}}-{rest}-[0-9a-f]{{12}}"


def base64_pattern(low: int, high: int | None, *, is_url: bool, is_text: bool = False) -> str:
    """Bytes in base64, with padding and without stray bits.

    Args:
        low, high: the number of bytes; None: no bound.
        is_url: with - and _ in place of + and /.
        is_text: the bytes are ASCII.
    """
    signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + ("-_" if is_url else "+/")

    def digit(mask: int) -> str:
        """The digits whose value has none of these bits."""
        found = "".join(each for value, each in enumerate(signs) if not value & mask)
        return f"[{found.replace('-', '')}{'-' if '-' in found else ''}]".replace("/", "\\/")

    first, second, third = (digit(mask if is_text else 0) for mask in (32, 8, 2))
    ends = (
        "",
        f"{first}{digit(8 * is_text | 15)}==",
        f"{first}{second}{digit(2 * is_text | 3)}=",
    )
    parts = []
    for size, end in enumerate(ends):
        least = max(-(-(low - size) // 3), 0)
        most = None if high is None else (high - size) // 3
        if most is None or most >= least:
            parts.append(f"({first}{second}{third}{digit(0)}){{{least},{'' if most is None else most}}}{end}")
    return either(*parts)


def hex_pattern(low: int, high: int | None) -> str:
    """Bytes as hexadecimal digits; the bounds are numbers of bytes."""
    return NOTHING if high is not None and high < low else f"([0-9a-f]{{2}}){{{low},{'' if high is None else high}}}"


def _hextets(count: int) -> str:
    return f"[0-9a-f]{{1,4}}(:[0-9a-f]{{1,4}}){{{count - 1}}}" if count else ""


def _ipv6() -> str:
    """IPv6 addresses: eight hextets, or fewer around one gap."""
    gaps = [f"{_hextets(before)}::({_some_hextets(7 - before)})?" for before in range(7)]
    return f"({'|'.join([_hextets(8), *gaps, f'{_hextets(7)}::'])})"


def _some_hextets(most: int) -> str:
    return f"[0-9a-f]{{1,4}}(:[0-9a-f]{{1,4}}){{0,{most - 1}}}"


_IPV6 = _ipv6()
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_MAIL_LABEL = "[A-Za-z0-9]+(-[A-Za-z0-9]+)*"
_MAIL = (
    rf"(?=[^@]{{1,64}}@.{{1,180}}$)(?![^@]*@([^@]*\.)?(arpa|invalid|local|localhost|onion|test)$){_ATOM}(\.{_ATOM})*@"
    rf"((?=[^.]{{1,63}}\.){_MAIL_LABEL}\.)+[A-Za-z]{{2,24}}"
)
_WORD = r"[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff][A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff-]*"
_PERSON = f"{_WORD}( {_WORD})*"


def _ipv4_networks() -> str:
    """IPv4 networks: no bit beyond the prefix is set."""
    parts = []
    for prefix in range(33):
        whole, rest = divmod(prefix, 8)
        numbers = [_BYTE] * whole
        if whole < 4:
            step = 256 >> rest
            numbers.append(f"({'|'.join(map(str, range(0, 256, step)))})")
        numbers += ["0"] * (4 - len(numbers))
        parts.append("[.]".join(numbers) + f"/{prefix}")
    return f"({'|'.join(parts)})"


def _ipv6_networks() -> str:
    """IPv6 networks whose prefix ends with a hextet, followed by a gap; no bit beyond the prefix is set."""
    parts = ["::/0", *(f"{_hextets(count)}::/{16 * count}" for count in range(1, 8))]
    for count in range(7):
        for bits in (4, 8, 12):
            head = f"{_hextets(count)}:" if count else ""
            parts.append(f"{head}[0-9a-f]{{{bits // 4}}}0{{{4 - bits // 4}}}::/{16 * count + bits}")
    return f"({'|'.join([*parts, f'{_IPV6}/128'])})"


_COLOR_NUMBER = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"


def _colors() -> str:
    from pydantic.color import COLORS_BY_NAME

    triple = ", ".join([_COLOR_NUMBER] * 3)
    degrees, share = "(3[0-5][0-9]|[12][0-9]{2}|[1-9]?[0-9])", "(100|[1-9]?[0-9])%"
    return "|".join(
        [
            *sorted(COLORS_BY_NAME),
            "#([0-9a-f]{3}|[0-9a-f]{6})",
            rf"rgb\({triple}\)",
            rf"rgba\({triple}, 0[.][0-9]{{1,2}}\)",
            rf"hsl\({degrees}, {share}, {share}\)",
        ]
    )


def _time_zones() -> str:
    return "|".join(re.sub(r"([+.])", r"[\1]", name) for name in sorted(zoneinfo.available_timezones()))


_REGEX_CLASS = r"\[\^?([A-Za-z0-9_ .,:;@#%/+]|\\[dwsDWS]|a-z|A-Z|0-9)+\]"
_REGEX_ATOM = rf"([A-Za-z0-9_ ,:;@#%/\"'<>=!~&-]|\\[dwsDWS.^$*+?()|{{}}\[\]\\/-]|[.]|{_REGEX_CLASS})"
_REGEX_REPEAT = r"([*+?]|\{[1-9][0-9]?\}|\{[0-9],\})?"
_REGEX_LIST = rf"({_REGEX_ATOM}{_REGEX_REPEAT})*"
_REGEX_GROUP = rf"\((\?:)?{_REGEX_LIST}(\|{_REGEX_LIST})*\)"
_REGEX_OUTER = rf"(({_REGEX_ATOM}|{_REGEX_GROUP}){_REGEX_REPEAT})*"
REGEX = rf"\^?{_REGEX_OUTER}(\|{_REGEX_OUTER})*\$?"
"""Regular expressions that Python compiles: classes, repetitions, alternatives, and groups one in another."""

_NUMBER = r"(0|[1-9][0-9]{0,14})([.][0-9]{1,6})?"
COMPLEX = rf"-?{_NUMBER}([+-]{_NUMBER}j)?"
FRACTION = r"-?(0|[1-9][0-9]{0,17})(/[1-9][0-9]{0,17})?"
BYTE_SIZE = r"(0|[1-9][0-9]{0,14})([.][0-9]{1,3})? ?([kKMGTPE]i?)?B"

FORMS: dict[str, Callable[[], str]] = {
    "ipv4": lambda: _IPV4,
    "ipv6": lambda: _IPV6,
    "ipvanyaddress": lambda: f"({_IPV4}|{_IPV6})",
    "ipv4interface": lambda: rf"{_IPV4}(/(3[0-2]|[12]?[0-9]))?",
    "ipv6interface": lambda: rf"{_IPV6}(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?",
    "ipvanyinterface": lambda: f"({FORMS['ipv4interface']()}|{FORMS['ipv6interface']()})",
    "ipv4network": _ipv4_networks,
    "ipv6network": _ipv6_networks,
    "ipvanynetwork": lambda: f"({_ipv4_networks()}|{_ipv6_networks()})",
    "email": lambda: _MAIL,
    "name-email": lambda: f"{_PERSON} <{_PLAIN_MAIL}>",
    "color": _colors,
    "zoneinfo": _time_zones,
    "regex": lambda: REGEX,
    "fraction": lambda: FRACTION,
}
"""The formats that pydantic names in its schemas, apart from those with parameters."""

_PLAIN_MAIL = r"[a-z0-9]+([.][a-z0-9]+)*@([a-z0-9]+[.])+(com|org|net|[a-z]{2})"


@functools.cache
def form(name: str) -> str | None:
    """The pattern of a format of pydantic; None: it has none here."""
    make = FORMS.get(name)
    return None if make is None else make()
