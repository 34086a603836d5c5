"""The interface holds for the runtime's service (tests/runtime/texts/test_text_service.py), and for targets that have none."""

from __future__ import annotations

from types import SimpleNamespace

from rtlang.contract.service.text_service import TextServiceInfo, text_service_of


def test_a_target_without_a_tokenizer_has_no_text_service() -> None:
    assert text_service_of(object()) is None
    assert text_service_of(SimpleNamespace(text_service=3)) == 3


def test_a_description_is_plain_data() -> None:
    info = TextServiceInfo(10, eos_token_ids=(0,))
    assert info == TextServiceInfo(10, None, None, (0,), (), None)
