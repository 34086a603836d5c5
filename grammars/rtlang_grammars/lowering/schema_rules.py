"""Rules of a Lark grammar for a JSON schema inside it (`%json`): shapes become rules, scalars and names become terminals.

Properties come in the order of the schema, undeclared ones last. Between the tokens of a value there may be no blanks, one or two, or a
line break and up to 80. Where several objects or arrays may begin in one place, the texts of scalars and names are cut into parts that
do not overlap, so that the lexer finds one terminal and the parser follows all that it may mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.lowering.json_shapes.json_spellings import spellings
from rtlang_grammars.lowering.json_shapes.json_values import number_of
from rtlang_grammars.regular.automata.byte_automaton import Automaton
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.report import KeywordStatus
from rtlang_grammars.schema.reading.values import Json
from rtlang_grammars.schema.shape_graph.shapes import (
    Alternative,
    ArrayShape,
    BooleanShape,
    KeyClass,
    LiteralShape,
    NullShape,
    NumberShape,
    ObjectShape,
    Property,
    Shape,
    StringShape,
)
from rtlang_grammars.spec.constraint import Numbers
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.json_source import parsed
from rtlang_grammars.spec.limits import Budget

_BLANKS = r"(?:[ \t]{1,2}|\r?\n[ \t]{0,80})"
_Add = Callable[[Language, Iterable[str]], None]
"""Makes a terminal of some texts and adds it to rules, given by their names."""
_SIGNS = {
    "OPEN": r"\{",
    "CLOSE": r"B?\}",
    "BEGIN": r"\[",
    "END": r"B?\]",
    "COMMA": "B?,",
    "COLON": "B?:",
    "BLANKS": "B",
}
"""Punctuation with the blanks before it. Blanks after it are a terminal of their own, so that no states depend on both."""
_WORDS = {"NULL": "null", "TRUE": "true", "FALSE": "false"}
_MAX_ITEMS = 10_000
_MAX_DIGITS = 64
"""Characters of a number beyond those of the shortest one."""
_MAX_PARTS = 512
_QUOTE = 0x22


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts of one kind: listed ones, or those of a language."""

    words: frozenset[str]
    others: Language | None


@dataclass
class _Pool:
    """The terminals of one kind of text: strings, names or numbers.

    Attributes:
        is_quoted: whether they are the values of JSON strings.
        texts: by the names of their rules.
        names: of rules, by what they are made of.
        firsts: rules with which the whole value begins: ignored terminals of the grammar may stand before these only.
    """

    kind: str
    is_quoted: bool
    texts: dict[str, _Texts] = field(default_factory=dict)
    names: dict[object, str] = field(default_factory=dict)
    firsts: set[str] = field(default_factory=set)

    def add(self, key: object, words: Iterable[str], others: Language | None, *, is_first: bool) -> str:
        """The name of the rule of some texts. is_first: the whole value begins with them."""
        if (key, is_first) not in self.names:
            name = self.names[key, is_first] = f"{self.kind}{len(self.names)}"
            self.texts[name] = _Texts(frozenset(words), others)
            if is_first:
                self.firsts.add(name)
        return self.names[key, is_first]


