"""`rtlang doctor`: checks the environment, and a server if one is given. Loads no model; `rtlang check` tries one.

Each check is a function that yields findings: ok, warn (works, but slower or less than it could) or fail (does not work), with a remedy.
A check that raises is a failure of its own and does not stop the others.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from rtlang.bench.machine import DEVICE_PACKAGES, PACKAGES, Machine, package_versions, this_machine
from rtlang.console.server_requests import ServerAddress, ServerError
from rtlang.console.show import to_json
from rtlang.console.source import CommandError
from rtlang.contract.process.terminal_text import terminal_text
from rtlang.contract.version import VERSION
from rtlang.model import system_resources
from rtlang_grammars.storage.array_file import default_cache_dir

MIN_PYTHON = (3, 11)
_CGROUP_CPU = Path("/sys/fs/cgroup/cpu.max")
_NVIDIA = Path("/proc/driver/nvidia/version")
_LOW_MEMORY, _LEAST_MEMORY = 1 << 30, 256 << 20
_LOW_DISK = 1 << 30


class Status(StrEnum):
    """The outcome of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `remedy` says what to do; empty if all is well."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


Check = Callable[[], Iterator[Finding]]


def doctor(
    url: Annotated[
        str | None, typer.Argument(help="Address of a server to check too, such as http://127.0.0.1:8420.")
    ] = None,
    api_key: Annotated[str | None, typer.Option(help="API key for that server.", envvar="RTLANG_API_KEY")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check the environment: Python, libraries, processor, memory, caches; and a server, if its URL is given.

    Prints a line for each finding, with a remedy if something is wrong. Exits with code 1 if a check fails; warnings do not count.
    """
    checks: list[Check] = [
        python,
        libraries,
        torch_build,
        threads,
        vector_instructions,
        memory,
        gpu,
        compiled_code,
        directories,
        limits,
    ]
    if url is not None:
        checks.append(lambda: server(url, api_key))
    findings = [finding for check in checks for finding in findings_of(check)]
    if as_json:
        typer.echo(
            to_json([{"name": f.name, "status": f.status, "detail": f.detail, "remedy": f.remedy} for f in findings])
        )
    else:
        for line in lines_of(findings):
            typer.echo(line)
    if any(finding.status is Status.FAIL for finding in findings):
        raise typer.Exit(1)


def findings_of(check: Check) -> Iterator[Finding]:
    """The findings of a check; an exception is a finding too."""
    try:
        yield from check()
    except Exception as error:
        name = getattr(check, "__name__", "check").replace("_", " ")
        yield Finding(name, Status.FAIL, f"the check failed: {type(error).__name__}: {error}", "report this as a bug")


def lines_of(findings: list[Finding]) -> Iterator[str]:
    """The findings as lines of text, and a summary."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        yield terminal_text(f"{finding.status:<4}  {finding.name:<{width}}  {finding.detail}")
        if finding.remedy:
            yield terminal_text(f"{'':<{width + 8}}-> {finding.remedy}")
    counts = {status: sum(finding.status is status for finding in findings) for status in Status}
    yield f"{counts[Status.OK]} ok, {counts[Status.WARN]} warnings, {counts[Status.FAIL]} failures"


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Finding]:
    """The version of Python."""
    detail = f"{'.'.join(map(str, version))} on {platform.system()} {platform.machine()}"
    if version < MIN_PYTHON:
        yield Finding("python", Status.FAIL, detail, f"install Python {'.'.join(map(str, MIN_PYTHON))} or later")
    else:
        yield Finding("python", Status.OK, detail)


def libraries(versions: dict[str, str | None] | None = None) -> Iterator[Finding]:
    """The libraries that every command needs."""
    found = package_versions(PACKAGES) if versions is None else versions
    missing = [name for name, version in found.items() if version is None]
    if missing:
        yield Finding("libraries", Status.FAIL, f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    else:
        yield Finding(
            "libraries",
            Status.OK,
            f"rtlang {VERSION}, " + ", ".join(f"{name} {version}" for name, version in found.items()),
        )


def torch_build() -> Iterator[Finding]:
    """Whether torch can be loaded."""
    try:
        torch = import_module("torch")
    except (ImportError, OSError) as error:
        yield Finding(
            "torch", Status.FAIL, f"cannot be loaded: {error}", "reinstall torch for this Python and processor"
        )
        return
    built_for = f"CUDA {torch.version.cuda}" if torch.version.cuda else "the CPU"
    yield Finding("torch", Status.OK, f"{torch.__version__}, built for {built_for}")


def threads(
    num_cores: int | None = None, environ: dict[str, str] | None = None, quota: float | None = None
) -> Iterator[Finding]:
    """The cores, limits on them, and settings for threads.

    Args:
        quota: processor time that the control group allows, in cores; None reads it.
    """
    cores = system_resources.num_cores() if num_cores is None else num_cores
    allowed = _cpu_quota() if quota is None else quota
    given = (dict(os.environ) if environ is None else environ).get("OMP_NUM_THREADS", "")
    detail = f"{cores} cores" + (f", OMP_NUM_THREADS={given}" if given else "")
    if allowed is not None and allowed < cores:
        yield Finding(
            "threads", Status.WARN, f"{detail}, but the control group allows {allowed:g} of them",
            f"use --threads {max(1, int(allowed))}: more threads wait for each other",
        )  # fmt: skip
    elif given.isdigit() and int(given) > cores:
        yield Finding("threads", Status.WARN, detail, f"unset OMP_NUM_THREADS or set it to at most {cores}")
    else:
        yield Finding("threads", Status.OK, detail)


def vector_instructions(machine: Machine | None = None, architecture: str = platform.machine()) -> Iterator[Finding]:
    """The vector instructions of the processor."""
    found = machine or this_machine()
    detail = f"{found.cpu}: {', '.join(found.flags) or 'none known'}"
    if architecture in ("x86_64", "AMD64") and "avx2" not in found.flags:
        yield Finding(
            "simd",
            Status.WARN,
            detail,
            "a processor with AVX2 computes several times faster; a virtual machine may hide it",
        )
    else:
        yield Finding("simd", Status.OK, detail)


def memory(free: int | None = None) -> Iterator[Finding]:
    """The free memory."""
    left, show = system_resources.free_bytes() if free is None else free, system_resources.show_bytes
    detail = f"{show(left)} free of {show(system_resources.total_bytes())}"
    remedy = "end other processes, raise the limit of the container, or use a smaller model and --cache-bytes"
    if left < _LEAST_MEMORY:
        yield Finding("memory", Status.FAIL, detail, remedy)
    elif left < _LOW_MEMORY:
        yield Finding("memory", Status.WARN, detail, remedy)
    else:
        yield Finding("memory", Status.OK, detail)


def gpu(torch: Any = None, versions: dict[str, str | None] | None = None, driver: Path = _NVIDIA) -> Iterator[Finding]:
    """A GPU, if there is one: whether torch and triton can use it."""
    try:
        torch = torch or import_module("torch")
    except (ImportError, OSError):
        return  # a finding of its own
    if not torch.cuda.is_available():
        if driver.exists():
            remedy = (
                "install a build of torch for CUDA"
                if not torch.version.cuda
                else "update the driver, or check nvidia-smi"
            )
            yield Finding("gpu", Status.WARN, "an NVIDIA driver is installed, but torch cannot use a GPU", remedy)
        else:
            yield Finding("gpu", Status.OK, "none; models run on the CPU")
        return
    name, (free, total) = torch.cuda.get_device_name(), torch.cuda.mem_get_info()
    show = system_resources.show_bytes
    yield Finding("gpu", Status.OK, f"{name}, {show(free)} free of {show(total)}; use --device cuda")
    missing = [each for each, found in (versions or package_versions(DEVICE_PACKAGES)).items() if found is None]
    if missing:
        yield Finding(
            "triton", Status.FAIL, f"--device cuda needs {', '.join(missing)}", f"pip install {' '.join(missing)}"
        )
        return
    try:
        triton = import_module("triton")
    except Exception as error:
        yield Finding(
            "triton", Status.FAIL, f"cannot be loaded: {error}", "reinstall the version of triton that torch asks for"
        )
    else:
        yield Finding("triton", Status.OK, str(triton.__version__))
        from rtlang.model.gpu.prompt_kernels import prompt_candidates

        yield Finding(
            "prompts", Status.OK, f"the first load of a model chooses from {prompt_candidates(torch.device('cuda', 0))}"
        )


def compiled_code() -> Iterator[Finding]:
    """Whether the native code of the grammar engine is compiled already."""
    from rtlang_grammars.machine.native.native_code import is_any_missing_on_disk  # loads numba

    if is_any_missing_on_disk():
        yield Finding(
            "compiled code",
            Status.WARN,
            "part of the grammar engine is not compiled yet",
            "run rtlang check once; it takes up to a minute",
        )
    else:
        yield Finding("compiled code", Status.OK, "present")


def directories() -> Iterator[Finding]:
    """The directories of caches and temporary files: whether they can be written to, and free space."""
    hub = (
        os.environ.get("HF_HUB_CACHE")
        or Path(os.environ.get("HF_HOME") or Path("~/.cache/huggingface").expanduser()) / "hub"
    )
    places = {
        "grammar cache": (default_cache_dir(), "RTLANG_CACHE_DIR"),
        "model cache": (Path(hub), "HF_HOME"),
        "temporary files": (Path(tempfile.gettempdir()), "TMPDIR"),
    }
    if numba := os.environ.get("NUMBA_CACHE_DIR"):
        places["numba cache"] = (Path(numba), "NUMBA_CACHE_DIR")
    for name, (path, variable) in places.items():
        yield directory(name, path, variable)


def directory(name: str, path: Path, variable: str) -> Finding:
    """Whether a directory can be written to, or made. Makes nothing."""
    existing = next((each for each in (path, *path.parents) if each.exists()), path)
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding(name, Status.WARN, f"{path} cannot be written to", f"set {variable} to a directory that can be")
    free = shutil.disk_usage(existing).free
    detail = f"{path}, {system_resources.show_bytes(free)} free"
    if free < _LOW_DISK:
        return Finding(name, Status.WARN, detail, f"free some space, or set {variable} to a directory on another disk")
    return Finding(name, Status.OK, detail)


def limits(num_files: int | None = None) -> Iterator[Finding]:
    """The number of files that a process may open: a server needs one per connection."""
    if num_files is None:
        try:
            resource = import_module("resource")
        except ImportError:  # not on this system
            return
        num_files = int(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        if num_files < 0:  # no limit
            return
    detail = f"{num_files:,} for a process"
    if num_files < 1200:
        yield Finding(
            "open files",
            Status.WARN,
            f"{detail}; rtlang serve accepts 1,024 connections",
            "raise the limit: ulimit -n 4096",
        )
    else:
        yield Finding("open files", Status.OK, detail)


def server(url: str, api_key: str | None) -> Iterator[Finding]:
    """A server: whether it is reachable and ready, takes the key, and has this version."""
    try:
        address = ServerAddress(url, api_key)
        address.get("/health")
    except CommandError as error:
        if not isinstance(error, ServerError) or error.status is None:
            yield Finding("server", Status.FAIL, str(error), "start it with rtlang serve; check host, port and proxy")
            return
        yield Finding(
            "server", Status.FAIL, str(error), "the server runs without its engine: check its log, or restart it"
        )
    else:
        yield Finding("server", Status.OK, f"{address.url} is alive")
    try:
        address.get("/ready")
    except ServerError as error:
        yield Finding("ready", Status.FAIL, str(error), "check the server's log; it may be starting or shutting down")
    else:
        yield Finding("ready", Status.OK, "the server takes requests")
    try:
        found = address.get("/version")
    except ServerError as error:
        remedy = (
            "set RTLANG_API_KEY to a key of this server" if error.status == 401 else "look at the log of the server"
        )
        yield Finding("key", Status.FAIL, str(error), remedy)
        return
    yield Finding("key", Status.OK, "accepted" if api_key else "none needed")
    version = str(found.get("version") if isinstance(found, dict) else found)
    models = found.get("models", []) if isinstance(found, dict) else []
    names = ", ".join(str(each.get("model")) for each in models if isinstance(each, dict)) or "no model named"
    if version != VERSION:
        yield Finding(
            "version",
            Status.WARN,
            f"the server has {version}, this client {VERSION}",
            "install the same version on both sides",
        )
    else:
        yield Finding("version", Status.OK, f"{version}, {names}")


def _cpu_quota() -> float | None:
    """Cores that the control group allows; None without a limit."""
    try:
        quota, period = _CGROUP_CPU.read_text(encoding="ascii").split()
        return int(quota) / int(period)
    except (OSError, ValueError):
        return None
