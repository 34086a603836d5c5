"""`generate` of a small random Llama gives texts of the grammar in every mode."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

from rtlang_grammars import Constraint, ConstraintKind, GrammarError, RtlangBackend, Vocabulary
from rtlang_grammars.schema.reading.report import KeywordStatus
from tests.support.models.foreign_models import write_transformers_model

transformers = pytest.importorskip("transformers")
from rtlang_grammars.plugs.transformers import GrammarLogitsProcessor  # noqa: E402

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}, "tags": {"type": "array"}},
    "required": ["name", "age"],
}
PROMPTS = ["Once upon a time there was a person:", "Hi"]
NUM_TOKENS = 28
PATTERNS = ("a+b", "[0-9]{4}")


class Setting:
    """A model, its tokenizer and its vocabulary."""

    def __init__(self, path: Path) -> None:
        self.model = transformers.AutoModelForCausalLM.from_pretrained(path).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        self.vocabulary = Vocabulary.from_tokenizer(self.tokenizer, vocab_size=self.model.config.vocab_size)
        self.backend = RtlangBackend.create(self.vocabulary)

    def processor(self, kind: ConstraintKind, source: str, **options: Any) -> GrammarLogitsProcessor:
        return GrammarLogitsProcessor(self.backend.compile(Constraint(kind, source)), self.vocabulary, **options)

    def texts(self, processor: GrammarLogitsProcessor, prompts: list[str] = PROMPTS, **options: Any) -> list[str]:
        """What is generated after each prompt; padded on the left."""
        torch.manual_seed(0)
        inputs = self.tokenizer(prompts, padding=True, return_tensors="pt", return_token_type_ids=False)
        rows = self.model.generate(**inputs, logits_processor=[processor], **{"max_new_tokens": NUM_TOKENS, **options})
        return list(self.tokenizer.batch_decode(rows[:, inputs.input_ids.shape[1] :], skip_special_tokens=True))


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(write_transformers_model(tmp_path_factory.mktemp("model")))


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True, "num_return_sequences": 3},
        {"do_sample": True, "temperature": 2.0, "top_k": 0, "top_p": 0.9},
        {"num_beams": 4, "num_return_sequences": 4},
        {"num_beams": 3, "do_sample": True, "num_return_sequences": 2},
        {"do_sample": False, "repetition_penalty": 1.3, "no_repeat_ngram_size": 0},
    ],
    ids=["greedy", "sampling", "wide", "beams", "sampled_beams", "penalty"],
)
def test_every_row_is_valid_within_its_budget(setting: Setting, options: dict[str, Any]) -> None:
    processor = setting.processor(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA), max_new_tokens=NUM_TOKENS)
    texts = setting.texts(processor, **options)
    assert len(texts) == 2 * options.get("num_return_sequences", 1)
    for text in texts:
        jsonschema.validate(json.loads(text), SCHEMA)
    assert setting.texts(processor, **options) == texts  # one object serves several generations


def test_drafts_give_the_text_of_greedy_search(setting: Setting) -> None:
    processor = setting.processor(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA), max_new_tokens=NUM_TOKENS)
    plain = setting.texts(processor, PROMPTS[:1], do_sample=False)
    assert setting.texts(processor, PROMPTS[:1], do_sample=False, prompt_lookup_num_tokens=4) == plain


def test_texts_without_a_budget_match_and_end_with_the_end_token(setting: Setting) -> None:
    processor = setting.processor(ConstraintKind.REGEX, r"(ab|c){3,5} [0-9]{2}\n")
    texts = setting.texts(processor, do_sample=True, num_return_sequences=5)
    assert len(set(texts)) > 3
    assert all(re.fullmatch(r"(ab|c){3,5} [0-9]{2}\n", text) for text in texts)


def test_each_prompt_may_have_its_own_grammar(setting: Setting) -> None:
    grammars = [setting.backend.compile(Constraint(ConstraintKind.REGEX, pattern)) for pattern in PATTERNS]
    processor = GrammarLogitsProcessor(grammars, setting.vocabulary, max_new_tokens=8)
    texts = setting.texts(processor, num_beams=2, num_return_sequences=2, max_new_tokens=8)
    for pattern, pair in zip(PATTERNS, zip(texts[::2], texts[1::2], strict=True), strict=True):
        assert all(re.fullmatch(pattern, text) for text in pair), pair


def test_the_report_says_what_is_enforced_checked_and_refused(setting: Setting) -> None:
    processor = setting.processor(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA))
    (report,) = processor.reports
    assert report is not None
    assert {entry.status for entry in report.entries} == {KeywordStatus.ENFORCED}
    checked = {"properties": {"n": {"type": "string", "format": "regex"}}}
    with pytest.raises(GrammarError) as caught:
        setting.processor(ConstraintKind.JSON_SCHEMA, json.dumps(checked))
    assert caught.value.location is not None
    assert caught.value.location.startswith("#/properties/n")
    backend = RtlangBackend.create(setting.vocabulary, allow_checked=True)
    grammar = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(checked)))
    (report,) = GrammarLogitsProcessor(grammar, setting.vocabulary).reports
    assert report is not None
    assert ("#/properties/n", "format", KeywordStatus.CHECKED) in {
        (entry.pointer, entry.keyword, entry.status) for entry in report.entries
    }
    assert grammar.value_check is not None


def test_scores_beyond_the_vocabulary_are_excluded(setting: Setting) -> None:
    processor = setting.processor(ConstraintKind.CHOICE, '["yes"]')
    scores = processor(torch.tensor([[5]]), torch.zeros(1, setting.vocabulary.vocab_size + 40))  # type: ignore[arg-type]
    assert scores.shape == (1, setting.vocabulary.vocab_size + 40)
    allowed = torch.isfinite(scores[0]).nonzero().flatten().tolist()
    assert {setting.vocabulary.token_bytes[i] for i in allowed} <= {b"y", b"ye", b"yes"}
    assert allowed
