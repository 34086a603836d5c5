"""Models that are rounded with one call: they load, nothing is left of a failure, and errors name what to change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.contract.errors import ConfigError, ModelLoadError
from rtlang.model.quantization import quantize
from rtlang.model.quantization.comparison import Difference
from rtlang.model.quantization.quantize import QuantizationReport, quantized_checkpoint
from rtlang.model.quantization.rounding import Rounding
from tests.support.models.real_weights import real_model

TEXT = "The sea was calm, and the ship went on to the north. " * 4


def made(out: Path, rounding: Rounding, calibration: str | None = None) -> QuantizationReport:
    return quantized_checkpoint(EMBEDDED_MODEL, out, rounding, calibration=calibration, text=TEXT)


def test_the_embedded_model_is_halved_and_stays_near(tmp_path: Path) -> None:
    report = made(tmp_path / "out", Rounding(4, 32))
    assert report.num_bytes < 0.75 * report.source_bytes  # an int8 checkpoint, whose embedding stays
    assert report.predictions is not None
    assert 0 < report.predictions.divergence < 0.2
    assert report.predictions.agreement > 0.75
    assert all(0 < each.error < 0.15 for each in report.matrices)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["quantization_config"]["format"] == "pack-quantized"
    assert (tmp_path / "out" / "tokenizer.json").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert json.dumps(report.to_plain())


def test_a_calibration_scales_channels_and_more_bits_are_nearer(tmp_path: Path) -> None:
    plain = made(tmp_path / "a", Rounding(4, 64)).predictions
    scaled = made(tmp_path / "b", Rounding(4, 64), calibration=TEXT * 3)
    fine = made(tmp_path / "c", Rounding(8, 64)).predictions
    assert scaled.is_scaled
    assert plain is not None
    assert fine is not None
    assert scaled.predictions is not None
    assert scaled.predictions.divergence < plain.divergence
    assert fine.divergence < 0.1 * plain.divergence


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(quantize, "copy_other_files", fails)
    with pytest.raises(OSError, match="no space"):
        made(tmp_path / "out", Rounding(8, 32))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_files_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for out in (tmp_path, *(tmp_path / name for name in ("file", "link", "dangling"))):
        with pytest.raises(ConfigError, match="does not exist or is empty"):
            made(out, Rounding(4, 32))
    with pytest.raises(ConfigError, match="several tokens"):
        quantized_checkpoint(EMBEDDED_MODEL, tmp_path / "out", Rounding(4, 32), text="")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelLoadError, match="GGUF file cannot be rounded again"):
        quantized_checkpoint(str(tmp_path / "model.gguf"), tmp_path / "out", Rounding(4, 32))
    with pytest.raises(ModelLoadError, match="no such directory"):
        quantized_checkpoint(str(tmp_path / "none"), tmp_path / "out", Rounding(4, 32))


def near_published_weights(out: Path, calibration: str | None) -> Difference:
    source, text = str(real_model("smollm2")), TEXT + "Paris is in France."
    report = quantized_checkpoint(source, out, Rounding(4, 32), calibration=calibration, text=text)
    assert report.predictions is not None
    print(report.predictions)
    return report.predictions


@pytest.mark.slow
def test_published_weights_stay_near_their_predictions(tmp_path: Path) -> None:
    assert near_published_weights(tmp_path / "out", None).divergence < 0.4


@pytest.mark.slow
@pytest.mark.long
def test_a_calibration_brings_published_weights_nearer(tmp_path: Path) -> None:
    calibration = TEXT + "def add(a, b):\n    return a + b\n" * 8
    assert near_published_weights(tmp_path / "out", calibration).divergence < 0.15
