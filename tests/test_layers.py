"""The arrows between the parts: who may import whom, and where.

Read from the sources themselves, imports made only for type checking included. `LAYERS` holds the rules: imports point down, never up
and never in a circle; torch, and libraries that are slow to import, stay where they are needed.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"rtlang": ROOT, "rtlang_kernels": ROOT / "kernels", "rtlang_grammars": ROOT / "grammars"}

LAYERS = {
    "rtlang": 6,  # the package itself hands names of all layers on
    "rtlang.__main__": 6,
    "rtlang.bench": 6,
    "rtlang.console": 6,
    "rtlang.serve": 5,
    "rtlang.engine": 4,
    "rtlang.model": 3,
    "rtlang.cache": 2,
    "rtlang.lang": 2,
    "rtlang.step": 2,
    "rtlang.events": 2,
    "rtlang.config": 1,
    "rtlang.params": 1,
    "rtlang.errors": 0,
    "rtlang.metrics": 0,
    "rtlang.version": 0,
    "rtlang_kernels": 0,
    "rtlang_grammars": 0,
}
ENGINE_MAY_TAKE_FROM_LANG = {"rtlang.lang.graph", "rtlang.lang.passes", "rtlang.lang.target"}
CLIENT_SIDE = {"rtlang.serve.client", "rtlang.serve.connection", "rtlang.serve.messages"}
CLIENT_SIDE_MAY_TAKE = (
    "rtlang.lang",
    "rtlang.events",
    "rtlang.params",
    "rtlang.errors",
    "rtlang.config",
    "rtlang.serve",
)
MAY_IMPORT_TORCH = (
    "rtlang.model",
    "rtlang.cache.pool",
    "rtlang_kernels",
    "rtlang.bench.static_batching",  # the baseline is transformers used directly
)
NEVER_AT_MODULE_LEVEL = {"triton", "transformers", "outlines", "outlines_core", "llguidance", "xgrammar"}
# Kernels are compiled where they are defined, so these import triton at module level; others import them inside a function only.
TRITON_SIDE = "rtlang_kernels.triton_ops"
# Besides those, slow to import (tens of milliseconds to seconds) and of use to few programs.
MAY_BE_INSIDE_A_FUNCTION = NEVER_AT_MODULE_LEVEL | {
    "pydantic",
    "pydantic_core",
    "jsonschema",
    "jsonschema_specifications",
    "referencing",
    "rich",
    "typing_extensions",
    "huggingface_hub",
    "lark",
    "flashinfer",
}


@dataclass(frozen=True)
class Import:
    """One imported module as one source file names it."""

    importer: str
    target: str
    line: int
    is_inside_function: bool
    is_for_types: bool  # under `if TYPE_CHECKING`, never run

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


@cache
def modules() -> dict[str, Path]:
    """Every module of the three packages by its dotted name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted((folder / package).rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(name: str, source: str, *, is_package: bool = False) -> Iterator[Import]:
    """All imports of one module, at any depth."""

    def visit(node: ast.AST, is_inside: bool, is_for_types: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, alias.name, node.lineno, is_inside, is_for_types)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".")
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(name, full if full in modules() else base, node.lineno, is_inside, is_for_types)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        is_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, is_inside or is_function, is_for_types or is_types)

    yield from visit(ast.parse(source), False, False)


