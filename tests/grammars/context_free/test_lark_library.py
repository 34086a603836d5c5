"""Ready grammars against samples, the lark library, and the standard library's readers."""

from __future__ import annotations

import ast
import configparser
import csv
import email.parser
import email.policy
import functools
import io
import json
import random
import xml.etree.ElementTree
from collections.abc import Callable

import lark
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.completion.token_budget import TokenBudget
from rtlang_grammars.context_free import lark_library
from rtlang_grammars.context_free.cfg import Cfg, TokenSymbol
from rtlang_grammars.context_free.lark_library import library_constraint, library_grammar
from rtlang_grammars.context_free.lark_reader import read_lark
from rtlang_grammars.context_free.left_recursion import left_recursive_rules
from rtlang_grammars.regular.string_formats.formats import format_language
from rtlang_grammars.spec.constraint import Lexer
from rtlang_grammars.spec.protocols import CompiledGrammar
from tests.support.grammars.cfg_membership import cfg_accepts
from tests.support.grammars.library_samples import BAD, GOOD
from tests.support.grammars.vocabularies import random_text, small_vocabulary, spell
from tests.support.long_tests import sized

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
LIBRARY = [name for name in lark_library.LIBRARY if library_constraint(name).lexer is Lexer.ANYWHERE]
SEARCH = CompletionSearch(VOCABULARY)


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


@functools.cache
def compiled(name: str) -> CompiledGrammar:
    return backend().compile(library_constraint(name))


@functools.cache
def parser(name: str) -> lark.Lark:
    return lark.Lark(library_grammar(name), parser="earley", lexer="dynamic_complete" if name != "json" else "dynamic")


def matches(name: str, text: str, rng: random.Random | None = None) -> bool:
    return compiled(name).matcher().accepts([*spell(VOCABULARY, text, rng), END])


@pytest.mark.parametrize("name", LIBRARY)
def test_good_texts_match_however_they_are_spelled(name: str) -> None:
    for text in GOOD[name]:
        assert matches(name, text), text
        for seed in range(5):
            assert matches(name, text, random.Random(seed)), (text, seed)


@pytest.mark.parametrize("name", LIBRARY)
def test_bad_texts_do_not_match(name: str) -> None:
    assert [text for text in BAD[name] if matches(name, text)] == []


@pytest.mark.parametrize("name", LIBRARY)
def test_generated_texts_parse(name: str) -> None:
    for seed in range(8):
        rng = random.Random(seed)
        matcher = compiled(name).matcher()
        path = SEARCH.find(matcher, 40)
        assert path is not None
        text = random_text(VOCABULARY, matcher, TokenBudget(SEARCH, path), 40, rng)
        if name == "json":
            json.loads(text)
        elif name == "csv":
            assert list(csv.reader(io.StringIO(text), strict=True)) or not text.strip("\n")
        else:
            parser(name).parse(text)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="sql_select"):
        library_grammar("nothing")


@functools.cache
def grammar(name: str) -> Cfg:
    return read_lark(library_grammar(name))


def samples(name: str, count: int) -> list[str]:
    """Random texts of a grammar, by random choices that tend to the shorter alternative when they are deep."""
    cfg, rng = grammar(name), random.Random(name)

    def expand(rule: int, depth: int) -> str:
        ways = cfg.rules[rule].alternatives
        way = (
            rng.choice(ways)
            if depth < 14
            else min(ways, key=lambda each: sum(not isinstance(s, TokenSymbol) for s in each))
        )
        parts = []
        for symbol in way:
            if isinstance(symbol, TokenSymbol):
                parts += cfg.terminals[symbol.terminal].language.samples(rng, 1)
            else:
                parts.append(expand(symbol.rule, depth + 1))
        return "".join(parts)

    texts: list[str] = []
    while len(texts) < count:
        try:
            text = expand(cfg.start, 0)
        except RecursionError:
            continue
        if len(text) < 250:
            texts.append(text)
    return texts


def read_ini(text: str) -> None:
    configparser.ConfigParser(strict=False, interpolation=None).read_string(text)


def read_email(text: str) -> None:
    message = email.parser.Parser(policy=email.policy.default).parsestr(text + "\n\n")
    assert not message.defects
    for name in ("From", "To", "Cc"):
        for address in message[name].addresses if message[name] else ():
            assert "@" in address.addr_spec


def read_url(text: str) -> None:
    language = format_language("uri")
    assert language is not None
    assert language.accepts(text)


READERS: dict[str, Callable[[str], object]] = {
    "python_subset": ast.parse,
    "xml_subset": xml.etree.ElementTree.fromstring,
    "ini": read_ini,
    "email_header": read_email,
    "url": read_url,
}


@pytest.mark.parametrize("name", LIBRARY)
def test_good_texts_are_in_the_grammar_that_was_read(name: str) -> None:
    for text in GOOD[name]:
        assert cfg_accepts(grammar(name), text), text
        parser(name).parse(text)
        if name in READERS:
            READERS[name](text)


@pytest.mark.parametrize("name", LIBRARY)
def test_bad_texts_are_not_in_the_grammar_that_was_read(name: str) -> None:
    for text in BAD[name]:
        assert not cfg_accepts(grammar(name), text), text
        with pytest.raises(lark.exceptions.LarkError):
            parser(name).parse(text)


@pytest.mark.parametrize("name", LIBRARY)
def test_each_grammar_has_samples_enough_and_no_left_recursion(name: str) -> None:
    assert len(GOOD[name]) >= 6
    assert len(BAD[name]) >= 6
    assert not left_recursive_rules(grammar(name))


@pytest.mark.parametrize("name", READERS)
def test_random_texts_are_what_the_standard_reader_takes(name: str) -> None:
    for text in samples(name, sized(25, usual=8)):
        READERS[name](text)
