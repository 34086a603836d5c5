"""The distribution rtlang-kernels: its first example runs, and its wheel holds the package alone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"


@pytest.mark.long  # .ci/run runs it, from the wheel
def test_the_first_example_of_the_readme_runs() -> None:
    example = re.search(r"```python\n(.*?)```", (KERNELS / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    command = [sys.executable, "-P", "-c", example[1]]
    done = subprocess.run(command, env={"PYTHONPATH": str(KERNELS)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("torch.Size([2, 4, 64])")
    tokens = ast.literal_eval(done.stdout.partition("])")[2].strip())
    assert set(tokens) <= {7, 42, 99}


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
