"""The identity of a model changes with its files and formats."""

from __future__ import annotations

import shutil
from pathlib import Path

from rtlang.contract.config import RuntimeConfig
from rtlang.model.identity import model_identity
from rtlang.model.loader import model_directory


def test_it_follows_from_the_files_and_the_number_formats(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model_directory("rtlang:tiny"), folder)
    config = RuntimeConfig(model=str(folder))
    first = model_identity(config)
    assert first.startswith("model@")
    assert model_identity(config) == first
    assert model_identity(RuntimeConfig(model=str(folder), max_rows=3)) == first  # no effect on texts
    seen = {first, model_identity(RuntimeConfig(model=str(folder), dtype="bfloat16"))}
    seen.add(model_identity(RuntimeConfig(model=str(folder), linear_inputs="float")))
    seen.add(model_identity(RuntimeConfig(model=str(folder), weights="dummy")))
    seen.add(model_identity(RuntimeConfig(model=str(folder), weights="dummy", weights_seed=1)))
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    seen.add(model_identity(config))
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    seen.add(model_identity(config))
    assert len(seen) == 7


def test_a_script_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("a")
    first = model_identity(RuntimeConfig(model=f"script:{path}"))
    path.write_text("b")
    assert first.startswith("script.yaml@")
    assert model_identity(RuntimeConfig(model=f"script:{path}")) != first
