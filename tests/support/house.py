"""Figures about the shape of the code, a line each; standard library only, but for the calls of a decode step.

    python -m tests.support.house [--step]

With `--step`, it also counts the calls of one decode step, which loads the embedded model.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support.import_graph import (
    ROOT,
    arrows,
    arrows_within,
    circles,
    folder_sizes,
    packages,
    part_of,
    sources,
    tree_of,
)
from tests.test_layers import MAY_IMPORT
from tests.test_levels import MAX_FILES

LONG_FILE_LINES = 590
_ACCENT = {
    '"those of", "that of"': re.compile(r"\b(?:those|that)\s+of\b", re.IGNORECASE),
    '"what is", "what are", ... as a noun': re.compile(
        r"\bwhat\s+(?:is|are|was|were|has|have)\b(?![^.\n]*\?)", re.IGNORECASE
    ),
    '"behind"': re.compile(r"\bbehind\b", re.IGNORECASE),
}


def rooms() -> Iterator[str]:
    """Arrows between the folders and files directly inside `rtlang`, imports by strings included."""
    pairs = arrows_within("rtlang")
    names = {name for module in sources() if (name := part_of(module, "rtlang"))}
    listed = {
        name.removeprefix("rtlang."): {each.removeprefix("rtlang.") for each in may} for name, may in MAY_IMPORT.items()
    }
    up = [pair for pair in pairs if pair[1] not in listed.get(pair[0], set())]
    yield f"rooms of rtlang: {len(names)}, arrows {len(pairs)}, not allowed {len(up)}, circles {len(circles(pairs))}"


def folders() -> Iterator[str]:
    """Folders: pairs that import each other, sizes, imports by strings."""
    two_way = []
    for package in packages():
        inner = {part_of(each, package) for each in packages()} - {None}
        pairs = {pair for pair in arrows_within(package) if set(pair) <= inner}
        two_way += [f"{package}: {a} and {b}" for a, b in sorted(pairs) if a < b and (b, a) in pairs]
    yield f"two-way pairs of folders: {len(two_way)} {two_way or ''}".rstrip()
    in_circles = {package: found for package in packages() if (found := circles(arrows_within(package)))}
    yield f"folders with circles among their parts: {len(in_circles)} {sorted(in_circles) or ''}".rstrip()
    full = {name: count for name, count in folder_sizes().items() if count > MAX_FILES}
    yield f"folders of more than {MAX_FILES} files: {len(full)} {full or ''}".rstrip()
    strings = [each.importer for each in arrows() if each.is_string and sources()[each.importer].name != "__init__.py"]
    yield f"imports by strings outside __init__: {len(strings)} {sorted(set(strings)) or ''}".rstrip()


def files() -> Iterator[str]:
    """Lengths of files, and what the packages hold in all."""
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in sources().values()}
    full = sorted(path.relative_to(ROOT).as_posix() for path, length in lengths.items() if length >= LONG_FILE_LINES)
    yield f"files of {LONG_FILE_LINES} lines or more: {len(full)} {full or ''}".rstrip()
    yield f"lines in the packages: {sum(lengths.values()):,} in {len(lengths)} files"


def classes() -> Iterator[str]:
    """The largest constructor, the class with the most attributes that change, and names with two meanings."""
    constructors: Counter[str] = Counter()
    attributes: Counter[str] = Counter()
    named: dict[str, set[str]] = defaultdict(set)
    for module, path in sources().items():
        for node in tree_of(path).body:
            if not isinstance(node, ast.ClassDef):
                continue
            if not node.name.startswith("_") and ".compat." not in module:
                named[node.name].add(module)
            where = f"{module}.{node.name}"
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                    arguments = each.args
                    constructors[where] = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs) - 1
            if not is_frozen(node):
                attributes[where] = len(set(attributes_of(node)))
    yield "largest constructors: " + ", ".join(f"{name} {count}" for name, count in constructors.most_common(5))
    yield "most attributes: " + ", ".join(f"{name} {count}" for name, count in attributes.most_common(5))
    twice = sorted(name for name, modules in named.items() if len(modules) > 1)
    yield f"public class names with two meanings: {len(twice)} {twice or ''}".rstrip()
    stems: dict[str, set[str]] = defaultdict(set)
    for module, path in sources().items():
        if path.stem != "__init__":
            stems[path.stem].add(module)
    yield f"module names with two meanings: {sum(len(modules) > 1 for modules in stems.values())}"


def is_frozen(node: ast.ClassDef) -> bool:
    """Whether a class is a frozen dataclass."""
    return any("frozen=True" in ast.unparse(each) for each in node.decorator_list)


def attributes_of(node: ast.ClassDef) -> Iterator[str]:
    """The fields of a class, and what its methods assign to `self`."""
    is_dataclass = any("dataclass" in ast.unparse(each) for each in node.decorator_list)
    for each in node.body:
        if is_dataclass and isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.Attribute)
            and isinstance(inner.ctx, ast.Store)
            and getattr(inner.value, "id", "") == "self"
        ):
            yield inner.attr


def run_options() -> Iterator[str]:
    """How many files name each option of a run."""
    from dataclasses import fields

    from rtlang.contract.runs.run_options import RunOptions

    texts = {path: path.read_text(encoding="utf-8") for path in sources().values()}
    counts = {
        each.name: sum(re.search(rf"\b{each.name}\b", text) is not None for text in texts.values())
        for each in fields(RunOptions)
    }
    yield "package files that name a run option: " + ", ".join(f"{name} {count}" for name, count in counts.items())


def english() -> Iterator[str]:
    """Phrases that stand for an accent, per 1,000 words of comments and docstrings."""
    texts = [text for path in sources().values() for text in prose_of(path)]
    words = sum(len(text.split()) for text in texts)
    rates = {name: sum(len(phrase.findall(text)) for text in texts) * 1000 / words for name, phrase in _ACCENT.items()}
    yield f"per 1,000 of {words:,} words: " + "; ".join(f"{name} {rate:.2f}" for name, rate in rates.items())


def prose_of(path: Path) -> Iterator[str]:
    """The comments and docstrings of a source."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.string.lstrip("#: ")
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def decode_step() -> Iterator[str]:
    """Modules that one decode step of one row enters, changes between modules, and calls."""
    from tests.support.decode_step import decode_step_calls

    for is_constrained in (False, True):
        entered, changes, calls = decode_step_calls(is_constrained)
        kind = "constrained" if is_constrained else "free"
        yield f"decode step of one row, {kind}: {entered} modules, {changes} changes, {calls} calls"


def main() -> None:
    """Print all lines."""
    parts = [rooms, folders, files, classes, run_options, english, *([decode_step] if "--step" in sys.argv[1:] else [])]
    for part in parts:
        for line in part():
            print(line)


if __name__ == "__main__":
    main()
