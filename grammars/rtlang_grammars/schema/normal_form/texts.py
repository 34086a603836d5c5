"""Texts that strings may hold: demands on them as regular languages, each worked out once a compile."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.string_formats.formats import format_language, loose_format_language
from rtlang_grammars.schema.normal_form.facets import TOP_BODY, Facet, NumberBody, StringBody, TextDemand
from rtlang_grammars.schema.reading.values import Json, exact, is_number
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

MAX_REGIONS = 64  # disjoint classes of names that the patterns of one object may be cut into
MAX_FEW = 64  # names that are matched by a pattern and looked at one by one


class Texts:
    """The languages of one compile. Owned by it."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._languages: dict[tuple[str, str], Language] = {}
        self._bodies: dict[tuple[StringBody, frozenset[Hashable]], Language | None] = {}
        self._regions: dict[frozenset[str], Sequence[tuple[Language, frozenset[str]]]] = {}
        self._unmatched: dict[frozenset[str], Language] = {}
        self._few: dict[Language, Sequence[str] | None] = {}
        self._empty: dict[tuple[StringBody, frozenset[Hashable]], bool] = {}

    def has_format(self, name: str) -> bool:
        """Whether a format is known as a language."""
        return format_language(name) is not None

    def language(self, kind: str, source: str, pointer: str) -> Language:
        """The texts that a pattern finds something in, or that are of a (known) format.

        Raises:
            GrammarError: the pattern is malformed or not supported; with the pointer.
        """
        known = self._languages.get((kind, source))
        if known is None:
            if kind == "pattern":
                try:
                    known = compile_regex(source, dialect="ecma", mode="search", budget=self._budget)
                except GrammarError as error:
                    raise GrammarError(f"pattern {source[:80]!r}: {error.reason}", pointer) from error
            elif kind == "loose format":
                known = loose_format_language(source)
            else:
                known = format_language(source)
                assert known is not None
            self._languages[kind, source] = known
        return known

    def meets(self, demand: TextDemand, text: str) -> bool:
        """Whether a text is as demanded."""
        language = self.language(demand.kind, demand.source, demand.pointer)
        return language.accepts(text, self._budget) is demand.positive

    def finds(self, pattern: str, text: str) -> bool:
        """Whether a pattern finds something in a text."""
        return self.language("pattern", pattern, "").accepts(text, self._budget)

    def accepts(self, body: StringBody, text: str) -> bool:
        """Whether a string is allowed."""
        if len(text) < body.min_length or (body.max_length is not None and len(text) > body.max_length):
            return False
        return all(self.meets(demand, text) for demand in body.texts)

    def accepts_number(self, body: NumberBody, value: Json) -> bool:
        """Whether a number is allowed, its form as Python's type keeps it."""
        assert is_number(value)
        if (isinstance(value, int) and body.fraction_form) or (not isinstance(value, int) and body.integer_form):
            return False
        return body.accepts(exact(value))

    def narrowed(self, facet: Facet) -> Facet | None:
        """The same facet; for listed strings and numbers the list is held against the demands. None: nothing is left."""
        if facet.literals is None or facet.body is None or facet.body is TOP_BODY[facet.kind]:
            return facet
        body = facet.body
        if isinstance(body, StringBody):
            left = {key: text for key, text in facet.literals.items() if self.accepts(body, str(text))}
        elif isinstance(body, NumberBody):
            left = {key: value for key, value in facet.literals.items() if self.accepts_number(body, value)}
        else:
            return facet
        return replace(facet, literals=left, body=TOP_BODY[facet.kind]) if left else None

    def union(self, languages: Iterable[Language]) -> Language:
        """Texts of any of at least one language."""
        first, *others = languages
        return first.union(*others)

    def regions(self, patterns: frozenset[str], pointer: str) -> Sequence[tuple[Language, frozenset[str]]]:
        """Names by which of some patterns they match: disjoint languages, none empty, each with its patterns.

        Raises:
            GrammarError: more than `MAX_REGIONS` of them.
        """
        known = self._regions.get(patterns)
        if known is None:
            regions: list[tuple[Language, frozenset[str]]] = []
            for pattern in sorted(patterns):
                regions = self._cut(regions, pattern, self.language("pattern", pattern, pointer))
                if len(regions) > MAX_REGIONS:
                    raise GrammarError(f"patternProperties overlap in more than {MAX_REGIONS} ways", pointer)
            known = self._regions[patterns] = regions
        return known

    def _cut(
        self, regions: list[tuple[Language, frozenset[str]]], pattern: str, language: Language
    ) -> list[tuple[Language, frozenset[str]]]:
        """Regions cut once more, by a pattern."""
        cut, met = [], []
        for known, matched in regions:
            self._budget.spend(states=1)
            if known.is_disjoint(language, self._budget):
                cut.append((known, matched))
                continue
            met.append(known)
            cut.append((known.intersect(language), matched | {pattern}))
            outside = known.minus(language)
            if not outside.is_empty(self._budget):
                cut.append((outside, matched))
        only = language.minus(self.union(met)) if met else language
        if not only.is_empty(self._budget):
            cut.append((only, frozenset({pattern})))
        return cut

    def unmatched(self, patterns: frozenset[str]) -> Language:
        """Names that match none of at least one pattern, which have been read before."""
        known = self._unmatched.get(patterns)
        if known is None:
            matched = self.union(self.language("pattern", pattern, "") for pattern in sorted(patterns))
            known = self._unmatched[patterns] = matched.complement()
        return known

    def few(self, language: Language) -> Sequence[str] | None:
        """All texts of a language; None where they are more than `MAX_FEW`."""
        if language not in self._few:
            self._few[language] = language.finite_words(MAX_FEW, self._budget)
        return self._few[language]

    def body_language(self, body: StringBody, excluded: frozenset[Hashable]) -> Language | None:
        """Texts that meet all demands but those on the length; None where there are none."""
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
        """All texts that are allowed; None where they are more than `limit` or endless."""
        if not body.texts:
            return [""] if body.max_length == 0 and "" not in excluded else None
        language = self.body_language(body, excluded)
        assert language is not None
        if body.min_length or body.max_length is not None:
            language = language.bounded(body.min_length, body.max_length)
        return language.finite_words(limit, self._budget)

    def is_empty(self, body: StringBody, excluded: frozenset[Hashable] = frozenset()) -> bool:
        """No text is allowed.

        Raises:
            GrammarError: it cannot be decided within the budget.
        """
        if not body.texts:
            # there are more characters than any list has texts
            return body.max_length == 0 and "" in excluded
        key = (body, excluded)
        if key not in self._empty:
            language = self.body_language(body, excluded)
            assert language is not None
            if body.min_length or body.max_length is not None:
                language = language.bounded(body.min_length, body.max_length)
            self._empty[key] = language.is_empty(self._budget)
        return self._empty[key]
