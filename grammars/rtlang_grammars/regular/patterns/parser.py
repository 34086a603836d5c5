"""Regex parser: ECMA-262 as in JSON Schema's `pattern`, Python's `re`, and Rust's `regex` as in pydantic's patterns.

One pass with an explicit stack of groups, so nesting costs no recursion. Greedy and lazy quantifiers and capturing do not change which
strings match. Constructs that are not regular (backreferences, atomic groups, possessive quantifiers, conditionals) are errors.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto

from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.regular.patterns.escapes import (
    Flags,
    PatternSource,
    RegexDialect,
    apply_case_flag,
    read_class,
    read_escape,
)
from rtlang_grammars.regular.patterns.rust_classes import read_rust_class
from rtlang_grammars.regular.patterns.syntax import ANY_TEXT, Anchor, AnchorKind, PatternNode
from rtlang_grammars.regular.patterns.zero_width import lookaround, repeat, resolve_anchors_at
from rtlang_grammars.spec.limits import Budget

_MAX_ASSERTIONS = 256
_MAX_COUNT_DIGITS = 15
_FLAG_NAMES = {"i": "ignore_case", "m": "multiline", "s": "dot_all", "a": "ascii_only", "x": "verbose", "R": "crlf"}
_CARRIAGE_RETURN = code_points.single(0x0D)
_NAME_SIGNS = {
    (True, False): str.maketrans("$", "_"),
    (False, False): {},
    (False, True): str.maketrans(".[]", "___"),
}
"""Signs that may stand in names of groups, by whether the dialect is ECMA's and Rust's."""


class _Kind(Enum):
    GROUP = auto()
    AHEAD = auto()
    NOT_AHEAD = auto()
    BEHIND = auto()
    NOT_BEHIND = auto()


_ASSERTIONS = (("(?=", _Kind.AHEAD), ("(?!", _Kind.NOT_AHEAD), ("(?<=", _Kind.BEHIND), ("(?<!", _Kind.NOT_BEHIND))


@dataclass(slots=True)
class _Group:
    """An open group."""

    kind: _Kind
    position: int
    outer_flags: Flags
    alternatives: list[PatternNode] = field(default_factory=list)
    items: list[PatternNode] = field(default_factory=list)


def parse_pattern(pattern: str, dialect: RegexDialect, budget: Budget) -> PatternNode:
    """Parse a pattern to a syntax tree with anchors and lookarounds.

    Raises:
        GrammarError: a syntax error or an unsupported construct, with `line:column`; or the pattern is too large.
    """
    budget.check_source(pattern)
    return _Parser(PatternSource(pattern, dialect), budget).parse()


def check_pattern(pattern: str, dialect: RegexDialect, budget: Budget) -> None:
    """Check the syntax of a pattern, which may have backreferences to its groups.

    Raises:
        GrammarError: as `parse_pattern`; or a backreference to a group that does not exist.
    """
    budget.check_source(pattern)
    references: list[tuple[str | int, int]] = []
    source = PatternSource(pattern, dialect, references)
    parser = _Parser(source, budget)
    parser.parse()
    for group, position in references:
        if group not in parser.names and not (isinstance(group, int) and group <= parser.num_captured):
            raise source.error(f"there is no group {group}", position)


class _Parser:
    """The state of one call of `parse_pattern`."""

    def __init__(self, source: PatternSource, budget: Budget) -> None:
        self.source, self.budget = source, budget
        self.flags = Flags()
        self.groups: list[_Group] = []
        self.names: set[str] = set()
        self.num_captured = 0
        self.num_assertions = 0
        self.can_repeat = False

    def parse(self) -> PatternNode:
        source, budget = self.source, self.budget
        self.groups.append(_Group(_Kind.GROUP, 0, self.flags))
        text = source.text
        while source.position < len(text):
            letter = text[source.position]
            budget.spend(states=1)
            if letter in "*+?{" and self._repeat(letter):
                continue
            if letter == "(":
                self._open()
            elif letter == ")":
                if len(self.groups) == 1:
                    raise source.error("unmatched closing parenthesis")
                source.position += 1
                self._close()
            elif letter == "|":
                source.position += 1
                group = self.groups[-1]
                group.alternatives.append(syntax.concatenation(group.items))
                group.items = []
                self.can_repeat = False
            else:
                self._atom(letter)
        if len(self.groups) > 1:
            raise source.error("this group has no closing parenthesis", self.groups[-1].position)
        root = self.groups[0]
        return self._check_depth(syntax.alternation([*root.alternatives, syntax.concatenation(root.items)]))

    def _check_depth(self, node: PatternNode) -> PatternNode:
        self.budget.check_depth(node.depth, self.source.location())
        return node

    def _add(self, node: PatternNode, *, can_repeat: bool = True) -> None:
        self.groups[-1].items.append(node)
        self.can_repeat = can_repeat

    def _atom(self, letter: str) -> None:
        source, flags = self.source, self.flags
        if flags.verbose and (letter.isspace() or letter == "#"):
            end = source.text.find("\n", source.position) if letter == "#" else source.position
            source.position = len(source.text) if end < 0 else end + 1
            return
        source.position += 1
        if letter == "[":
            read = read_rust_class if source.is_rust else read_class
            self._add(syntax.characters(read(source, flags)))
        elif letter == ".":
            points = code_points.ALL if flags.dot_all else code_points.complement(self._line_ends())
            self._add(syntax.characters(points))
        elif letter == "^":
            self._add_assertion(self._start_of_line() if flags.multiline else Anchor(AnchorKind.START))
        elif letter == "$":
            self._add_assertion(self._dollar())
        elif letter == "\\":
            self._escape()
        elif flags.ignore_case:
            points = apply_case_flag(code_points.single(ord(letter)), flags, is_rust=source.is_rust)
            self._add(syntax.characters(points))
        else:
            self._add(syntax.character(ord(letter)))

    def _add_assertion(self, node: PatternNode) -> None:
        self._add(node, can_repeat=self.source.is_rust)

    def _line_ends(self) -> CodePoints:
        if self.source.is_ecma:
            return unicode_sets.ECMA_LINE_ENDS
        return code_points.union(unicode_sets.NEWLINE, _CARRIAGE_RETURN) if self.flags.crlf else unicode_sets.NEWLINE

    def _escape(self) -> None:
        source, flags = self.source, self.flags
        letter = source.peek()
        ends = "" if source.is_ecma else "Az" if source.is_rust else "AZ"
        if letter in ("b", "B"):
            source.position += 1
            half = self._half_boundary() if letter == "b" and source.is_rust else None
            self._add_assertion(self._word_boundary(is_negative=letter == "B") if half is None else half)
        elif letter and letter in "<>" and source.is_rust:
            source.position += 1
            self._add_assertion(self._boundary("start" if letter == "<" else "end"))
        elif letter and letter in ends:
            source.position += 1
            self._add_assertion(Anchor(AnchorKind.START if letter == "A" else AnchorKind.END))
        else:
            found = read_escape(source, flags, in_class=False)
            points = found
            if isinstance(points, int):
                points = apply_case_flag(code_points.single(points), flags, is_rust=source.is_rust)
            self._add(syntax.characters(points))

    def _repeat(self, letter: str) -> bool:
        """Read a quantifier and apply it to the last item; return False if the brace is a literal."""
        source = self.source
        start = source.position
        if letter == "{":
            bounds = self._counts()
            if bounds is None:
                return False
            low, high = bounds
        else:
            source.position += 1
            low, high = (0, 1) if letter == "?" else (1 if letter == "+" else 0, None)
        if not self.can_repeat:
            raise source.error("nothing to repeat: a quantifier must follow a character, class or group", start)
        if source.peek() == "+" and not source.is_ecma and not source.is_rust:
            raise source.error("possessive quantifiers are not supported", start)
        source.take("?")
        items = self.groups[-1].items
        items[-1] = self._check_depth(repeat(items[-1], low, high, self.budget, source.location(start)))
        self.can_repeat = source.is_rust  # there, `a++` repeats `a+`
        return True

    def _counts(self) -> tuple[int, int | None] | None:
        """Read the bounds of `{n}`, `{n,}`, `{n,m}` or Python's `{,m}` and `{,}`; return None and read nothing if it is none of them."""
        source = self.source
        end = source.text.find("}", source.position, source.position + 2 * _MAX_COUNT_DIGITS + 64)
        inner = source.text[source.position + 1 : end] if end >= 0 else ""
        first, comma, second = inner.partition(",")
        if source.is_rust and self.flags.verbose:
            first, second = first.strip(), second.strip()
        if not all(part == "" or (part.isdigit() and part.isascii()) for part in (first, second)):
            return None
        if not first and (source.is_ecma or source.is_rust or not comma):
            return None
        if max(len(first), len(second)) > _MAX_COUNT_DIGITS:
            raise source.error(f"a bound of a quantifier may have at most {_MAX_COUNT_DIGITS} digits")
        low = int(first or "0")
        high = low if not comma else int(second) if second else None
        if high is not None and low > high:
            raise source.error(
                "the bounds of this quantifier are out of order: the minimum must not exceed the maximum"
            )
        source.position = end + 1
        return low, high

    def _open(self) -> None:
        source = self.source
        start = source.position
        for prefix, kind in _ASSERTIONS:
            if source.take(prefix):
                if source.is_rust:
                    raise source.error("lookaround is not supported in the rust dialect", start)
                self._count_assertion(start)
                self._push(kind, start, self.flags)
                return
        source.position += 1
        if not source.take("?"):
            self.num_captured += 1
            self._push(_Kind.GROUP, start, self.flags)
        elif source.take(":"):
            self._push(_Kind.GROUP, start, self.flags)
        elif source.take("<" if source.is_ecma else "P<") or (source.is_rust and source.take("<")):
            name = source.until(">", "a group name")
            if not name.translate(_NAME_SIGNS[source.is_ecma, source.is_rust]).isidentifier():
                raise source.error(f"invalid group name {name!r}: an identifier is required", start)
            if not source.is_ecma and name in self.names:
                raise source.error(f"duplicate group name {name!r}", start)
            self.names.add(name)
            self.num_captured += 1
            self._push(_Kind.GROUP, start, self.flags)
        elif not source.is_ecma and not source.is_rust and source.take("#"):
            source.until(")", "a comment")
        elif source.peek() and source.peek() in (">" if source.is_ecma else "P(>"):
            raise source.error("backreferences, conditionals and atomic groups are not supported", start)
        else:
            self._open_flags(start)

    def _push(self, kind: _Kind, position: int, flags: Flags) -> None:
        self.groups.append(_Group(kind, position, self.flags))
        self.flags = flags
        self.can_repeat = False
        if len(self.groups) > 4 * self.budget.limits.max_depth:  # redundant groups add no depth to the tree
            self.budget.check_depth(len(self.groups), self.source.location(position))

    def _open_flags(self, start: int) -> None:
        """Read `(?i)` for the rest of the pattern (in Rust's dialect, of the group), or the opening `(?i-s:` of a group."""
        source = self.source
        letters = "ims" if source.is_ecma else "imsxR" if source.is_rust else "imsax"
        changes: dict[str, bool] = {}
        is_on = True
        while True:
            letter = source.next("the start of a group")
            if letter == "-" and is_on:
                is_on = False
            elif letter in letters:
                changes[_FLAG_NAMES[letter]] = is_on
            elif letter == "u" and (is_on or source.is_rust) and not source.is_ecma:
                changes["ascii_only"] = not is_on
            elif letter == "U" and source.is_rust:
                continue  # it swaps greedy and lazy quantifiers
            elif letter == ":" or (letter == ")" and (source.is_rust or (not source.is_ecma and is_on and start == 0))):
                flags = replace(self.flags, **changes)
                if letter == ":":
                    self._push(_Kind.GROUP, start, flags)
                else:
                    self.flags, self.can_repeat = flags, False
                return
            else:
                raise source.error(
                    "unknown group syntax; flags of the whole pattern are allowed only at its start", start
                )

    def _close(self) -> None:
        group = self.groups.pop()
        self.flags = group.outer_flags
        inner = self._check_depth(syntax.alternation([*group.alternatives, syntax.concatenation(group.items)]))
        if group.kind is not _Kind.GROUP:
            is_ahead = group.kind in (_Kind.AHEAD, _Kind.NOT_AHEAD)
            is_negative = group.kind in (_Kind.NOT_AHEAD, _Kind.NOT_BEHIND)
            inner = self._check_depth(
                self._assertion(inner, group.position, is_ahead=is_ahead, is_negative=is_negative)
            )
        self._add(inner)

    def _assertion(self, inner: PatternNode, position: int, *, is_ahead: bool, is_negative: bool) -> PatternNode:
        """A lookaround: `inner` must (not) match at the current position."""
        if is_ahead:
            whole = resolve_anchors_at(syntax.concatenation([inner, ANY_TEXT]), AnchorKind.END, self.budget)
        else:
            whole = resolve_anchors_at(syntax.concatenation([ANY_TEXT, inner]), AnchorKind.START, self.budget)
            if whole.zero_width & (syntax.ZeroWidth.AHEAD | syntax.ZeroWidth.END):
                raise self.source.error("lookahead, \\b and $ are not supported in a lookbehind", position)
            if not self.source.is_ecma and not _has_fixed_length(inner):
                raise self.source.error("a lookbehind must have a fixed length", position)
        return lookaround(whole, is_ahead=is_ahead, is_negative=is_negative)

    def _count_assertion(self, position: int) -> None:
        self.num_assertions += 1
        if self.num_assertions > _MAX_ASSERTIONS:
            raise self.source.error(f"at most {_MAX_ASSERTIONS} assertions are supported in one pattern", position)

    def _start_of_line(self) -> PatternNode:
        start = self.source.position
        self._count_assertion(start)
        ends = unicode_sets.NEWLINE if self.flags.crlf else self._line_ends()
        after = [self._beside(ends, start, is_ahead=False)]
        if self.flags.crlf:
            alone = self._beside(unicode_sets.NEWLINE, start, is_ahead=True, is_negative=True)
            after.append(syntax.concatenation([self._beside(_CARRIAGE_RETURN, start, is_ahead=False), alone]))
        return syntax.alternation([Anchor(AnchorKind.START), *after])

    def _beside(self, points: CodePoints, start: int, *, is_ahead: bool, is_negative: bool = False) -> PatternNode:
        """Matches the empty string where the next or previous character is (not) of a set."""
        return self._assertion(syntax.characters(points), start, is_ahead=is_ahead, is_negative=is_negative)

    def _dollar(self) -> PatternNode:
        source = self.source
        if (source.is_ecma or source.is_rust) and not self.flags.multiline:
            return Anchor(AnchorKind.END)
        start = source.position
        self._count_assertion(start)
        if self.flags.multiline and self.flags.crlf:
            alone = self._beside(_CARRIAGE_RETURN, start, is_ahead=False, is_negative=True)
            newline = syntax.concatenation([alone, self._beside(unicode_sets.NEWLINE, start, is_ahead=True)])
            before = syntax.alternation([self._beside(_CARRIAGE_RETURN, start, is_ahead=True), newline])
        elif self.flags.multiline:
            before = self._beside(self._line_ends(), start, is_ahead=True)
        else:  # Python: at the end, or before a final newline
            before = lookaround(syntax.text("\n"), is_ahead=True, is_negative=False)
        return syntax.alternation([Anchor(AnchorKind.END), before])

    def _half_boundary(self) -> PatternNode | None:
        r"""Read the rest of Rust's `\b{start}`, `\b{end}`, `\b{start-half}` or `\b{end-half}`; None for a plain `\b`."""
        for kind in ("start", "end", "start-half", "end-half"):
            if self.source.take(f"{{{kind}}}"):
                return self._boundary(kind)
        return None

    def _boundary(self, kind: str) -> PatternNode:
        """The start or the end of a word; the half ones only look at the side that is no word."""
        start = self.source.position
        self._count_assertion(start)
        is_start, word = kind.startswith("start"), self._word()
        outside = self._beside(word, start, is_ahead=not is_start, is_negative=True)
        if kind.endswith("-half"):
            return outside
        return syntax.concatenation([outside, self._beside(word, start, is_ahead=is_start)])

    def _word(self) -> CodePoints:
        if self.source.is_ecma or self.flags.ascii_only:
            return unicode_sets.WORD
        return unicode_sets.unicode_word() if self.source.is_rust else unicode_sets.python_word()

    def _word_boundary(self, *, is_negative: bool) -> PatternNode:
        start = self.source.position
        self._count_assertion(start)
        points = self._word()
        word = syntax.characters(points)
        before = self._assertion(word, start, is_ahead=False, is_negative=False)
        not_before = self._assertion(word, start, is_ahead=False, is_negative=True)
        after = self._assertion(word, start, is_ahead=True, is_negative=False)
        not_after = self._assertion(word, start, is_ahead=True, is_negative=True)
        if is_negative:
            neither = [[not_before, not_after]]
            if (
                not self.source.is_ecma and not self.source.is_rust
            ):  # in Python up to 3.13, \B does not match the empty string
                other = syntax.characters(code_points.complement(points))
                neither = [
                    [self._assertion(other, start, is_ahead=False, is_negative=False), not_after],
                    [not_before, self._assertion(other, start, is_ahead=True, is_negative=False)],
                ]
            return syntax.alternation([syntax.concatenation(each) for each in ([before, after], *neither)])
        return syntax.alternation(
            [syntax.concatenation([before, not_after]), syntax.concatenation([not_before, after])]
        )


def _has_fixed_length(node: PatternNode) -> bool:
    """Whether all strings of a tree have one length, as Python's `re` requires of a lookbehind. True for nodes it does not analyze."""
    low, high = _length_range(node)
    return low == high


def _length_range(node: PatternNode) -> tuple[int, int | None]:
    """The lengths of the shortest and the longest string; None if unbounded."""
    match node:
        case syntax.Concatenation():
            found = [_length_range(item) for item in node.items]
            ends = [high for _, high in found if high is not None]
            return sum(low for low, _ in found), sum(ends) if len(ends) == len(found) else None
        case syntax.Alternation():
            found = [_length_range(item) for item in node.items]
            ends = [high for _, high in found if high is not None]
            return min(low for low, _ in found), max(ends) if len(ends) == len(found) else None
        case syntax.Repetition():
            low, high = _length_range(node.item)
            if high == 0:
                return 0, 0
            return node.low * low, None if high is None or node.high is None else node.high * high
        case syntax.Anchor() | syntax.Lookaround():
            return 0, 0
    return node.min_length, node.min_length
