"""`rtlang doctor`: each check says ok, warn or fail of what it is told, with a remedy, and one that breaks does not stop the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.bench.machine import Machine
from rtlang.console import doctor
from rtlang.console.doctor import Finding, Status, findings_of, lines_of
from rtlang.contract.version import VERSION
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.serving import serving


def status(findings: Iterator[Finding]) -> list[tuple[str, Status]]:
    """Name and status of each; a remedy is there exactly if something is wrong."""
    found = list(findings)
    for each in found:
        assert bool(each.remedy) == (each.status is not Status.OK), each
        assert each.detail
    return [(each.name, each.status) for each in found]


def test_python() -> None:
    assert status(doctor.python((3, 11, 0))) == [("python", Status.OK)]
    assert status(doctor.python((3, 10, 9))) == [("python", Status.FAIL)]


def test_libraries() -> None:
    assert status(doctor.libraries({"numpy": "2.0", "torch": "2.9"})) == [("libraries", Status.OK)]
    [finding] = doctor.libraries({"numpy": "2.0", "torch": None, "numba": None})
    assert finding == Finding("libraries", Status.FAIL, "missing: torch, numba", "pip install torch numba")


@pytest.mark.parametrize(
    ("omp", "quota", "expected"),
    [
        ("", 8.0, Status.OK),
        ("4", 4.0, Status.OK),
        ("", 2.5, Status.WARN),
        ("16", 8.0, Status.WARN),
        ("4,2", 8.0, Status.OK),
    ],
)
def test_threads(omp: str, quota: float, expected: Status) -> None:
    assert status(doctor.threads(4, {"OMP_NUM_THREADS": omp}, quota)) == [("threads", expected)]


def test_a_quota_is_the_remedy_of_too_many_threads() -> None:
    [finding] = doctor.threads(8, {}, 2.5)
    assert "--threads 2" in finding.remedy


def test_vector_instructions() -> None:
    modern, old = Machine("new", 2, ("avx2",)), Machine("old", 2, ())
    assert status(doctor.vector_instructions(modern, "x86_64")) == [("simd", Status.OK)]
    assert status(doctor.vector_instructions(old, "x86_64")) == [("simd", Status.WARN)]
    assert status(doctor.vector_instructions(old, "aarch64")) == [("simd", Status.OK)]


@pytest.mark.parametrize(
    ("free", "expected"), [(8 << 30, Status.OK), (500 << 20, Status.WARN), (100 << 20, Status.FAIL)]
)
def test_memory(free: int, expected: Status) -> None:
    assert status(doctor.memory(free)) == [("memory", expected)]


def torch_with(*, is_available: bool, built_for: str | None) -> Any:
    cuda = SimpleNamespace(
        is_available=lambda: is_available, get_device_name=lambda: "H100", mem_get_info=lambda: (60 << 30, 80 << 30)
    )
    return SimpleNamespace(cuda=cuda, version=SimpleNamespace(cuda=built_for))


def test_a_gpu_is_found_or_what_is_missing_for_it(tmp_path: Path) -> None:
    driver = tmp_path / "version"
    assert status(doctor.gpu(torch_with(is_available=False, built_for=None), {}, driver)) == [("gpu", Status.OK)]
    driver.write_text("NVRM")
    [finding] = doctor.gpu(torch_with(is_available=False, built_for=None), {}, driver)
    assert (finding.status, "build of torch for CUDA" in finding.remedy) == (Status.WARN, True)
    [finding] = doctor.gpu(torch_with(is_available=False, built_for="13.0"), {}, driver)
    assert "driver" in finding.remedy
    found = status(doctor.gpu(torch_with(is_available=True, built_for="13.0"), {"triton": None}, driver))
    assert found == [("gpu", Status.OK), ("triton", Status.FAIL)]


def test_directories_that_can_be_written_to_or_not(tmp_path: Path) -> None:
    assert doctor.directory("cache", tmp_path, "X_DIR").status is Status.OK
    assert doctor.directory("cache", tmp_path / "made" / "later", "X_DIR").status is Status.OK
    assert not (tmp_path / "made").exists()
    (tmp_path / "file").write_text("")
    finding = doctor.directory("cache", tmp_path / "file", "X_DIR")
    assert (finding.status, "X_DIR" in finding.remedy) == (Status.WARN, True)
    assert doctor.directory("cache", tmp_path / "file" / "below", "X_DIR").status is Status.WARN


def test_limits() -> None:
    assert status(doctor.limits(4096)) == [("open files", Status.OK)]
    assert status(doctor.limits(256)) == [("open files", Status.WARN)]


def test_a_check_that_raises_is_a_failure_of_its_own() -> None:
    def broken_check() -> Iterator[Finding]:
        yield Finding("first", Status.OK, "fine")
        raise OSError("no such thing")

    first, second = findings_of(broken_check)
    assert first.status is Status.OK
    assert (second.name, second.status) == ("broken check", Status.FAIL)
    assert "OSError: no such thing" in second.detail


def test_lines_have_remedies_and_a_summary() -> None:
    lines = list(lines_of([Finding("a", Status.OK, "fine\x1b"), Finding("longer", Status.WARN, "slow", "do more")]))
    assert lines == [
        "ok    a       fine\\x1b",
        "warn  longer  slow",
        " " * 14 + "-> do more",
        "1 ok, 1 warnings, 0 failures",
    ]


def test_a_server_is_checked_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    target = ScriptedTarget()
    with serving(target, api_key="secret") as running:
        good = [("server", Status.OK), ("ready", Status.OK), ("key", Status.OK), ("version", Status.OK)]
        assert status(doctor.server(running.url, "secret")) == good
        assert status(doctor.server(running.url, None))[2:] == [("key", Status.FAIL)]
        monkeypatch.setattr(doctor, "VERSION", VERSION + "1")
        assert status(doctor.server(running.url, "secret"))[3] == ("version", Status.WARN)
        target.close()
        assert status(doctor.server(running.url, "secret"))[:2] == [("server", Status.FAIL), ("ready", Status.FAIL)]
    assert status(doctor.server(running.url, "secret")) == [("server", Status.FAIL)]
    assert status(doctor.server("ftp://x", None)) == [("server", Status.FAIL)]


def test_the_exit_code_says_whether_a_check_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    findings = json.loads(result.stdout)
    assert {"python", "libraries", "torch", "threads", "simd", "memory", "gpu", "temporary files"} <= {
        each["name"] for each in findings
    }
    assert result.exit_code == any(each["status"] == "fail" for each in findings)
    result = CliRunner().invoke(app, ["doctor", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert any(line.startswith("fail  server") for line in result.stdout.splitlines())
