"""The examples of the README run as they stand, and loading the library stays cheap."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import rtlang_grammars

GRAMMARS = Path(__file__).parents[2] / "grammars"
EXAMPLES = re.findall(r"```python\n(.*?)```", (GRAMMARS / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def output_of(program: str) -> str:
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(GRAMMARS)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_examples_run_without_torch() -> None:
    forbid = "import sys; sys.modules['torch'] = sys.modules['tokenizers'] = None\n"
    program = forbid + "\n".join(EXAMPLES) + "\nassert token_id in allowed, token_id"
    assert output_of(program) == "[b'7', b't', b'true']\n"


def test_importing_the_library_loads_nothing() -> None:
    program = "import sys, rtlang_grammars; print(sorted({'numpy', 'numba', 'torch', 'regex'} & {*sys.modules}))"
    assert output_of(program) == "[]\n"


def test_every_exported_name_is_there_and_typed() -> None:
    assert all(getattr(rtlang_grammars, name) is not None for name in rtlang_grammars.__all__)
    stub = ast.parse((Path(rtlang_grammars.__file__).parent / "__init__.pyi").read_text(encoding="utf-8"))
    typed = {alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == rtlang_grammars._MODULES
    assert not hasattr(rtlang_grammars, "no_such_name")
