"""The benchmark command, on a tiny tokenizer and two schemas."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import tokenizers

from rtlang_grammars_bench import speed


def tiny_tokenizer(path: Path) -> Path:
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[])
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(str(path))
    return path


def test_the_command_judges_and_measures_every_backend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"schema": {"type": "integer"}, "tests": [{"data": 12, "valid": True}, {"data": "x", "valid": False}]},
        {"schema": {"enum": ["é", None]}, "tests": [{"data": "é", "valid": True}, {"data": 1, "valid": False}]},
    ]
    schemas = tmp_path / "schemas.jsonl.gz"
    with gzip.open(schemas, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    speed.main(["--tokenizer", str(tiny_tokenizer(tmp_path / "tokenizer.json")), "--schemas", str(schemas)])
    printed = capsys.readouterr().out
    for name in ("rtlang", "llguidance"):
        assert f"{name}: 2 compiled, 2 invalid rejected, 2 valid accepted" in printed
    assert "times over the 2 schemas that all compiled" in printed
    assert printed.count("masks above 1 ms") == 2


def test_the_slowest_schemas_are_named() -> None:
    figures = speed.Figures({0: 5, 1: 5, 2: 5}, {0: [10, 2_500_000], 1: [20, 30], 2: [9_000_000, 1_000_001]})
    line = speed.report("rtlang", figures, {0, 1, 2}, ["a", "b", "c"]).splitlines()[-1]
    assert line.strip() == "3 masks above 1 ms: c (2, max 9.0 ms), a (1, max 2.5 ms)"
    assert speed.report("rtlang", figures, {1}, ["a", "b", "c"]).endswith(" 0 masks above 1 ms")
