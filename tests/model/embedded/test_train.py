"""Training: what the loss counts, the learning rate, and runs that are resumed."""

import random
import shutil
from itertools import islice
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from rtlang.model.embedded import train as training
from rtlang.model.embedded.corpus import documents, pieces
from rtlang.model.embedded.network import Network, Shape
from rtlang.model.embedded.optimizer import Optimizer
from rtlang.model.embedded.train import (
    MAX_ANSWER_WEIGHT,
    MICROBATCH_TOKENS,
    PLAIN_ANSWER_TOKENS,
    PROMPT_LOSS_WEIGHT,
    STARTED_PEAK,
    Encoder,
    Gradients,
    answer_weight,
    loss_of,
    microbatches,
    rate_at,
)
from rtlang.model.quantized import float_state

TINY = Path(__file__).parents[3] / "rtlang" / "model" / "embedded" / "tiny"
SMALL = Shape(hidden_size=32, num_layers=1, num_q_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=48)


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
    assert rate_at(0.0, is_started=True) < 0.1
    assert STARTED_PEAK > rate_at(0.02, is_started=True) > rate_at(0.3, is_started=True) > 0.0
    assert rate_at(1.0, is_started=True) == 0.0


def test_training_starts_from_the_weights_and_the_tokenizer_of_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    monkeypatch.setattr(training, "rate_at", lambda *_, **__: 0.0)  # so that the weights stay
    monkeypatch.setattr(training, "MICROBATCH_TOKENS", 64)
    training.train(1e-4, tmp_path / "state", tmp_path, 5, start=TINY)
    for name in training.TOKENIZER_FILES:
        assert (tmp_path / name).read_bytes() == (TINY / name).read_bytes()
    shipped = float_state([TINY / "model.safetensors"], torch.float32)
    written = float_state([tmp_path / "model.safetensors"], torch.float32)
    assert written.keys() == shipped.keys()
    for name, weight in shipped.items():  # bfloat16 between two times int8
        torch.testing.assert_close(
            written[name].float(), weight.float(), rtol=0.01, atol=0.01 * float(weight.abs().max())
        )


def test_a_start_that_does_not_fit_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = tmp_path / "start"
    shutil.copytree(TINY, start)
    given = ["--state", str(tmp_path / "state"), "--output", str(tmp_path / "output"), "--start"]
    (start / "model.safetensors").write_bytes(b"no tensors")
    (tmp_path / "empty").mkdir()
    for folder, said in (
        (start, "model.safetensors does not fit"),
        (tmp_path / "empty", "has no model.safetensors"),
        (tmp_path / "output", "has no model.safetensors"),
    ):
        with pytest.raises(SystemExit) as ended:
            training.main([*given, str(folder)])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        training.main(["--state", str(tmp_path / "state"), "--output", str(TINY), "--start", str(TINY)])
    assert "would be overwritten" in capsys.readouterr().err


def test_a_few_steps_lower_the_loss(encoder: Encoder) -> None:
    network = Network(SMALL, seed=1).bfloat16()
    optimizer, batch = Optimizer(network), next(microbatches(encoder, 6))
    losses = []
    for _ in range(16):
        loss, total = loss_of(network, *batch)
        torch.autograd.backward(loss / total)
        optimizer.step(1.0)
        losses.append(loss.item() / total.item())
    assert losses[-1] < losses[0] - 1.0


def test_two_processes_give_the_mean_gradient_of_their_microbatches(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")  # in the other process; compiling would take longer than the test
    network, alone = Network(SMALL, seed=1).bfloat16(), Network(SMALL, seed=1)
    counts = Gradients(network, TINY, 30, 2).step()
    batches = [next(microbatches(encoder, seed)) for seed in (30, 30 + 500_009)]
    losses = [loss_of(alone, *batch) for batch in batches]
    weight = sum(float(total) for _, total in losses)
    assert counts.num_tokens == sum(token_ids.numel() for token_ids, _ in batches)
    assert counts.weight == pytest.approx(weight)
    torch.autograd.backward((losses[0][0] + losses[1][0]) / weight)
    for ours, right in zip(network.parameters(), alone.parameters(), strict=True):
        assert ours.grad is not None
        assert right.grad is not None
        cosine = torch.nn.functional.cosine_similarity(ours.grad.float().flatten(), right.grad.flatten(), dim=0)
        assert cosine > 0.99 or right.grad.norm() < 1e-6


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
        ("--processes", "0"),
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
    assert begun == [(1.0, tmp_path / "a" / "state", tmp_path / "output", 1, 2, None)]
    assert not list((tmp_path / "output").iterdir())


def test_an_interrupted_training_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", interrupted)
    state = tmp_path / "state"
    with pytest.raises(SystemExit) as ended:
        training.main(["--state", str(state), "--output", str(tmp_path / "output")])
    assert ended.value.code == 130
    assert f"last saved in {state}" in capsys.readouterr().err
