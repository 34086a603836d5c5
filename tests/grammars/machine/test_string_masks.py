"""Masks made from the few plain tokens that may not follow, against trying every token."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine import masks
from rtlang_grammars.machine.automaton.layout import HEADS
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from tests.support.grammars.vocabularies import small_vocabulary

VOCABULARY = small_vocabulary()
SCHEMAS: list[dict[str, Any]] = [
    {"type": "string", "pattern": "^(?!the)"},
    {"type": "string", "pattern": "^(?!^the|a[bB]|日本).*$"},
    {"type": "string", "pattern": "^(?!h(ello|e llo)|world).{0,4}[^w]*$"},
    {"type": "string", "pattern": r"^(?!\u2028|é)[^e]*e"},
    {"type": "string", "not": {"pattern": "the|wor"}},
    {"type": "string", "pattern": "^(?!the)", "not": {"enum": ["hello", "é", ""]}},
    {"type": "object", "patternProperties": {"^(?!the|abc)": {"type": "null"}}, "additionalProperties": False},
    {"type": "object", "patternProperties": {"^tag": {"type": "null"}, "^(?!na?me)": True}},
]
BEGINS: list[str | bytes] = [
    "",
    "t",
    "th",
    "th.",
    "a",
    "hell",
    "日".encode()[:1],
    "日",
    "é",
    "x",
    "abcd",
    "na",
    "\\u00",
]


@pytest.fixture(scope="module")
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


def compiled(backend: RtlangBackend, kind: ConstraintKind, source: Any) -> MachineMatcher:
    text = source if isinstance(source, str) else json.dumps(source)
    return backend.compile(Constraint(kind, text)).matcher()


def is_exact(matcher: MachineMatcher) -> bool:
    row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    matcher.fork().fill_bitmask(row)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: VOCABULARY.vocab_size]
    return bits.tolist() == [matcher.fork().accept_token(token_id) for token_id in range(VOCABULARY.vocab_size)]


@pytest.mark.parametrize("most", [4096, 3])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_mask_is_what_is_accepted(
    backend: RtlangBackend, monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any], most: int
) -> None:
    monkeypatch.setattr(masks, "MAX_FORBIDDEN", most)
    for text in BEGINS:
        matcher = compiled(backend, ConstraintKind.JSON_SCHEMA, schema)
        begin = b'"' if schema["type"] == "string" else b'{"'
        if all(map(matcher.accept_token, begin + (text.encode() if isinstance(text, str) else text))):
            assert is_exact(matcher), text


@pytest.mark.parametrize(
    "pattern", ["(?!the)[\\s\\S]*", "(?!ab|world)[^q]*(end)?", "(?!the).*(?!x)y|the.*z", "(?!w).*"]
)
def test_a_mask_outside_of_json_is_what_is_accepted(backend: RtlangBackend, pattern: str) -> None:
    matcher = compiled(backend, ConstraintKind.REGEX, pattern)
    for byte in b"twor":
        assert is_exact(matcher)
        if not matcher.accept_token(byte):
            break


@pytest.mark.parametrize("most", [4096, 3, 0])
def test_where_they_are_many_those_that_may_follow_are_sought(
    backend: RtlangBackend, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(masks, "MAX_FORBIDDEN", most)
    matcher = compiled(backend, ConstraintKind.JSON_SCHEMA, {"type": "string", "pattern": "^(?!the|abc?d)"})
    assert matcher.accept_token(ord('"'))
    denied = matcher._grammar.masks._forbidden(int(matcher._place.configuration[HEADS]))
    assert (denied is None) == (most < 4096)
    if denied is not None:
        texts = {
            VOCABULARY.token_bytes[token_id] for token_id in denied.tolist() if token_id not in VOCABULARY.silent_ids
        }
        assert b"the" in texts
        assert b"ab" not in texts
        assert all(text.startswith((b"the", b"abd", b"abcd")) or not text.isascii() for text in texts)
