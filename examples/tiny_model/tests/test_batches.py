"""What the loss counts, and how documents become batches."""

import json
import random
from itertools import islice
from pathlib import Path

import pytest
from tiny_model.corpus.documents import documents, pieces
from tiny_model.training.batches import (
    MAX_ANSWER_WEIGHT,
    MICROBATCH_TOKENS,
    PLAIN_ANSWER_TOKENS,
    PROMPT_LOSS_WEIGHT,
    Encoder,
    answer_weight,
    microbatches,
)
from tiny_model.training.network import Shape
from tokenizers import Tokenizer
from training_runs import TINY


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(TINY)


def test_an_answer_and_its_end_count_in_full_and_prompts_at_most_a_little(encoder: Encoder) -> None:
    conversation = [("user", "What is 2 + 3?"), ("assistant", "5")]
    ((token_ids, weights),) = encoder.encode([pieces(conversation)], random.Random(0))
    assert token_ids[-1] == encoder.eos_token_id
    assert weights[-2:] == [MAX_ANSWER_WEIGHT, MAX_ANSWER_WEIGHT]
    assert set(weights[:-2]) <= {0.0, PROMPT_LOSS_WEIGHT * MAX_ANSWER_WEIGHT}


def test_long_answers_count_once_per_token_and_short_ones_more() -> None:
    assert answer_weight(0) == answer_weight(1) == MAX_ANSWER_WEIGHT
    assert answer_weight(PLAIN_ANSWER_TOKENS // 4) == 2.0
    assert answer_weight(PLAIN_ANSWER_TOKENS) == answer_weight(300) == 1.0


def test_encoding_in_parts_keeps_the_text(encoder: Encoder) -> None:
    tokenizer = Tokenizer.from_file(str(TINY / "tokenizer.json"))
    batch = list(islice(documents(21), 60))
    for document, (token_ids, _) in zip(batch, encoder.encode(batch, random.Random(1)), strict=True):
        text = "".join((piece.special or "") + piece.text for piece in document)
        if len(token_ids) < Shape().max_positions:
            assert tokenizer.decode(token_ids, skip_special_tokens=False) == text


def test_a_microbatch_holds_padded_documents_within_its_budget(encoder: Encoder) -> None:
    for token_ids, weights in islice(microbatches(encoder, 4), 12):
        assert token_ids.numel() <= MICROBATCH_TOKENS
        assert token_ids.shape == weights.shape
        assert (weights[token_ids == encoder.pad_token_id] == 0).all()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no json", "cannot be read"),
        (None, "cannot be read"),
        ("other special token", r"has no special token <\|system\|>"),
        ("id too large", "has a token id 5000, at most 2047 is allowed"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused_by_its_path(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "tokenizer.json"
    whole = (TINY / "tokenizer.json").read_text()
    if content == "other special token":
        path.write_text(whole.replace("<|system|>", "<|sistem|>"))
    elif content == "id too large":
        changed = json.loads(whole)
        last = max(changed["model"]["vocab"], key=changed["model"]["vocab"].__getitem__)
        changed["model"]["vocab"][last] = 5000
        path.write_text(json.dumps(changed))
    elif content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=said) as refused:
        Encoder(tmp_path)
    assert str(path) in str(refused.value)
