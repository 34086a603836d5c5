"""Terms: hash-consing, simplification and merged counts."""

from __future__ import annotations

import pytest

from rtlang_grammars.regular.automata.terms import ANY_TEXT, EMPTY_TEXT, NOTHING, UNBOUNDED, Kind, Nullable, Terms
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.partition import Partition
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits

A, B = code_points.of_text("a"), code_points.of_text("b")


@pytest.fixture
def terms() -> Terms:
    return Terms(Partition([code_points.ALL, A, B]), Budget())


def test_equal_terms_have_one_number(terms: Terms) -> None:
    a, b = (terms.characters(terms.partition.mask(points)) for points in (A, B))
    assert terms.concatenation(a, b) == terms.concatenation(a, b)
    ab, ba = terms.concatenation(a, b), terms.concatenation(b, a)
    assert terms.alternation([ab, ba, ab]) == terms.alternation([ba, ab])
    assert terms.intersection([ab, ba], 0, 5) == terms.intersection([ba, ab], 0, 5)
    assert terms.complement(terms.complement(ab)) == ab


def test_neutral_and_absorbing_terms_are_simplified(terms: Terms) -> None:
    a = terms.characters(terms.partition.mask(A))
    assert terms.concatenation(EMPTY_TEXT, a) == terms.concatenation(a, EMPTY_TEXT) == a
    assert terms.concatenation(a, NOTHING) == NOTHING
    assert terms.concatenation(ANY_TEXT, terms.concatenation(ANY_TEXT, a)) == terms.concatenation(ANY_TEXT, a)
    assert terms.alternation([a, ANY_TEXT]) == ANY_TEXT
    assert terms.alternation([a, NOTHING]) == a
    assert terms.intersection([a, ANY_TEXT], 0, UNBOUNDED) == a
    assert terms.intersection([a, terms.complement(a)], 0, UNBOUNDED) == NOTHING
    assert terms.intersection([a], 3, 2) == NOTHING
    assert terms.complement(NOTHING) == ANY_TEXT


def test_alternatives_with_touching_counts_are_merged(terms: Terms) -> None:
    a, b = (terms.characters(terms.partition.mask(points)) for points in (A, B))

    def counted(low: int, high: int) -> int:
        return terms.concatenation(terms.repetition(a, low, high), b)

    assert terms.alternation([counted(2, 3), counted(4, 7)]) == counted(2, 7)
    assert terms.alternation([counted(0, 3), counted(1, 2)]) == counted(0, 3)
    assert terms.alternation([counted(3, UNBOUNDED), counted(0, 2)]) == counted(0, UNBOUNDED)
    apart = terms.alternation([counted(0, 2), counted(4, 5)])
    assert terms.kind[apart] is Kind.ALTERNATION
    within = [terms.concatenation(b, counted(low, low)) for low in (5, 6)]
    assert terms.alternation(within) == terms.concatenation(b, counted(5, 6))


def test_an_intersection_of_a_repetition_with_bounds_is_a_repetition(terms: Terms) -> None:
    a = terms.characters(terms.partition.mask(A))
    assert terms.intersection([terms.repetition(a, 2, UNBOUNDED)], 1, 9) == terms.repetition(a, 2, 9)
    assert terms.intersection([ANY_TEXT], 1, 3) == terms.repetition(3, 1, 3)
    assert terms.intersection([terms.repetition(a, 5, 6)], 1, 4) == NOTHING


def test_nullability_depends_on_structure_or_lookbehinds(terms: Terms) -> None:
    a = terms.characters(terms.partition.mask(A))
    behind = terms.behind(terms.concatenation(ANY_TEXT, a), is_negative=False)
    not_behind = terms.behind(terms.concatenation(ANY_TEXT, a), is_negative=True)
    assert terms.nullable[behind] is Nullable.BY_LOOKBEHIND
    for matched in (0, 1):
        assert terms.is_nullable(behind, matched) is bool(matched)
        assert terms.is_nullable(not_behind, matched) is not bool(matched)
        assert terms.is_nullable(terms.alternation([behind, not_behind]), matched)
        assert not terms.is_nullable(terms.concatenation(behind, not_behind), matched)
        assert not terms.is_nullable(terms.concatenation(behind, a), matched)
        assert terms.is_nullable(terms.complement(behind), matched) is not bool(matched)
    assert terms.is_nullable(terms.repetition(a, 0, 3), 0)


def test_terms_are_charged_to_the_budget() -> None:
    terms = Terms(Partition([code_points.ALL]), Budget(Limits(max_states=10)))
    with pytest.raises(GrammarError, match="more than 10 states"):
        _make_many(terms)


def _make_many(terms: Terms) -> None:
    for count in range(2, 20):
        terms.repetition(3, count, count)
