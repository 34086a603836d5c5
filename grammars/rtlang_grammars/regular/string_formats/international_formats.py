"""Internationalized host names (RFC 5890 to 5893) as a regular language.

The permitted characters are derived from the Unicode tables as in RFC 5892; characters with a contextual rule only occur in units with
that context; the Bidi rule of RFC 5893 is an alternation of names without right-to-left characters and names whose labels each have one
direction. The language is a proper subset of the format. It excludes A-labels (`xn--...`), which would have to be decoded, and contextual
characters of left-to-right labels next to a right-to-left label, and it limits labels to 59 characters, since each takes at least one of
the 63 octets of the encoded form.
"""

from __future__ import annotations

import string
import unicodedata
from functools import lru_cache

from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.language import Language
from rtlang_grammars.regular.patterns.syntax import (
    ANY_TEXT,
    EMPTY_TEXT,
    PatternNode,
    alternation,
    characters,
    complement,
    concatenation,
    intersection,
    repetition,
    text,
)

_SEPARATORS = code_points.of_text(".\u3002\uff0e\uff61")
_ASCII: CodePoints = ((0, 0x7F),)
_LETTERS_AND_DIGITS = ("Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc")
_EXCEPTIONS_PVALID = "\u00df\u03c2\u06fd\u06fe\u0f0b\u3007"
_EXCEPTIONS_DISALLOWED = "\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b"
_IN_CONTEXT = "\u00b7\u0375\u05f3\u05f4\u30fb"
_IGNORABLE_BLOCKS: CodePoints = ((0x20D0, 0x20FF), (0x1D100, 0x1D1FF), (0x1D200, 0x1D24F))
_STABLE: CodePoints = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x20000, 0x2A6DF), (0x2A700, 0x2EBE0))
_NEUTRAL = ("ES", "CS", "ET", "ON", "BN", "NSM")


@lru_cache(maxsize=1)
def characters_in_context() -> CodePoints:
    """CONTEXTJ and CONTEXTO of RFC 5892 without digits: characters that are permitted only in a certain context."""
    return code_points.of_text(_IN_CONTEXT + "\u200c\u200d")


@lru_cache(maxsize=1)
def permitted_characters() -> CodePoints:
    """PVALID of RFC 5892, derived as in its section 3, without the hyphen."""
    old_jamo = code_points.union(*(_property(f"Hangul_Syllable_Type={kind}") for kind in ("L", "V", "T")))
    ignorable = ("Default_Ignorable_Code_Point", "White_Space", "Noncharacter_Code_Point")
    excluded = code_points.union(old_jamo, *map(_property, ignorable), _IGNORABLE_BLOCKS)
    candidates = code_points.difference(code_points.union(*map(_property, _LETTERS_AND_DIGITS)), excluded)
    stable = list(code_points.intersection(candidates, _STABLE))
    for first, last in code_points.difference(candidates, _STABLE):
        for code_point in range(first, last + 1):
            character = chr(code_point)
            folded = unicodedata.normalize("NFKC", character).casefold()
            if unicodedata.normalize("NFKC", folded) == character:
                stable.append((code_point, code_point))
    found = code_points.union(code_points.normalize(stable), code_points.of_text(_EXCEPTIONS_PVALID))
    return code_points.difference(found, code_points.of_text(_EXCEPTIONS_DISALLOWED + _IN_CONTEXT))


def idn_hostname() -> Language:
    """Host names of U-labels and ASCII labels, separated by any of the four full stops."""
    separator = characters(_SEPARATORS)

    def names(label: PatternNode) -> PatternNode:
        return concatenation([label, _zero_or_more(concatenation([separator, label]))])

    other = code_points.complement(_SEPARATORS)
    ascii_characters = characters(code_points.intersection(other, _ASCII))
    lengths = names(alternation([repetition(ascii_characters, 1, 63), repetition(characters(other), 1, 59)]))
    before = alternation([EMPTY_TEXT, concatenation([ANY_TEXT, separator])])
    reserved = concatenation([before, repetition(characters(other), 2, 2), text("--"), ANY_TEXT])
    permitted = permitted_characters()
    directed = alternation([names(_left_to_right_label(permitted)), names(_bidi_label(permitted))])
    return Language(intersection([directed, lengths, complement(reserved)], 1, 253))


