"""Forced text as tokens: a prefix of the forced bytes whose spelling no later text can change."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.grammar import MachineGrammar
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from tests.support.grammars.vocabularies import small_vocabulary

VOCABULARY = small_vocabulary()
TOKENS = [text for i, text in enumerate(VOCABULARY.token_bytes) if text and i not in VOCABULARY.silent_ids]
CONSTRAINTS = [
    Constraint(ConstraintKind.CHOICE, json.dumps(["the name of the string is true", "the name of the strings"])),
    Constraint(ConstraintKind.REGEX, "null, false and true: [0-9]"),
    Constraint(ConstraintKind.JSON_SCHEMA, '{"const": {"name": "value", "type": ["string", "number"]}}'),
]


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda each: str(each.kind))
def test_forced_tokens_are_those_that_later_text_cannot_change(constraint: Constraint) -> None:
    matcher = RtlangBackend.create(VOCABULARY).compile(constraint).matcher()
    forced, ids = matcher.forced_bytes(), matcher.forced_tokens()
    text = VOCABULARY.text_of(ids)
    assert forced.startswith(text)
    assert matcher.accepts(ids)
    if len(text) == len(forced):  # no token reaches from inside the text beyond it
        starts = [len(VOCABULARY.text_of(ids[:index])) for index in range(len(ids))]
        assert not any(each != text[at:] and each.startswith(text[at:]) for at in starts for each in TOKENS)


def test_forced_text_is_followed_in_read_only_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native code is compiled for these, and would be compiled again for others while requests wait."""
    advance, are_writable = MachineGrammar.advance, list[bool]()

    def watched(self: MachineGrammar, configuration: Any, data: NDArray[np.uint8], start: int, end: int) -> Any:
        are_writable.append(data.flags.writeable)
        return advance(self, configuration, data, start, end)

    monkeypatch.setattr(MachineGrammar, "advance", watched)
    for constraint in CONSTRAINTS:
        matcher = RtlangBackend.create(VOCABULARY).compile(constraint).matcher()
        assert matcher.forced_bytes()
    assert len(are_writable) > 2 * len(CONSTRAINTS)
    assert not any(are_writable)


def test_without_forced_bytes_there_are_no_forced_tokens() -> None:
    matcher = RtlangBackend.create(VOCABULARY).compile(Constraint(ConstraintKind.REGEX, "a|b")).matcher()
    assert matcher.forced_tokens() == []
