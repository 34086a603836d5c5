"""Generations of `onnxruntime-genai` with a small random model; they run where it is installed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rtlang_grammars import Constraint, ConstraintKind, RtlangBackend
from rtlang_grammars.spec.errors import EmptyMaskError
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.vocabularies import spell, without_letter
from tests.support.models.foreign_models import write_onnx_model

onnxruntime_genai = pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
pytest.importorskip("onnx")

from rtlang_grammars.plugs.onnxruntime_genai import GrammarGuide, vocabulary_of  # noqa: E402

SCHEMA = (
    '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], "additionalProperties": false}'
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Vocabulary]:
    path = write_onnx_model(tmp_path_factory.mktemp("model"))
    return onnxruntime_genai.Model(str(path)), vocabulary_of(path)


def generator_of(model: Any, vocabulary: Vocabulary, num_rows: int, *, do_sample: bool) -> Any:
    params = onnxruntime_genai.GeneratorParams(model)
    params.set_search_options(max_length=64, batch_size=num_rows, do_sample=do_sample, random_seed=1)
    generator = onnxruntime_genai.Generator(model, params)
    generator.append_tokens(np.array([spell(vocabulary, "A person:")] * num_rows, dtype=np.int32))
    return generator


@pytest.mark.parametrize(("num_rows", "do_sample"), [(1, False), (1, True), (2, True)])
def test_texts_are_complete_within_their_budget(loaded: Any, num_rows: int, do_sample: bool) -> None:
    model, vocabulary = loaded
    grammar = RtlangBackend.create(vocabulary).compile(Constraint(ConstraintKind.JSON_SCHEMA, SCHEMA))
    guide = GrammarGuide(grammar, vocabulary, max_new_tokens=30)
    generator = generator_of(model, vocabulary, num_rows, do_sample=do_sample)
    start, num_steps = generator.token_count(), 0
    while not generator.is_done():
        guide.generate_next_token(generator)
        num_steps += 1
    assert num_steps <= 30
    for row in range(num_rows):
        ids = [i for i in generator.get_sequence(row)[start:].tolist() if i not in vocabulary.eos_token_ids]
        text = b"".join(vocabulary.token_bytes[i] for i in ids if i not in vocabulary.special_token_ids)
        assert isinstance(json.loads(text)["age"], int)
    assert guide.report is not None


def test_a_place_without_a_token_is_an_error(loaded: Any) -> None:
    model, vocabulary = loaded
    stuck = RtlangBackend.create(without_letter(vocabulary, b"b")).compile(Constraint(ConstraintKind.REGEX, "ab"))
    guide = GrammarGuide(stuck, vocabulary)
    generator = generator_of(model, vocabulary, 1, do_sample=False)
    guide.generate_next_token(generator)  # a
    with pytest.raises(EmptyMaskError, match="no token may follow after b'a'"):
        guide.generate_next_token(generator)
