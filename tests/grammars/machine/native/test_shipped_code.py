"""Code for the common processors, as wheels have it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from rtlang_grammars.machine.native import code_files, native_code, shipped_code
from rtlang_grammars.machine.native.object_code import HEADER_WORDS, ObjectCode

ROOT = Path(__file__).parents[4]


@pytest.mark.skipif(not llvm.get_process_triple().startswith("x86_64"), reason="LLVM tells the features of x86 there")
def test_llvm_knows_the_features_of_the_common_processors() -> None:
    processor = shipped_code.PROCESSORS["x86_64"]
    assert set(processor.features) <= set(llvm.get_host_cpu_features())


def test_what_was_built_before_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        monkeypatch.setenv(name, "")  # restored afterwards
    monkeypatch.setattr(shipped_code.platform, "machine", lambda: "riscv64")
    assert shipped_code.build(tmp_path / "wheel") == []
    monkeypatch.setattr(shipped_code.platform, "machine", lambda: "x86_64")
    for group in native_code.GROUPS:
        code = ObjectCode(llvm.get_process_triple(), "x86-64-v3", "", HEADER_WORDS, ("a",), group.encode())
        code_files.keep(group, native_code.digest(group), code)
    monkeypatch.setattr(native_code, "compile_group", lambda group: pytest.fail(f"{group} is compiled again"))
    paths = shipped_code.build(tmp_path / "wheel")
    found = [ObjectCode.unpacked(path.read_bytes()) for path in paths]
    assert [code and code.code for code in found] == [group.encode() for group in native_code.GROUPS]


MASKS = """
import json, sys
from rtlang_grammars_bench.first_use import child
from rtlang_grammars.machine.native import native_code
figures = child(None)
print(json.dumps([sorted(figures), "numba" in sys.modules, native_code.__file__]))
"""


@pytest.mark.long
def test_a_wheel_masks_without_a_compiler(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT / "grammars", check=True, capture_output=True, timeout=500)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "installed"), str(ROOT / "grammars" / "benchmarks")]),
        "NUMBA_CACHE_DIR": str(wheel / "no folder"),
        "RTLANG_FIRST_USE_STARTED": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", MASKS], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names, has_numba, file = json.loads(done.stdout)
    assert len(names) == 5
    assert not has_numba
    assert file.startswith(str(tmp_path))
