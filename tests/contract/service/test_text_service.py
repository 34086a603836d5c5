"""The interface holds for the runtime's service (tests/runtime/texts/test_text_service.py), and for targets that have none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.service.text_service import TextServiceInfo, count_tokens, text_service_of


def test_a_target_without_a_tokenizer_has_no_text_service() -> None:
    assert text_service_of(object()) is None
    assert text_service_of(SimpleNamespace(text_service=3)) == 3


def test_a_description_is_plain_data() -> None:
    info = TextServiceInfo(10, eos_token_ids=(0,))
    assert info == TextServiceInfo(10, None, None, (0,), (), None)


def test_tokens_are_counted_by_the_target_or_by_its_text_service() -> None:
    assert count_tokens(SimpleNamespace(count_tokens=len), ["a", "b"]) == 2
    service = SimpleNamespace(encode_parts=lambda parts: [1] * 5)
    assert count_tokens(SimpleNamespace(text_service=service), ["a"]) == 5
    with pytest.raises(ParameterError, match="expected a runtime that can count tokens"):
        count_tokens(object(), ["a"])
