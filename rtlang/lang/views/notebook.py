"""Facts about the notebook in which views appear."""

from __future__ import annotations

import re
import sys
from typing import Any

_FILE = re.compile(r"(?:<[^<>\n]+>|[^\s<>:]*\.py|[A-Za-z]:[^\s<>:]*\.py)(?=:\d)")


def shell() -> Any:
    """The running IPython shell; None outside of IPython."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def with_cell_names(text: str) -> str:
    """The text, in which places in cells of a notebook (`/tmp/ipykernel_1/2.py:3`) read `In[5]:3`."""
    running = shell()
    name_of = getattr(getattr(running, "compile", None), "format_code_name", None)
    if name_of is None:
        return text

    def shown(match: re.Match[str]) -> str:
        found = name_of(match[0])  # ("Cell", "In[5]") for a cell
        return str(found[1]) if found else match[0]

    return _FILE.sub(shown, text)
