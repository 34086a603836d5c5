"""Subsumption, compared with comparing every pair."""

from __future__ import annotations

import random

from rtlang_grammars.schema.normal_form.facets import Facet, ObjectBody
from rtlang_grammars.schema.normal_form.inclusion import drop_subsumed
from rtlang_grammars.schema.reading.values import JsonType


def test_the_facets_that_no_other_subsumes_are_left() -> None:
    rng = random.Random(2)
    for _ in range(300):
        names = [frozenset(rng.sample("abcdef", rng.randint(0, 4))) for _ in range(rng.randint(3, 30))]
        facets = [Facet(JsonType.OBJECT, ObjectBody(required=each)) for each in names]
        found = drop_subsumed(facets)
        least = {each for each in names if not any(other < each for other in names)}
        assert [facet.body for facet in found] == [
            ObjectBody(required=each) for each in dict.fromkeys(names) if each in least
        ]
