"""Recording of the kernels that real launch code launches, with the specialization of a real launch, for a GPU that is not present.

Operations run on meta tensors: they have shapes, strides and types, but no memory. Their launches reach triton, which asks a pretended
driver for the processor, derives from the arguments all that determines the code, and hands that to a hook instead of compiling it. So the
kernels that are compiled ahead of time are those that a model launches, with nothing written down twice.

Must run in a process without TRITON_INTERPRET, which it leaves with the pretended driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime.driver import driver

from rtlang_kernels.planning.tile_sizes import GFX942, LINES, PRETENDED, SM_80, SM_90, SM_100, GpuProperties
from rtlang_kernels.triton.aot.variant import CompiledVariant


class Target(NamedTuple):
    """A processor: how triton names it, its properties for planning (of sm_90 for sm_100), and the shared memory of a program."""

    triton: GPUTarget
    properties: GpuProperties
    shared_bytes: int


TARGETS = {
    SM_80: Target(GPUTarget("cuda", 80, 32), GpuProperties(SM_80, 108, 40 << 20), 163 << 10),
    SM_90: Target(GPUTarget("cuda", 90, 32), GpuProperties(SM_90, 132, 50 << 20), 227 << 10),
    SM_100: Target(GPUTarget("cuda", 100, 32), GpuProperties(SM_90, 148, 126 << 20), 227 << 10),
    GFX942: Target(GPUTarget("hip", "gfx942", 64), GpuProperties(GFX942, 304, 4 << 20), 64 << 10),
}


class Case(NamedTuple):
    """Calls of operations. `label` becomes part of the names of their kernels."""

    label: str
    run: Callable[[], object]


class _PretendedDriver:
    """The driver functions that triton calls before it compiles a kernel. Kernels are cached by device, so each target is one."""

    def __init__(self, target: str) -> None:
        self._device, self._target = list(TARGETS).index(target), TARGETS[target].triton

    def get_current_device(self) -> int:
        return self._device

    def get_current_stream(self, device: int) -> int:
        del device
        return 0

    def get_current_target(self) -> GPUTarget:
        return self._target


def record(target: str, cases: Iterable[Case]) -> list[CompiledVariant]:
    """The kernels that the cases launch on a target, each once, in order; names are unique.

    Args:
        target: a key of TARGETS.
    Raises:
        ValueError: a case launches nothing.
    """
    found: dict[str, CompiledVariant] = {}
    names: dict[str, int] = {}
    label, num_launches = "", 0
    defaults = _plain(make_backend(TARGETS[target].triton).parse_options({}).__dict__)

    def note(*, key: str, fn: Any, compile: dict[str, Any], **_: Any) -> bool:
        nonlocal num_launches
        num_launches += 1
        kernel = fn.jit_function
        identity = f"{fn.name} {key} {compile['constants']}"
        if identity not in found:
            variant = _variant(kernel, label, compile, defaults)
            names[variant.name] = count = names.get(variant.name, 0) + 1
            found[identity] = variant if count == 1 else replace(variant, name=f"{variant.name} #{count}")
        return True  # not to be compiled

    driver.set_active(_PretendedDriver(target))
    hook, knobs.runtime.jit_cache_hook = knobs.runtime.jit_cache_hook, note
    token = PRETENDED.set(TARGETS[target].properties)
    try:
        for label, run in cases:
            num_launches = 0
            run()
            if num_launches == 0:
                raise ValueError(f"{label}: launches no kernel")
    finally:
        PRETENDED.reset(token)
        knobs.runtime.jit_cache_hook = hook
    return list(found.values())


def _variant(kernel: Any, label: str, compile: dict[str, Any], defaults: dict[str, Any]) -> CompiledVariant:
    constants = {kernel.arg_names[path[0]]: value for path, value in compile["constants"].items() if len(path) == 1}
    options = _plain(json.loads(compile["specialization_data"])["options"])
    tile = f"{constants['BLOCK_M']}x{constants['BLOCK_N']}" if "BLOCK_M" in constants else ""
    if "LINES_CLASS" in constants:
        tile = f"{LINES[constants['LINES_CLASS']]}: {tile}"
    return CompiledVariant(
        " ".join(filter(None, (kernel.__name__, label, tile))),
        kernel,
        compile["signature"],
        constants,
        compile["configs"][0],
        {name: value for name, value in options.items() if value != defaults.get(name)},
    )


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Options as they are after a passage through JSON, with tuples."""
    read = json.loads(json.dumps(options))
    return {name: tuple(value) if isinstance(value, list) else value for name, value in read.items()}
