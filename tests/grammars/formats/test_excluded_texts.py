"""Schemas without some texts in their strings: which JSON texts are left."""

from __future__ import annotations

from tests.grammars.formats.test_structural_tag import END, VOCABULARY, matcher_of
from tests.support.grammars.vocabularies import spell


def test_an_excluded_text_is_in_no_string_and_no_name() -> None:
    plain = {"format": {"type": "json_schema", "json_schema": {"type": "object"}, "excludes": ["</f>", "b|"]}}
    matcher = matcher_of(plain)
    for text in ('{"a":["b"]}', '{"b":{"c":1}}', '{"a":"<f>"}'):
        assert matcher.accepts([*spell(VOCABULARY, text), END]), text
    for text in ('{"a":["x</f>"]}', '{"b|":1}', '{"a":{"c":"</f>"}}'):
        assert not matcher.accepts([*spell(VOCABULARY, text), END]), text
