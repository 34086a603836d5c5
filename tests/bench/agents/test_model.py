"""The model of the benchmark writes texts that come back as they are."""

from __future__ import annotations

from pathlib import Path

from rtlang.bench.agents.model import AFTER, BEFORE, write_model
from rtlang.contract.params import SamplingParams
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.runtime import Runtime


def test_no_text_has_a_special_token_or_begins_with_a_blank(tmp_path: Path) -> None:
    directory = write_model(tmp_path, num_hidden_layers=1, hidden_size=64, intermediate_size=64)
    tokenizer = Tokenizer.from_pretrained(directory)
    assert tokenizer.tool_format == "qwen-coder"
    for name in (BEFORE, AFTER):
        assert len(tokenizer.encode(name, is_start=False, allow_special=True)) == 1
    with Runtime(model=str(directory), num_threads=1, num_pages=100) as runtime:
        completions = [
            runtime.generate(
                f"say {number}", params=SamplingParams(max_tokens=40, temperature=temperature, seed=number)
            )
            .result()
            .completions[0]
            for number, temperature in enumerate((0.0, 1.0, 1.0, 1.0))
        ]
    assert all(len(each.token_ids) == 40 for each in completions)  # the end token is among the special ones
    assert not any(tokenizer.special_token_ids.intersection(each.token_ids) for each in completions)
    assert not any(each.text[:1].isspace() for each in completions)