def _left_to_right_label(permitted: CodePoints) -> PatternNode:
    """Labels without right-to-left characters, and ASCII labels."""
    permitted = code_points.difference(permitted, _bidirectional("R", "AL", "AN"))
    initial = code_points.difference(permitted, _property("M"))
    greek = characters(code_points.intersection(_property("Script=Greek"), permitted))
    virama = characters(code_points.intersection(_property("ccc=Virama"), permitted))
    dotted_l = concatenation([text("l"), _one_or_more(text("\u00b7l"))])
    units = [dotted_l, concatenation([_one_or_more(text("\u0375")), greek]), _joining_sequence(permitted)]
    after_virama = concatenation([virama, characters(code_points.of_text("\u200c\u200d"))])
    unit = alternation([characters(permitted), after_virama, *units])
    plain = _label(alternation([characters(initial), *units]), unit)
    east_asian = code_points.union(*(_property(f"Script={name}") for name in ("Hiragana", "Katakana", "Han")))
    dot = code_points.of_text("\u30fb")
    inner = characters(code_points.union(permitted, dot))
    around = _zero_or_more(alternation([inner, text("-")]))
    before = alternation([EMPTY_TEXT, concatenation([characters(code_points.union(initial, dot)), around])])
    after = alternation([EMPTY_TEXT, concatenation([around, inner])])
    with_dot = concatenation([before, characters(code_points.intersection(east_asian, permitted)), after])
    letters = characters(code_points.of_text(string.ascii_letters + string.digits))
    return alternation([plain, with_dot, _label(letters, letters)])


def _label(first: PatternNode, unit: PatternNode) -> PatternNode:
    """A label of units with hyphens between them."""
    rest = concatenation([_zero_or_more(alternation([unit, text("-")])), unit])
    return concatenation([first, alternation([EMPTY_TEXT, rest])])


def _bidi_label(permitted: CodePoints) -> PatternNode:
    """Labels of a single direction, for names with a right-to-left label. Their digits are either European or Arabic."""
    marks = _property("M")
    allowed = code_points.union(permitted, code_points.of_text("-"))

    def of(*names: str) -> CodePoints:
        return code_points.intersection(_bidirectional(*names), allowed)

    def directed(first: PatternNode, unit: PatternNode, last: PatternNode) -> PatternNode:
        rest = concatenation([_zero_or_more(unit), last])
        return concatenation([first, alternation([EMPTY_TEXT, rest]), _zero_or_more(characters(of("NSM")))])

    first_left = characters(code_points.difference(of("L"), marks))
    alternatives = [directed(first_left, characters(of("L", "EN", *_NEUTRAL)), characters(of("L", "EN")))]
    hebrew_letter = characters(code_points.intersection(_property("Script=Hebrew"), permitted))
    special = [
        concatenation([hebrew_letter, _one_or_more(characters(code_points.of_text("\u05f3\u05f4")))]),
        _joining_sequence(code_points.intersection(permitted, _bidirectional("R", "AL", "NSM"))),
    ]
    first_right = alternation([characters(code_points.difference(of("R", "AL"), marks)), *special])
    for digits in ("EN", "AN"):
        last = alternation([characters(of("R", "AL", digits)), *special])
        alternatives.append(
            directed(first_right, alternation([characters(of("R", "AL", digits, *_NEUTRAL)), *special]), last)
        )
    return alternation(alternatives)


def _joining_sequence(permitted: CodePoints) -> PatternNode:
    """Letters that join across zero-width non-joiners."""

    def of(*kinds: str) -> PatternNode:
        points = code_points.union(*(_property(f"Joining_Type={kind}") for kind in kinds))
        return characters(code_points.intersection(points, permitted))

    transparent = _zero_or_more(of("T"))
    between = concatenation([transparent, text("\u200c"), transparent])
    return concatenation([of("L", "D"), between, _zero_or_more(concatenation([of("D"), between])), of("R", "D")])


def _zero_or_more(node: PatternNode) -> PatternNode:
    return repetition(node, 0, None)


def _one_or_more(node: PatternNode) -> PatternNode:
    return repetition(node, 1, None)


def _bidirectional(*names: str) -> CodePoints:
    return code_points.union(*(_property(f"Bidi_Class={name}") for name in names))


def _property(name: str) -> CodePoints:
    points = unicode_sets.unicode_property(name)
    assert points is not None, name
    return points
