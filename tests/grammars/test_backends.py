"""The seam: backends by name."""

from __future__ import annotations

import pytest

from rtlang_grammars.backends import BACKENDS, create_backend
from rtlang_grammars.spec import Constraint, ConstraintKind
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


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="llguidance"):
        create_backend("nothing", small_vocabulary())
