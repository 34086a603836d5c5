"""The notebook among the examples: its code runs in order, and its outputs are those of that code."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rtlang as rt
from tests.support.servers.html_check import read_html

PATH = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
MAX_BYTES = 200_000


def code_cells() -> list[dict[str, Any]]:
    notebook = json.loads(PATH.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def source_of(cell: dict[str, Any]) -> str:
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def run_cell(source: str, namespace: dict[str, Any]) -> object:
    """Run a cell as a notebook does; returns the value of a last line that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)


def _classes(page: Any) -> list[str]:
    """Classes of the blocks of a page. Lines have none: their number depends on the clock, since drafts are reported."""
    found = [each.attributes.get("class") for each in page.all("div")]
    return [each for each in found if each is not None]


def test_the_cells_run_in_order_and_their_values_have_the_views_that_are_stored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = ModuleType("notebook")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    num_views = 0
    try:
        for cell in code_cells():
            value = run_cell(source_of(cell), vars(module))
            stored = [output["data"] for output in cell["outputs"] if output["output_type"] == "execute_result"]
            assert bool(stored) == (value is not None)
            if stored:
                now, then = read_html(value._repr_html_()), read_html("".join(stored[0]["text/html"]))  # type: ignore[attr-defined]
                assert _classes(now) == _classes(then)
                num_views += 1
    finally:
        rt.set_default_runtime(None)
        module.runtime.close()
    assert num_views >= 7
    assert "positive" in capsys.readouterr().out


def test_the_notebook_is_small_whole_and_without_traces_of_a_machine() -> None:
    text = PATH.read_text(encoding="utf-8")
    assert len(text) < MAX_BYTES
    assert not re.search(r"(?<![\w#])/(tmp|home|root|usr)/|ipykernel|site-packages", text)
    cells = code_cells()
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    shown = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert len(shown) >= 8
    for html in shown:
        read_html("".join(html))
