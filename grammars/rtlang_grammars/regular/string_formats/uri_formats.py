"""Patterns of URIs, IRIs, URI templates and IP addresses.

They are ECMA-262 patterns for the whole string; names follow the RFCs. Sources: RFC 3986 appendix A, RFC 3987 section 2.2,
RFC 6570 section 2.
"""

from __future__ import annotations

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
IPV4 = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_GROUP = r"[0-9A-Fa-f]{1,4}"
_LAST_GROUPS = rf"(?:{_GROUP}:{_GROUP}|{IPV4})"


def _ipv6() -> str:
    """Eight groups, or fewer around one double colon; the last two may be an IPv4 address."""
    alternatives = [rf"(?:{_GROUP}:){{6}}{_LAST_GROUPS}"]
    for num_after in range(6):  # groups between the double colon and the last two
        before = rf"(?:(?:{_GROUP}:){{0,{4 - num_after}}}{_GROUP})?" if num_after < 5 else ""
        alternatives.append(rf"{before}::(?:{_GROUP}:){{{num_after}}}{_LAST_GROUPS}")
    alternatives.append(rf"(?:(?:{_GROUP}:){{0,5}}{_GROUP})?::{_GROUP}")
    alternatives.append(rf"(?:(?:{_GROUP}:){{0,6}}{_GROUP})?::")
    return "(?:" + "|".join(alternatives) + ")"


IPV6 = _ipv6()

_UCSCHAR = r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    rf"\u{{{plane:x}0000}}-\u{{{plane:x}fffd}}" for plane in range(1, 15)
).replace(r"\u{e0000}", r"\u{e1000}")
_IPRIVATE = r"\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}"
_PERCENT = r"%[0-9A-Fa-f]{2}"
_SUB_DELIMS = r"!$&'()*+,;="
_UNRESERVED = r"A-Za-z0-9._~-"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*"


def _identifiers(beyond: str, private: str) -> tuple[str, str]:
    """The patterns of an identifier and of a reference, given the characters beyond ASCII that are allowed everywhere and in queries."""
    unreserved = rf"{beyond}{_UNRESERVED}"

    def repeated_characters(extra: str, count: str) -> str:
        return rf"(?:[{extra}{_SUB_DELIMS}{unreserved}]|{_PERCENT}){count}"

    host = rf"(?:\[(?:{IPV6}|[vV][0-9A-Fa-f]+\.[:{_SUB_DELIMS}{_UNRESERVED}]+)\]|{repeated_characters('', '*')})"
    authority = rf"(?:{repeated_characters(':', '*')}@)?{host}(?::\d*)?"
    segment, segments = repeated_characters(":@", "*"), rf"(?:/{repeated_characters(':@', '*')})*"
    absolute = rf"/(?:{repeated_characters(':@', '+')}(?:/{segment})*)?"
    tail = rf"(?:\?{repeated_characters(f':@/?{private}', '*')})?(?:#{repeated_characters(':@/?', '*')})?"
    hierarchy = rf"(?://{authority}{segments}|{absolute}|{repeated_characters(':@', '+')}{segments}|)"
    relative = rf"(?://{authority}{segments}|{absolute}|{repeated_characters('@', '+')}{segments}|)"
    whole = rf"{_SCHEME}:{hierarchy}{tail}"
    return whole, rf"(?:{whole}|{relative}{tail})"


URI, URI_REFERENCE = _identifiers("", "")
IRI, IRI_REFERENCE = _identifiers(_UCSCHAR, _IPRIVATE)

_VARCHAR = rf"(?:[A-Za-z0-9_]|{_PERCENT})"
_VARSPEC = rf"{_VARCHAR}(?:\.?{_VARCHAR})*(?::[1-9]\d{{0,3}}|\*)?"
_LITERAL = rf"(?:[!#$&'()*+,./0-9:;=?@A-Z\[\]_a-z~{_UCSCHAR}{_IPRIVATE}-]|{_PERCENT})"
URI_TEMPLATE = rf"(?:{_LITERAL}|\{{[+#./;?&]?{_VARSPEC}(?:,{_VARSPEC})*\}})*"
