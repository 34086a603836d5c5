"""The benchmark of copies runs in triton's interpreter; the times say nothing there."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")  # there is none for some platforms

from typer.testing import CliRunner

from rtlang_bench.device.copies import app


def test_copies_are_checked_and_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    sizes = [
        "--layers",
        "2",
        "--kv-heads",
        "1",
        "--head-dim",
        "16",
        "--pages",
        "3",
        "--step-bytes",
        "4000",
        "--steps",
        "2",
    ]
    found = CliRunner().invoke(app, ["--device", "interpreter", *sizes])
    assert found.exit_code == 0, found.output
    assert "3 pages of 2,048 bytes" in found.output
    assert [line.split()[0] for line in found.output.splitlines()[1:]] == ["read", "write"]


@pytest.mark.parametrize("device", ["tpu", "cpu"])
def test_another_device_is_refused_in_one_line(device: str) -> None:
    found = CliRunner().invoke(app, ["--device", device])
    assert found.exit_code == 1
    assert f"--device {device}: expected cuda or interpreter" in found.output
