"""Type checkers on programs: realistic files are accepted, and files of wrong uses are refused at each marked line and nowhere else.

The snippets of the documentation and the examples are realistic files, too. Their programs need no annotations.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.programs.snippets import ROOT, WITH_SNIPPETS, snippets_of

FILES = Path(__file__).parent / "typed_files"
PATHS = [ROOT, ROOT / "grammars", ROOT / "kernels", ROOT / "examples"]
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

LENIENT = """\
disallow_any_generics = False
disallow_subclassing_any = False
disallow_untyped_calls = False
disallow_untyped_defs = False
disallow_incomplete_defs = False
disallow_untyped_decorators = False
warn_return_any = False
warn_unused_ignores = False
implicit_reexport = True
strict_equality = False
extra_checks = False
allow_redefinition = True
disable_error_code = var-annotated, no-redef
"""
"""What turns the strict mode of mypy off for a file. The package is checked in it for all files, so that one cache is for all."""

Line = tuple[str, int]
"""A file's name and the number of a line."""


def mypy(files: Sequence[Path], scratch: Path, *, is_strict: bool = True) -> set[Line]:
    """The lines that mypy refuses; `is_strict`: in its strict mode. What it finds of the package is kept in the folder `scratch`."""
    pytest.importorskip("mypy")
    config = scratch / "mypy.ini"
    skipped = ",".join(f"{name}.*" for name in LIBRARIES)
    config.write_text(
        f"[mypy]\nstrict = True\nfollow_imports = silent\nmypy_path = {':'.join(map(str, PATHS))}\n"
        f"[mypy-{skipped}]\nfollow_imports = skip\nignore_missing_imports = True\n"
        + ("" if is_strict else f"[mypy-{','.join(file.stem for file in files)}]\n{LENIENT}")
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


def pyright(files: Sequence[Path], scratch: Path, *, is_strict: bool = True) -> set[Line]:
    """The lines that pyright refuses. basedpyright is pyright with its JavaScript in a wheel; the mode is that of pyright.

    Args:
        is_strict: refuse variables that a branch may leave undefined, and functions that replace others.
    """
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    config = scratch / "pyrightconfig.json"
    options = {
        "include": [str(file) for file in files],
        "extraPaths": [str(path) for path in PATHS],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
        "reportPossiblyUnboundVariable": is_strict,
        "reportRedeclaration": is_strict,
    }
    config.write_text(json.dumps(options))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", "-p", config]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(files)
    found = [each for each in report["generalDiagnostics"] if each["severity"] == "error"]
    return {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


@pytest.mark.slow
@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_type_checker_refuses_the_marked_lines_only(
    check: Callable[[Sequence[Path], Path], set[Line]], scratch: Path
) -> None:
    files = [FILES / "accepted.py", FILES / "mistakes.py", FILES / "refused.py"]
    marked = {
        (file.name, number)
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.endswith("# refused")
    }
    assert {name for name, _ in marked} == {"mistakes.py", "refused.py"}
    assert sum(name == "mistakes.py" for name, _ in marked) >= 23
    assert check(files, scratch) == marked


def page_files(scratch: Path) -> list[Path]:
    """The snippets of each page of the documentation, at their lines in a file of their own."""
    files = []
    for page in WITH_SNIPPETS:
        lines = [""] * (page.read_text(encoding="utf-8").count("\n") + 2)
        for snippet in snippets_of(page):
            if snippet.reason is None:
                source = snippet.source.splitlines()
                lines[snippet.line - 1 : snippet.line - 1 + len(source)] = source
        file = scratch / f"{page.stem.replace('-', '_')}_page.py"
        file.write_text("\n".join(lines), encoding="utf-8")
        files.append(file)
    return [file for file in files if file.name != "protocol_v1_page.py"]  # a client without this package


@pytest.mark.slow
@pytest.mark.parametrize("check", [pytest.param(mypy, marks=pytest.mark.long), pyright])
def test_a_type_checker_accepts_the_documentation_and_the_examples(
    check: Callable[..., set[Line]], scratch: Path
) -> None:
    examples = sorted((ROOT / "examples").glob("*.py"))
    assert check([*page_files(scratch), *examples], scratch, is_strict=False) == set()
