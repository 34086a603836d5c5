"""Names of places in cells of a notebook."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from rtlang.lang.views.notebook import shell, with_cell_names

CELLS = {"/tmp/ipykernel_7/12.py": "In[3]", "<ipython-input-9-abc>": "In[9]"}
TEXT = "/tmp/ipykernel_7/12.py:4: needs 'x'; <ipython-input-9-abc>:1, /home/a/b.py:5 and 12:30 </b>:1"


def test_places_in_cells_are_named_as_the_notebook_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def format_code_name(name: str) -> tuple[str, str] | None:
        return ("Cell", CELLS[name]) if name in CELLS else None

    running = SimpleNamespace(compile=SimpleNamespace(format_code_name=format_code_name))
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: running  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert shell() is running
    assert with_cell_names(TEXT) == "In[3]:4: needs 'x'; In[9]:1, /home/a/b.py:5 and 12:30 </b>:1"


def test_outside_of_a_notebook_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert shell() is None
    assert with_cell_names(TEXT) == TEXT
