"""Lowers structures: every part becomes a rule of one grammar, over terminals, frames of JSON values, and free text with triggers.

Schemas of tools that cannot be compiled are widened (`tool_schemas`), and the finished text is then checked (`structure_check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from rtlang_grammars.context_free.gbnf_reader import GrammarNotation, read_gbnf
from rtlang_grammars.context_free.left_recursion import without_left_recursion
from rtlang_grammars.formats.arguments.argument_grammar import argument_part, leaves_checks, reading_of
from rtlang_grammars.formats.description import ToolFormat
from rtlang_grammars.formats.tools import widened as widened_tool
from rtlang_grammars.lowering.grammar_arguments import argument_grammar, around_argument, grammar_argument
from rtlang_grammars.lowering.grammars.grammar_tables import GrammarTables
from rtlang_grammars.lowering.grammars.rules import Frame, NumberedRules
from rtlang_grammars.lowering.json_shapes.json_spellings import spellings
from rtlang_grammars.lowering.json_shapes.json_values import ShapeTables, bounded_number_of
from rtlang_grammars.lowering.languages.free_text import TEXT_FIRST, FreeText
from rtlang_grammars.lowering.languages.raw_text import RawLanguage
from rtlang_grammars.lowering.tool_schemas import NewlyWidenedError, Widened, location_in_tool, wider
from rtlang_grammars.machine.automaton.json_base_states import BLANKS, json_base_states
from rtlang_grammars.machine.automaton.layout import NONE
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import Report, ReportEntry
from rtlang_grammars.schema.reading.values import Json
from rtlang_grammars.schema.shape_graph.shapes import LiteralShape, NumberShape, StringShape
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, Numbers, PropertyOrder
from rtlang_grammars.spec.errors import GrammarError, is_of_limit
from rtlang_grammars.spec.json_source import parsed
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.structure_parts import (
    AnyOf,
    Arguments,
    Defined,
    Leaf,
    Literal,
    Mark,
    Members,
    Part,
    RawText,
    Repeat,
    Sequence,
    Tags,
    Token,
)
from rtlang_grammars.spec.structures import check_triggers, read_structure, sequence
from rtlang_grammars.spec.tokens import AnyTokens, Ranges, SpecialTokens, segments_of, spelling

_RawKey: TypeAlias = tuple[Language | None, tuple[str, ...], int, int | None, int | None]
"""Language, excluded texts, bounds on the number of code points, bound on the number of tokens."""


class StructureTables:
    """Builds the tables of a structure. Owned by one compile.

    Attributes:
        tables: the tables under construction.
        checked: the pointers of the parts whose finished values must be checked, because the tables allow more than their schemas.
    """

    def __init__(
        self,
        budget: Budget,
        style: JsonStyle,
        options: SchemaOptions | None = None,
        tokens: SpecialTokens | None = None,
        *,
        allow_checked: bool = False,
        widened: Widened | None = None,
    ) -> None:
        """Begin with nothing.

        Args:
            tokens: of the vocabulary; None: every token is taken for known.
            allow_checked: see `compilation.Compilation`.
            widened: grows with what `build` finds.
        """
        self._allow_checked, self._widened = allow_checked, {} if widened is None else widened
        self.checked: set[str] = set()
        self._inexact: set[str] = set()  # sources of schemas whose values must be checked
        self._is_newly_widened = False
        self._refused: GrammarError | None = None  # of the first tool that cannot be called
        self._budget, self._style, self._options = budget, style, options
        self._tokens = tokens or AnyTokens()
        self._base = json_base_states(style)
        self.tables = Tables(budget, self._base.tables)
        self._grammar = NumberedRules()
        self._rules = GrammarTables(self._grammar, self.tables, budget)
        self._blanks: int | None = None
        self._terminals: dict[Language, int] = {}  # of languages that occur again
        self._raw: dict[_RawKey, int | None] = {}  # the terminals of raw texts; None: nothing is left
        self._literals: dict[bytes, Language] = {}
        self._token_terminals: dict[Ranges, int] = {}
        self._starts: dict[Constraint, int] = {}
        self._regexes: dict[str, Language] = {}
        self._values: dict[str, list[int]] = {}  # the terminals of a value, by the source of its schema
        self._rules_of: dict[Defined, int] = {}
        self._entries: list[ReportEntry] = []

    def build(self, part: Part) -> int:
        """Fill the tables; returns the start state.

        Raises:
            GrammarError: a part cannot be compiled; the location begins with its JSON pointer.
            NewlyWidenedError: see there.
        """
        start = self._grammar.rule("structure")
        self._grammar.start = start
        self._write(part, start, 0, 1)
        if self._refused is not None and self._is_newly_widened:
            raise NewlyWidenedError(self._refused, is_over=False)
        try:
            return self._rules.build()
        except GrammarError:
            self._budget.check()
            if self._refused is not None:  # without its calls there may be no text at all
                raise self._refused from None
            raise

    @property
    def report(self) -> Report:
        """The status of the keywords of all schemas; each pointer begins with the pointer of its part."""
        return Report("structure", tuple(sorted(self._entries)))

    def _write(self, part: Part, rule: int, begin: int, end: int) -> None:
        """Add the texts of a part between two positions of a rule."""
        self._budget.spend(states=1)
        match part:
            case Literal():
                self._spelled(self._tokens.spell(part.text), rule, begin, end)
            case Token():
                self._token(self._resolved(part), rule, begin, end)
            case Leaf() | RawText():
                try:
                    if isinstance(part, Leaf):
                        self._leaf(part, rule, begin, end)
                    else:
                        self._raw_text(part, rule, begin, end)
                except GrammarError as error:
                    self._budget.check()
                    raise GrammarError(error.reason, f"{part.pointer} {error.location or ''}".rstrip()) from error
            case Sequence():
                at = begin
                for each in part.parts:
                    to = self._position(rule)
                    self._write(each, rule, at, to)
                    at = to
                self._grammar.rules[rule].empty[at].append(end)
            case AnyOf():
                for each in part.parts:
                    self._write(each, rule, begin, end)
            case Repeat():
                self._repeat(part, rule, begin, end)
            case Members():
                self._members(part, rule, begin, end)
            case Arguments():
                self._arguments(part, rule, begin, end)
            case Defined():
                self._call(self._defined(part), rule, begin, end)
            case Tags():
                self._symbol(self._tags(part), rule, begin, end)

    def _defined(self, part: Defined) -> int:
        """The rule of a part that occurs several times."""
        if part not in self._rules_of:
            self._rules_of[part] = self._grammar.rule(part.name)
            self._write(part.part, self._rules_of[part], 0, 1)
        return self._rules_of[part]

    def _arguments(self, part: Arguments, rule: int, begin: int, end: int) -> None:
        """Add the arguments of a call. Where their schema cannot be compiled, it is noted as widened, and nothing is added."""
        tool_format, tool = reading_of(part)
        key = part.name, part.parameters
        names = self._widened.get(key, frozenset())
        is_wide, outer = names is None or bool(names), self.checked
        unenforced = leaves_checks(tool_format, tool)
        try:
            if unenforced is not None and not self._allow_checked:
                raise GrammarError(f"{unenforced} cannot be enforced where parameters are written one by one", "#")
            grammar = None if is_wide else grammar_argument(tool)
            self.checked = set()
            if grammar is not None:
                self._grammar_argument(tool_format, grammar, rule, begin, end)
            else:
                inner = argument_part(tool_format, widened_tool(tool, names) if is_wide else tool, self._style)
                self._write(_part_of(inner, part.pointer), rule, begin, end)
            if self.checked or is_wide or unenforced is not None:
                outer.add(part.pointer)
        except GrammarError as error:
            self._budget.raise_if_cancelled()
            is_over, is_limit = self._budget.is_over, is_of_limit(error)
            location = None if is_over else location_in_tool(error, tool_format, tool, self._options, self._budget)
            named = GrammarError(f"tool {part.name}: {error.reason}", location)
            if (
                not self._allow_checked
                or (part.is_forced and (names is None or not is_limit))
                or (names is None and is_over)
            ):
                raise named from error
            self._refused = self._refused or named
            if names is None:
                return  # this tool cannot be called
            self._widened[key] = wider(names, location)
            self._is_newly_widened = True
            if is_over:
                raise NewlyWidenedError(named, is_over=True) from error
        finally:
            self.checked = outer

    def _grammar_argument(
        self, tool_format: ToolFormat, grammar: tuple[str, str], rule: int, begin: int, end: int
    ) -> None:
        """Add arguments that are one text of a grammar."""
        name, source = grammar
        before, behind, is_quoted = around_argument(tool_format, name, self._style.blanks)
        excludes = () if tool_format.tagged is None else tool_format.tagged.excludes
        cfg = argument_grammar(source, self._budget, is_quoted=is_quoted, excludes=excludes)
        start, after = self._position(rule), self._position(rule)
        self._write(_part_of(sequence(*before), "#"), rule, begin, start)
        self._call(self._grammar.add(cfg, self.tables, self._budget), rule, start, after)
        self._write(_part_of(sequence(*behind), "#"), rule, after, end)

    def _position(self, rule: int) -> int:
        return self._grammar.rules[rule].position()

    def _symbol(self, symbol: int, rule: int, begin: int, end: int) -> None:
        self._grammar.rules[rule].moves[begin].append((symbol, end))

    def _call(self, called: int, rule: int, begin: int, end: int) -> None:
        self._symbol(-1 - called, rule, begin, end)

    def _repeat(self, part: Repeat, rule: int, begin: int, end: int) -> None:
        item = self._grammar.rule("repeated")
        self._write(part.part, item, 0, 1)
        empty = self._grammar.rules[rule].empty
        at = begin
        for count in range(part.low if part.high is None else part.high):
            self._budget.spend(states=1)
            if count >= part.low:
                empty[at].append(end)
            to = self._position(rule)
            self._call(item, rule, at, to)
            at = to
        if part.high is None:
            loop = self._position(rule)
            empty[at].append(loop)
            self._call(item, rule, loop, loop)
            at = loop
        empty[at].append(end)

    def _members(self, part: Members, rule: int, begin: int, end: int) -> None:
        items = []
        for each, _ in part.parts:
            items.append(self._grammar.rule("member"))
            self._write(each, items[-1], 0, 1)
        self._rules.never_empty.update(items)
        separator = self._grammar.rule("separator")
        self._write(Literal(part.separator), separator, 0, 1)
        is_required = [each for _, each in part.parts]
        follow = self._any_order if part.order is PropertyOrder.ANY else self._declared_order

        def add(item: int, at: int, to: int, is_first: bool) -> None:
            if not is_first:
                between = self._position(rule)
                self._call(separator, rule, at, between)
                at = between
            self._call(items[item], rule, at, to)

        follow(is_required, rule, begin, end, add)

    def _any_order(
        self, is_required: list[bool], rule: int, begin: int, end: int, add: Callable[[int, int, int, bool], None]
    ) -> None:
        """A position for every set of members that were written."""
        everything = (1 << len(is_required)) - 1
        required = sum(1 << i for i, each in enumerate(is_required) if each)
        places = [begin, *(self._position(rule) for _ in range(everything))]
        for written, at in enumerate(places):
            self._budget.spend(states=1)
            if written & required == required:
                self._grammar.rules[rule].empty[at].append(end)
            for item in range(len(is_required)):
                if not written >> item & 1:
                    add(item, at, places[written | 1 << item], written == 0)

    def _declared_order(
        self, is_required: list[bool], rule: int, begin: int, end: int, add: Callable[[int, int, int, bool], None]
    ) -> None:
        """Two positions before each member: nothing was written so far, or something."""
        empty, none_at, some_at = self._grammar.rules[rule].empty, begin, self._position(rule)
        for item, each in enumerate(is_required):
            self._budget.spend(states=1)
            none_after, some_after = self._position(rule), self._position(rule)
            add(item, none_at, some_after, True)
            add(item, some_at, some_after, False)
            if not each:
                empty[none_at].append(none_after)
                empty[some_at].append(some_after)
            none_at, some_at = none_after, some_after
        empty[none_at].append(end)
        empty[some_at].append(end)

    def _raw_text(self, part: RawText, rule: int, begin: int, end: int) -> None:
        schema = parsed(part.schema)
        assert isinstance(schema, dict | bool)
        graph = compile_shapes(
            {"type": "string"} if schema is True else schema, options=self._options, budget=self._budget
        )
        self._note(graph.report, part.schema)
        if part.schema in self._inexact:
            self.checked.add(part.pointer)
        self._add_entries(graph.report, f"{part.pointer}/text")
        for alternative in graph.shapes[graph.root].alternatives:
            match alternative:
                case StringShape():
                    bounds = alternative.min_length, alternative.max_length, part.max_tokens
                    self._raw_language((alternative.language, part.excludes, *bounds), rule, begin, end)
                case LiteralShape() if all(isinstance(value, str) for value in alternative.values):
                    allowed = [
                        str(each) for each in alternative.values if not any(text in str(each) for text in part.excludes)
                    ]
                    if part.max_tokens is not None:
                        self._raw_language((Language.literals(allowed), (), 0, None, part.max_tokens), rule, begin, end)
                    else:
                        self._language(Language.literals(allowed), rule, begin, end)
                case _:
                    raise GrammarError("text: expected a schema that allows only strings")

    def _raw_language(self, key: _RawKey, rule: int, begin: int, end: int) -> None:
        language, excludes, least, most, max_tokens = key
        if least == 0 and (language is None or language.accepts("", self._budget)):
            self._grammar.rules[rule].empty[begin].append(end)
        if 0 in (most, max_tokens):
            return
        if key not in self._raw:
            raw = RawLanguage.of(language, excludes, least, most, self._budget, max_tokens)
            terminal = None if raw.language.is_empty(self._budget) else self._grammar.terminal(raw.language)
            self._raw[key] = terminal
            if terminal is not None:
                self._rules.raw[terminal] = raw
        if (found := self._raw[key]) is not None:
            self._symbol(found, rule, begin, end)

    def _language(self, language: Language, rule: int, begin: int, end: int) -> None:
        if language.accepts("", self._budget):
            self._grammar.rules[rule].empty[begin].append(end)
            language = language.bounded(1, None)
        if language not in self._terminals:
            if language.is_empty(self._budget):
                return
            self._terminals[language] = self._grammar.terminal(language)
        self._symbol(self._terminals[language], rule, begin, end)

    def _spelled(self, data: bytes, rule: int, begin: int, end: int) -> None:
        """Add a text, with tokens as they are spelled."""
        segments = segments_of(data)
        if not segments:
            self._grammar.rules[rule].empty[begin].append(end)
        at = begin
        for i, segment in enumerate(segments):
            to = end if i == len(segments) - 1 else self._position(rule)
            if isinstance(segment, int):
                self._token(((segment, segment),), rule, at, to)
            else:
                if segment not in self._literals:
                    self._literals[segment] = Language.literal(segment)
                self._language(self._literals[segment], rule, at, to)
            at = to

    def _token(self, tokens: Ranges, rule: int, begin: int, end: int) -> None:
        if tokens not in self._token_terminals:
            self._token_terminals[tokens] = self._grammar.terminal(Frame.of_tokens(self.tables, tokens))
        self._symbol(self._token_terminals[tokens], rule, begin, end)

    def _resolved(self, part: Token) -> Ranges:
        try:
            return self._tokens.resolve(part.tokens)
        except GrammarError as error:
            raise GrammarError(error.reason, part.pointer) from None

    def _leaf(self, leaf: Leaf, rule: int, begin: int, end: int) -> None:
        source, budget = leaf.constraint.source, self._budget
        match leaf.constraint.kind:
            case ConstraintKind.REGEX:
                if source not in self._regexes:
                    self._regexes[source] = compile_regex(source, dialect="python", budget=budget)
                self._language(self._regexes[source], rule, begin, end)
            case ConstraintKind.CHOICE:
                choices = parsed(source)
                if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
                    raise GrammarError("choices: expected a JSON array of strings")
                texts = [choice for choice in choices if self._tokens.name_in(choice) is None]
                self._language(Language.literals(texts), rule, begin, end)
                for choice in choices:
                    if self._tokens.name_in(choice) is not None:
                        self._spelled(self._tokens.spell(choice), rule, begin, end)
            case ConstraintKind.LARK | ConstraintKind.GBNF | ConstraintKind.EBNF:
                self._call(self._cfg(leaf), rule, begin, end)
            case _:
                self._schema(leaf, rule, begin, end)

    def _cfg(self, leaf: Leaf) -> int:
        """The start rule of a grammar. Grammars that occur again share their rules."""
        found = self._starts.get(leaf.constraint)
        if found is None:
            kind, source, budget = leaf.constraint.kind, leaf.constraint.source, self._budget
            if kind is ConstraintKind.LARK:
                from rtlang_grammars.context_free.lark_reader import read_lark  # lark is imported where it is needed

                cfg = read_lark(source, budget=budget, tokens=self._tokens)
            else:
                notation = GrammarNotation.GBNF if kind is ConstraintKind.GBNF else GrammarNotation.W3C
                cfg = read_gbnf(source, notation=notation, budget=budget, tokens=self._tokens, may_have_options=False)
            found = self._grammar.add(without_left_recursion(cfg, budget), self.tables, budget)
            self._starts[leaf.constraint] = found
        return found

    def _schema(self, leaf: Leaf, rule: int, begin: int, end: int) -> None:
        """Add a value of a schema. Values whose end depends on what follows become terminals, all others frames."""
        source = leaf.constraint.source
        if source not in self._values:
            self._values[source] = list(self._terminals_of(leaf))
        if source in self._inexact:
            self.checked.add(leaf.pointer)
        value = begin
        if self._style.free_blanks:
            if self._blanks is None:
                self._blanks = self._grammar.terminal(Frame(self._base.blanks, BLANKS))
            value = self._position(rule)
            self._symbol(self._blanks, rule, begin, value)
            self._grammar.rules[rule].empty[begin].append(value)
        for terminal in self._values[source]:
            self._symbol(terminal, rule, value, end)

    def _terminals_of(self, leaf: Leaf) -> Iterator[int]:
        schema = parsed(leaf.constraint.source)
        if not isinstance(schema, dict | bool):
            raise GrammarError("schema: expected a JSON object or a boolean")
        graph = compile_shapes(schema, options=self._options, budget=self._budget)
        self._note(graph.report, leaf.constraint.source)
        self._add_entries(graph.report, leaf.pointer)
        build = ShapeTables(graph, self._budget, self._style, self.tables)
        for alternative in graph.shapes[graph.root].alternatives:
            if isinstance(alternative, NumberShape):
                yield self._grammar.terminal(bounded_number_of(alternative, self._style.numbers, self._budget))
                continue
            if isinstance(alternative, LiteralShape):
                scalars = [each for each in alternative.values if not isinstance(each, list | dict)]
                if scalars:
                    yield self._grammar.terminal(Language.literals(_texts(scalars, self._style.numbers)))
                alternative = LiteralShape(tuple(each for each in alternative.values if isinstance(each, list | dict)))
                if not alternative.values:
                    continue
            for first, start in build.calls_of_alternative(alternative):
                yield self._grammar.terminal(Frame(start, first))
        build.finish()

    def _note(self, report: Report, source: str) -> None:
        """Note whether the values of a schema must be checked."""
        if not report.is_exact:
            if not self._allow_checked:
                report.refuse_checked()
            self._inexact.add(source)

    def _add_entries(self, report: Report, pointer: str) -> None:
        place = "" if pointer == "#" else pointer
        self._entries += [replace(each, pointer=place + each.pointer) for each in report.entries]

    def _mark(self, mark: Mark) -> bytes:
        """The spelling of what begins a tag."""
        if isinstance(mark, Literal):
            return self._tokens.spell(mark.text)
        ranges = self._resolved(mark)
        if len(ranges) > 1 or ranges[0][0] != ranges[0][1]:
            raise GrammarError(
                f"{mark.tokens.source}: a tag begins with one token; write one tag for each", mark.pointer
            )
        return spelling(ranges[0][0])

    def _triggers(self, part: Tags, begins: list[bytes]) -> list[bytes]:
        """The triggers as spelled. One that ends within the name of a special token with which a tag begins goes on to its end."""
        triggers: dict[bytes, None] = {}
        for mark in part.triggers:
            trigger = self._mark(mark)
            extended = [
                _covering(self._tokens, tag.begin.text, len(mark.text))
                for tag, begin in zip(part.tags, begins, strict=True)
                if isinstance(tag.begin, Literal) and isinstance(mark, Literal)
                if tag.begin.text.startswith(mark.text) and not begin.startswith(trigger)
            ]
            triggers.update(dict.fromkeys(extended or [trigger]))
        named = {each for trigger in triggers for each in segments_of(trigger) if isinstance(each, int)}
        self.tables.token_sets |= {((token_id, token_id),) for token_id in named}
        for trigger in triggers:
            if any(trigger in other for other in triggers if other != trigger):
                raise GrammarError("a trigger is contained in another trigger", part.pointer)
        for i, begin in enumerate(begins):
            num = sum(begin.startswith(trigger) for trigger in triggers)
            check_triggers("the beginning of this tag", num, f"{part.pointer}/tags/{i}")
        return list(triggers)

    def _excluded(self, part: Tags, triggers: list[bytes]) -> list[bytes]:
        """Texts that do not occur in the free text, among them triggers with special tokens whose names ordinary tokens spell."""
        texts = [mark.text for mark in part.triggers if isinstance(mark, Literal) and self._tokens.name_in(mark.text)]
        listed = [each.encode() for each in dict.fromkeys((*part.excludes, *texts))]
        others = [*triggers, *listed]
        return [each for each in listed if not any(each in other or other in each for other in others if other != each)]

    def _tags(self, part: Tags) -> int:
        """The symbol of free text with tags: a rule whose states `FreeText` builds."""
        grammar = self._grammar
        begins = [self._mark(tag.begin) for tag in part.tags]
        triggers = self._triggers(part, begins)
        bodies = []
        for trigger in triggers:
            body = grammar.rule("tag")
            for tag, spelled in zip(part.tags, begins, strict=True):
                if spelled.startswith(trigger):
                    behind_begin, before_end = self._position(body), self._position(body)
                    self._spelled(spelled[len(trigger) :], body, 0, behind_begin)
                    self._write(tag.part, body, behind_begin, before_end)
                    self._write(tag.end, body, before_end, 1)
            bodies.append(body)
        text = grammar.rule("text")
        # The derivations of the rule only serve the analysis of symbols; it shares the states of the free text.
        first = {trigger[0] for trigger in triggers}.union(TEXT_FIRST)
        some = grammar.terminal(Frame(-1, bytes(sorted(first))))
        tagged, behind_tag = self._position(text), self._position(text)
        self._symbol(some, text, 0, tagged)
        for body in bodies:
            self._call(body, text, tagged, behind_tag)
        self._symbol(some, text, behind_tag, tagged)
        self._symbol(some, text, behind_tag, 1)
        grammar.rules[text].empty[behind_tag].append(1)
        if part.low == 0:
            self._symbol(some, text, 0, 1)
            grammar.rules[text].empty[0].append(1)

        def behind(trigger: int, count: int) -> int:
            if trigger >= len(bodies) or not self._rules.is_productive(bodies[trigger]):
                return NONE
            is_last = count == part.high and not part.text_behind
            following = -1 if is_last else free.behind(count)
            return self._rules.leave_call_open(-1 - bodies[trigger], following)

        free = FreeText(self.tables, [*triggers, *self._excluded(part, triggers)], part.low, part.high, behind)
        self._rules.starts[-1 - text] = free.start()
        self._rules.never_empty.update(bodies)
        return -1 - text


def _part_of(inner: str | Constraint, pointer: str) -> Part:
    """The part of a constraint that stands at a pointer."""
    if isinstance(inner, str):
        return Literal(inner)
    return read_structure(inner.source) if inner.kind is ConstraintKind.STRUCTURE else Leaf(inner, pointer)


def _covering(tokens: SpecialTokens, text: str, num_chars: int) -> bytes:
    """The spelling of the first characters of a text, and of the rest of a special token in whose name they end."""
    data, num = b"", 0
    names = {token_id: name for name, token_id in tokens.names.items()}
    for segment in tokens.segments(text):
        if num >= num_chars:
            break
        if isinstance(segment, int):
            data += spelling(segment)
            num += len(names[segment])
        else:
            data += segment[: num_chars - num].encode()
            num += len(segment)
    return data


def _texts(scalars: Iterable[Json], numbers: Numbers) -> list[str]:
    """Spellings of JSON scalars. A lone surrogate can only be spelled as an escape."""
    found = []
    for value in scalars:
        assert not isinstance(value, list | dict)
        for text in spellings(value, numbers):
            try:
                found.append(text.decode())
            except UnicodeDecodeError:
                continue
    return found
