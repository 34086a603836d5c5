"""Files of object code: where they are written, which are found, and which are not believed."""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from rtlang_grammars.machine.native import code_files
from rtlang_grammars.machine.native.object_code import HEADER_WORDS, ObjectCode

CODE = ObjectCode(llvm.get_process_triple(), "cpu", "", HEADER_WORDS, ("a",), b"code")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("RTLANG_CACHE_DIR", str(tmp_path / "user"))
    monkeypatch.setattr(code_files, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(code_files, "_CACHED", tmp_path / "package")
    monkeypatch.setattr(code_files.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    return tmp_path


def is_at(folder: Path, path: Path | None) -> bool:
    return path is not None and path.parent == folder


def test_code_is_written_to_the_first_folder_that_can_be_written_to(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwritable(name: str) -> None:
        (folders / name).write_text("a file is no folder")

    assert code_files.find("group", "digest") is None
    assert is_at(folders / "package", code_files.keep("group", "one", CODE))
    (folders / "package").rename(folders / "elsewhere")
    unwritable("package")
    assert is_at(folders / "user" / "code", code_files.keep("group", "two", CODE))
    assert code_files.find("group", "two") == CODE
    monkeypatch.setenv("RTLANG_CACHE_DIR", "~/no/home")
    unwritable("tmp")
    assert code_files.keep("group", "three", CODE) is None
    with code_files.turn():  # nothing to lock
        assert code_files.find("group", "three") is None
    (folders / "tmp").unlink()
    path = code_files.keep("group", "three", CODE)
    assert path is not None
    assert path.parent.parent == folders / "tmp"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folders / "given"))
    assert code_files.find("group", "three") is None
    assert is_at(folders / "given", code_files.keep("group", "three", CODE))


def test_code_is_found_by_its_group_and_digest_if_it_runs_here(folders: Path) -> None:
    code_files.keep("group", "digest", replace(CODE, cpu="another", features="+no-such-feature"))
    assert code_files.find("group", "digest") is None
    code_files.keep("group", "digest", CODE)
    assert code_files.find("group", "digest") == CODE
    assert code_files.find("group", "other") is None
    assert code_files.find("other", "digest") is None
    code_files.write(folders / "shipped", "group", "digest", replace(CODE, code=b"shipped"))
    found = code_files.find("group", "digest")
    assert found is not None
    assert found.code == b"shipped"


def test_what_others_may_have_written_is_not_run(folders: Path) -> None:
    path = code_files.keep("group", "digest", CODE)
    assert path is not None
    os.chmod(path, 0o666)
    assert code_files.find("group", "digest") is None
    os.chmod(path, 0o644)
    assert code_files.find("group", "digest") == CODE
    os.chmod(path.parent, 0o777)
    assert code_files.find("group", "digest") is None
    assert is_at(folders / "user" / "code", code_files.keep("group", "digest", CODE))
    os.chmod(path.parent, 0o755)
    path.write_bytes(path.read_bytes()[:-1])
    (folders / "user" / "code" / path.name).unlink()
    assert code_files.find("group", "digest") is None


def test_old_files_of_a_group_are_removed(folders: Path) -> None:
    for number in range(12):
        path = code_files.write(folders / "package", "group", f"{number}", CODE)
        os.utime(path, (number, number))
        code_files.write(folders / "package", "other", "same", CODE)
    left = sorted(path.name for path in (folders / "package").iterdir())
    assert left == sorted([*(f"group-{number}-cpu.code" for number in range(4, 12)), "other-same-cpu.code"])


def enter(entered: object, left: object) -> None:
    with code_files.turn():
        entered.set()  # type: ignore[attr-defined]
        left.wait(60)  # type: ignore[attr-defined]


def test_processes_compile_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    fork = multiprocessing.get_context("fork")
    entered, left = fork.Event(), fork.Event()
    process = fork.Process(target=enter, args=(entered, left))
    process.start()
    assert entered.wait(60)
    monkeypatch.setattr(code_files, "_LONGEST_WAIT_S", 0.2)
    started = time.monotonic()
    with code_files.turn():  # not for ever
        assert time.monotonic() - started >= 0.2
    left.set()
    monkeypatch.setattr(code_files, "_LONGEST_WAIT_S", 60.0)
    with code_files.turn():
        process.join(60)
        assert process.exitcode == 0
