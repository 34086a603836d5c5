"""Checkpoints: written files load in rtlang and generate, runs are not mixed, and averages are means."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from tiny_model.corpus.documents import CHAT_TEMPLATE, END, SPECIAL_TOKENS
from tiny_model.training.average import main
from tiny_model.training.batches import Encoder
from tiny_model.training.network import Network, Shape, llama_config
from tiny_model.training.optimizer import Optimizer
from tiny_model.training.run_files import (
    TOKENIZER_FILES,
    Progress,
    begin_from,
    check_folders,
    check_output,
    float_weights,
    read_state,
    write_checkpoint,
    write_state,
)
from tiny_support import SMALL, TINY
from tokenizers import Tokenizer

import rtlang as rt

TOKENIZER = Tokenizer.from_file(str(TINY / "tokenizer.json"))


def write_small_state(state: Path, progress: Progress) -> None:
    """Write the state of a run of an untrained small network."""
    write_state(state / "training.pt", Optimizer(Network(SMALL)), progress)


@rt.program
def say(s: rt.State, question: str) -> str:
    s += rt.user(question)
    s += rt.assistant(rt.gen("answer", regex="[a-z]{3,8}", max_tokens=12, temperature=0.0))
    return str(s["answer"])


def test_a_written_checkpoint_loads_in_rtlang_and_generates(tmp_path: Path) -> None:
    for name in TOKENIZER_FILES:
        shutil.copyfile(TINY / name, tmp_path / name)
    write_checkpoint(Network(SMALL, seed=3), Encoder(tmp_path), tmp_path, "one")
    with rt.Runtime(model=str(tmp_path), dtype="float32", num_threads=1, cache_bytes=64 << 20) as runtime:
        result = say.run(question="Say a word.", runtime=runtime)
    assert result.error is None
    assert 3 <= len(result.value) <= 8
    assert result.value.isalpha()


def test_the_shipped_configuration_is_the_one_that_training_writes() -> None:
    config = json.loads((TINY / "config.json").read_text())
    eos, pad = TOKENIZER.token_to_id(END), TOKENIZER.token_to_id(SPECIAL_TOKENS[0])
    assert config == llama_config(Shape(), eos_token_id=eos, pad_token_id=pad)
    assert json.loads((TINY / "generation_config.json").read_text())["eos_token_id"] == eos
    assert TOKENIZER.get_vocab_size() == Shape().vocab_size
    assert json.loads((TINY / "tokenizer_config.json").read_text())["chat_template"] == CHAT_TEMPLATE


def test_a_name_has_the_same_tokens_in_prose_and_in_json() -> None:
    name = TOKENIZER.encode("Brakoshou").ids
    for text in ("Ask Brakoshou, please.", '{"name": "Brakoshou", "age": 3}', "Brakoshou", "\nBrakoshou\n"):
        ids = TOKENIZER.encode(text).ids
        assert any(ids[start : start + len(name)] == name for start in range(len(ids)))


def test_every_digit_is_a_token_of_its_own() -> None:
    assert TOKENIZER.encode("4711").tokens == ["4", "7", "1", "1"]


def test_a_checkpoint_is_for_the_run_that_wrote_it(tmp_path: Path) -> None:
    check_output(tmp_path)
    write_checkpoint(Network(SMALL), Encoder(TINY), tmp_path, "one")
    write_checkpoint(Network(SMALL), Encoder(TINY), tmp_path, "one")
    for run in (None, "", "two"):
        with pytest.raises(ValueError, match="holds a checkpoint already, of another run"):
            check_output(tmp_path, run)
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "config.json").stat().st_mode


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_state(tmp_path, Progress(spent=1.0))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "training.pt").symlink_to(tmp_path / "training.pt")
    write_small_state(tmp_path / "linked", Progress(spent=2.0))
    assert (tmp_path / "linked" / "training.pt").is_symlink()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"training\.pt cannot be written: No space left"):
        write_small_state(tmp_path, Progress(spent=3.0))
    assert {file.name for file in tmp_path.iterdir()} == {"training.pt", "linked"}
    assert read_state(tmp_path / "training.pt")[1].spent == 2.0


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    start = Path(shutil.copytree(TINY, tmp_path / "start"))
    network = Network(Shape(), seed=3)
    with torch.no_grad():
        network.final_norm[0] = float("nan")
    write_checkpoint(network, Encoder(start), start)
    with pytest.raises(ValueError, match=r"model\.safetensors has numbers in model\.norm\.weight that are not finite"):
        begin_from(start, tmp_path / "state", tmp_path / "output", seed=5)
    assert {path.name for path in tmp_path.iterdir()} == {"start"}


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (None, "is not what a training wrote"),
        (Progress(), "began without --start"),
        (Progress(start="/elsewhere"), "began with --start /elsewhere"),
        (Progress(start=str(TINY.resolve()), tokenizer="0"), "is not the tokenizer of the run"),
    ],
    ids=["damaged", "other beginning", "other start", "other tokenizer"],
)
def test_a_state_of_another_run_is_refused(progress: Progress | None, said: str, tmp_path: Path) -> None:
    if progress is None:
        (tmp_path / "training.pt").write_bytes(b"nothing")
    else:
        write_small_state(tmp_path, progress)
    with pytest.raises(ValueError, match=said):
        check_folders(tmp_path, tmp_path / "output", TINY)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A checkpoint of random weights with the tokenizer of the one in the package."""
    folder = tmp_path / "other"
    folder.mkdir()
    for name in TOKENIZER_FILES:
        shutil.copyfile(TINY / name, folder / name)
    write_checkpoint(Network(Shape(), seed=3), Encoder(folder), folder)
    return folder


def test_the_average_is_the_mean_within_a_step_of_int8(other: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "output"
    main([str(TINY), str(other), "--output", str(output), "--share", "0.25"])
    files = [folder / "model.safetensors" for folder in (TINY, other, output)]
    first, second, written = map(float_weights, files)
    assert written.keys() == first.keys()
    for name, weight in written.items():
        right = 0.75 * first[name] + 0.25 * second[name]
        torch.testing.assert_close(weight, right, rtol=0.005, atol=0.005 * float(right.abs().max()))
    for name in (*TOKENIZER_FILES, "config.json", "generation_config.json"):
        assert (output / name).read_bytes() == (TINY / name).read_bytes()


def test_an_average_that_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used, fresh, missing = tmp_path / "used", str(tmp_path / "fresh"), str(tmp_path / "nowhere")
    used.mkdir()
    (used / "model.safetensors").touch()
    for arguments, said in (
        ([str(TINY), str(TINY), "--output", fresh, "--share", "1.5"], "--share is from 0 to 1"),
        ([str(TINY), str(TINY), "--output", str(TINY)], "would overwrite"),
        ([str(TINY), missing, "--output", fresh], "nowhere"),
        ([str(TINY), str(TINY), "--output", str(used)], "holds a checkpoint already"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert said in capsys.readouterr().err.splitlines()[-1]
    assert not (used / "tokenizer.json").exists()
