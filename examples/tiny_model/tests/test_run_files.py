"""The files of a training: written whole or not at all, and read only where they hold what they should."""

import shutil
from pathlib import Path

import pytest
import torch
from tiny_model.training.batches import Encoder
from tiny_model.training.network import Network, Shape, load_llama
from tiny_model.training.run_files import (
    Progress,
    begin_from,
    check_output,
    read_checkpoint,
    read_state,
    write_checkpoint,
)
from training_runs import SMALL, TINY, write_small_state

from rtlang.model.loading.quantized import float_state


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


def test_a_checkpoint_of_fewer_layers_is_read_as_one_that_says_the_same(tmp_path: Path) -> None:
    shallow = Path(shutil.copytree(TINY, tmp_path / "shallow"))
    (shallow / "model.safetensors").unlink()
    network = Network(Shape(num_layers=5), seed=3)
    with torch.no_grad():
        for weight in (network.o, network.down):
            weight.normal_(generator=torch.Generator().manual_seed(4), std=0.05)
    write_checkpoint(network, Encoder(shallow), shallow)
    weights, _ = read_checkpoint(shallow)
    deep = Network(Shape())
    load_llama(deep, weights)
    load_llama(network, float_state([shallow / "model.safetensors"], torch.float32))
    token_ids = torch.randint(Shape().vocab_size, (2, 19), generator=torch.Generator().manual_seed(7))
    with torch.inference_mode():
        torch.testing.assert_close(deep(token_ids), network(token_ids), rtol=0, atol=0)
