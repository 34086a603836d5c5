"""The benchmark of tool calls: every format accepts every call, and its table has a row for each."""

from __future__ import annotations

from pathlib import Path

import tokenizers

from rtlang_grammars.formats.rendering import rendered_calls
from rtlang_grammars_bench.speed import read_vocabulary
from rtlang_grammars_bench.tool_speed import BASELINE, NUM_CALLS, RAW_FORMATS, table, tool_sets


def test_every_format_accepts_every_call(tmp_path: Path) -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    calls = [call for each in tool_sets().values() for call in each.calls]
    tokenizer.train_from_iterator(
        ["".join(text for text, _ in rendered_calls(BASELINE, [call])) for call in calls], trainer
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    lines = table(*read_vocabulary(tmp_path / "tokenizer.json"), num_repeats=1)
    assert len(lines) == 2 + (1 + len(tool_sets())) * (1 + len(RAW_FORMATS))
    for line in lines[2:]:
        num_calls = len(tool_sets()) * NUM_CALLS if line.startswith("| all") else NUM_CALLS
        assert line.endswith(f"| {num_calls} of {num_calls} |"), line