class SchemaRules:
    """The rules of all schemas of one grammar; see `context_free.lark_source.SchemaReader`."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._name = ""
        self._shapes: list[Shape] = []
        self._roots: list[tuple[str, str]] = []
        self._pools = {kind: _Pool(kind, kind != "n") for kind in ("s", "k", "n")}
        self._lines: dict[str, str] = {}
        self._todo: list[tuple[str, Alternative | int, bool]] = []
        self._made: dict[object, str] = {}
        self._marks: set[str] = set()

    def add(self, name: str, source: str) -> None:
        """Read a schema, whose first rule has this name. All names begin with that of the first one.

        Raises:
            GrammarError: the schema is malformed, or has a keyword that rules cannot express; with its JSON pointer.
        """
        schema = parsed(source)
        if not isinstance(schema, dict | bool):
            raise GrammarError("expected a JSON object or a boolean", "#")
        graph = compile_shapes(schema, budget=self._budget)
        for entry in graph.report.entries:
            if entry.status is KeywordStatus.CHECKED:
                raise GrammarError(f"{entry.keyword}: masks cannot enforce it: {entry.reason}", entry.pointer)
        self._name = self._name or name
        self._offset = len(self._shapes)
        self._shapes += [
            Shape(tuple(_moved(each, self._offset) for each in shape.alternatives)) for shape in graph.shapes
        ]
        self._roots.append((name, self._value(graph.root + self._offset, is_root=True)))
        while self._todo:
            name, what, is_root = self._todo.pop()
            self._budget.spend(states=1)
            if isinstance(what, int):
                ways = [self._alternative(each, is_root=is_root) for each in self._shapes[what].alternatives]
                self._lines[name] = " | ".join(ways)
            elif isinstance(what, ObjectShape):
                self._object(name, what, is_root=is_root)
            else:
                assert isinstance(what, ArrayShape)
                self._array(name, what, is_root=is_root)

    def written(self) -> tuple[str, dict[str, BuiltTerminal]]:
        """Lark text, and the terminals that it uses but does not define."""
        terminals: dict[str, BuiltTerminal] = {}
        for mark in sorted(self._marks):
            name, _, is_root = mark.partition("_")
            pattern = _WORDS.get(name) or _SIGNS[name].replace("B", _BLANKS)
            language = compile_regex(pattern, dialect="python", budget=self._budget)
            terminals[self._upper(mark)] = _built(language, is_inner=not is_root)
        splits = len(self._roots) > 1 or any(
            sum(isinstance(each, kind) for each in shape.alternatives) > 1
            for shape in self._shapes
            for kind in (ObjectShape, ArrayShape)
        )
        for pool in self._pools.values():
            self._add_texts(pool, terminals, splits=splits)
        lines = [f"{name}: {body}" for name, body in (*self._roots, *self._lines.items())]
        return "\n".join(lines), terminals

    def _upper(self, name: str) -> str:
        return f"{self._name}_{name}".upper()

    def _rule(self, name: str) -> str:
        return f"{self._name}_{name}"

    def _mark(self, name: str, *, is_root: bool = False) -> str:
        """The terminal of a word or of punctuation; after that which something follows in a value, blanks may stand."""
        name = f"{name}_FIRST" if is_root else name
        self._marks.add(name)
        blanks = ""
        if name.partition("_")[0] in ("OPEN", "BEGIN", "COMMA", "COLON"):
            self._marks.add("BLANKS")
            blanks = f" [{self._upper('BLANKS')}]"
        return self._upper(name) + blanks

    def _value(self, ref: int, *, is_root: bool = False) -> str:
        return self._later((ref, is_root), ref, is_root=is_root)

    def _later(self, key: object, what: Alternative | int, *, is_root: bool) -> str:
        if key not in self._made:
            self._made[key] = self._rule(f"v{len(self._made)}")
            self._todo.append((self._made[key], what, is_root))
        return self._made[key]

    def _alternative(self, shape: Alternative, *, is_root: bool) -> str:
        match shape:
            case NullShape():
                return self._mark("NULL", is_root=is_root)
            case BooleanShape():
                return " | ".join(self._mark("TRUE" if each else "FALSE", is_root=is_root) for each in shape.values)
            case NumberShape():
                language = _number(shape, self._budget)
                return self._text("n", shape, (), language, is_root=is_root)
            case StringShape():
                language = shape.language or Language.any_text()
                if shape.min_length or shape.max_length is not None:
                    language = language.bounded(shape.min_length, shape.max_length)
                return self._text("s", shape, (), language, is_root=is_root)
            case LiteralShape():
                return self._literals(shape.values, is_root=is_root)
            case _:
                return self._later((shape, is_root), shape, is_root=is_root)

    def _text(
        self, kind: str, key: object, words: Iterable[str], others: Language | None, *, is_root: bool = False
    ) -> str:
        name = self._pools[kind].add(key, words, others, is_first=is_root)
        return self._rule(name + ("_first" if is_root else ""))

    def _literals(self, values: Iterable[Json], *, is_root: bool) -> str:
        strings, numbers, ways = [], [], []
        for value in values:
            if isinstance(value, list):
                prefix = tuple(self._shape_of(item) for item in value)
                array = ArrayShape(prefix, None, len(prefix), len(prefix))
                ways.append(self._alternative(array, is_root=is_root))
            elif isinstance(value, dict):
                listed = tuple(Property(name, self._shape_of(item)) for name, item in value.items())
                ways.append(self._alternative(ObjectShape(listed, (), None, frozenset(value)), is_root=is_root))
            elif isinstance(value, str):
                strings.append(value)
            elif value is None:
                ways.append(self._mark("NULL", is_root=is_root))
            elif isinstance(value, bool):
                ways.append(self._mark("TRUE" if value else "FALSE", is_root=is_root))
            else:
                numbers += [each.decode() for each in spellings(value, Numbers.PLAIN)]
        if strings:
            ways.append(self._text("s", ("words", *strings), strings, None, is_root=is_root))
        if numbers:
            ways.append(self._text("n", ("words", *numbers), numbers, None, is_root=is_root))
        return " | ".join(ways)

    def _shape_of(self, value: Json) -> int:
        self._shapes.append(Shape((LiteralShape((value,)),)))
        return len(self._shapes) - 1

    def _array(self, name: str, shape: ArrayShape, *, is_root: bool) -> None:
        if shape.contains or shape.unique:
            what = "contains" if shape.contains else "uniqueItems"
            raise GrammarError(f"{what}: not supported in a grammar; constrain the whole text by a schema for it")
        low, high, prefix = shape.min_items, shape.max_items, shape.prefix
        if low > _MAX_ITEMS or (high or 0) > _MAX_ITEMS:
            raise GrammarError(f"minItems, maxItems: at most {_MAX_ITEMS} are supported in a grammar")
        comma = self._mark("COMMA")
        count = len(prefix) if high is None else min(len(prefix), high)
        rest = ""
        if shape.items is not None and (high is None or high > len(prefix)):
            item = self._value(shape.items)
            least, most = max(0, low - count), None if high is None else high - count
            before = f"{comma} " if count else ""
            first = f"{item} " if not count else ""
            if not count:
                least, most = max(0, least - 1), None if most is None else most - 1
                inner = f"({comma} {item})"
                rest = f"{first}{_times(inner, least, most)}"
            else:
                rest = _times(f"({before}{item})", least, most)
        parts = rest
        for index in range(count - 1, -1, -1):
            item = self._value(prefix[index])
            lead = f"{comma} " if index else ""
            body = f"{lead}{item} {parts}"
            must = index < low or index == 0
            parts = body if must else f"[{body}]"
        ways = []
        if parts.strip() and (high is None or high > 0):
            ways.append(f"{self._mark('BEGIN', is_root=is_root)} {parts} {self._mark('END')}")
        if low == 0:
            ways.append(f"{self._mark('BEGIN', is_root=is_root).split()[0]} {self._mark('END')}")
        self._lines[name] = " | ".join(ways)

    def _object(self, name: str, shape: ObjectShape, *, is_root: bool) -> None:
        listed = [each for each in shape.properties if each.shape is not None]
        if shape.unordered:
            listed.sort(key=lambda each: each.name in shape.unordered)
        is_open = shape.additional is not None or any(each.shape is not None for each in shape.classes)
        most, least = shape.max_properties, shape.min_properties
        num_required = len(shape.required)
        is_bounded = (most is not None and (is_open or most < len(listed))) or (
            least > num_required and not (least == 1 and not num_required)
        )
        if is_bounded:
            raise GrammarError(
                "minProperties, maxProperties: not supported in a grammar where `required` does not decide them"
            )
        others = self._others(shape) if is_open else []
        comma, colon = self._mark("COMMA"), self._mark("COLON")
        members = [f"{one} {colon} {value}" for one, value in others]
        after = f"{name}_t{len(listed)}"
        if members:
            self._lines[f"{name}_o"] = " | ".join(members)
            self._lines[after] = f"({comma} {name}_o)*"
        else:
            self._lines[after] = "()"
        first: list[str] = []
        for index in range(len(listed) - 1, -1, -1):
            each = listed[index]
            assert each.shape is not None
            key = self._text("k", each.name, [each.name], None)
            member = f"{key} {colon} {self._value(each.shape)} {name}_t{index + 1}"
            ways = [f"{comma} {member}"]
            if each.name not in shape.required:
                ways.append(f"{name}_t{index + 1}")
            self._lines[f"{name}_t{index}"] = " | ".join(ways)
            first = [member] if each.name in shape.required else [member, *first]
            if each.name not in shape.required and index == len(listed) - 1 and members:
                first.append(f"{name}_o {after}")
        if not listed and members:
            first = [f"{name}_o {after}"]
        if listed:
            del self._lines[f"{name}_t0"]
        ways = [f"{self._mark('OPEN', is_root=is_root)} ({' | '.join(first)}) {self._mark('CLOSE')}"] if first else []
        if not num_required and least == 0:
            ways.append(f"{self._mark('OPEN', is_root=is_root).split()[0]} {self._mark('CLOSE')}")
        self._lines[name] = " | ".join(ways)

    def _others(self, shape: ObjectShape) -> list[tuple[str, str]]:
        """The undeclared names of an object with the rules of their values."""
        declared = Language.literals([each.name for each in shape.properties]) if shape.properties else None
        found = []
        taken = [declared] if declared is not None else []
        for each in shape.classes:
            names = each.names if declared is None else each.names.minus(declared)
            taken.append(each.names)
            if each.shape is not None and not names.is_empty(self._budget):
                key: tuple[object, ...] = ("class", each.names, tuple(one.name for one in shape.properties))
                found.append((self._text("k", key, (), names), self._value(each.shape)))
        if shape.additional is not None:
            names = Language.any_text()
            if taken:
                names = names.minus(taken[0].union(*taken[1:]))
            rest = ("others", tuple(one.names for one in shape.classes), tuple(one.name for one in shape.properties))
            found.append((self._text("k", rest, (), names), self._value(shape.additional)))
        return found

    def _add_texts(self, pool: _Pool, terminals: dict[str, BuiltTerminal], *, splits: bool) -> None:
        """Make terminals of the texts of one kind, and rules that consist of them."""
        listed = list(pool.texts.items())
        lines: dict[str, list[str]] = {}
        num_parts = 0

        def add(texts: Language, owners: Iterable[str]) -> None:
            nonlocal num_parts
            num_parts += 1
            for owner in owners:
                first = "_first" if owner in pool.firsts else ""
                terminal = self._upper(f"{pool.kind}_part{num_parts}{first}")
                if terminal not in terminals:
                    terminals[terminal] = _built(_Quoted(texts) if pool.is_quoted else texts, is_inner=not first)
                lines.setdefault(self._rule(owner + first), []).append(terminal)

        if splits:
            self._split(listed, add)
        for name, texts in () if splits else listed:
            add(Language.literals(sorted(texts.words)) if texts.others is None else texts.others, [name])
        for name, found in lines.items():
            self._lines[name] = " | ".join(found)

    def _split(self, listed: list[tuple[str, _Texts]], add: _Add) -> None:
        """Cut texts into parts that belong to the same rules."""
        words = sorted({word for _, texts in listed for word in texts.words})
        by_owners: dict[tuple[str, ...], list[str]] = {}
        for word in words:
            owners = tuple(
                name
                for name, texts in listed
                if word in texts.words or (texts.others is not None and texts.others.accepts(word, self._budget))
            )
            by_owners.setdefault(owners, []).append(word)
        for owners, each in by_owners.items():
            add(Language.literals(each), owners)
        apart: list[tuple[Language, tuple[str, ...]]] = []
        known = Language.literals(words) if words else None
        for name, texts in listed:
            rest = texts.others
            if rest is None:
                continue
            if known is not None:
                rest = rest.minus(known)
            following: list[tuple[Language, tuple[str, ...]]] = []
            for language, owners in apart:
                if rest.is_disjoint(language, self._budget):
                    following.append((language, owners))
                    continue
                following.append((language.intersect(rest), (*owners, name)))
                outside = language.minus(rest)
                if not outside.is_empty(self._budget):
                    following.append((outside, owners))
                rest = rest.minus(language)
            if not rest.is_empty(self._budget):
                following.append((rest, (name,)))
            apart = following
            if len(apart) > _MAX_PARTS:
                raise GrammarError(f"too complex: more than {_MAX_PARTS} kinds of strings, names or numbers overlap")
        for language, owners in apart:
            add(language, owners)


def _times(item: str, low: int, high: int | None) -> str:
    if high is None:
        return f"{item}~{low} {item}*" if low > 1 else f"{item}+" if low else f"{item}*"
    return f"{item}~{low}..{high}" if high else ""


def _moved(shape: Alternative, offset: int) -> Alternative:
    """An alternative whose references to shapes are moved."""
    if not offset:
        return shape

    def to(ref: int | None) -> int | None:
        return None if ref is None else ref + offset

    if isinstance(shape, ArrayShape):
        return replace(shape, prefix=tuple(each + offset for each in shape.prefix), items=to(shape.items))
    if isinstance(shape, ObjectShape):
        properties = tuple(Property(each.name, to(each.shape)) for each in shape.properties)
        classes = tuple(KeyClass(each.names, to(each.shape)) for each in shape.classes)
        return replace(shape, properties=properties, classes=classes, additional=to(shape.additional))
    return shape


def _number(shape: NumberShape, budget: Budget) -> Language:
    """The texts of the numbers of a shape, of bounded length."""
    language = number_of(shape, Numbers.PLAIN, budget)
    shortest = language.shortest(budget)
    return language.bounded(1, _MAX_DIGITS if shortest is None else _MAX_DIGITS + len(shortest))


def _built(language: Language, *, is_inner: bool) -> BuiltTerminal:
    return BuiltTerminal(language, language, is_inner=is_inner)


class _Quoted(Language):
    """The JSON strings whose values are in a language, with their quotes and every escape. Questions about texts are about those."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Language) -> None:
        super().__init__(Language.nothing()._tree)
        self._inner = inner

    def accepts(self, text: str | bytes, budget: Budget | None = None) -> bool:
        """Whether a text is such a string."""
        data = text.encode() if isinstance(text, str) else text
        automaton = self.automaton(budget)
        state = automaton.start
        for byte in data:
            state = int(automaton.row(state)[byte])
            if state < 0:
                return False
        return automaton.is_accepting(state)

    def is_empty(self, budget: Budget | None = None) -> bool:
        """Whether there is none."""
        return self._inner.is_empty(budget)

    def automaton(self, budget: Budget | None = None) -> Automaton:  # type: ignore[override]
        """The automaton over UTF-8."""
        return _QuotedAutomaton(self._inner.json_string_body(budget))


class _QuotedAutomaton:
    """An automaton with a quote before and after: states 0 and 1 are the start and the end, others those of the inside + 2."""

    start = 0

    def __init__(self, inner: Automaton) -> None:
        self._inner = inner

    @property
    def num_states(self) -> int:
        """See `Automaton`."""
        return self._inner.num_states + 2

    def row(self, state: int) -> NDArray[np.int32]:
        """See `Automaton`."""
        found = np.full(256, -1, dtype=np.int32)
        if state == 0:
            found[_QUOTE] = self._inner.start + 2
        elif state > 1:
            inner = self._inner.row(state - 2)
            found[inner >= 0] = inner[inner >= 0] + 2
            if self._inner.is_accepting(state - 2):
                found[_QUOTE] = 1
        return found

    def is_accepting(self, state: int) -> bool:
        """See `Automaton`."""
        return state == 1
