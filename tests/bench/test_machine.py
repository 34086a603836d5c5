from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from rtlang.bench.machine import PeakMemory, package_versions, resident_bytes, this_machine
from rtlang.model.system_resources import num_cores

CPU_INFO = """processor\t: 0
model name\t: A Processor @ 2 GHz
flags\t\t: fpu avx2 avx512f amx_bf16 other

processor\t: 1
model name\t: Another
flags\t\t: fpu
"""


def test_the_machine_is_read_from_cpuinfo(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(CPU_INFO)
    machine = this_machine(tmp_path / "cpuinfo")
    assert machine.cpu == "A Processor @ 2 GHz"
    assert machine.flags == ("avx2", "avx512f", "amx_bf16")
    assert str(machine) == f"A Processor @ 2 GHz, {num_cores()} cores, avx2 avx512f amx_bf16"


def test_a_system_without_cpuinfo_still_has_a_name(tmp_path: Path) -> None:
    machine = this_machine(tmp_path / "missing")
    assert machine.cpu
    assert machine.flags == ()
    assert machine.num_cores >= 1


def test_versions_are_those_installed_and_a_missing_package_is_none() -> None:
    assert package_versions(("rich", "no-such-package-of-ours")) == {
        "rich": version("rich"),
        "no-such-package-of-ours": None,
    }


def test_the_peak_is_forgotten_on_reset_and_read_in_bytes(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t 10 kB\n")
    (tmp_path / "clear_refs").write_text("")
    peak = PeakMemory(tmp_path)
    peak.reset()
    assert (tmp_path / "clear_refs").read_text() == "5"
    assert peak.read_bytes() == 2048 * 1024


def test_a_system_without_proc_has_no_peak(tmp_path: Path) -> None:
    peak = PeakMemory(tmp_path / "missing")
    peak.reset()
    assert peak.read_bytes() is None


def test_resident_memory_is_read_from_the_process_status(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\n")
    assert resident_bytes(tmp_path) == 1024 * 1024
