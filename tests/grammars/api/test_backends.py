"""The seam: backends by name."""

from __future__ import annotations

import pytest

from rtlang_grammars.api import backends
from rtlang_grammars.api.backends import BACKENDS, create_backend, missing_library
from rtlang_grammars.api.rtlang_backend import RtlangGrammar
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from tests.support.vocabularies import small_vocabulary, spell


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_compiles_and_matches(name: str) -> None:
    pytest.importorskip(
        {"llguidance": "llguidance", "xgrammar": "xgrammar", "outlines": "outlines_core"}.get(name, "numba")
    )
    vocabulary = small_vocabulary()
    matcher = create_backend(name, vocabulary).compile(Constraint(ConstraintKind.REGEX, "[0-9]+")).matcher()
    assert matcher.accept_token(spell(vocabulary, "7")[0])
    assert matcher.is_accepting
    assert not matcher.accept_token(spell(vocabulary, "x")[0])


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    assert missing_library("xgrammar") == "xgrammar"
    assert missing_library("outlines") == "outlines_core"
    assert missing_library("rtlang") is None


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="llguidance"):
        create_backend("nothing", small_vocabulary())


def test_what_masks_cannot_hold_is_refused_unless_finished_values_are_checked() -> None:
    schema = '{"properties": {"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}}}'
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, schema)
    with pytest.raises(GrammarError, match="uniqueItems cannot be enforced") as caught:
        create_backend("rtlang", small_vocabulary()).compile(constraint)
    assert caught.value.location == "#/properties/a"
    grammar = create_backend("rtlang", small_vocabulary(), checks_values=True).compile(constraint)
    assert isinstance(grammar, RtlangGrammar)
    assert grammar.value_check is not None
    assert grammar.value_check.error_in('{"a": ["x", "y"]}') is None
    assert "two elements are equal (at #/a)" in str(grammar.value_check.error_in('{"a": ["x", "x"]}'))
    exact = create_backend("rtlang", small_vocabulary()).compile(Constraint(ConstraintKind.JSON_SCHEMA, "true"))
    assert isinstance(exact, RtlangGrammar)
    assert exact.value_check is None
