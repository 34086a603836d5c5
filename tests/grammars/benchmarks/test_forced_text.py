"""The benchmark of forced text, on a tiny tokenizer: a share that can be counted by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rtlang_grammars_bench import forced_text
from tests.grammars.benchmarks.test_speed import tiny_tokenizer


def test_the_command_prints_the_share_of_forced_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = {
        "type": "object",
        "properties": {"ab": {"type": "null"}, "c": {"enum": [True]}},
        "required": ["ab", "c"],
        "additionalProperties": False,
    }
    schemas = tmp_path / "schemas.jsonl.gz"
    with gzip.open(schemas, "wt") as file:
        file.write(json.dumps({"schema": schema, "tests": [{"data": {"ab": None, "c": True}, "valid": True}]}) + "\n")
    tokenizer = tiny_tokenizer(tmp_path / "tokenizer.json")
    forced_text.main(["--tokenizer", str(tokenizer), "--schemas", str(schemas)])
    printed = capsys.readouterr().out
    # In any order the first name is free from its first letter on, and with it everything else is said.
    assert f"any: rtlang {100 * 19 / 20:.1f} %, llguidance 100.0 % of 20 bytes in 1 instances" in printed
    assert "declared_then_others: rtlang 100.0 %, llguidance 100.0 % of 20 bytes in 1 instances" in printed
