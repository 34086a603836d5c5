"""The public names: all there, each from its home, loaded on first use."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rtlang


@pytest.mark.parametrize("name", rtlang.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(rtlang, name) is not None


def test_type_checkers_see_the_same_names() -> None:
    """The block under TYPE_CHECKING is written by hand; it must not drift from what is resolved at run time."""
    assert rtlang.__file__ is not None
    tree = ast.parse(Path(rtlang.__file__).read_text(encoding="utf-8"))
    declared = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("rtlang.")
        for alias in node.names
    }
    assert declared.pop("__version__") == ("rtlang.contract.version", "VERSION")
    assert set(declared) == set(rtlang.__all__) - {"__version__"}
    for name, (module, original) in declared.items():
        assert rtlang._HOMES[name] == (module, original)


def test_other_vocabularies_are_loaded_when_they_are_used() -> None:
    program = (
        "import sys, rtlang as rt; assert not any(name.startswith('rtlang.compat') for name in sys.modules);"
        "print(rt.compat.sglang.gen('x').name)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "x\n", done.stderr


def test_names_are_listed_and_others_refused() -> None:
    assert set(rtlang.__all__) <= set(dir(rtlang))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rtlang.nothing  # noqa: B018
