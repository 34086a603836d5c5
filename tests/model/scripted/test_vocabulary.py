"""The tokenizer of a scripted model."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import ConfigError
from rtlang.model.scripted.reply_text import BEGIN, END
from rtlang.model.scripted.script_file import script_of
from rtlang.model.scripted.vocabulary import scripted_tokenizer


@pytest.mark.parametrize("name", ["hermes", "deepseek-v3.1", "qwen-coder", "mistral+think"])
def test_the_format_shows_in_the_template_and_frames_are_control_tokens(name: str) -> None:
    tokenizer = scripted_tokenizer(script_of(f"format: {name}\nrules: [{{replies: [a]}}]", "s"))
    assert tokenizer.tool_format == name
    for mark in (BEGIN, END):
        (control,) = tokenizer.encode(mark, is_start=False, allow_special=True)
        assert control in tokenizer.special_token_ids
        assert control not in tokenizer.encode(f"a{mark}b", is_start=True)
    assert tokenizer.eos_token_ids == {*tokenizer.encode(END, is_start=False, allow_special=True)}
    for text in ("<tool_call>\n", "naïve 漢字 \U0001f600", "<|end|><|user|>"):
        assert tokenizer.decode(tokenizer.encode(text, is_start=False)) == text


def test_a_format_that_no_template_shows_is_refused() -> None:
    with pytest.raises(ConfigError, match="format = 'json'"):
        scripted_tokenizer(script_of("format: json\nrules: [{replies: [a]}]", "s"))