@cache
def all_imports() -> tuple[Import, ...]:
    return tuple(
        found
        for name, path in modules().items()
        for found in imports_of(name, path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py")
    )


def is_within(module: str, part: str) -> bool:
    return module == part or module.startswith(part + ".")


def is_ours(module: str) -> bool:
    return module.split(".")[0] in PACKAGES


def layer(module: str) -> int:
    """The layer of the longest listed part that holds the module; only rtlang itself counts as `rtlang`."""
    parts = [part for part in LAYERS if is_within(module, part) and (part != "rtlang" or module == "rtlang")]
    assert parts, f"{module} is in no layer: list it in tests/test_layers.py"
    return LAYERS[max(parts, key=len)]


def upward(found: Import) -> bool:
    return is_ours(found.target) and layer(found.importer) < layer(found.target)


def leaves_its_library(found: Import) -> bool:
    importer, target = found.importer.split(".")[0], found.target.split(".")[0]
    return importer in ("rtlang_kernels", "rtlang_grammars") and is_ours(target) and target != importer


def takes_too_much_of_lang(found: Import) -> bool:
    return (
        is_within(found.importer, "rtlang.engine")
        and is_within(found.target, "rtlang.lang")
        and found.target not in ENGINE_MAY_TAKE_FROM_LANG
    )


def torch_out_of_place(found: Import) -> bool:
    return is_within(found.target, "torch") and not any(is_within(found.importer, part) for part in MAY_IMPORT_TORCH)


def slow_at_module_level(found: Import) -> bool:
    is_slow = found.target.split(".")[0] in NEVER_AT_MODULE_LEVEL or is_within(found.target, TRITON_SIDE)
    return is_slow and not found.is_inside_function and not is_within(found.importer, TRITON_SIDE)


def needlessly_inside_function(found: Import) -> bool:
    may_be = found.target.split(".")[0] in MAY_BE_INSIDE_A_FUNCTION or is_within(found.target, TRITON_SIDE)
    # The CPU's kernels are compiled with numba, which the GPU's can do without.
    may_be |= is_within(found.target, "rtlang_kernels.cpu") and found.importer == "rtlang_kernels.columns"
    # Of use only to programs with schemas, and as slow to import as all else that a client needs.
    may_be |= is_within(found.target, "rtlang_grammars.value_checks") and found.importer == "rtlang.lang.types"
    return found.is_inside_function and not may_be


RULES = [
    upward,
    leaves_its_library,
    takes_too_much_of_lang,
    torch_out_of_place,
    slow_at_module_level,
    needlessly_inside_function,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_import_breaks_a_rule(rule: object) -> None:
    assert callable(rule)
    assert [str(found) for found in all_imports() if rule(found)] == []


def test_the_client_side_of_serve_needs_no_engine() -> None:
    """With all that it imports inside serve, so that a client process stays light."""
    reached, stack = set(CLIENT_SIDE), list(CLIENT_SIDE)
    while stack:
        name = stack.pop()
        for found in all_imports():
            if found.importer == name and is_within(found.target, "rtlang.serve") and found.target not in reached:
                reached.add(found.target)
                stack.append(found.target)
    assert reached <= modules().keys()
    forbidden = [
        str(found)
        for found in all_imports()
        if found.importer in reached
        and is_ours(found.target)
        and not any(is_within(found.target, part) for part in CLIENT_SIDE_MAY_TAKE)
    ]
    assert forbidden == []


def test_imports_make_no_circle() -> None:
    arrows: dict[str, set[str]] = {name: set() for name in modules()}
    for found in all_imports():
        if found.target in arrows and not found.is_for_types:
            arrows[found.importer].add(found.target)
    while sources := {
        name for name, targets in arrows.items() if not targets
    }:  # peel off what imports nothing that is left
        for name in sources:
            del arrows[name]
        for targets in arrows.values():
            targets -= sources
    assert arrows == {}


def test_package_files_hold_a_docstring_only() -> None:
    for name, path in modules().items():
        if path.name == "__init__.py" and name not in ("rtlang", "rtlang.model"):  # rtlang.model prepares for torch
            body = ast.parse(path.read_text(encoding="utf-8")).body
            assert len(body) == 1, f"{name}/__init__.py holds more than a docstring"
            assert isinstance(body[0], ast.Expr)
            assert isinstance(body[0].value, ast.Constant)
            assert isinstance(body[0].value.value, str)


@pytest.mark.parametrize("statement", ["import rtlang", "import rtlang.serve.client", "import rtlang.lang.run"])
def test_light_parts_load_nothing_heavy(statement: str) -> None:
    heavy = sorted({"torch", "numba"} | MAY_BE_INSIDE_A_FUNCTION)
    program = f"{statement}\nimport sys\nprint([name for name in {heavy} if name in sys.modules])"
    environment = {"PYTHONPATH": ":".join(str(folder) for folder in PACKAGES.values()), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("importer", "source", "rule"),
    [
        ("rtlang.model.runner", "from rtlang.engine import scheduler", upward),
        ("rtlang.errors", "import rtlang.params", upward),
        ("rtlang.cache.radix", "def f():\n    from rtlang.model.config import ModelConfig", upward),
        ("rtlang.lang.run", "from rtlang import Runtime", upward),
        ("rtlang.serve.native", "import rtlang.bench.report", upward),
        ("rtlang_kernels.ops", "from rtlang.step import Step", leaves_its_library),
        ("rtlang_grammars.spec", "import rtlang_kernels", leaves_its_library),
        ("rtlang.engine.runtime", "from rtlang.lang import run", takes_too_much_of_lang),
        ("rtlang.engine.runtime", "from rtlang.lang.program import program", takes_too_much_of_lang),
        ("rtlang.engine.engine", "if TYPE_CHECKING:\n    from torch import Tensor", torch_out_of_place),
        ("rtlang.cache.prefix_cache", "import torch.nn.functional as F", torch_out_of_place),
        ("rtlang_grammars.matcher", "import torch", torch_out_of_place),
        ("rtlang.model.zoo", "from transformers import AutoModel", slow_at_module_level),
        ("rtlang_kernels.cpu.layers", "import triton", slow_at_module_level),
        ("rtlang_kernels.columns", "from rtlang_kernels.triton_ops import attention", slow_at_module_level),
        ("rtlang.lang.types", "def f():\n    import json", needlessly_inside_function),
        ("rtlang.lang.types", "class A:\n    def f(self):\n        from . import graph", needlessly_inside_function),
    ],
)
def test_every_rule_can_fail(importer: str, source: str, rule: object) -> None:
    assert callable(rule)
    assert any(rule(found) for found in imports_of(importer, source))


def test_relative_imports_are_resolved() -> None:
    (found,) = imports_of("rtlang.lang.run", "from .. import engine")
    assert found.target == "rtlang.engine"
    (found,) = imports_of("rtlang.cache", "from .pages import PageOwner", is_package=True)
    assert found.target == "rtlang.cache.pages"
