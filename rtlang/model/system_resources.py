"""Resources available to this process: CPU cores and memory, limited by its control group."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_MEMINFO = Path("/proc/meminfo")


SHARED_BY = "RTLANG_SHARED_BY"
"""Environment variable: the number of engines that share this machine, of which the process runs one. Set by the launchers of a fleet."""


def num_sharing() -> int:
    """Number of engines that share this machine; 1 unless a launcher says otherwise."""
    return max(1, int(os.environ.get(SHARED_BY, "1")))


def num_cores() -> int:
    """Number of cores this process may run on; its part of them if several engines share the machine."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, found // num_sharing())


def total_bytes() -> int:
    """Memory limit of this process, in bytes."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [limit for group in _groups() if (limit := group.limit()) is not None]
    return min(physical, *limits) if limits else physical


def free_bytes() -> int:
    """Memory that can be allocated without swapping, in bytes, as reported by the system."""
    available = total_bytes()
    if _MEMINFO.is_file():
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                available = int(line.split()[1]) * 1024
    for group in _groups():
        limit, used = group.limit(), group.used()
        if limit is not None and used is not None:
            available = min(available, max(0, limit - used + group.reclaimable()))
    return available


def show_bytes(count: int) -> str:
    """Format a byte count with three digits and a unit."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1000:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}"


def _groups() -> list[_Group]:
    """Control groups that limit the memory of this process: its own and all ancestors."""
    found = [_Group(_CGROUP, is_first_version=False)]
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        is_first_version = "memory" in controllers.split(",")
        if not controllers or is_first_version:
            root = _CGROUP / "memory" if is_first_version else _CGROUP
            own = root / path.lstrip("/")
            found += [_Group(group, is_first_version) for group in (own, *own.parents) if group.is_relative_to(root)]
    return found


@dataclass(frozen=True)
class _Group:
    """One control group, of cgroup v2 or v1 (which differ in file names)."""

    path: Path
    is_first_version: bool

    def limit(self) -> int | None:
        return self._number("memory.limit_in_bytes" if self.is_first_version else "memory.max")

    def used(self) -> int | None:
        return self._number("memory.usage_in_bytes" if self.is_first_version else "memory.current")

    def reclaimable(self) -> int:
        """Page cache counted as used by the group that the kernel can reclaim, in bytes."""
        try:
            lines = (self.path / "memory.stat").read_text(encoding="ascii").splitlines()
        except OSError:
            return 0
        prefix = "total_" if self.is_first_version else ""
        names = (f"{prefix}inactive_file ", f"{prefix}active_file ")
        return sum(int(line.split()[1]) for line in lines if line.startswith(names))

    def _number(self, name: str) -> int | None:
        try:
            text = (self.path / name).read_text(encoding="ascii").strip()
        except OSError:
            return None
        return int(text) if text.isdigit() else None  # "max" means no limit
