"""Describes the machine of a benchmark or check: processor, relevant CPU flags, and versions of installed packages."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rtlang.model.system_resources import num_cores

FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "numba",
    "numpy",
    "outlines",
    "starlette",
    "uvicorn",
    "websockets",
)

# Packages used by `rtlang bench --device cuda`: fewer than for a server, more than for the kernels' own benchmark.
DEVICE_PACKAGES = (
    "torch",
    "triton",
    "transformers",
    "tokenizers",
    "safetensors",
    "numba",
    "numpy",
    "jinja2",
    "msgpack",
    "prometheus-client",
    "regex",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor: its name, the cores this process may use, and which of FLAGS it has."""

    cpu: str
    num_cores: int
    flags: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.cpu}, {self.num_cores} cores, {' '.join(self.flags) or 'no vector flags known'}"


def this_machine(cpu_info: Path = Path("/proc/cpuinfo")) -> Machine:
    """The machine of this process; if `cpu_info` is missing, as described by the platform module."""
    fields: dict[str, str] = {}
    if cpu_info.is_file():
        for line in cpu_info.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
    present = set(fields.get("flags", "").split())
    cpu = fields.get("model name") or platform.processor() or platform.machine() or "unknown processor"
    return Machine(cpu, num_cores(), tuple(flag for flag in FLAGS if flag in present))


def package_versions(names: tuple[str, ...] = PACKAGES) -> dict[str, str | None]:
    """Installed version of each distribution; None if it is not installed."""
    versions: dict[str, str | None] = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return versions


def resident_bytes(proc: Path = Path("/proc/self")) -> int:
    """Resident memory of this process.

    Raises:
        OSError: the system does not report it.
    """
    lines = (proc / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024


class PeakMemory:
    """Peak resident memory of this process since the last `reset`, or since its start if the system cannot reset the peak."""

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc

    def reset(self) -> None:
        """Reset the peak. Has no effect if the system does not support it."""
        try:
            (self._proc / "clear_refs").write_text("5")
        except OSError:
            return

    def read_bytes(self) -> int | None:
        """The peak in bytes; None if the system does not report it."""
        try:
            lines = (self._proc / "status").read_text().splitlines()
        except OSError:
            return None
        kib = next((line.split()[1] for line in lines if line.startswith("VmHWM:")), None)
        return None if kib is None else int(kib) * 1024
