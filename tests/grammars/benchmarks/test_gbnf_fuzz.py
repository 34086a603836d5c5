"""Random GBNF grammars: what is derived from them is accepted, and llama.cpp agrees where it is installed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars_bench import gbnf_fuzz
from rtlang_grammars_bench.lark_fuzz import accepts, byte_backend


def test_derived_texts_are_accepted() -> None:
    backend, num_texts = byte_backend(), 0
    for seed in range(30):
        rng = random.Random(seed)
        rules = gbnf_fuzz.random_rules(rng)
        try:
            grammar = backend.compile(Constraint(ConstraintKind.GBNF, gbnf_fuzz.source_of(rules)))
        except GrammarError:  # it derives nothing
            continue
        for _ in range(10):
            fuel = [12]
            text = gbnf_fuzz.derived(rng, rules, rules["root"], fuel)
            if fuel[0] >= -60:  # else it was cut
                num_texts += 1
                assert accepts(grammar, text), (seed, text)
    assert num_texts > 150


def test_files_are_walked_and_changed(tmp_path: Path) -> None:
    (tmp_path / "nested.gbnf").write_text('root ::= "(" root ")" | [a-z]+')
    backend = byte_backend()
    ((name, source, texts),) = gbnf_fuzz.file_cases(tmp_path, backend)
    assert name == "nested.gbnf"
    grammar = backend.compile(Constraint(ConstraintKind.GBNF, source))
    half = len(texts) // 2
    assert half > 10
    assert all(accepts(grammar, text) for text in texts[:half])
    assert not all(accepts(grammar, text) for text in texts[half:])


def test_llama_cpp_agrees(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("llama_cpp")
    pytest.importorskip("gguf")
    assert gbnf_fuzz.main(["--grammars", "40"]) == 0
    assert "grammars compared" in capfd.readouterr().out
