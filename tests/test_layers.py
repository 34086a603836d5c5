"""The arrows between the parts: who may import whom, and where.

Read from the sources themselves, imports made only for type checking included. `MAY_IMPORT` holds the rules: imports point down, never
up and never in a circle; torch, and libraries that are slow to import, stay where they are needed.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "rtlang": ROOT,
    "rtlang_bench": ROOT / "benchmarks",
    "rtlang_kernels": ROOT / "kernels",
    "rtlang_kernels_bench": ROOT / "kernels" / "benchmarks",
    "rtlang_grammars": ROOT / "grammars",
}

LIBRARIES = {"rtlang_kernels", "rtlang_grammars"}
# For each part, the parts that it may import; each of them stands above it in this table.
MAY_IMPORT: dict[str, set[str]] = {
    "rtlang_kernels": set(),  # inner layers: tests/kernels/test_layers.py
    "rtlang_kernels_bench": {"rtlang_kernels"},
    "rtlang_grammars": set(),  # inner layers: tests/grammars/test_layers.py
    "rtlang.contract": {"rtlang_grammars"},
    "rtlang.compiler": {"rtlang.contract"},
    "rtlang.tool_servers": {"rtlang.contract"},
    "rtlang.lang": {"rtlang.contract", "rtlang.compiler", "rtlang.tool_servers", "rtlang_grammars"},
    "rtlang.work": {"rtlang.contract"},
    "rtlang.cache": set(),
    "rtlang.model": {"rtlang.contract", "rtlang.cache", *LIBRARIES},
    "rtlang.engine": {"rtlang.contract", "rtlang.work", "rtlang.cache", "rtlang.model", "rtlang_grammars"},
    "rtlang.protocol": {"rtlang.contract"},
    "rtlang.client": {"rtlang.contract", "rtlang.protocol"},
    "rtlang.runtime": {"rtlang.contract", "rtlang.work", "rtlang.model", "rtlang.engine", "rtlang_grammars"},
    "rtlang.testing": {"rtlang.contract", "rtlang.runtime"},
    "rtlang.cassette": {"rtlang.contract", "rtlang.lang", "rtlang.protocol", "rtlang.runtime", "rtlang_grammars"},
    "rtlang.fleet": {"rtlang.client", "rtlang.contract", "rtlang.work", "rtlang.protocol", "rtlang.runtime"},
    "rtlang.serve": {"rtlang.contract", "rtlang.work", "rtlang.protocol", "rtlang.tool_servers", "rtlang_grammars"},
    "rtlang.compat": {"rtlang.fleet", "rtlang.contract", "rtlang.lang", "rtlang.runtime"},
    "rtlang": {
        "rtlang.cassette",
        "rtlang.contract",
        "rtlang.lang",
        "rtlang.client",
        "rtlang.fleet",
        "rtlang.compat",
        "rtlang.runtime",
    },  # hands names on
    "rtlang.bench": {
        "rtlang",
        "rtlang.cache",
        "rtlang.client",
        "rtlang.fleet",
        "rtlang.compiler",
        "rtlang.contract",
        "rtlang.engine",
        "rtlang.lang",
        "rtlang.model",
        "rtlang.runtime",
        *LIBRARIES,
    },
    "rtlang.console": {
        *("rtlang.contract", "rtlang.lang", "rtlang.model", "rtlang.bench", "rtlang_grammars"),
        *("rtlang.cassette", "rtlang.fleet", "rtlang.runtime", "rtlang.serve"),
    },
    "rtlang.__main__": {
        *("rtlang", "rtlang.contract", "rtlang.lang", "rtlang.model", "rtlang.bench", "rtlang.console"),
        "rtlang_grammars",
    },
    "rtlang_bench.conformance": set(),  # knows no code of the server that it checks
    "rtlang_bench": {
        *(
            f"rtlang.{part}"
            for part in ("bench", "cache", "client", "fleet", "compiler", "console", "contract", "engine")
        ),
        *(f"rtlang.{part}" for part in ("lang", "model", "protocol", "runtime", "serve", "testing", "work")),
        *("rtlang", "rtlang_kernels_bench", *LIBRARIES),
    },
}
MAY_IMPORT_TORCH = (
    "rtlang.model",
    "rtlang.cache.pool",
    "rtlang_kernels",
    "rtlang_kernels_bench",
    "rtlang_grammars.plugs",
    "rtlang.bench.baselines.static_batching",  # the baseline is transformers used directly
    "rtlang_bench.device.copies",
    "rtlang_bench.device.goals.profile",
    "rtlang_bench.device.launches",  # counts operators
    "rtlang_bench.device.pretended",
    "rtlang_bench.experts",
    "rtlang_bench.hybrid_step",  # these time steps of a model
    "rtlang_bench.latent_step",
)
NEVER_AT_MODULE_LEVEL = {"triton", "transformers", "outlines", "outlines_core", "llguidance", "xgrammar"}
# Kernels are compiled where they are defined, so these import triton at module level; others import them inside a function only.
TRITON_SIDE = "rtlang_kernels.triton"
# Modules for one other library each, which are of no use without it; nothing of ours imports them.
PLUGS = "rtlang_grammars.plugs"
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
    "tokenizers",
    "flashinfer",
    "opentelemetry",
    "mcp",
}


# Imports of our own inside functions: importer, what it imports, and why not at module level. Each has a part or module and all within it.
MAY_BE_LAZY = (
    ("rtlang.console.doctor", "rtlang.model.gpu.prompt_kernels", "only a machine with a GPU and triton needs it"),
    ("rtlang_kernels.dispatch", "rtlang_kernels.cpu", "the CPU's kernels load numba, which the GPU's do without"),
    ("rtlang.lang.output_types.types", "rtlang_grammars.schema.value_checks", "only programs with schemas need it"),
    (
        "rtlang.lang.output_types.schemas.pydantic_schema",
        "rtlang_grammars.regular.language",
        "only programs with types need it",
    ),
    (
        "rtlang.lang.output_types.schemas.json_texts",
        "rtlang_grammars.regular.language",
        "only programs with types need it",
    ),
    (PLUGS, f"{PLUGS}.llama_cpp", "the plug into outlines serves two libraries, of which one is enough"),
    (f"{PLUGS}.vllm", "rtlang_grammars", "vllm's workers must not load numba"),
    ("rtlang.contract.request_graph", "rtlang.contract.pictures", "only a picture needs it"),
    ("rtlang_grammars.machine", "rtlang_grammars.machine.native.code_compiler", "it loads numba"),
    ("rtlang_grammars", "rtlang_grammars.lowering.lexed_tables", "it loads lark: 60 ms that only grammars need"),
    ("rtlang_grammars", "rtlang_grammars.lowering.anywhere_tables", "it loads lark: 60 ms that only grammars need"),
    ("rtlang_grammars", "rtlang_grammars.context_free.lexer_build.parse_trees", "it loads lark"),
    ("rtlang", "rtlang_grammars.context_free.lexer_build.parse_trees", "it loads lark"),
    ("rtlang_grammars", "rtlang_grammars.context_free.lark_reader", "it loads lark"),
    ("rtlang", "rtlang_grammars.context_free.lark_reader", "it loads lark"),
    ("rtlang.__main__", "rtlang.console.grammar_report", "`--help` loads no numba"),
    ("rtlang.__main__", "rtlang.console.serving", "`--help` loads no server"),
    ("rtlang.console.batch", "rtlang.serve", "`--help` loads no server"),
    ("rtlang.__main__", "rtlang.model.kernel_choices", "`--help` loads no torch"),
    ("rtlang.__main__", "rtlang.model.loader", "`--help` loads no torch"),
    ("rtlang.__main__", "rtlang_grammars.api.precompile", "`--help` loads no numba"),
    ("rtlang.compat.sglang.runtimes", "rtlang.runtime", "programs on a server load no torch"),
    ("rtlang.bench.workloads.catalogue", "rtlang.bench.workloads", "the names of workloads load no torch"),
    ("rtlang_bench", "rtlang.fleet.ray", "Ray is optional"),
    ("rtlang_bench.ray_serve", "rtlang_bench.ray_serve.replicas", "Ray is optional"),
    ("rtlang.console.bench.commands", "rtlang.bench", "`--help` loads no torch"),
    ("rtlang.bench.checkpoint", "rtlang.model.loading.gguf.container", "`--help` loads no torch"),
    ("rtlang.console.chat", "rtlang_grammars.api.inspection", "a chat with a server loads no numba"),
    ("rtlang.console.doctor", "rtlang_grammars.machine.native.native_code", "it reports a numba that does not load"),
    ("rtlang.console.loading", "rtlang.cassette.surface", "only runs with a journal need it"),
    ("rtlang.console.mcp.commands", "rtlang.console.mcp.program_server", "MCP is optional"),
    ("rtlang.console.questions.commands", "rtlang.console.questions.page", "only the page needs a server"),
    ("rtlang.console.checkpoints.quantize_command", "rtlang.model.quantization", "`--help` loads no torch"),
    ("rtlang.console.loading", "rtlang.runtime", "`rtlang run --url` loads no torch"),
    ("rtlang.fleet.connect", "rtlang.fleet.ray", "Ray is an optional dependency and takes seconds to load"),
    ("rtlang.console.fleet_commands", "rtlang.fleet.ray", "Ray is optional"),
    ("rtlang.console.serving", "rtlang.fleet.ray", "Ray is optional"),
    ("rtlang.fleet.ray.head", "ray", "Ray takes seconds to load; a wrong or dead address is told before"),
    ("rtlang.fleet.ray.engine_actor", "rtlang.fleet.host.engine_host", "a frontend creates actors without torch"),
    ("rtlang.console.chat", "readline", "importing it changes `input`"),
)


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
    """Every module of the packages by its dotted name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted((folder / package).rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(name: str, source: str, *, is_package: bool = False) -> Iterator[Import]:
    """All imports of one module, at any depth. Only statements are visited: no expression has an import."""

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
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
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


def part_of(module: str) -> str:
    """The longest listed part that holds the module; only rtlang itself counts as `rtlang`."""
    parts = [part for part in MAY_IMPORT if is_within(module, part) and (part != "rtlang" or module == "rtlang")]
    assert parts, f"{module} belongs to no part: list it in tests/test_layers.py"
    return max(parts, key=len)


def leaves_its_part(found: Import) -> bool:
    if not is_ours(found.target):
        return False
    importer, target = part_of(found.importer), part_of(found.target)
    return target != importer and target not in MAY_IMPORT[importer]


def torch_out_of_place(found: Import) -> bool:
    return is_within(found.target, "torch") and not any(is_within(found.importer, part) for part in MAY_IMPORT_TORCH)


def slow_at_module_level(found: Import) -> bool:
    is_slow = found.target.split(".")[0] in NEVER_AT_MODULE_LEVEL or is_within(found.target, TRITON_SIDE)
    is_allowed = is_within(found.importer, TRITON_SIDE) or is_within(found.importer, PLUGS)
    return is_slow and not found.is_inside_function and not is_allowed


def needlessly_inside_function(found: Import) -> bool:
    is_slow = found.target.split(".")[0] in MAY_BE_INSIDE_A_FUNCTION or is_within(found.target, TRITON_SIDE)
    may_be = is_slow or any(is_within(found.importer, a) and is_within(found.target, b) for a, b, _ in MAY_BE_LAZY)
    return found.is_inside_function and not may_be


RULES = [
    leaves_its_part,
    torch_out_of_place,
    slow_at_module_level,
    needlessly_inside_function,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_import_breaks_a_rule(rule: object) -> None:
    assert callable(rule)
    assert [str(found) for found in all_imports() if rule(found)] == []


def test_parts_only_import_parts_listed_before_them() -> None:
    listed: set[str] = set()
    for part, allowed in MAY_IMPORT.items():
        assert allowed <= listed, part
        listed.add(part)


def test_no_module_of_ours_is_imported_by_a_string() -> None:
    """Such an import is seen by no rule of this file, and its value by no type checker."""
    found = []
    for name, path in modules().items():
        source = path.read_text(encoding="utf-8")
        if path.name == "__init__.py" or not re.search(r"import_module|__import__", source):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
                text = ast.unparse(node.args[0])
                if re.search(r"\brtlang(_grammars|_kernels)?\.", text):
                    found.append(f"{name}:{node.lineno} imports {text}")
    assert found == []


def test_imports_make_no_circle() -> None:
    arrows: dict[str, set[str]] = {name: set() for name in modules()}
    for found in all_imports():
        if found.target in arrows and found.target != found.importer:
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
        if path.name == "__init__.py" and name not in (
            "rtlang",
            "rtlang.model",  # prepares for torch
            "rtlang.compat.sglang",
            "rtlang_kernels",
            "rtlang_grammars",
        ):
            body = ast.parse(path.read_text(encoding="utf-8")).body
            assert len(body) == 1, f"{name}/__init__.py holds more than a docstring"
            assert isinstance(body[0], ast.Expr)
            assert isinstance(body[0].value, ast.Constant)
            assert isinstance(body[0].value.value, str)


@pytest.mark.parametrize(
    "statement",
    [
        "import rtlang",
        "import rtlang.client.connect",
        "import rtlang.lang.execution.run",
        "import rtlang.compat.sglang",
    ],
)
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
        ("rtlang.model.host_runner", "from rtlang.engine import scheduler", leaves_its_part),
        ("rtlang.contract.errors", "if TYPE_CHECKING:\n    import rtlang.lang.program", leaves_its_part),
        (
            "rtlang.cache.radix",
            "def f():\n    from rtlang.model.loading.model_config import ModelConfig",
            leaves_its_part,
        ),
        ("rtlang.lang.execution.run", "from rtlang import Runtime", leaves_its_part),
        ("rtlang.serve.http.app", "import rtlang.bench.machine", leaves_its_part),
        ("rtlang.client.connect", "from rtlang.serve import connection", leaves_its_part),
        ("rtlang_kernels.ops", "from rtlang.contract.step import Step", leaves_its_part),
        ("rtlang_grammars.spec", "import rtlang_kernels", leaves_its_part),
        ("rtlang.engine.engine", "from rtlang.lang.program import program", leaves_its_part),
        ("rtlang.engine.engine", "if TYPE_CHECKING:\n    from torch import Tensor", torch_out_of_place),
        ("rtlang.cache.prefix_cache", "import torch.nn.functional as F", torch_out_of_place),
        ("rtlang_grammars.matcher", "import torch", torch_out_of_place),
        ("rtlang.model.decoders.transformers_decoder", "from transformers import AutoModel", slow_at_module_level),
        ("rtlang_kernels.cpu.layer_ops", "import triton", slow_at_module_level),
        (
            "rtlang_kernels.dispatch",
            "from rtlang_kernels.triton.attention import paged_attention",
            slow_at_module_level,
        ),
        ("rtlang.lang.output_types.types", "def f():\n    import json", needlessly_inside_function),
        (
            "rtlang.lang.output_types.types",
            "class A:\n    def f(self):\n        from . import graph",
            needlessly_inside_function,
        ),
    ],
)
def test_every_rule_can_fail(importer: str, source: str, rule: object) -> None:
    assert callable(rule)
    assert any(rule(found) for found in imports_of(importer, source))


def test_relative_imports_are_resolved() -> None:
    (found,) = imports_of("rtlang.lang.execution.run", "from ... import engine")
    assert found.target == "rtlang.engine"
    (found,) = imports_of("rtlang.cache", "from .pages import PageOwner", is_package=True)
    assert found.target == "rtlang.cache.pages"
