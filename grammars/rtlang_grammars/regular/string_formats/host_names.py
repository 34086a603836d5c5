"""Internationalized host names (RFC 5890 to 5893): a regular superset, and the exact check.

An A-label (`xn--...`) can only be validated after decoding, and the length limit of a U-label applies to its encoded form.
`loose_host_names` ignores both and contains every host name; `is_host_name` decides single strings.
"""

from __future__ import annotations

import re
import unicodedata

import idna

from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.string_formats.international_formats import characters_in_context, permitted_characters

LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
MAX_LENGTH = 253
_PREFIX = "xn--"
SEPARATORS = ".\u3002\uff0e\uff61"
_SEPARATOR = re.compile(f"[{SEPARATORS}]")
_FROM_RIGHT = frozenset({"R", "AL", "AN"})


def loose_host_names(*, international: bool) -> Language:
    """Return a superset of the host names that does not validate internationalized labels.

    Args:
        international: whether U-labels are allowed.
    """
    ascii_label = compile_regex(LABEL)
    if not international:
        return ascii_label.concat(compile_regex(rf"(?:\.{LABEL})*")).bounded(1, MAX_LENGTH)
    ascii_label = ascii_label.minus(compile_regex("(?![xX][nN]).{2}--.*", dialect="python"))
    last = code_points.union(permitted_characters(), characters_in_context())
    marks = unicode_sets.unicode_property("M")
    assert marks is not None
    first = Language.code_points(code_points.difference(last, marks))
    inner = Language.code_points(code_points.union(last, code_points.of_text("-"))).repeat(0, 57)
    several = first.concat(
        inner, Language.code_points(last)
    )  # at most 59 characters: each takes at least one octet of the encoded form
    label = ascii_label.union(first.union(several).minus(compile_regex(r"[\0-\x7f]*", dialect="python")))
    separator = Language.code_points(code_points.of_text(SEPARATORS))
    return label.concat(separator.concat(label).repeat()).bounded(1, MAX_LENGTH)


def is_host_name(text: str) -> bool:
    """Whether a string of `loose_host_names` is a host name: every label is valid IDNA2008 and the whole satisfies the Bidi rule."""
    labels, length = [], -1
    for label in _SEPARATOR.split(text):
        try:
            label, encoded = _unicode_and_ascii_forms(label)
        except (idna.IDNAError, UnicodeError):
            return False
        labels.append(label)
        length += len(encoded) + 1
    if length > MAX_LENGTH:
        return False
    if all(_FROM_RIGHT.isdisjoint(map(unicodedata.bidirectional, label)) for label in labels):
        return True
    return all(_satisfies_bidi_rule(label) for label in labels)


def _unicode_and_ascii_forms(label: str) -> tuple[str, str]:
    """A label as a U-label (or in lower case) and in ASCII.

    Raises:
        IDNAError, UnicodeError: the label is not valid.
    """
    if not label.isascii():
        return label, idna.alabel(label).decode()
    lower = label.lower()
    if not lower.startswith(_PREFIX):
        return lower, lower
    decoded = idna.ulabel(lower)
    if decoded.isascii() or idna.alabel(decoded).decode() != lower:
        raise idna.IDNAError("not the canonical A-label")
    return decoded, lower


def _satisfies_bidi_rule(label: str) -> bool:
    """The Bidi rule of RFC 5893 for a label of a name with right-to-left characters."""
    try:
        return bool(idna.check_bidi(label, check_ltr=True))
    except idna.IDNAError:
        return False
