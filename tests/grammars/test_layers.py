"""The layers of the grammar library: folders import downwards only, at every depth, imports for type checking included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "grammars" / "rtlang_grammars"
MAX_FILES = 15

LEVELS: dict[str, dict[str, int]] = {
    "": {
        "spec": 0,
        "regular": 1,
        "completion": 1,
        "context_free": 2,
        "schema": 3,
        "machine": 2,
        "formats": 1,
        "lowering": 4,
        "storage": 5,
        "api": 6,
        "plugs": 7,
    },
    "context_free": {
        "lark_errors": 0,
        "lark_library": 0,
        "lark_tokens": 0,
        "lazy_repeats": 0,
        "notation": 1,
        "cfg": 2,
        "lark_source": 3,
        "prefixes": 3,
        "ebnf": 3,
        "folding": 3,
        "left_recursion": 3,
        "gbnf_macros": 4,
        "regular_terminals": 4,
        "gbnf_reader": 5,
        "lark_reader": 5,
        "lexer_build": 5,
    },
    "formats": {
        "description": 0,
        "schemas": 0,
        "strict_schema": 0,
        "json_scan": 0,
        "tools": 1,
        "excluded_texts": 1,
        "written_format": 1,
        "catalogue": 2,
        "arguments": 2,
        "reasoning": 3,
        "tool_grammar": 3,
        "parameter_styles": 3,
        "structural_tag": 4,
        "parsing": 4,
        "rendering": 5,
        "measuring": 6,
    },
    "regular": {"characters": 0, "patterns": 1, "automata": 2, "language": 3, "string_formats": 4, "numeric": 4},
    "schema": {
        "reading": 0,
        "normal_form": 1,
        "keywords": 2,
        "shape_graph": 2,
        "compiler": 3,
        "value_checks": 3,
        "json_options": 0,
    },
    "machine": {
        "automaton": 0,
        "locks": 0,
        "native": 1,
        "token_index": 2,
        "lexer_run": 3,
        "lexed": 4,
        "string_masks": 2,
        "raw_masks": 3,
        "masks": 4,
        "grammar": 5,
        "table_completion": 6,
        "matcher": 7,
        "token_readings": 8,
        "batch": 8,
        "export": 8,
    },
    "lowering": {
        "languages": 0,
        "grammars": 1,
        "json_shapes": 1,
        "structure_check": 2,
        "tool_schemas": 1,
        "grammar_arguments": 1,
        "structure_tables": 2,
        "schema_rules": 2,
        "report_tables": 0,
        "lexed_tables": 3,
        "lexer_loops": 2,
        "anywhere_tables": 4,
        "compilation": 5,
    },
}
"""Of each folder with inner folders, the level of its parts. A part imports parts of lower levels only."""


@cache
def imports() -> tuple[tuple[str, str], ...]:
    """Importing module and imported module, as paths within the package."""
    return tuple((name, target) for name, source in modules().items() for target in targets_of(source))


@cache
def modules() -> dict[str, str]:
    """Source text by dotted path within the package; a package by its own name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def targets_of(source: str) -> Iterator[str]:
    """The modules of the library that a source imports, at any depth; "" is the package itself."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, _, inner = name.partition(".")
            if first == "rtlang_grammars":
                while inner and inner not in modules():
                    inner = inner.rpartition(".")[0]
                yield inner


def part_of(module: str, folder: str) -> str | None:
    """The part of a folder that holds a module; None where it lies elsewhere."""
    if not folder:
        return module.partition(".")[0]
    return module.removeprefix(folder + ".").partition(".")[0] if module.startswith(folder + ".") else None


def arrows(folder: str) -> set[tuple[str, str]]:
    """Which part of a folder imports which other part."""
    pairs = ((part_of(name, folder), part_of(target, folder)) for name, target in imports())
    return {(name, target) for name, target in pairs if name and target and name != target}


@pytest.mark.parametrize("folder", LEVELS)
def test_parts_import_lower_parts_only(folder: str) -> None:
    levels = LEVELS[folder]
    assert [pair for pair in sorted(arrows(folder)) if levels[pair[0]] <= levels[pair[1]]] == []


def test_every_part_has_a_level() -> None:
    parts = {folder: {part_of(name, folder) for name in modules()} - {None, ""} for folder in LEVELS}
    assert parts == {folder: set(levels) for folder, levels in LEVELS.items()}
    with_folders = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("*/*/__init__.py")}
    assert {each.rpartition("/")[0] or each for each in with_folders} == set(LEVELS) - {""} | set()


def test_the_graph_of_folders_stays_small() -> None:
    assert len(LEVELS[""]) <= 11
    assert len(arrows("")) <= 32


def test_modules_import_each_other_in_no_circle() -> None:
    waiting = {name: {target for each, target in imports() if each == name} & modules().keys() for name in modules()}
    while leaves := {name for name, targets in waiting.items() if not targets - {name}}:
        waiting = {name: targets - leaves for name, targets in waiting.items() if name not in leaves}
    assert waiting == {}


def test_no_module_imports_the_package_itself() -> None:
    assert [name for name, target in imports() if target == ""] == []


def test_folders_hold_few_files() -> None:
    folders = [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    sizes = {str(folder.relative_to(PACKAGE)): sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > MAX_FILES} == {}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("from rtlang_grammars.spec.errors import GrammarError", "spec.errors"),
        ("from rtlang_grammars.spec import limits", "spec.limits"),
        ("import rtlang_grammars.machine.masks", "machine.masks"),
        ("def f():\n    from rtlang_grammars import RtlangBackend", ""),
        ("if TYPE_CHECKING:\n    from rtlang_grammars.schema.compiler import compile_shapes", "schema.compiler"),
    ],
)
def test_imports_are_found_wherever_they_are(source: str, target: str) -> None:
    assert list(targets_of(source)) == [target]
