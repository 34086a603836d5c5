r"""Backslash escapes and bracketed classes of the pattern dialects.

`Source` is the pattern with a position in it. The functions read one escape or one class from there and return what it matches. ECMA-262
is read as its Unicode mode has it, with the leniency that patterns in schemas need: punctuation may be escaped needlessly, and a hyphen
beside a class stands for itself.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.spec.errors import GrammarError


class Dialect(StrEnum):
    """Whose patterns these are. Lark's are Python's."""

    ECMA = "ecma"
    PYTHON = "python"
    LARK = "lark"


@dataclass(frozen=True, slots=True)
class Flags:
    """What inline flags change, Python's names."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False
    ascii_only: bool = False
    verbose: bool = False


class Source:
    """A pattern and a position in it. Owned by one parse."""

    __slots__ = ("is_ecma", "position", "text")

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text, self.position, self.is_ecma = text, 0, dialect is Dialect.ECMA

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.position : self.position + 1]

    def take(self, expected: str) -> bool:
        """Step over `expected` if it comes next."""
        if self.text.startswith(expected, self.position):
            self.position += len(expected)
            return True
        return False

    def next(self, what: str) -> str:
        """Step over one character.

        Raises:
            GrammarError: the pattern is over.
        """
        if self.position >= len(self.text):
            raise self.error(f"the pattern ends within {what}")
        self.position += 1
        return self.text[self.position - 1]

    def until(self, end: str, what: str) -> str:
        """What comes before `end`; steps over both."""
        at = self.text.find(end, self.position)
        if at < 0:
            raise self.error(f"the pattern ends within {what}")
        found = self.text[self.position : at]
        self.position = at + len(end)
        return found

    def location(self, position: int | None = None) -> str:
        """`line:column`, both from 1."""
        at = self.position if position is None else position
        before = self.text[:at]
        return f"{before.count(chr(10)) + 1}:{at - before.rfind(chr(10))}"

    def error(self, reason: str, position: int | None = None) -> GrammarError:
        """An error at a position, by default the present one."""
        return GrammarError(reason, self.location(position))


_CONTROLS = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_HEX = frozenset("0123456789abcdefABCDEF")
_OCTAL = frozenset("01234567")


def read_escape(source: Source, flags: Flags, *, in_class: bool) -> CodePoints | int:
    """The escape after a backslash: a code point, or the set of a class such as `\\d`.

    Raises:
        GrammarError: there is no such escape, or it is a backreference.
    """
    start = source.position - 1
    letter = source.next("an escape")
    named = _named_class(letter, source, flags, start)
    if named is not None:
        return named
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter == "x":
        return _hex(source, 2, start)
    if letter == "u":
        return _unicode_escape(source, start)
    if letter == "b" and in_class:
        return 0x08
    if letter == "0" or (letter in "1234567" and not source.is_ecma and (in_class or _has_octal_digits(source))):
        return _octal(letter, source, start)
    if letter in "123456789" or letter == "k":
        raise source.error("backreferences are not supported: no regular language has them", start)
    if source.is_ecma:
        if letter == "c" and source.peek().isalpha() and source.peek().isascii():
            return ord(source.next("an escape")) % 32
        if letter == "-" or not letter.isalnum():
            return ord(letter)
        hint = "; this is an escape of the python dialect" if letter in "aAZUN" else ""
        raise source.error(f"there is no escape \\{letter}{hint}", start)
    if letter == "a":
        return 0x07
    if letter == "U":
        return _checked(_hex(source, 8, start), source, start)
    if letter == "N" and source.take("{"):
        name = source.until("}", "a character's name")
        try:
            return ord(unicodedata.lookup(name))
        except (KeyError, TypeError):
            raise source.error(f"no character is called {name!r}", start) from None
    if letter.isascii() and letter.isalnum():
        hint = r": the end of the text is \Z" if letter == "z" else ""
        raise source.error(f"there is no escape \\{letter}{hint}", start)
    return ord(letter)


