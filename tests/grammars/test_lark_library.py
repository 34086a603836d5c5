"""Ready grammars against samples, the lark library, and the standard library's readers."""

from __future__ import annotations

import csv
import functools
import io
import json
import random

import lark
import pytest

from rtlang_grammars.backends import create_backend
from rtlang_grammars.budget import BudgetKeeper
from rtlang_grammars.closing import CompletionSearch
from rtlang_grammars.lark_library import LIBRARY, library_constraint, library_grammar
from rtlang_grammars.spec import CompiledGrammar, GrammarError
from tests.support.library_samples import BAD, GOOD
from tests.support.vocabularies import random_text, small_vocabulary, spell

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
SEARCH = CompletionSearch(VOCABULARY)

REFUSED = {"python_subset": "it tells names from keywords by a lookahead, which llguidance does not have"}
"""Grammars that this backend does not take."""

TAKEN = [name for name in LIBRARY if name not in REFUSED]


@functools.cache
def compiled(name: str) -> CompiledGrammar:
    return create_backend("llguidance", VOCABULARY, SEARCH).compile(library_constraint(name))


@functools.cache
def parser(name: str) -> lark.Lark:
    return lark.Lark(library_grammar(name), parser="earley", lexer="dynamic_complete" if name != "json" else "dynamic")


def matches(name: str, text: str, rng: random.Random | None = None) -> bool:
    return compiled(name).matcher().accepts([*spell(VOCABULARY, text, rng), END])


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in TAKEN for text in GOOD[name]])
def test_good_texts_match_however_they_are_spelled(name: str, text: str) -> None:
    assert matches(name, text)
    for seed in range(5):
        assert matches(name, text, random.Random(seed))
    parser(name).parse(text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in TAKEN for text in BAD[name]])
def test_bad_texts_do_not_match(name: str, text: str) -> None:
    assert not matches(name, text)
    with pytest.raises(lark.exceptions.LarkError):
        parser(name).parse(text)


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_backend_lacks_is_refused(name: str) -> None:
    with pytest.raises(GrammarError):
        compiled(name)


@pytest.mark.parametrize("name", TAKEN)
def test_generated_texts_parse(name: str) -> None:
    for seed in range(12):
        rng = random.Random(seed)
        matcher = compiled(name).matcher()
        path = SEARCH.find(matcher, 40)
        assert path is not None
        text = random_text(VOCABULARY, matcher, BudgetKeeper(SEARCH, path), 40, rng)
        if name == "json":
            json.loads(text)
        elif name == "csv":
            assert list(csv.reader(io.StringIO(text), strict=True)) or not text.strip("\n")
        else:
            parser(name).parse(text)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="sql_select"):
        library_grammar("nothing")
