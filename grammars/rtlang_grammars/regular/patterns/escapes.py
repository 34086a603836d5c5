"""Escape sequences and character classes of the regex dialects.

`PatternSource` is a pattern with a read position. The functions read one escape or one class from there and return the set it matches.
ECMA-262 is read in Unicode mode, but as leniently as patterns in schemas require: any punctuation may be escaped, and a hyphen next to a
class escape is a literal. Sources: ECMA-262 section 22.2.1, Python's `re`, the syntax of Rust's crate `regex`.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.spec.errors import GrammarError


class RegexDialect(StrEnum):
    """A regex dialect. Lark's is Python's; Rust's is the dialect of the crate `regex`, in which pydantic writes patterns."""

    ECMA = "ecma"
    PYTHON = "python"
    LARK = "lark"
    RUST = "rust"


@dataclass(frozen=True, slots=True)
class Flags:
    """The inline flags in effect, named as in Python's `re`. Rust's `(?-u)` is `ascii_only`; `crlf` is its `(?R)`."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False
    ascii_only: bool = False
    verbose: bool = False
    crlf: bool = False


class PatternSource:
    """A pattern and a read position. Owned by one parse.

    Attributes:
        references: the groups to which backreferences refer, by number or name, and the positions of these; None: they are errors.
    """

    __slots__ = ("is_ecma", "is_rust", "position", "references", "text")

    def __init__(self, text: str, dialect: RegexDialect, references: list[tuple[str | int, int]] | None = None) -> None:
        self.text, self.position = text, 0
        self.is_ecma, self.is_rust = dialect is RegexDialect.ECMA, dialect is RegexDialect.RUST
        self.references = references

    def peek(self) -> str:
        """Return the next character without consuming it; empty at the end."""
        return self.text[self.position : self.position + 1]

    def take(self, expected: str) -> bool:
        """Consume `expected` if it comes next; return whether it did."""
        if self.text.startswith(expected, self.position):
            self.position += len(expected)
            return True
        return False

    def next(self, what: str) -> str:
        """Consume and return one character.

        Args:
            what: the construct being read, for the error message.
        Raises:
            GrammarError: the pattern ends here.
        """
        if self.position >= len(self.text):
            raise self.error(f"the pattern ends within {what}")
        self.position += 1
        return self.text[self.position - 1]

    def until(self, end: str, what: str) -> str:
        """Consume the text up to and including `end`; return it without `end`.

        Args:
            what: the construct being read, for the error message.
        Raises:
            GrammarError: `end` does not follow.
        """
        at = self.text.find(end, self.position)
        if at < 0:
            raise self.error(f"the pattern ends within {what}")
        found = self.text[self.position : at]
        self.position = at + len(end)
        return found

    def location(self, position: int | None = None) -> str:
        """The `line:column` of a position, by default the current one; both count from 1."""
        at = self.position if position is None else position
        before = self.text[:at]
        return f"{before.count(chr(10)) + 1}:{at - before.rfind(chr(10))}"

    def error(self, reason: str, position: int | None = None) -> GrammarError:
        """An error at a position, by default the current one."""
        return GrammarError(reason, self.location(position))


_CONTROLS = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_HEX = frozenset("0123456789abcdefABCDEF")
_OCTAL = frozenset("01234567")
_RUST_HEX = {"x": 2, "u": 4, "U": 8}


def read_escape(source: PatternSource, flags: Flags, *, in_class: bool) -> CodePoints | int:
    r"""Read the escape sequence after a backslash.

    Args:
        source: positioned after the backslash.
        flags: the flags in effect.
        in_class: whether the escape is in a character class, where `\b` is a backspace.
    Returns:
        A code point, or the set of a class escape such as `\d`.
    Raises:
        GrammarError: an unknown or malformed escape, or a backreference.
    """
    start = source.position - 1
    letter = source.next("an escape")
    named = _named_class(letter, source, flags, start)
    if named is not None:
        return named
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if source.is_rust:
        return _rust_escape(letter, source, start)
    if letter == "x":
        return _hex(source, 2, start)
    if letter == "u":
        return _unicode_escape(source, start)
    if letter == "b" and in_class:
        return 0x08
    if letter == "0" or (letter in "1234567" and not source.is_ecma and (in_class or _has_octal_digits(source))):
        return _octal(letter, source, start)
    if letter in "123456789" or letter == "k":
        if source.references is None or in_class:
            raise source.error("backreferences are not supported: they are not regular", start)
        return _reference(letter, source, start)
    if source.is_ecma:
        if letter == "c" and source.peek().isalpha() and source.peek().isascii():
            return ord(source.next("an escape")) % 32
        if letter == "-" or not letter.isalnum():
            return ord(letter)
        hint = "; it exists only in the python dialect" if letter in "aAZUN" else ""
        raise source.error(f"unknown escape \\{letter}{hint}", start)
    if letter == "a":
        return 0x07
    if letter == "U":
        return _check_code_point(_hex(source, 8, start), source, start)
    if letter == "N" and source.take("{"):
        name = source.until("}", "a character name")
        try:
            return ord(unicodedata.lookup(name))
        except (KeyError, TypeError):
            raise source.error(f"unknown character name {name!r}", start) from None
    if letter.isascii() and letter.isalnum():
        hint = r"; use \Z for the end of the string" if letter == "z" else ""
        raise source.error(f"unknown escape \\{letter}{hint}", start)
    return ord(letter)


def _rust_escape(letter: str, source: PatternSource, start: int) -> int:
    if letter in _RUST_HEX:
        if not source.take("{"):
            return _check_code_point(_hex(source, _RUST_HEX[letter], start), source, start)
        return _braced_hex(source, start)
    if letter == "a":
        return 0x07
    if letter.isdigit():
        raise source.error("backreferences and octal escapes are not supported", start)
    if not letter.isascii() or letter.isalnum() or letter in "<>":
        raise source.error(f"unknown escape \\{letter}", start)
    return ord(letter)


def read_class(source: PatternSource, flags: Flags) -> CodePoints:
    """Read a character class of a dialect other than Rust's, from after its opening bracket through its closing bracket.

    Raises:
        GrammarError: a missing closing bracket, a malformed escape or an invalid range.
    """
    start = source.position - 1
    is_negated = source.take("^")
    ranges: list[tuple[int, int]] = []
    named: list[CodePoints] = []
    is_first = True
    while True:
        if source.position >= len(source.text):
            raise source.error("this character class has no closing bracket", start)
        if source.peek() == "]" and (source.is_ecma or not is_first):
            source.position += 1
            break
        is_first = False
        at = source.position
        low = class_atom(source, flags)
        text = source.text
        if source.peek() == "-" and text[source.position + 1 : source.position + 2] not in ("", "]"):
            source.position += 1
            high = class_atom(source, flags)
            if isinstance(low, int) and isinstance(high, int):
                if low > high:
                    raise source.error(
                        "character range out of order: the first character must not be greater than the last", at
                    )
                ranges.append((low, high))
                continue
            if not source.is_ecma:
                raise source.error("both ends of a character range must be single characters", at)
            _add_atom(0x2D, ranges, named)
            _add_atom(high, ranges, named)
        _add_atom(low, ranges, named)
    points = code_points.union(apply_case_flag(code_points.normalize(ranges), flags, is_rust=False), *named)
    return code_points.complement(points) if is_negated else points


def class_atom(source: PatternSource, flags: Flags) -> CodePoints | int:
    """Read one character or escape of a class."""
    letter = source.next("a character class")
    return read_escape(source, flags, in_class=True) if letter == "\\" else ord(letter)


def apply_case_flag(points: CodePoints, flags: Flags, *, is_rust: bool) -> CodePoints:
    """The set, extended by case variants if case is ignored. Rust uses Unicode's simple case folding, the others Python's variants."""
    if not flags.ignore_case:
        return points
    if is_rust and not flags.ascii_only:
        return unicode_sets.simple_case_closure(points)
    return unicode_sets.ascii_case_closure(points) if flags.ascii_only else unicode_sets.case_closure(points)


def _add_atom(atom: CodePoints | int, ranges: list[tuple[int, int]], named: list[CodePoints]) -> None:
    """Add an item of a class. Class escapes are kept apart because case folding does not apply to them."""
    if isinstance(atom, int):
        ranges.append((atom, atom))
    else:
        named.append(atom)


def _named_class(letter: str, source: PatternSource, flags: Flags, start: int) -> CodePoints | None:
    r"""The set of \d \w \s \p or of their negations; None for other escapes."""
    kind = letter.lower()
    if kind not in "dwsp" or not letter.isascii():
        return None
    if kind == "p" and source.is_rust:
        points = _rust_property(source, flags, start)
    elif kind == "p":
        if not source.is_ecma:
            raise source.error(r"\p is not supported in the python dialect", start)
        if not source.take("{"):
            raise source.error(r"\p requires a property name in braces, as in \p{L}", start)
        name = source.until("}", "a property name")
        found = unicode_sets.unicode_property(name)
        if found is None:
            raise source.error(f"unknown Unicode property {name!r}", start)
        points = found
    elif source.is_ecma:
        points = {"d": unicode_sets.DIGIT, "w": unicode_sets.WORD, "s": unicode_sets.ECMA_SPACE}[kind]
    elif flags.ascii_only:
        points = {"d": unicode_sets.DIGIT, "w": unicode_sets.WORD, "s": unicode_sets.ASCII_SPACE}[kind]
    else:
        points = (_RUST_CLASSES if source.is_rust else _PYTHON_CLASSES)[kind]()
    if letter == kind:
        return points
    return settled_complement(points) if source.is_rust else code_points.complement(points)


_PYTHON_CLASSES = {"d": unicode_sets.python_digit, "w": unicode_sets.python_word, "s": unicode_sets.python_space}
_RUST_CLASSES = {"d": unicode_sets.unicode_digit, "w": unicode_sets.unicode_word, "s": unicode_sets.unicode_space}


def _rust_property(source: PatternSource, flags: Flags, start: int) -> CodePoints:
    r"""The set of `\pL`, `\p{Greek}`, `\p{sc=Greek}`, `\p{gc!=L}`; names are compared without case, blanks, hyphens and `_`."""
    name = source.until("}", "a property name") if source.take("{") else source.next("a property name")
    written, is_negated = name.replace(":", "="), False
    if "!=" in written:
        written, is_negated = written.replace("!=", "="), True
    points = unicode_sets.settled_property("".join(each for each in written if each not in " -_"))
    if points is None:
        raise source.error(f"unknown Unicode property {name!r}", start)
    points = apply_case_flag(points, flags, is_rust=True)
    return settled_complement(points) if is_negated else points


def settled_complement(points: CodePoints) -> CodePoints:
    """The complement of a property, without the characters of which engines with another Unicode version may think otherwise."""
    return code_points.intersection(code_points.complement(points), unicode_sets.settled())


def _hex(source: PatternSource, num_digits: int, start: int) -> int:
    digits = source.text[source.position : source.position + num_digits]
    if len(digits) < num_digits or not _HEX.issuperset(digits):
        raise source.error(f"this escape requires {num_digits} hexadecimal digits", start)
    source.position += num_digits
    return int(digits, 16)


def _unicode_escape(source: PatternSource, start: int) -> int:
    if source.is_ecma and source.take("{"):
        return _braced_hex(source, start)
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


def _braced_hex(source: PatternSource, start: int) -> int:
    digits = source.until("}", "an escape")
    if not digits or not _HEX.issuperset(digits) or len(digits) > 64:
        raise source.error("this escape requires hexadecimal digits in its braces", start)
    return _check_code_point(int(digits, 16), source, start)


def _check_code_point(code_point: int, source: PatternSource, start: int) -> int:
    if code_point > code_points.MAX_CODE_POINT:
        raise source.error("code point out of range; the largest is 10FFFF", start)
    return code_point


def _has_octal_digits(source: PatternSource) -> bool:
    """Whether two more octal digits follow; then the escape is octal and not a backreference."""
    following = source.text[source.position : source.position + 2]
    return len(following) == 2 and _OCTAL.issuperset(following)


def _reference(letter: str, source: PatternSource, start: int) -> int:
    """Record a backreference; any character stands for what it matches."""
    name = letter
    if letter == "k":
        if not source.take("<"):
            raise source.error("expected the name of a group", start)
        name = source.until(">", "a group name")
    while letter != "k" and source.peek() and source.peek() in "0123456789":
        name += source.next("an escape")
    assert source.references is not None
    source.references.append((int(name) if letter != "k" else name, start))
    return 0


def _octal(first: str, source: PatternSource, start: int) -> int:
    if source.is_ecma:
        if source.peek().isdigit() and source.peek().isascii():
            raise source.error("octal escapes are not supported", start)
        return 0
    digits = first
    while len(digits) < 3 and source.peek() and source.peek() in _OCTAL:
        digits += source.next("an escape")
    if not _OCTAL.issuperset(digits) or int(digits, 8) > 0o377:
        raise source.error(f"octal escape \\{digits} is out of range; the largest is \\377", start)
    return int(digits, 8)
