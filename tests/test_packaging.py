"""Package metadata: each distribution declares exactly the libraries that it imports, and all of them share version and Python range."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    ".": ["rtlang", "kernels/rtlang_kernels", "grammars/rtlang_grammars"],
    "grammars": ["grammars/rtlang_grammars"],
    "kernels": ["kernels/rtlang_kernels"],
}
# Imported inside functions that report a missing library: rivals in benchmarks, and what other declared libraries bring along.
UNDECLARED = {
    ".": {
        "flashinfer",
        "llama_cpp",
        "vllm",
        "sglang",
        "mlx",  # a requirement of `mlx-lm`
        "outlines_core",
        "referencing",
        "pydantic_core",
        "typing_extensions",
        "anyio",  # with the next one, a part of `mcp`
        "mcp_types",
    },
    "grammars": {"jsonschema", "referencing", "llama_cpp", "mlx", "pydantic"},
    "kernels": set(),
}


def project(folder: str) -> dict[str, Any]:
    with (ROOT / folder / "pyproject.toml").open("rb") as file:
        table = tomllib.load(file)["project"]
    assert isinstance(table, dict)
    return table


def module_name(requirement: str) -> str:
    name = re.split(r"[^\w-]", requirement)[0].replace("-", "_")
    if name.startswith("opentelemetry_"):  # a namespace of several distributions
        return "opentelemetry"
    return {"grpcio": "grpc", "pyyaml": "yaml"}.get(name, name)


def imported(folder: str) -> set[str]:
    """Top-level modules of other libraries that the packages of a distribution import or read data files of."""
    return set().union(*map(imported_by, PACKAGES[folder]))


@cache
def imported_by(package: str) -> set[str]:
    """Top-level modules of other libraries that a package imports or reads data files of."""
    found = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    found |= {alias.name.split(".")[0] for alias in names}
                case ast.ImportFrom(module=str(module), level=0):
                    found.add(module.split(".")[0])
                case ast.Call(func=ast.Attribute(attr="files"), args=[ast.Constant(value=str(package))]):
                    found.add(package.split(".")[0])
    return found - sys.stdlib_module_names - {Path(package).name for package in PACKAGES["."]}


@pytest.mark.parametrize("folder", PACKAGES)
def test_every_dependency_is_imported(folder: str) -> None:
    required = {module_name(each) for each in project(folder)["dependencies"]}
    assert required - imported(folder) == set()


@pytest.mark.parametrize("folder", PACKAGES)
def test_every_import_is_declared(folder: str) -> None:
    table = project(folder)
    extras = [
        each for name, extra in table["optional-dependencies"].items() if name not in ("dev", "docs") for each in extra
    ]
    declared = {module_name(each) for each in [*table["dependencies"], *extras]}
    assert imported(folder) - declared - UNDECLARED[folder] == set()


def test_the_distributions_share_version_license_and_python_range() -> None:
    tables = [project(folder) for folder in PACKAGES]
    assert len({table["version"] for table in tables}) == 1
    assert {table["license"] for table in tables} == {"Apache-2.0"}
    assert len({table["requires-python"] for table in tables}) == 1
    assert len({(ROOT / folder / "LICENSE").read_bytes() for folder in PACKAGES}) == 1
