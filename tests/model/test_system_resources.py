"""Memory figures: the machine's, or the control group's where that is less."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtlang.model import system_resources


def test_free_memory_is_some_of_the_total() -> None:
    assert 0 < system_resources.free_bytes() <= system_resources.total_bytes()


def test_engines_that_share_a_machine_divide_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = system_resources.num_cores()
    monkeypatch.setenv(system_resources.SHARED_BY, "2")
    assert system_resources.num_sharing() == 2
    assert system_resources.num_cores() == max(1, alone // 2)
    monkeypatch.setenv(system_resources.SHARED_BY, str(4 * alone))
    assert system_resources.num_cores() == 1


def test_a_control_group_limits_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("anon 500000\ninactive_file 90000\nactive_file 10000\n")
    monkeypatch.setattr(system_resources, "_CGROUP", tmp_path)
    assert system_resources.total_bytes() == 1_000_000
    assert system_resources.free_bytes() == 400_000


@pytest.mark.parametrize("is_first_version", [True, False])
def test_a_limit_of_a_group_in_which_the_process_lies_counts(
    is_first_version: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "memory" if is_first_version else tmp_path
    own = root / "slice" / "job"
    own.mkdir(parents=True)
    limit, used = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes") if is_first_version else ("memory.max", "memory.current")
    )
    unlimited = "9223372036854771712" if is_first_version else "max"
    (own / limit).write_text(f"{unlimited}\n")
    (own / used).write_text("600000\n")
    (own.parent / limit).write_text("1000000\n")
    (own.parent / used).write_text("700000\n")
    (own.parent / "memory.stat").write_text("total_inactive_file 5000\ninactive_file 5000\n")
    groups = tmp_path / "groups"
    groups.write_text("3:cpu:/elsewhere\n2:memory:/slice/job\n0::/\n" if is_first_version else "0::/slice/job\n")
    monkeypatch.setattr(system_resources, "_CGROUP", tmp_path)
    monkeypatch.setattr(system_resources, "_OWN_GROUPS", groups)
    assert system_resources.total_bytes() == 1_000_000
    assert system_resources.free_bytes() == 305_000


def test_without_a_limit_the_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 64 kB\nMemFree: 1 kB\nMemAvailable: 32 kB\n")
    monkeypatch.setattr(system_resources, "_CGROUP", tmp_path)
    monkeypatch.setattr(system_resources, "_MEMINFO", meminfo)
    assert system_resources.free_bytes() == 32 * 1024
    assert system_resources.total_bytes() > 1 << 20


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
    assert system_resources.show_bytes(count) == shown
