"""Training: encoded batches, the learning rate, a falling loss, and runs that are resumed or begin with a checkpoint."""

import random
import shutil
from itertools import islice
from pathlib import Path

import pytest
import torch
from tiny_model.corpus.documents import documents, pieces
from tiny_model.training import batches as batching
from tiny_model.training import train as training
from tiny_model.training.batches import (
    MAX_ANSWER_WEIGHT,
    MICROBATCH_TOKENS,
    PLAIN_ANSWER_TOKENS,
    PROMPT_LOSS_WEIGHT,
    Encoder,
    answer_weight,
    microbatches,
)
from tiny_model.training.network import Network, Shape
from tiny_model.training.optimizer import Optimizer
from tiny_model.training.run_files import TOKENIZER_FILES, float_weights
from tiny_model.training.train import FROM_CHECKPOINT_PEAK, loss_of, rate_at
from tiny_support import SMALL, TINY
from tokenizers import Tokenizer


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


def test_the_learning_rate_rises_stays_and_ends_at_zero() -> None:
    assert rate_at(0.0) < 0.1
    assert rate_at(0.2) == 1.0
    assert rate_at(1.0) == 0.0
    assert rate_at(0.5) > rate_at(0.9) > 0.0


def test_trained_weights_go_on_at_a_lower_rate_that_falls_at_once() -> None:
    assert rate_at(0.0, from_checkpoint=True) < 0.1
    assert FROM_CHECKPOINT_PEAK > rate_at(0.02, from_checkpoint=True) > rate_at(0.3, from_checkpoint=True) > 0.0
    assert rate_at(1.0, from_checkpoint=True) == 0.0


def test_a_few_steps_lower_the_loss(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "POOL_DOCUMENTS", 64)
    monkeypatch.setattr(batching, "MICROBATCH_TOKENS", 1024)
    network = Network(SMALL, seed=1).bfloat16()
    optimizer, batch = Optimizer(network), next(microbatches(encoder, 6))
    losses = []
    for _ in range(8):
        loss, total = loss_of(network, *batch)
        torch.autograd.backward(loss / total)
        optimizer.step(1.0)
        losses.append(loss.item() / total.item())
    assert losses[-1] < losses[0] - 0.5


def test_wrong_numbers_and_folders_are_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[tuple[object, ...]] = []
    monkeypatch.setattr(training, "train", lambda *given: begun.append(given))
    (tmp_path / "file").touch()
    good = {"--minutes": "1", "--state": str(tmp_path / "a" / "state"), "--output": str(tmp_path / "output")}
    for name, value in (
        ("--minutes", "0"),
        ("--minutes", "nan"),
        ("--minutes", "inf"),
        ("--processes", "0"),
        ("--seed", "-1"),
        ("--seed", str(2**70)),
        ("--state", str(tmp_path / "file")),
        ("--output", str(tmp_path / "file" / "below")),
    ):
        with pytest.raises(SystemExit) as ended:
            training.main([part for pair in {**good, name: value}.items() for part in pair])
        assert ended.value.code == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert name in said or value in said
    assert not begun
    training.main(["--processes", "2", *(part for pair in good.items() for part in pair)])
    assert begun == [(1.0, tmp_path / "a" / "state", tmp_path / "output", None, 2)]
    assert not list((tmp_path / "output").iterdir())


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A copy of the weights in the package."""
    return Path(shutil.copytree(TINY, tmp_path / "start"))


def test_training_goes_on_from_a_checkpoint_and_then_from_its_own_state(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags: list[bool] = []

    def no_rate(_: float, *, from_checkpoint: bool) -> float:
        flags.append(from_checkpoint)
        return 0.0  # so that the weights stay

    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    monkeypatch.setattr(training, "rate_at", no_rate)
    monkeypatch.setattr(batching, "MICROBATCH_TOKENS", 64)
    monkeypatch.setattr(batching, "POOL_DOCUMENTS", 64)
    state, output = tmp_path / "state", tmp_path / "output"
    arguments = ["--state", str(state), "--output", str(output), "--seed", "5", "--minutes"]
    training.main([*arguments, "1e-4", "--start", str(start)])
    for name in TOKENIZER_FILES:
        assert (output / name).read_bytes() == (start / name).read_bytes()
    shipped, written = (float_weights(folder / "model.safetensors") for folder in (start, output))
    assert written.keys() == shipped.keys()
    for name, weight in shipped.items():  # bfloat16 between two times int8
        spread = 0.01 * float(weight.abs().max())
        torch.testing.assert_close(written[name].float(), weight.float(), rtol=0.01, atol=spread)
    shutil.rmtree(start)  # is not read again
    spent = torch.load(state / "training.pt", weights_only=True)["spent"]
    training.main([*arguments, str(spent / 60 + 1e-4)])
    assert torch.load(state / "training.pt", weights_only=True)["spent"] > spent
    assert all(flags)
    assert len(flags) >= 2
