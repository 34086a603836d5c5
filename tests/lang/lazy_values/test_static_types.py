"""Type checkers on programs: a realistic file is accepted, and a file of wrong uses is refused at each marked line and nowhere else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = Path(__file__).parent / "typed_files"
PATHS = [ROOT, ROOT / "grammars", ROOT / "kernels"]
LIBRARIES = (
    "torch",
    "numpy",
    "transformers",
    "tokenizers",
    "safetensors",
    "numba",
    "msgpack",
    "starlette",
    "websockets",
)
"""Libraries that the programs do not touch, and that take most of the time."""

Line = tuple[str, int]
"""A file's name and the number of a line."""


def mypy(files: Sequence[Path], scratch: Path) -> set[Line]:
    """The lines that `mypy --strict` refuses."""
    pytest.importorskip("mypy")
    config = scratch / "mypy.ini"
    skipped = ",".join(f"{name}.*" for name in LIBRARIES)
    config.write_text(
        f"[mypy]\nstrict = True\nfollow_imports = silent\nmypy_path = {':'.join(map(str, PATHS))}\n"
        f"[mypy-{skipped}]\nfollow_imports = skip\nignore_missing_imports = True\n"
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        config,
        "--cache-dir",
        scratch / "cache",
        "-O",
        "json",
        *files,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {(Path(each["file"]).name, each["line"]) for each in found if each["severity"] == "error"}


def pyright(files: Sequence[Path], scratch: Path) -> set[Line]:
    """The lines that pyright refuses. basedpyright is pyright with its JavaScript in a wheel; the mode is that of pyright."""
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    config = scratch / "pyrightconfig.json"
    options = {
        "include": [str(file) for file in files],
        "extraPaths": [str(path) for path in PATHS],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
    }
    config.write_text(json.dumps(options))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", "-p", config]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(files)
    found = [each for each in report["generalDiagnostics"] if each["severity"] == "error"]
    return {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found}


@pytest.mark.slow
@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_type_checker_refuses_the_marked_lines_only(
    check: Callable[[Sequence[Path], Path], set[Line]], tmp_path: Path
) -> None:
    files = [FILES / "accepted.py", FILES / "refused.py"]
    marked = {
        (file.name, number)
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.endswith("# refused")
    }
    assert {name for name, _ in marked} == {"refused.py"}
    assert check(files, tmp_path) == marked
