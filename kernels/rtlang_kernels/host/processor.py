"""The processor that kernels are compiled for: the instructions that decide which kernel is used.

The features are those that numba compiles for, so its settings NUMBA_CPU_NAME and NUMBA_CPU_FEATURES apply here as well.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rtlang_kernels.host.numba_jit import HAS_NUMBA

if HAS_NUMBA:
    from llvmlite import binding
    from numba.core import config

_CPUINFO = Path("/proc/cpuinfo")
_ARM = ("aarch64", "arm64")


@dataclass(frozen=True, slots=True)
class Processor:
    """One kind of processor.

    Attributes:
        model: name for people, such as "AMD EPYC 9654 96-Core Processor".
        target: LLVM's name of the microarchitecture, such as "znver4".
        num_cores: logical cores of the machine.
        has_bf16_dot: vdpbf16ps, the product of pairs of bfloat16 (AVX512-BF16).
        has_int8_dot: vpdpbusd on 512 bits, the product of quadruples of bytes (AVX512-VNNI).
        has_avx_vnni: the same on 256 bits, without AVX-512 (AVX-VNNI).
        has_amx: products of matrix tiles of bfloat16 and of bytes (AMX). A process needs permission to use them, see `tile_permission`.
        has_fma: float32 multiply-add with one rounding.
    """

    model: str
    target: str
    num_cores: int
    has_bf16_dot: bool = False
    has_int8_dot: bool = False
    has_avx_vnni: bool = False
    has_amx: bool = False
    has_avx512: bool = False
    has_avx2: bool = False
    has_neon: bool = False
    has_fma: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that this processor has, without `has_`."""
        return tuple(name[4:] for name in self.__slots__ if name.startswith("has_") and getattr(self, name))


@cache
def processor() -> Processor:
    """The processor of this machine, as numba compiles for it; without numba, one without features."""
    cores = os.cpu_count() or 1
    if not HAS_NUMBA:
        return Processor(_model(), "unknown", cores)
    target = config.CPU_NAME or binding.get_host_cpu_name()
    if config.CPU_FEATURES is not None:
        names = {name[1:] for name in config.CPU_FEATURES.split(",") if name.startswith("+")}
    else:
        names = {name for name, is_present in binding.get_host_cpu_features().items() if is_present}
    has_avx512 = {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= names
    has_neon = "neon" in names or platform.machine().lower() in _ARM
    return Processor(
        model=_model(),
        target=target,
        num_cores=cores,
        has_bf16_dot=has_avx512 and "avx512bf16" in names,
        has_int8_dot=has_avx512 and "avx512vnni" in names,
        has_avx_vnni="avxvnni" in names,
        has_amx=has_avx512 and {"amx-tile", "amx-bf16", "amx-int8"} <= names,
        has_avx512=has_avx512,
        has_avx2="avx2" in names,
        has_neon=has_neon,
        has_fma="fma" in names or has_neon,
    )


def _model() -> str:
    """Name of the processor as the system reports it. Neither LLVM nor Python's `platform` knows it on Linux."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", _CPUINFO.read_text(encoding="utf-8", errors="replace"), re.M)
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or platform.machine()
