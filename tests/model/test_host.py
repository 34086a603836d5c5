"""Memory figures: the machine's, or the control group's where that is less."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtlang.model import host


def test_free_memory_is_some_of_the_total() -> None:
    assert 0 < host.free_bytes() <= host.total_bytes()


def test_a_control_group_limits_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("anon 500000\ninactive_file 90000\nactive_file 10000\n")
    monkeypatch.setattr(host, "_CGROUP", tmp_path)
    assert host.total_bytes() == 1_000_000
    assert host.free_bytes() == 400_000


def test_without_a_limit_the_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 64 kB\nMemFree: 1 kB\nMemAvailable: 32 kB\n")
    monkeypatch.setattr(host, "_CGROUP", tmp_path)
    monkeypatch.setattr(host, "_MEMINFO", meminfo)
    assert host.free_bytes() == 32 * 1024
    assert host.total_bytes() > 1 << 20


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (5_500_000, "5.25 MiB"),
        (1023 << 20, "0.999 GiB"),
        (16 << 30, "16 GiB"),
    ],
)
def test_bytes_are_shown_with_three_digits(count: int, shown: str) -> None:
    assert host.show_bytes(count) == shown
