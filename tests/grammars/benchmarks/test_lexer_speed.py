"""The benchmark of languages: its programs are right by lark's own parser, and its table has a row for every engine."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest
import tokenizers

from rtlang_grammars_bench.lexer_speed import LANGUAGES, cases_of, grammar_of, programs, table
from rtlang_grammars_bench.speed import read_vocabulary


@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_differ_and_parse(language: str) -> None:
    texts = programs(language)
    assert len(set(texts)) == len(texts) == 16
    parser = lark.Lark(grammar_of(language), parser="earley", lexer="dynamic")
    for text in texts[:6]:
        parser.parse(text)


@pytest.mark.long
def test_every_engine_accepts_every_program(tmp_path: Path) -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator([text for language in LANGUAGES for text in programs(language)], trainer)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    (tmp_path / "ab.gbnf").write_text('root ::= "(" root ")" | [ab]+')
    wanted = [f"{language} ({lexer})" for language in LANGUAGES for lexer in ("longest", "anywhere")]
    cases = [each for each in cases_of(2, tmp_path) if each.name in (*wanted, "ab.gbnf")]
    assert [each.name for each in cases] == [*wanted, "ab.gbnf"]
    lines = table(*read_vocabulary(path), cases)
    assert len(lines) == 2 + len(cases)
    for line in lines[2:]:
        assert line.endswith("| 2 of 2 |"), line
