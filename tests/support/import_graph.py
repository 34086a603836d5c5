"""The imports of our packages, read from their sources: at any depth, made only for type checking, and through `import_module`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = {"rtlang": ROOT, "rtlang_kernels": ROOT / "kernels", "rtlang_grammars": ROOT / "grammars"}
"""Of each package that a wheel carries, the folder that holds it."""


@dataclass(frozen=True)
class Arrow:
    """One import of a module of ours.

    Attributes:
        importer: dotted name of the importing module.
        target: dotted name of the imported module or package.
        is_string: named in a call of `import_module`.
    """

    importer: str
    target: str
    is_string: bool = False


@cache
def sources() -> Mapping[str, Path]:
    """Every module by its dotted name; a package by its own name."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted((folder / package).rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a source. It is not kept: trees of all sources have millions of objects, which slow every garbage collection."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def arrows() -> tuple[Arrow, ...]:
    """All imports between modules of ours."""
    return tuple(
        found for name, path in sources().items() for found in arrows_of(name, tree_of(path)) if found.target != name
    )


def arrows_of(importer: str, tree: ast.AST) -> Iterator[Arrow]:
    """The imports of one source that lead to modules of ours."""
    for node in ast.walk(tree):
        is_string = False
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and called(node.func) in ("import_module", "_import_module", "__import__"):
            names, is_string = [text_of(argument) for argument in node.args[:1]], True
        else:
            continue
        for name in names:
            if name.partition(".")[0] in FOLDERS:
                while name not in sources():
                    name = name.rpartition(".")[0]
                yield Arrow(importer, name, is_string)


def called(function: ast.expr) -> str:
    """The name of a called function, without the module that it belongs to."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def text_of(argument: ast.expr) -> str:
    """A literal string, or the literal beginning of an f-string; else empty."""
    if isinstance(argument, ast.JoinedStr) and argument.values:
        argument = argument.values[0]
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else ""


def part_of(module: str, folder: str) -> str | None:
    """The file or inner folder of a package that holds a module; None for the package itself and for modules elsewhere."""
    return module.removeprefix(folder + ".").partition(".")[0] if module.startswith(folder + ".") else None


def arrows_within(folder: str) -> set[tuple[str, str]]:
    """Which part of a package imports which other part."""
    pairs = ((part_of(each.importer, folder), part_of(each.target, folder)) for each in arrows())
    return {(name, target) for name, target in pairs if name and target and name != target}


def packages() -> list[str]:
    """The packages, that is, folders with modules."""
    return [name for name, path in sources().items() if path.name == "__init__.py"]


def folder_sizes() -> dict[str, int]:
    """The number of files of each package."""
    return {name: sum(path.is_file() for path in sources()[name].parent.iterdir()) for name in packages()}


def circles(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The groups of names that reach each other along arrows."""
    targets: dict[str, set[str]] = {}
    for name, target in pairs:
        targets.setdefault(name, set()).add(target)
    reach = {name: reached(name, targets) for name in targets}
    groups = {
        tuple(sorted(each for each in found if name in reach.get(each, ())))
        for name, found in reach.items()
        if name in found
    }
    return [list(group) for group in sorted(groups)]


def reached(name: str, targets: Mapping[str, set[str]]) -> set[str]:
    """The names that lie along the arrows from one; it is among them if it lies in a circle."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for each in targets.get(waiting.pop(), ()):
            if each not in found:
                found.add(each)
                waiting.append(each)
    return found
