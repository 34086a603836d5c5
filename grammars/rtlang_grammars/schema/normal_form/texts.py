"""String languages: patterns and formats as regular languages, each built once in a compile."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.patterns.escapes import RegexDialect
from rtlang_grammars.regular.string_formats.formats import format_language, loose_format_language
from rtlang_grammars.schema.normal_form.facets import PATTERN_KINDS, TOP_BODY, Facet, NumberBody, StringBody, TextDemand
from rtlang_grammars.schema.reading.values import Json, exact, is_number, whole
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

MAX_REGIONS = 64  # disjoint regions into which the patterns of one object may divide the names
MAX_ENUMERATED_NAMES = 64  # names of a language up to which they are enumerated and treated one by one

_LARK = PATTERN_KINDS["lark"]
_DIALECTS = {kind: RegexDialect(dialect) for dialect, kind in PATTERN_KINDS.items() if kind != _LARK}


class StringSet:
    """Builds and memoizes the string languages of one compile. Owned by that compile."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._languages: dict[tuple[str, str], Language] = {}
        self._bodies: dict[tuple[StringBody, frozenset[Hashable]], Language | None] = {}
        self._regions: dict[frozenset[str], Sequence[tuple[Language, frozenset[str]]]] = {}
        self._unmatched: dict[frozenset[str], Language] = {}
        self._names: dict[Language, Sequence[str] | None] = {}
        self._empty: dict[tuple[StringBody, frozenset[Hashable]], bool] = {}

    def has_format(self, name: str) -> bool:
        """Whether a regular language for a format is known."""
        return format_language(name) is not None

    def language(self, kind: str, source: str, pointer: str) -> Language:
        """Return the language of a pattern or format.

        Args:
            kind: as in `TextDemand`.
            source: the pattern (searched for in the text), a Lark grammar, or the name of a known format.
            pointer: location of the schema, for errors.
        Raises:
            GrammarError: the pattern is malformed or not supported, or the budget is exceeded.
        """
        known = self._languages.get((kind, source))
        if known is None:
            if kind in _DIALECTS:
                try:
                    known = compile_regex(source, dialect=_DIALECTS[kind], mode="search", budget=self._budget)
                except GrammarError as error:
                    raise GrammarError(f"pattern = {source[:80]!r}: {error.reason}", pointer) from error
            elif kind == _LARK:
                from rtlang_grammars.context_free.lark_reader import lark_language

                try:
                    known = lark_language(source, self._budget)
                except GrammarError as error:
                    raise GrammarError(f"pattern: {error}", pointer) from error
            elif kind == "loose format":
                known = loose_format_language(source)
            else:
                known = format_language(source)
                assert known is not None
            self._languages[kind, source] = known
        return known

    def satisfies(self, demand: TextDemand, text: str) -> bool:
        """Whether a text satisfies a demand."""
        language = self.language(demand.kind, demand.source, demand.pointer)
        return language.accepts(text, self._budget) is demand.positive

    def pattern_matches(self, pattern: str, text: str) -> bool:
        """Whether a pattern matches somewhere in a text."""
        return self.language("pattern", pattern, "").accepts(text, self._budget)

    def accepts(self, body: StringBody, text: str) -> bool:
        """Whether a body allows a string."""
        if len(text) < body.min_length or (body.max_length is not None and len(text) > body.max_length):
            return False
        return all(self.satisfies(demand, text) for demand in body.texts)

    def accepts_number(self, body: NumberBody, value: Json) -> bool:
        """Whether a body allows a number; an `int` counts as written without fraction and exponent."""
        assert is_number(value)
        if (isinstance(value, int) and body.fraction_form) or (not isinstance(value, int) and body.integer_form):
            return False
        return body.accepts(exact(value))

    def filter_literals(self, facet: Facet) -> Facet | None:
        """Return an equivalent facet whose listed strings or numbers all satisfy its body; None if none does."""
        if facet.literals is None or facet.body is None or facet.body is TOP_BODY[facet.kind]:
            return facet
        body = facet.body
        if isinstance(body, StringBody):
            valid = {key: text for key, text in facet.literals.items() if self.accepts(body, str(text))}
        elif isinstance(body, NumberBody):
            valid = {key: value for key, value in facet.literals.items() if self.accepts_number(body, value)}
            if body.multiple_of is not None and body.multiple_of.denominator == 1 and not body.fraction_form:
                valid = {key: whole(value) for key, value in valid.items()}
        else:
            return facet
        return replace(facet, literals=valid, body=TOP_BODY[facet.kind]) if valid else None

    def union(self, languages: Iterable[Language]) -> Language:
        """Return the union of at least one language."""
        first, *others = languages
        return first.union(*others)

    def regions(self, patterns: frozenset[str], pointer: str) -> Sequence[tuple[Language, frozenset[str]]]:
        """Partition the names that match any of some patterns by the set of patterns that they match.

        Args:
            pointer: location of the schema, for errors.
        Returns:
            Disjoint, non-empty languages, each with the patterns that all its names match.
        Raises:
            GrammarError: there are more than `MAX_REGIONS` of them, or a pattern is not supported.
        """
        known = self._regions.get(patterns)
        if known is None:
            regions: list[tuple[Language, frozenset[str]]] = []
            for pattern in sorted(patterns):
                regions = self._refine(regions, pattern, self.language("pattern", pattern, pointer))
                if len(regions) > MAX_REGIONS + len(patterns):
                    raise GrammarError(
                        f"the patterns of patternProperties overlap in more than {MAX_REGIONS} combinations", pointer
                    )
            known = self._regions[patterns] = regions
        return known

    def _refine(
        self, regions: list[tuple[Language, frozenset[str]]], pattern: str, language: Language
    ) -> list[tuple[Language, frozenset[str]]]:
        """Return the regions, refined by one more pattern with its language."""
        refined, overlapping = [], []
        for region, matched in regions:
            self._budget.spend(states=1)
            if region.is_disjoint(language, self._budget):
                refined.append((region, matched))
                continue
            overlapping.append(region)
            refined.append((region.intersect(language), matched | {pattern}))
            outside = region.minus(language)
            if not outside.is_empty(self._budget):
                refined.append((outside, matched))
        only = language.minus(self.union(overlapping)) if overlapping else language
        if not only.is_empty(self._budget):
            refined.append((only, frozenset({pattern})))
        return refined

    def unmatched(self, patterns: frozenset[str]) -> Language:
        """Return the names that match none of the patterns: at least one, each read by `regions` before."""
        known = self._unmatched.get(patterns)
        if known is None:
            matched = self.union(self.language("pattern", pattern, "") for pattern in sorted(patterns))
            known = self._unmatched[patterns] = matched.complement()
        return known

    def enumerate_names(self, language: Language) -> Sequence[str] | None:
        """Return all texts of a language; None if there are more than `MAX_ENUMERATED_NAMES`."""
        if language not in self._names:
            self._names[language] = language.finite_words(MAX_ENUMERATED_NAMES, self._budget)
        return self._names[language]

    def body_language(self, body: StringBody, excluded: frozenset[Hashable]) -> Language | None:
        """Return the texts that a body allows, regardless of their length; None if it restricts nothing else."""
        key = (replace(body, min_length=0, max_length=None), excluded)
        if key not in self._bodies:
            result: Language | None = None
            for demand in sorted(body.texts):
                language = self.language(demand.kind, demand.source, demand.pointer)
                if not demand.positive:
                    language = language.complement()
                result = language if result is None else result.intersect(language)
            texts = sorted(text for text in excluded if isinstance(text, str))
            if texts:
                others = Language.literals(texts).complement()
                result = others if result is None else result.intersect(others)
            self._bodies[key] = result
        return self._bodies[key]

    def finite_words(self, body: StringBody, excluded: frozenset[Hashable], limit: int) -> list[str] | None:
        """Return all texts that a body allows; None if there are more than `limit`."""
        if not body.texts:
            return [""] if body.max_length == 0 and "" not in excluded else None
        language = self.body_language(body, excluded)
        assert language is not None
        if body.min_length or body.max_length is not None:
            language = language.bounded(body.min_length, body.max_length)
        return language.finite_words(limit, self._budget)

    def is_empty(self, body: StringBody, excluded: frozenset[Hashable] = frozenset()) -> bool:
        """Whether a body allows no text.

        Raises:
            GrammarError: the budget is exceeded.
        """
        if not body.texts:
            # of any length but 0 there are more texts than can be listed as excluded
            return body.max_length == 0 and "" in excluded
        key = (body, excluded)
        if key not in self._empty:
            language = self.body_language(body, excluded)
            assert language is not None
            if body.min_length or body.max_length is not None:
                language = language.bounded(body.min_length, body.max_length)
            self._empty[key] = language.is_empty(self._budget)
        return self._empty[key]
