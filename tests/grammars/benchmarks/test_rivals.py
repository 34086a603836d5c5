"""Other libraries behind the calls of the benchmarks."""

from __future__ import annotations

import numpy as np
import pytest

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars_bench.rivals import ENGINES, create_engine
from tests.support.grammars.vocabularies import small_vocabulary, spell

VOCABULARY = small_vocabulary()
PACKAGES = {"rtlang": "numba", "llguidance": "llguidance", "xgrammar": "xgrammar", "outlines": "outlines_core"}


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_follows_a_text_and_refuses_what_is_wrong(name: str) -> None:
    pytest.importorskip(PACKAGES[name])
    engine = create_engine(name, VOCABULARY)
    seven, letter = spell(VOCABULARY, "7")[0], spell(VOCABULARY, "x")[0]
    for constraint in (
        Constraint(ConstraintKind.REGEX, "[0-9]+"),
        Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "integer"}'),
    ):
        matcher = engine.compile(constraint).matcher()
        row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
        matcher.fill_bitmask(row)
        allowed = set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())
        assert seven in allowed
        assert letter not in allowed
        assert matcher.accept_token(seven)
        assert matcher.is_accepting
        assert not matcher.accept_token(letter)


@pytest.mark.parametrize("name", ENGINES)
def test_what_a_library_refuses_is_an_error(name: str) -> None:
    pytest.importorskip(PACKAGES[name])
    with pytest.raises(GrammarError):
        create_engine(name, VOCABULARY).compile(Constraint(ConstraintKind.REGEX, "a(b"))


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="expected one of rtlang, llguidance"):
        create_engine("nothing", VOCABULARY)
