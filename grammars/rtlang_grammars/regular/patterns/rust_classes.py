"""Character classes of Rust's `regex`: nested classes, POSIX classes, and operations on sets.

Sets of characters are computed while the class is read. Open classes are on an explicit stack, so nesting costs no recursion. Source: the
syntax of the crate `regex`, which follows UTS #18, section 1.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.patterns.escapes import (
    Flags,
    PatternSource,
    apply_case_flag,
    class_atom,
    settled_complement,
)

_PROPERTIES = frozenset(f"\\{letter}" for letter in "dDsSwWpP")
_ASCII_CLASSES: dict[str, CodePoints] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0x00, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": unicode_sets.DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": unicode_sets.ASCII_SPACE,
    "upper": ((0x41, 0x5A),),
    "word": unicode_sets.WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
_OPERATIONS: dict[str, Callable[[CodePoints, CodePoints], CodePoints]] = {
    "&&": code_points.intersection,
    "--": lambda left, right: code_points.intersection(left, code_points.complement(right)),
    "~~": lambda left, right: code_points.union(
        code_points.intersection(left, code_points.complement(right)),
        code_points.intersection(right, code_points.complement(left)),
    ),
}
"""The operations on sets in a class, which bind less tightly than the union of items and apply from left to right."""


@dataclass(slots=True)
class _OpenClass:
    """A class of Rust's dialect that is being read: the sets of the current operand, and what it will be combined with."""

    start: int
    is_negated: bool
    has_property: bool = False
    sets: list[CodePoints] = field(default_factory=list)
    operation: str = ""
    left: CodePoints = code_points.NONE

    def operand(self, flags: Flags) -> CodePoints:
        """The value of the class so far; case variants are added to each operand."""
        points = apply_case_flag(code_points.union(*self.sets), flags, is_rust=True)
        return _OPERATIONS[self.operation](self.left, points) if self.operation else points


def read_rust_class(source: PatternSource, flags: Flags) -> CodePoints:
    """Read a character class from after its opening bracket through its closing bracket.

    Raises:
        GrammarError: a missing closing bracket, a malformed escape or an invalid range.
    """
    open_classes = [_open_rust_class(source, flags)]
    while True:
        _skip_blanks(source, flags)
        current = open_classes[-1]
        if source.position >= len(source.text):
            raise source.error("this character class has no closing bracket", current.start)
        if source.take("]"):
            closed = open_classes.pop()
            points = apply_case_flag(closed.operand(flags), flags, is_rust=True)
            if closed.is_negated:
                points = settled_complement(points) if closed.has_property else code_points.complement(points)
            if not open_classes:
                return points
            open_classes[-1].sets.append(points)
            open_classes[-1].has_property |= closed.has_property
        elif source.peek() == "[":
            posix = _posix_class(source, flags)
            source.position += posix is None
            if posix is not None:
                current.sets.append(posix)
            else:
                open_classes.append(_open_rust_class(source, flags))
        elif (operation := source.text[source.position : source.position + 2]) in _OPERATIONS:
            source.position += 2
            current.left, current.operation, current.sets = current.operand(flags), operation, []
        else:
            current.has_property |= source.text[source.position : source.position + 2] in _PROPERTIES
            current.sets.append(_rust_range(source, flags))


def _open_rust_class(source: PatternSource, flags: Flags) -> _OpenClass:
    """Read what may follow an opening bracket: the negation, hyphens and a bracket that stand for themselves."""
    opened = _OpenClass(source.position - 1, source.take("^"))
    _skip_blanks(source, flags)
    while source.take("-"):
        opened.sets.append(code_points.single(0x2D))
        _skip_blanks(source, flags)
    if not opened.sets and source.take("]"):
        opened.sets.append(code_points.single(0x5D))
    return opened


def _posix_class(source: PatternSource, flags: Flags) -> CodePoints | None:
    """Read `[:alpha:]` or `[:^alpha:]`; None, with nothing read, if it is not one."""
    end = source.text.find(":]", source.position, source.position + 16)
    inner = source.text[source.position + 2 : end] if end >= 0 and source.text.startswith("[:", source.position) else ""
    points = _ASCII_CLASSES.get(inner.removeprefix("^"))
    if points is None:
        return None
    source.position = end + 2
    points = apply_case_flag(points, flags, is_rust=True)
    return code_points.complement(points) if inner.startswith("^") else points


def _rust_range(source: PatternSource, flags: Flags) -> CodePoints:
    at = source.position
    low = class_atom(source, flags)
    _skip_blanks(source, flags)
    if source.peek() == "-":
        before = source.position
        source.position += 1
        _skip_blanks(source, flags)
        if source.peek() not in ("", "]", "-"):
            high = class_atom(source, flags)
            if not isinstance(low, int) or not isinstance(high, int):
                raise source.error("both ends of a character range must be single characters", at)
            if low > high:
                raise source.error(
                    "character range out of order: the first character must not be greater than the last", at
                )
            return code_points.normalize([(low, high)])
        source.position = before
    return code_points.single(low) if isinstance(low, int) else low


def _skip_blanks(source: PatternSource, flags: Flags) -> None:
    """Skip blanks and comments, which mean nothing in verbose mode, also inside a class."""
    while flags.verbose and (letter := source.peek()) and (letter.isspace() or letter == "#"):
        end = source.text.find("\n", source.position) if letter == "#" else source.position
        source.position = len(source.text) if end < 0 else end + 1
