"""The layers of rtlang_kernels: imports point down, type-checking imports included, and no two folders import each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

KERNELS = Path(__file__).parents[2] / "kernels"
PACKAGE = "rtlang_kernels"
LAYERS = {
    "contract": 0,
    "host": 0,
    "planning": 1,
    "reference": 1,
    "cpu": 2,
    "triton": 2,
    "dispatch": 3,
    "ops": 4,
    "precompile": 5,
    "": 6,  # the package itself, which exports names lazily
}
INNER_LAYERS = {
    "cpu": {"codegen": 0, "": 1, "attention": 2, "recurrence": 2, "fused": 3},
    "triton": {
        "primitives": 0,
        "attention": 1,
        "sampling": 1,
        "layers": 1,
        "linear": 1,
        "recurrence": 1,
        "grammar": 1,
        "experts": 2,
        "aot": 3,
        "": 4,
    },
}
TORCH_FREE = (  # besides what they import of the libraries below
    "contract.sampler_settings",
    "host.numba_jit",
    "host.processor",
    "host.tile_permission",
    "host.tuning",
    "reference.noise",
    "cpu.codegen.llvm_bridge",
    "cpu.codegen.vector_builder",
    "cpu.codegen.attention.attention_vectors",
    "cpu.codegen.layer_vectors",
    "cpu.codegen.pair_vectors",
    "cpu.codegen.sampling_vectors",
)
IMPORTED_ON_FIRST_USE = {"cpu", "triton"}  # by `dispatch`, since they need numba and triton
MAX_FILES = 15


class Import(NamedTuple):
    importer: str
    target: str
    is_inside_function: bool


@cache
def modules() -> dict[str, Path]:
    """Modules by their dotted name below the package; the package itself is ""."""
    found = {}
    for path in sorted((KERNELS / PACKAGE).rglob("*.py")):
        parts = path.relative_to(KERNELS / PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(importer: str, source: str) -> Iterator[Import]:
    """All imports of a module by full dotted name, at any depth."""

    def visit(node: ast.AST, is_inside: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(importer, alias.name, is_inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{importer}: a relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = full.removeprefix(f"{PACKAGE}.") in modules()
                yield Import(importer, full if is_module else str(node.module), is_inside)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, is_inside or isinstance(node, ast.FunctionDef))

    yield from visit(ast.parse(source), False)


@cache
def all_imports() -> tuple[Import, ...]:
    return tuple(
        found for name, path in modules().items() for found in imports_of(name, path.read_text(encoding="utf-8"))
    )


def inner(target: str) -> str | None:
    """The name below the package; None for other libraries."""
    if target == PACKAGE:
        return ""
    return target.removeprefix(f"{PACKAGE}.") if target.startswith(f"{PACKAGE}.") else None


def room(module: str) -> str:
    return module.split(".")[0]


def inner_room(module: str) -> str:
    """The folder inside a room, "" for the modules of the room itself."""
    parts = module.split(".")
    is_folder = len(parts) > 2 or (KERNELS / PACKAGE / Path(*parts)).is_dir()
    return parts[1] if len(parts) > 1 and is_folder else ""


def upward(found: Import) -> bool:
    target = inner(found.target)
    if target is None or room(target) == room(found.importer):
        return False
    return LAYERS[room(target)] >= LAYERS[room(found.importer)]


def upward_inside(found: Import) -> bool:
    target, folder = inner(found.target), room(found.importer)
    if target is None or folder not in INNER_LAYERS or room(target) != folder:
        return False
    layers, a, b = INNER_LAYERS[folder], inner_room(found.importer), inner_room(target)
    return a != b and layers[b] >= layers[a]


def leaves_the_library(found: Import) -> bool:
    return room(found.target).startswith("rtlang") and room(found.target) != PACKAGE


def triton_out_of_place(found: Import) -> bool:
    return room(found.target) == "triton" and room(found.importer) != "triton"


def torch_out_of_place(found: Import) -> bool:
    return found.importer in TORCH_FREE and room(found.target) == "torch"


def backend_at_module_level(found: Import) -> bool:
    target = inner(found.target)
    is_backend = target is not None and room(target) in IMPORTED_ON_FIRST_USE
    return is_backend and found.importer in ("dispatch", "ops", "") and not found.is_inside_function


RULES = [
    upward,
    upward_inside,
    leaves_the_library,
    triton_out_of_place,
    torch_out_of_place,
    backend_at_module_level,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_import_breaks_a_rule(rule: object) -> None:
    assert callable(rule)
    assert [found for found in all_imports() if rule(found)] == []


@pytest.mark.parametrize(
    ("importer", "source", "rule"),
    [
        ("planning.work_items", "from rtlang_kernels.cpu.attention import attention", upward),
        ("contract.fused_step", "if TYPE_CHECKING:\n    from rtlang_kernels.ops import sample", upward),
        ("cpu.attention.attention", "def f():\n    from rtlang_kernels import ops", upward),
        ("triton.sampling.sampler", "from rtlang_kernels.cpu.sampling import sample", upward),
        ("cpu.codegen.llvm_bridge", "from rtlang_kernels.cpu.linear import padded", upward_inside),
        ("triton.sampling.sampler", "from rtlang_kernels.triton.layers.layer_ops import norm_warps", upward_inside),
        ("triton.primitives.jit", "from rtlang_kernels.triton.aot.cases import cases", upward_inside),
        ("ops", "import rtlang_grammars.spec", leaves_the_library),
        ("ops", "from rtlang_kernels_bench.output import Output", leaves_the_library),
        ("cpu.attention.attention", "import triton.language as tl", triton_out_of_place),
        ("reference.noise", "from torch import Tensor", torch_out_of_place),
        ("dispatch", "from rtlang_kernels.cpu.attention import attention", backend_at_module_level),
    ],
)
def test_every_rule_can_fail(importer: str, source: str, rule: object) -> None:
    assert callable(rule)
    assert any(rule(found) for found in imports_of(importer, source))


def test_modules_of_a_room_import_each_other_in_no_cycle() -> None:
    """Also modules of one folder, which the layers do not order."""
    arrows: dict[str, set[str]] = {name: set() for name in modules()}
    for found in all_imports():
        target = inner(found.target)
        if target in arrows and target != found.importer:
            arrows[found.importer].add(str(target))
    while leaves := {name for name, targets in arrows.items() if not targets}:
        arrows = {name: targets - leaves for name, targets in arrows.items() if name not in leaves}
    assert arrows == {}


def test_every_module_is_in_a_layer_and_no_folder_is_crowded() -> None:
    assert {room(name) for name in modules()} == LAYERS.keys()
    for folder, layers in INNER_LAYERS.items():
        assert {inner_room(name) for name in modules() if room(name) == folder} == layers.keys()
    assert set(TORCH_FREE) <= modules().keys()
    folders = {path.parent for path in modules().values()}
    assert [folder for folder in folders if len(list(folder.glob("*.py"))) > MAX_FILES] == []


def run(program: str) -> str:
    environment = {"PYTHONPATH": str(KERNELS), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_imports_no_compiler() -> None:
    heavy = ["torch", "numpy", "numba", "llvmlite", "triton"]
    assert run(f"import rtlang_kernels, sys; print([name for name in {heavy} if name in sys.modules])") == "[]"
    program = f"from rtlang_kernels import sample; import sys; print([n for n in {heavy[2:]} if n in sys.modules])"
    assert run(program) == "[]"


def test_every_exported_name_exists() -> None:
    names = run(
        "from rtlang_kernels import *; import rtlang_kernels as k; print(*[getattr(k, n) and n for n in k.__all__])"
    )
    import rtlang_kernels

    assert names.split() == rtlang_kernels.__all__ == sorted(rtlang_kernels.__all__)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        rtlang_kernels.no_such_name  # noqa: B018
