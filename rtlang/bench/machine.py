"""Describes the machine of a benchmark or check: processor, relevant CPU flags, and versions of installed packages."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rtlang.contract.version import VERSION
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

# Packages used by `python -m rtlang_bench.device`: fewer than for a server, more than for the kernels' own benchmark.
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


@dataclass(frozen=True, slots=True)
class Environment:
    """What a benchmark ran on.

    Attributes:
        command: the command line as typed.
        machine, model: their descriptions.
        dtype, num_threads: of the model.
        versions: versions of packages, by name; None if a package is not installed.
    """

    command: str
    machine: str
    model: str
    dtype: str
    num_threads: int
    versions: dict[str, str | None]

    @classmethod
    def of(
        cls, command: str, model: str, dtype: str, num_threads: int | None, packages: tuple[str, ...] = ("torch",)
    ) -> Environment:
        """The environment of this process.

        Args:
            num_threads: None for one per core.
            packages: whose versions to name, besides that of rtlang.
        """
        versions = {"rtlang": VERSION, **package_versions(packages)}
        return cls(command, str(this_machine()), model, dtype, num_threads or num_cores(), versions)

    def facts(self, *more: str) -> list[str]:
        """Two lines of text; `more` is appended to the second."""
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        about = "; ".join([self.model, f"{self.dtype}, {self.num_threads} threads", *more, packages])
        return [f"`{self.command}` on {self.machine}", about]


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
