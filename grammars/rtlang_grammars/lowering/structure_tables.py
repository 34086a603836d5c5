"""Lowers structures: every part becomes a rule of one grammar, over terminals, frames of JSON values, and free text with triggers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rtlang_grammars.context_free.cfg import Cfg
from rtlang_grammars.context_free.gbnf_reader import read_gbnf
from rtlang_grammars.context_free.lark_reader import read_lark
from rtlang_grammars.context_free.left_recursion import without_left_recursion
from rtlang_grammars.lowering.grammars.grammar_tables import GrammarTables
from rtlang_grammars.lowering.grammars.rules import Frame, Grammar
from rtlang_grammars.lowering.json_shapes.json_spellings import spellings
from rtlang_grammars.lowering.json_shapes.json_values import MAX_NUMBER_LENGTH, ShapeTables, number_of
from rtlang_grammars.lowering.languages.free_text import TEXT_FIRST, FreeText
from rtlang_grammars.machine.automaton.json_base_states import BLANKS, json_base_states
from rtlang_grammars.machine.automaton.layout import NONE
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import Report, ReportEntry
from rtlang_grammars.schema.reading.values import Json
from rtlang_grammars.schema.shape_graph.shapes import LiteralShape, NumberShape
from rtlang_grammars.spec.constraint import ConstraintKind, JsonStyle
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.json_source import parsed
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.structures import (
    AnyOf,
    Leaf,
    Literal,
    Mark,
    Part,
    Repeat,
    Sequence,
    Tags,
    Token,
    check_triggers,
)
from rtlang_grammars.spec.tokens import AnyTokens, Ranges, SpecialTokens, segments_of, spelling


class StructureTables:
    """Builds the tables of a structure. Owned by one compile.

    Attributes:
        tables: the tables under construction.
    """

    def __init__(
        self,
        budget: Budget,
        style: JsonStyle,
        options: SchemaOptions | None = None,
        tokens: SpecialTokens | None = None,
    ) -> None:
        """`tokens`: of the vocabulary; None: every token is taken for known."""
        self._budget, self._style, self._options = budget, style, options
        self._tokens = tokens or AnyTokens()
        self._base = json_base_states(free_blanks=style.free_blanks)
        self.tables = Tables(budget, self._base.tables)
        self._grammar = Grammar()
        self._rules = GrammarTables(self._grammar, self.tables, budget)
        self._blanks: int | None = None
        self._entries: list[ReportEntry] = []

    def build(self, part: Part) -> int:
        """Fill the tables; returns the start state.

        Raises:
            GrammarError: a part cannot be compiled; the location begins with its JSON pointer.
        """
        start = self._grammar.rule("structure")
        self._grammar.start = start
        self._write(part, start, 0, 1)
        return self._rules.build()

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
            case Leaf():
                try:
                    self._leaf(part, rule, begin, end)
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
            case Tags():
                self._symbol(self._tags(part), rule, begin, end)

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

    def _language(self, language: Language, rule: int, begin: int, end: int) -> None:
        if language.accepts("", self._budget):
            self._grammar.rules[rule].empty[begin].append(end)
            language = language.bounded(1, None)
        if not language.is_empty(self._budget):
            self._symbol(self._grammar.terminal(language), rule, begin, end)

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
                self._language(Language.literal(segment), rule, at, to)
            at = to

    def _token(self, tokens: Ranges, rule: int, begin: int, end: int) -> None:
        self._symbol(self._grammar.terminal(Frame.of_tokens(self.tables, tokens)), rule, begin, end)

    def _resolved(self, part: Token) -> Ranges:
        try:
            return self._tokens.resolve(part.tokens)
        except GrammarError as error:
            raise GrammarError(error.reason, part.pointer) from None

    def _leaf(self, leaf: Leaf, rule: int, begin: int, end: int) -> None:
        source, budget = leaf.constraint.source, self._budget
        match leaf.constraint.kind:
            case ConstraintKind.REGEX:
                self._language(compile_regex(source, dialect="python", budget=budget), rule, begin, end)
            case ConstraintKind.CHOICE:
                choices = parsed(source)
                if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
                    raise GrammarError("choices: expected a JSON array of strings")
                texts = [choice for choice in choices if self._tokens.name_in(choice) is None]
                self._language(Language.literals(texts), rule, begin, end)
                for choice in choices:
                    if self._tokens.name_in(choice) is not None:
                        self._spelled(self._tokens.spell(choice), rule, begin, end)
            case ConstraintKind.LARK:
                self._cfg(read_lark(source, budget=budget, tokens=self._tokens), rule, begin, end)
            case ConstraintKind.GBNF:
                self._cfg(read_gbnf(source, budget=budget, tokens=self._tokens), rule, begin, end)
            case ConstraintKind.EBNF:
                cfg = read_gbnf(source, notation="w3c", budget=budget, tokens=self._tokens)
                self._cfg(cfg, rule, begin, end)
            case _:
                self._schema(leaf, rule, begin, end)

    def _cfg(self, cfg: Cfg, rule: int, begin: int, end: int) -> None:
        cfg = without_left_recursion(cfg, self._budget)
        self._call(self._grammar.add(cfg, self.tables, self._budget), rule, begin, end)

    def _schema(self, leaf: Leaf, rule: int, begin: int, end: int) -> None:
        """Add a value of a schema. Values whose end depends on what follows become terminals, all others frames."""
        schema = parsed(leaf.constraint.source)
        if not isinstance(schema, dict | bool):
            raise GrammarError("schema: expected a JSON object or a boolean")
        graph = compile_shapes(schema, options=self._options, budget=self._budget)
        graph.report.refuse_checked()
        place = "" if leaf.pointer == "#" else leaf.pointer
        self._entries += [replace(each, pointer=place + each.pointer) for each in graph.report.entries]
        build = ShapeTables(graph, self._budget, self._style, self.tables)
        value = begin
        if self._style.free_blanks:
            if self._blanks is None:
                self._blanks = self._grammar.terminal(Frame(self._base.blanks, BLANKS))
            value = self._position(rule)
            self._symbol(self._blanks, rule, begin, value)
            self._grammar.rules[rule].empty[begin].append(value)
        for alternative in graph.shapes[graph.root].alternatives:
            if isinstance(alternative, NumberShape):
                self._language(number_of(alternative, self._budget).bounded(1, MAX_NUMBER_LENGTH), rule, value, end)
                continue
            if isinstance(alternative, LiteralShape):
                scalars = [each for each in alternative.values if not isinstance(each, list | dict)]
                self._language(Language.literals(_texts(scalars)), rule, value, end)
                alternative = LiteralShape(tuple(each for each in alternative.values if isinstance(each, list | dict)))
                if not alternative.values:
                    continue
            for first, start in build.calls_of_alternative(alternative):
                self._symbol(self._grammar.terminal(Frame(start, first)), rule, value, end)
        build.finish()

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
        # The derivations of the rule only serve the analysis of symbols; its states are those of the free text.
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
            if not self._rules.is_productive(bodies[trigger]):
                return NONE
            is_last = count == part.high and not part.text_behind
            following = -1 if is_last else free.behind(count)
            return self._rules.leave_call_open(-1 - bodies[trigger], following)

        free = FreeText(self.tables, triggers, part.low, part.high, behind)
        self._rules.starts[-1 - text] = free.start()
        self._rules.never_empty.update(bodies)
        return -1 - text


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


def _texts(scalars: Iterable[Json]) -> list[str]:
    """Spellings of JSON scalars. A lone surrogate can only be spelled as an escape."""
    found = []
    for value in scalars:
        assert not isinstance(value, list | dict)
        for text in spellings(value):
            try:
                found.append(text.decode())
            except UnicodeDecodeError:
                continue
    return found
