"""Generations of `mlx-lm` with a small random model; they run where it is installed (`mlx[cpu]` on Linux)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang_grammars import Constraint, ConstraintKind, RtlangBackend
from rtlang_grammars.spec.errors import EmptyMaskError
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.vocabularies import without_letter
from tests.support.models.foreign_models import write_transformers_model

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
import mlx.core as mx
from mlx_lm import generate, load, stream_generate
from mlx_lm.sample_utils import make_sampler

from rtlang_grammars.plugs.mlx_lm import GrammarLogitsProcessor, vocabulary_of

SCHEMA = (
    '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], "additionalProperties": false}'
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Vocabulary]:
    model, tokenizer = load(str(write_transformers_model(tmp_path_factory.mktemp("model"))))
    return model, tokenizer, vocabulary_of(model, tokenizer)


@pytest.mark.parametrize("with_draft", [False, True])
def test_texts_are_complete_within_their_budget(loaded: Any, with_draft: bool) -> None:
    model, tokenizer, vocabulary = loaded
    grammar = RtlangBackend.create(vocabulary).compile(Constraint(ConstraintKind.JSON_SCHEMA, SCHEMA))
    processor = GrammarLogitsProcessor(grammar, vocabulary, max_tokens=30)
    options: dict[str, Any] = {"draft_model": model} if with_draft else {}
    for prompt in ("A person:", "Another:", "A person:"):
        processor.reset()
        mx.random.seed(3)
        sampler = make_sampler(temp=0.0 if with_draft else 1.0)
        text = generate(
            model, tokenizer, prompt, max_tokens=30, sampler=sampler, logits_processors=[processor], **options
        )
        assert isinstance(json.loads(text)["age"], int)
    assert processor.report is not None


def test_a_place_without_a_token_is_an_error(loaded: Any) -> None:
    model, tokenizer, vocabulary = loaded
    stuck = RtlangBackend.create(without_letter(vocabulary, b"b")).compile(Constraint(ConstraintKind.REGEX, "ab"))
    processor = GrammarLogitsProcessor(stuck, vocabulary)
    with pytest.raises(EmptyMaskError, match="no token may follow"):
        list(stream_generate(model, tokenizer, "x", max_tokens=8, logits_processors=[processor]))
