"""Host names with labels that stand for other scripts, RFC 5890 to 5893: as far as a language can say, and exactly.

An A-label (`xn--...`) has to be decoded before anything can be said of it, and so has a label in another script to be encoded before its
length is known. `loose_host_names` leaves that open: it has every host name in it, and others. `is_host_name` says it of one text.
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
    """Every host name, and others whose labels say something wrong in another script.

    Args:
        international: labels may be written in other scripts.
    """
    ascii_label = compile_regex(LABEL)
    if not international:
        return ascii_label.concat(compile_regex(rf"(?:\.{LABEL})*")).bounded(1, MAX_LENGTH)
    ascii_label = ascii_label.minus(compile_regex("(?![xX][nN]).{2}--.*", dialect="python"))
    last = code_points.union(permitted_characters(), characters_in_context())
    marks = unicode_sets.unicode_property("M")
    assert marks is not None
    first = Language.code_points(code_points.difference(last, marks))
    inner = Language.code_points(code_points.union(last, code_points.of_text("-"))).starred(0, 57)
    several = first.concat(
        inner, Language.code_points(last)
    )  # at most 59: each takes a letter or more of the encoded form
    label = ascii_label.union(first.union(several).minus(compile_regex(r"[\0-\x7f]*", dialect="python")))
    separator = Language.code_points(code_points.of_text(SEPARATORS))
    return label.concat(separator.concat(label).starred()).bounded(1, MAX_LENGTH)


def is_host_name(text: str) -> bool:
    """Whether a text of `loose_host_names` is a host name: its labels in other scripts are right, each for itself and together."""
    labels, length = [], -1
    for label in _SEPARATOR.split(text):
        try:
            label, encoded = _both_forms(label)
        except (idna.IDNAError, UnicodeError):
            return False
        labels.append(label)
        length += len(encoded) + 1
    if length > MAX_LENGTH:
        return False
    if all(_FROM_RIGHT.isdisjoint(map(unicodedata.bidirectional, label)) for label in labels):
        return True
    return all(_keeps_direction(label) for label in labels)


def _both_forms(label: str) -> tuple[str, str]:
    """A label as it is read, and in ASCII.

    Raises:
        IDNAError, UnicodeError: it is not allowed.
    """
    if not label.isascii():
        return label, idna.alabel(label).decode()
    lower = label.lower()
    if not lower.startswith(_PREFIX):
        return lower, lower
    decoded = idna.ulabel(lower)
    if decoded.isascii() or idna.alabel(decoded).decode() != lower:
        raise idna.IDNAError("there is another way to write it in ASCII")
    return decoded, lower


def _keeps_direction(label: str) -> bool:
    """The rule for labels of names in which something runs from right to left."""
    try:
        return bool(idna.check_bidi(label, check_ltr=True))
    except idna.IDNAError:
        return False
