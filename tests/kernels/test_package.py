"""The distribution rtlang-kernels: its first example runs, its dependencies are those it imports, its wheel holds the package alone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"


def imported_libraries() -> set[str]:
    """Top-level names of other libraries that the package imports."""
    found = set()
    for path in (KERNELS / "rtlang_kernels").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(str(node.module).split(".")[0])
    return found - sys.stdlib_module_names - {"rtlang_kernels"}


def test_the_first_example_of_the_readme_runs() -> None:
    example = re.search(r"```python\n(.*?)```", (KERNELS / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    command = [sys.executable, "-P", "-c", example[1]]
    done = subprocess.run(command, env={"PYTHONPATH": str(KERNELS)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("torch.Size([2, 4, 64])")
    tokens = ast.literal_eval(done.stdout.partition("])")[2].strip())
    assert set(tokens) <= {7, 42, 99}


def test_dependencies_are_the_imported_libraries() -> None:
    with (KERNELS / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    required = {re.split(r"\W", name)[0] for name in project["dependencies"]}
    optional = {re.split(r"\W", name)[0] for name in project["optional-dependencies"]["gpu"]}
    assert required == imported_libraries() - {"triton"}
    assert optional == {"triton"}


def test_the_version_is_that_of_the_product() -> None:
    versions = []
    for folder in (ROOT, KERNELS):
        with (folder / "pyproject.toml").open("rb") as file:
            versions.append(tomllib.load(file)["project"]["version"])
    assert versions[0] == versions[1]


def test_the_wheel_holds_the_package_without_benchmarks(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=KERNELS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("rtlang_kernels-*.whl")
    carried = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = (
        path for path in (KERNELS / "rtlang_kernels").rglob("*") if path.suffix == ".py" or path.name == "py.typed"
    )
    assert carried == {path.relative_to(KERNELS).as_posix() for path in sources}
