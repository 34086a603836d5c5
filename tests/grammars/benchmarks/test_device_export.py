"""The benchmark of exports counts schemas by outcome and the tokens of instances at which a device has a place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rtlang_grammars_bench.device_export import measure
from tests.support.grammars.vocabularies import small_vocabulary

VOCABULARY = small_vocabulary()


class Bytes:
    """Encodes to tokens of one byte."""

    def encode(self, text: str, *, add_special_tokens: bool) -> Any:
        assert not add_special_tokens
        return SimpleNamespace(ids=list(text.encode()))


def test_schemas_and_tokens_are_counted() -> None:
    tests = [{"valid": True, "data": {"a": 1}}, {"valid": False, "data": 1}]
    union = [{"type": "object", "properties": {"a": {"const": each}}, "required": ["a"]} for each in (1, 2)]
    rows = [
        {"schema": {"type": "object"}, "tests": tests},
        {"schema": {"anyOf": union}, "tests": tests},
        {"schema": {"type": 5}},
    ]
    share = measure(rows, VOCABULARY, Bytes())
    assert share.kinds["whole"] >= 1
    assert share.kinds["not compiled"] == 1
    assert share.kinds.total() == 3
    assert share.num_tokens == 2 * len('{"a": 1}')
    assert 8 <= share.num_on_device <= share.num_tokens
    assert share.lines()[0].startswith("3 schemas: 2 exported (66.7%)")
