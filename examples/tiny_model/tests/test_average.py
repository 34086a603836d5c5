"""The mean of two checkpoints, held to one computed from what the files hold."""

import shutil
from pathlib import Path

import pytest
import torch
from tiny_model.training.average import main
from tiny_model.training.batches import Encoder
from tiny_model.training.network import Network, Shape
from tiny_model.training.run_files import TOKENIZER_FILES, write_checkpoint
from training_runs import TINY

from rtlang.model.loading.quantized import float_state


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A checkpoint of random weights with the tokenizer of the one in the package."""
    folder = tmp_path / "other"
    folder.mkdir()
    for name in TOKENIZER_FILES:
        shutil.copyfile(TINY / name, folder / name)
    write_checkpoint(Network(Shape(), seed=3), Encoder(folder), folder)
    return folder


@pytest.mark.parametrize("share", [None, 0.25])
def test_the_weights_are_the_mean_within_a_step_of_int8(other: Path, tmp_path: Path, share: float | None) -> None:
    output = tmp_path / "new" / "output"
    main([str(TINY), str(other), "--output", str(output), *([] if share is None else ["--share", str(share)])])
    of_second = 0.5 if share is None else share
    files = [folder / "model.safetensors" for folder in (TINY, other, output)]
    first, second, written = (float_state([path], torch.float64) for path in files)
    assert written.keys() == first.keys()
    for name, weight in written.items():
        right = (1 - of_second) * first[name] + of_second * second[name]
        torch.testing.assert_close(weight, right, rtol=0.005, atol=0.005 * float(right.abs().max()))
    for name in (*TOKENIZER_FILES, "config.json", "generation_config.json"):
        assert (output / name).read_bytes() == (TINY / name).read_bytes()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("share", "--share is from 0 to 1"),
        ("overwrites", "would overwrite"),
        ("missing", "nowhere"),
        ("tokenizer", "are not the same"),
        ("output", "output"),
        ("sharded output", "belongs to another checkpoint"),
        ("used output", "holds a checkpoint already"),
    ],
)
def test_what_cannot_be_averaged_is_refused(
    what: str, said: str, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(TINY), str(other), "--output", str(tmp_path / "output")]
    match what:
        case "share":
            arguments += ["--share", "1.5"]
        case "overwrites":
            arguments[3] = str(other)
        case "missing":
            arguments[1] = str(tmp_path / "nowhere")
        case "tokenizer":
            path = other / "tokenizer.json"
            path.write_text(path.read_text() + "\n")
        case "sharded output" | "used output":
            (tmp_path / "output").mkdir()
            theirs = "model.safetensors" if what == "used output" else "model.safetensors.index.json"
            (tmp_path / "output" / theirs).touch()
            (tmp_path / "output" / "tokenizer.json").write_text("theirs")
        case "output":
            (tmp_path / "output").touch()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    if what in ("sharded output", "used output"):
        assert (tmp_path / "output" / "tokenizer.json").read_text() == "theirs"
