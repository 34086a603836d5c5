"""Completions of llama.cpp with a small random GGUF model."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from rtlang_grammars import Constraint, ConstraintKind, GrammarError, RtlangBackend, Vocabulary
from rtlang_grammars.spec.errors import UnsupportedTokenizerError
from tests.support.models.foreign_models import gguf_pieces, write_gguf_model

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: it is built from source")
pytest.importorskip("gguf")
from rtlang_grammars.plugs.llama_cpp import GrammarLogitsProcessor, vocabulary_of  # noqa: E402

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = write_gguf_model(tmp_path_factory.mktemp("model") / "model.gguf")
    return llama_cpp.Llama(str(path), n_ctx=512, verbose=False, seed=1)


@pytest.fixture(scope="module")
def vocabulary(llama: Any) -> Vocabulary:
    return vocabulary_of(llama)


def test_the_vocabulary_is_that_of_the_file(llama: Any, vocabulary: Vocabulary) -> None:
    pieces = gguf_pieces()
    assert vocabulary.vocab_size == len(pieces)
    assert vocabulary.eos_token_ids == {2}
    assert vocabulary.special_token_ids == {0, 1, 2}
    for token_id, (piece, kind) in enumerate(pieces):
        expected = bytes([token_id - 4]) if kind == 6 else piece.replace("▁", " ").encode()
        assert vocabulary.token_bytes[token_id] == expected


def test_tokens_of_texts_spell_them(llama: Any, vocabulary: Vocabulary) -> None:
    draw = random.Random(0)
    for _ in range(200):
        text = "".join(draw.choices('the  a{"name": "é日本"}\n\t<tool>x', k=20)).encode()
        spelled = b"".join(vocabulary.token_bytes[i] for i in llama.tokenize(text, add_bos=False, special=False))
        assert spelled == b" " + text  # with the dummy blank of a whole text


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_completions_are_valid_within_their_budget(llama: Any, vocabulary: Vocabulary, temperature: float) -> None:
    grammar = RtlangBackend.create(vocabulary).compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA)))
    processor = GrammarLogitsProcessor(grammar, vocabulary, max_tokens=50)
    for prompt in ("A person:", "Another:", "x"):
        answer = llama.create_completion(
            prompt,
            max_tokens=50,
            temperature=temperature,
            logits_processor=llama_cpp.LogitsProcessorList([processor]),
        )
        jsonschema.validate(json.loads(answer["choices"][0]["text"]), SCHEMA)
    assert processor.report is not None
    assert ("#/properties/age", "minimum", "enforced") in {
        (entry.pointer, entry.keyword, str(entry.status)) for entry in processor.report.entries
    }


def test_a_completion_ends_where_the_grammar_does(llama: Any, vocabulary: Vocabulary) -> None:
    grammar = RtlangBackend.create(vocabulary).compile(Constraint(ConstraintKind.CHOICE, '["yes", "no"]'))
    processor = GrammarLogitsProcessor(grammar, vocabulary)
    answer = llama.create_completion(
        "Well?", max_tokens=50, logits_processor=llama_cpp.LogitsProcessorList([processor])
    )
    assert answer["choices"][0]["text"] in ("yes", "no")
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_a_grammar_that_fails_ends_the_text(
    llama: Any, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    grammar = RtlangBackend.create(vocabulary).compile(Constraint(ConstraintKind.CHOICE, '["yes", "no"]'))
    processor, failure = GrammarLogitsProcessor(grammar, vocabulary), GrammarError("too many states")

    def fail(*arguments: Any) -> None:
        raise failure

    monkeypatch.setattr(processor._histories, "allowed", fail)
    answer = llama.create_completion("x", max_tokens=9, logits_processor=llama_cpp.LogitsProcessorList([processor]))
    assert answer["choices"][0]["text"] == ""
    assert processor.error is failure


def test_word_pieces_are_refused(monkeypatch: pytest.MonkeyPatch, llama: Any) -> None:
    monkeypatch.setattr(llama_cpp, "llama_vocab_type", lambda vocab: llama_cpp.LLAMA_VOCAB_TYPE_WPM)
    with pytest.raises(UnsupportedTokenizerError, match="WordPiece"):
        vocabulary_of(llama)
