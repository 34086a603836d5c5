"""Training: the learning rate, gradients of several processes, and runs that are resumed or begin with a checkpoint."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from filelock import FileLock
from tiny_model.training import batches as batching
from tiny_model.training import run_files
from tiny_model.training import train as training
from tiny_model.training.batches import Encoder, microbatches
from tiny_model.training.network import Network, Shape
from tiny_model.training.optimizer import Optimizer
from tiny_model.training.run_files import (
    TOKENIZER_FILES,
    Progress,
    begin_from,
    hash_of,
    read_state,
    write_checkpoint,
    write_state,
)
from tiny_model.training.train import FROM_CHECKPOINT_PEAK, Gradients, TrainingError, loss_of, rate_at
from training_runs import SMALL, TINY, write_small_state

from rtlang.model.loading.quantized import float_state


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(TINY)


def test_the_learning_rate_rises_stays_and_ends_at_zero() -> None:
    assert rate_at(0.0) < 0.1
    assert rate_at(0.2) == 1.0
    assert rate_at(1.0) == 0.0
    assert rate_at(0.5) > rate_at(0.9) > 0.0


def test_trained_weights_go_on_at_a_lower_rate_that_falls_at_once() -> None:
    assert rate_at(0.0, from_checkpoint=True) < 0.1
    assert FROM_CHECKPOINT_PEAK > rate_at(0.02, from_checkpoint=True) > rate_at(0.3, from_checkpoint=True) > 0.0
    assert rate_at(1.0, from_checkpoint=True) == 0.0


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
    state, output = tmp_path / "state", tmp_path / "output"
    arguments = ["--state", str(state), "--output", str(output), "--seed", "5", "--minutes"]
    training.main([*arguments, "1e-4", "--start", str(start)])
    for name in TOKENIZER_FILES:
        assert (output / name).read_bytes() == (start / name).read_bytes()
    shipped = float_state([start / "model.safetensors"], torch.float32)
    written = float_state([output / "model.safetensors"], torch.float32)
    assert written.keys() == shipped.keys()
    for name, weight in shipped.items():  # bfloat16 between two times int8
        spread = 0.01 * float(weight.abs().max())
        torch.testing.assert_close(written[name].float(), weight.float(), rtol=0.01, atol=spread)
    shutil.rmtree(start)  # is not read again
    for further in (["--start", str(start)], []):
        spent = torch.load(state / "training.pt", weights_only=True)["spent"]
        training.main([*arguments, str(spent / 60 + 1e-4), *further])
        assert torch.load(state / "training.pt", weights_only=True)["spent"] > spent
    assert all(flags)
    assert len(flags) >= 3


def arguments_of(state: Path, output: Path, start: Path) -> list[str]:
    return ["--state", str(state), "--output", str(output), "--start", str(start), "--seed", "5"]


def other_heads(start: Path) -> None:
    config = json.loads((start / "config.json").read_text())
    (start / "config.json").write_text(json.dumps({**config, "num_attention_heads": 8, "head_dim": 32}))


def other_layers(start: Path) -> None:
    config = json.loads((start / "config.json").read_text())
    (start / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 99}))


def fewer_layers_than_config(start: Path) -> None:
    path = start / "model.safetensors"
    tensors = safetensors.torch.load(path.read_bytes())
    layers = json.loads((start / "config.json").read_text())["num_hidden_layers"]
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith(f"model.layers.{layers - 1}.")}
    path.write_bytes(safetensors.torch.save(kept))


def no_tensors(start: Path) -> None:
    (start / "model.safetensors").write_bytes(b"no tensors")


def other_special_tokens(start: Path) -> None:
    path = start / "tokenizer.json"
    path.write_text(path.read_text().replace("<|system|>", "<|sistem|>"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_heads, "config.json has head_dim 32; 64 is needed"),
        (other_layers, "num_hidden_layers 99; 1 to 8 is possible"),
        (fewer_layers_than_config, "is missing"),
        (no_tensors, "cannot be gone on from"),
        (other_special_tokens, "has no special token <|system|>"),
        (lambda start: (start / "model.safetensors").unlink(), "model.safetensors"),
        (lambda start: (start / "config.json").write_text("{"), "cannot be gone on from"),
        (lambda start: (start / "config.json").write_text("[]"), "holds no object"),
        (lambda start: (start / "tokenizer.json").unlink(), "tokenizer.json cannot be read"),
        (lambda start: (start / "tokenizer_config.json").unlink(), "tokenizer_config.json"),
    ],
    ids=[
        "heads",
        "layers",
        "fewer layers",
        "tensors",
        "special tokens",
        "no weights",
        "config",
        "list",
        "no tokenizer",
        "no tokenizer config",
    ],
)
def test_a_start_that_does_not_fit_is_refused_and_leaves_nothing(
    change: Callable[[Path], object],
    said: str,
    start: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(training, "train", lambda *_: pytest.fail("training began"))
    change(start)
    output = tmp_path / "output"
    with pytest.raises(SystemExit) as ended:
        training.main(arguments_of(tmp_path / "state", output, start))
    assert ended.value.code == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert said in message
    assert str(start) in message
    assert not list(output.iterdir())
    assert not (tmp_path / "state" / "training.pt").exists()


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "training.lock" and path.exists()}


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("same folder", "would be overwritten"),
        ("no seed", "--start needs a --seed"),
        ("run without start", "began without --start"),
        ("run from elsewhere", "began with --start /elsewhere"),
        ("other output of the run", "is not the tokenizer of the run"),
        ("emptied output of the run", "is not the tokenizer of the run"),
        ("emptied output, resumed alone", "is not the tokenizer of the run"),
        ("output of another run", "is not that of"),
        ("resumed into its start", "would be overwritten"),
        ("no tokenizer config", "no tokenizer_config.json"),
        ("checkpoint that no run wrote", "holds a checkpoint already"),
        ("another run began here", "holds a checkpoint already"),
        ("checkpoint of another run", "holds a checkpoint already"),
        ("checkpoint in several files", "belongs to another checkpoint"),
        ("link to nothing", "is a link to a file that is not there"),
        ("no state", "is not what a training wrote"),
        ("cut off state", "is not what a training wrote"),
    ],
)
def test_runs_are_not_mixed_with_each_other_nor_is_a_start_overwritten(
    what: str,
    said: str,
    start: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(training, "train", lambda *_: pytest.fail("training began"))
    state, output = tmp_path / "state", tmp_path / "output"
    for folder in (state, output):
        folder.mkdir()
    arguments = arguments_of(state, output, start)
    match what:
        case "same folder":
            arguments = arguments_of(state, start, start)
        case "no seed":
            arguments = arguments[:-2]
        case "run without start":
            write_small_state(state, Progress())
        case "run from elsewhere":
            write_small_state(state, Progress(start="/elsewhere"))
        case "other output of the run":
            write_small_state(state, Progress(start=str(start), tokenizer="0"))
            shutil.copyfile(start / "tokenizer.json", output / "tokenizer.json")
        case "emptied output of the run":
            write_small_state(state, Progress(start=str(start), tokenizer="0"))
        case "emptied output, resumed alone":
            write_small_state(state, Progress(start=str(start), tokenizer="0"))
            arguments = ["--state", str(state), "--output", str(output)]
        case "output of another run":
            (output / "tokenizer.json").write_text("{}")
        case "resumed into its start":
            write_small_state(state, Progress(start=str(start), tokenizer=hash_of(start / "tokenizer.json")))
            arguments = ["--state", str(state), "--output", str(start)]
        case "no tokenizer config":
            write_small_state(state, Progress(start=str(start), tokenizer=hash_of(start / "tokenizer.json")))
            shutil.copyfile(start / "tokenizer.json", output / "tokenizer.json")
        case "checkpoint that no run wrote":
            (output / "model.safetensors").write_bytes(b"worth much")
        case "another run began here":
            begin_from(start, tmp_path / "other", output, seed=4)
        case "checkpoint of another run":
            (tmp_path / "own").mkdir()
            begin_from(start, state, tmp_path / "own", seed=5)
            begin_from(start, tmp_path / "other", output, seed=5)
            arguments = ["--state", str(state), "--output", str(output)]
        case "checkpoint in several files":
            (output / "model.safetensors.index.json").write_text("{}")
        case "link to nothing":
            (state / "training.pt").symlink_to(tmp_path / "unmounted")
        case "no state":
            (state / "training.pt").write_bytes(b"nothing")
        case "cut off state":
            write_small_state(state, Progress())
            (state / "training.pt").write_bytes((state / "training.pt").read_bytes()[:-1000])
    before = files_of(state), files_of(output), files_of(start)
    with pytest.raises(SystemExit) as ended:
        training.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert (files_of(state), files_of(output), files_of(start)) == before


def run_of(start: Path, tmp_path: Path, **progress: float) -> tuple[Path, Path]:
    """The state and the output of a run that began with `start`."""
    state, output = tmp_path / "state", tmp_path / "output"
    output.mkdir()
    begin_from(start, state, output, seed=5)
    optimizer_state, begun = read_state(state / "training.pt")
    optimizer = Optimizer(Network(Shape()).bfloat16())
    optimizer.restore(optimizer_state)
    for name, value in progress.items():
        setattr(begun, name, value)
    write_state(state / "training.pt", optimizer, begun)
    return state, output


def test_a_run_whose_budget_is_spent_writes_its_checkpoint_again(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "Gradients", lambda *_: pytest.fail("training began"))
    state, output = run_of(start, tmp_path, spent=100.0)
    (output / "model.safetensors").unlink()
    training.main(["--state", str(state), "--output", str(output), "--minutes", "1"])
    written = float_state([output / "model.safetensors"], torch.float32)
    for name, weight in float_state([start / "model.safetensors"], torch.float32).items():
        spread = 0.01 * float(weight.abs().max())
        torch.testing.assert_close(written[name].float(), weight.float(), rtol=0.01, atol=spread)


@pytest.mark.parametrize("last", range(5))
def test_a_run_killed_while_it_begins_is_begun_again_by_the_same_command(
    last: int, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []
    monkeypatch.setattr(training, "train", lambda *given: begun.append(given))
    arguments, put = arguments_of(tmp_path / "state", tmp_path / "output", start), run_files.put
    written: list[Path] = []

    def put_until_killed(path: Path, content: bytes) -> None:
        if len(written) == last:
            raise KeyboardInterrupt
        put(path, content)
        written.append(path)

    monkeypatch.setattr(run_files, "put", put_until_killed)
    with pytest.raises(SystemExit) as ended:
        training.main(arguments)
    monkeypatch.setattr(run_files, "put", put)
    assert ended.value.code == 130
    assert not begun
    training.main(arguments)
    assert len(begun) == 1


def test_a_resumed_run_keeps_its_seed(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def begun(_network: Network, _output: Path, seed: int, _num_processes: int) -> None:
        seeds.append(seed)
        raise TrainingError("far enough")

    monkeypatch.setattr(training, "Gradients", begun)
    state, output = run_of(start, tmp_path)
    for further in ([], ["--seed", "5"], ["--seed", "6"]):
        with pytest.raises(SystemExit) as ended:
            training.main(["--state", str(state), "--output", str(output), *further])
        assert ended.value.code == 1
    assert seeds[0] == seeds[1] != seeds[2]


def test_a_run_that_does_not_know_its_seed_asks_for_it(
    start: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, output = run_of(start, tmp_path)
    content = torch.load(state / "training.pt", weights_only=True)
    del content["seed"]
    torch.save(content, state / "training.pt")
    with pytest.raises(SystemExit) as ended:
        training.main(["--state", str(state), "--output", str(output)])
    assert ended.value.code == 1
    assert "name it by --seed" in capsys.readouterr().err


def test_two_trainings_do_not_share_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "train", lambda *_: pytest.fail("training began"))
    state = tmp_path / "state"
    state.mkdir()
    with FileLock(state / "training.lock"), pytest.raises(SystemExit) as ended:
        training.main(["--state", str(state), "--output", str(tmp_path / "output")])
    assert ended.value.code == 2
    assert f"{state} is in use by another training" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("loss", "loss nan"),
        ("helper", "a further process"),
        ("shape", "another shape"),
        ("output", "cannot be written"),
        ("other run", "of another run"),
    ],
)
def test_a_training_that_cannot_go_on_says_why_and_keeps_its_state(
    what: str,
    said: str,
    start: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    monkeypatch.setattr(batching, "MICROBATCH_TOKENS", 64)
    state, output = run_of(start, tmp_path)
    arguments = ["--state", str(state), "--output", str(output), "--minutes", "1e-4"]
    match what:
        case "loss":
            monkeypatch.setattr(
                training, "loss_of", lambda *given: (loss_of(*given)[0] * float("nan"), torch.tensor(1.0))
            )
        case "helper":
            monkeypatch.setattr(training, "work", None)
            arguments += ["--processes", "2"]
        case "shape":
            _, progress = read_state(state / "training.pt")
            write_small_state(state, progress)
        case "output":
            (output / "model.safetensors").unlink()
            (output / "model.safetensors").mkdir()
        case "other run":
            monkeypatch.setattr(training, "check_folders", lambda *_: None)  # it came later
            (output / "model.safetensors").unlink()
            write_checkpoint(Network(Shape()), Encoder(output), output, "theirs")
    before = (state / "training.pt").read_bytes()
    with pytest.raises(SystemExit) as ended:
        training.main(arguments)
    assert ended.value.code == 1
    assert said in capsys.readouterr().err
    if what in ("output", "other run"):  # what was trained is in the state
        assert read_state(state / "training.pt")[1].spent > 0
    else:
        assert (state / "training.pt").read_bytes() == before
