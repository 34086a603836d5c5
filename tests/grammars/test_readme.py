"""The examples of the README run as they stand, and loading the library stays cheap."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import rtlang_grammars

GRAMMARS = Path(__file__).parents[2] / "grammars"
README = (GRAMMARS / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README.partition("## In other libraries")[0], re.DOTALL)
PLUGS = dict(re.findall(r"\n\*\*([a-z-]+)\.\*\* .*?```python\n(.*?)```", README, re.DOTALL))
"""The examples for other libraries, by their names."""


def output_of(program: str) -> str:
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(GRAMMARS)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_examples_run_without_torch() -> None:
    forbid = "import sys; sys.modules['torch'] = sys.modules['tokenizers'] = None\n"
    program = forbid + "\n".join(EXAMPLES) + "\nassert token_id in allowed, token_id"
    assert output_of(program) == "[b'7', b't', b'true']\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "modules", "write_model"),
    [
        pytest.param(
            "transformers", ["transformers"], "write_transformers_model(Path('model'))", marks=pytest.mark.long
        ),
        ("llama-cpp-python", ["llama_cpp", "gguf"], "write_gguf_model(Path('model.gguf'))"),
        pytest.param(
            "outlines",
            ["outlines", "transformers"],
            "write_transformers_model(Path('model'))",
            marks=pytest.mark.long,
        ),
        ("vllm", ["vllm"], "write_transformers_model(Path('model'))"),
        ("sglang", ["sglang", "transformers"], "write_transformers_model(Path('model'))"),
        ("mlx-lm", ["mlx_lm"], "write_transformers_model(Path('model'))"),
        ("onnxruntime-genai", ["onnxruntime_genai", "onnx"], "write_onnx_model(Path('model'))"),
    ],
)
def test_the_example_for_another_library_gives_valid_text(
    library: str, modules: list[str], write_model: str, tmp_path: Path
) -> None:
    for module in modules:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    program = PLUGS[library]
    assert len(program.splitlines()) <= 15
    write = f"from pathlib import Path\nfrom tests.support.models.foreign_models import *\n{write_model}"
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    for command, path in (["-c", write], GRAMMARS.parent), (["example.py"], GRAMMARS):
        environment = {**os.environ, "PYTHONPATH": str(path), "VLLM_CPU_KVCACHE_SPACE": "1"}
        command = [sys.executable, *command]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    values, report = map(ast.literal_eval, done.stdout.splitlines()[-2:])
    assert values
    for value in values:
        assert isinstance(value["age"], int | float)  # 1.0 is an integer of JSON Schema
        assert value["age"] == int(value["age"])
    assert {status for _, _, status in report} == {"enforced"}
    assert ("#/properties/age", "type", "enforced") in report


def test_importing_the_library_loads_nothing() -> None:
    program = "import sys, rtlang_grammars; print(sorted({'numpy', 'numba', 'torch', 'regex'} & {*sys.modules}))"
    assert output_of(program) == "[]\n"


def test_every_exported_name_is_there_and_typed() -> None:
    assert all(getattr(rtlang_grammars, name) is not None for name in rtlang_grammars.__all__)
    stub = ast.parse((Path(rtlang_grammars.__file__).parent / "__init__.pyi").read_text(encoding="utf-8"))
    typed = {alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == rtlang_grammars._MODULES
    assert not hasattr(rtlang_grammars, "no_such_name")