def read_class(source: Source, flags: Flags) -> CodePoints:
    """The class after an opening bracket, which has been read, through its closing one.

    Raises:
        GrammarError: it does not end, or a range in it runs backwards.
    """
    start = source.position - 1
    is_negated = source.take("^")
    ranges: list[tuple[int, int]] = []
    named: list[CodePoints] = []
    is_first = True
    while True:
        if source.position >= len(source.text):
            raise source.error("the class that begins here has no closing bracket", start)
        if source.peek() == "]" and (source.is_ecma or not is_first):
            source.position += 1
            break
        is_first = False
        at = source.position
        low = _class_atom(source, flags)
        text = source.text
        if source.peek() == "-" and text[source.position + 1 : source.position + 2] not in ("", "]"):
            source.position += 1
            high = _class_atom(source, flags)
            if isinstance(low, int) and isinstance(high, int):
                if low > high:
                    raise source.error("a range in a class runs backwards", at)
                ranges.append((low, high))
                continue
            if not source.is_ecma:
                raise source.error("a range in a class needs single characters at its ends", at)
            _add_atom(0x2D, ranges, named)
            _add_atom(high, ranges, named)
        _add_atom(low, ranges, named)
    points = code_points.union(without_case(code_points.normalised(ranges), flags), *named)
    return code_points.complement(points) if is_negated else points


def _class_atom(source: Source, flags: Flags) -> CodePoints | int:
    letter = source.next("a class")
    return read_escape(source, flags, in_class=True) if letter == "\\" else ord(letter)


def without_case(points: CodePoints, flags: Flags) -> CodePoints:
    """The set with what is equal to its members where case is ignored."""
    if not flags.ignore_case:
        return points
    return unicode_sets.ascii_case_closure(points) if flags.ascii_only else unicode_sets.case_closure(points)


def _add_atom(atom: CodePoints | int, ranges: list[tuple[int, int]], named: list[CodePoints]) -> None:
    """Note one item of a class; case is not ignored in named classes."""
    if isinstance(atom, int):
        ranges.append((atom, atom))
    else:
        named.append(atom)


def _named_class(letter: str, source: Source, flags: Flags, start: int) -> CodePoints | None:
    r"""The set of \d \w \s \p and their negations."""
    kind = letter.lower()
    if kind not in "dwsp" or not letter.isascii():
        return None
    if kind == "p":
        if not source.is_ecma:
            raise source.error(r"\p is not an escape of Python's patterns", start)
        if not source.take("{"):
            raise source.error(r"\p needs the name of a property in braces", start)
        name = source.until("}", "a property's name")
        points = unicode_sets.unicode_property(name)
        if points is None:
            raise source.error(f"there is no Unicode property {name!r}", start)
    elif source.is_ecma:
        points = {"d": unicode_sets.DIGIT, "w": unicode_sets.WORD, "s": unicode_sets.ECMA_SPACE}[kind]
    elif flags.ascii_only:
        points = {"d": unicode_sets.DIGIT, "w": unicode_sets.WORD, "s": unicode_sets.ASCII_SPACE}[kind]
    else:
        points = _PYTHON_CLASSES[kind]()
    return points if letter == kind else code_points.complement(points)


_PYTHON_CLASSES = {"d": unicode_sets.python_digit, "w": unicode_sets.python_word, "s": unicode_sets.python_space}


def _hex(source: Source, num_digits: int, start: int) -> int:
    digits = source.text[source.position : source.position + num_digits]
    if len(digits) < num_digits or not _HEX.issuperset(digits):
        raise source.error(f"this escape needs {num_digits} hexadecimal digits", start)
    source.position += num_digits
    return int(digits, 16)


def _unicode_escape(source: Source, start: int) -> int:
    if source.is_ecma and source.take("{"):
        digits = source.until("}", "an escape")
        if not digits or not _HEX.issuperset(digits) or len(digits) > 64:
            raise source.error("this escape needs hexadecimal digits in its braces", start)
        return _checked(int(digits, 16), source, start)
    unit = _hex(source, 4, start)
    if 0xD800 <= unit <= 0xDBFF and source.is_ecma and source.text.startswith("\\u", source.position):
        before = source.position
        source.position += 2
        if source.peek() != "{":
            low = _hex(source, 4, before)
            if 0xDC00 <= low <= 0xDFFF:
                return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
        source.position = before
    return unit


def _checked(code_point: int, source: Source, start: int) -> int:
    if code_point > code_points.MAX_CODE_POINT:
        raise source.error("there is no character with this number", start)
    return code_point


def _has_octal_digits(source: Source) -> bool:
    """Whether two more octal digits follow, which makes an escape no backreference."""
    following = source.text[source.position : source.position + 2]
    return len(following) == 2 and _OCTAL.issuperset(following)


def _octal(first: str, source: Source, start: int) -> int:
    if source.is_ecma:
        if source.peek().isdigit() and source.peek().isascii():
            raise source.error("octal escapes are not supported", start)
        return 0
    digits = first
    while len(digits) < 3 and source.peek() and source.peek() in _OCTAL:
        digits += source.next("an escape")
    if not _OCTAL.issuperset(digits) or int(digits, 8) > 0o377:
        raise source.error(f"there is no octal escape \\{digits}", start)
    return int(digits, 8)
