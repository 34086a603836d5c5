"""The tables of `docs/configuration.md`, made from the metadata of the settings classes.

python -m tests.support.config_table        # write the tables
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import rtlang as rt

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
CONFIGS = {"runtime": rt.RuntimeConfig, "server": rt.ServeConfig}


def markers(name: str) -> tuple[str, str]:
    return f"<!-- {name} options: made by tests/support/config_table.py -->", f"<!-- {name} options end -->"


def option_table(config: type) -> str:
    """One row for each field: its name, type, default and help text."""
    hints = get_type_hints(config)
    rows = ["| option | type | default | meaning |", "|---|---|---|---|"]
    for item in fields(config):
        meaning = str(item.metadata["help"]).replace("|", "\\|")
        rows.append(f"| `{item.name}` | {_type(hints[item.name])} | {_default(item.default)} | {meaning} |")
    return "\n".join(rows)


def page_with_tables(page: str) -> str:
    """The text of the page with the tables put between their markers.

    Raises:
        ValueError: a marker is missing.
    """
    for name, config in CONFIGS.items():
        begin, end = markers(name)
        before, found, rest = page.partition(begin)
        _, found_end, after = rest.partition(end)
        if not (found and found_end):
            raise ValueError(f"{PAGE} has no markers for the {name} options")
        page = f"{before}{begin}\n\n{option_table(config)}\n\n{end}{after}"
    return page


def _type(hint: object) -> str:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if type(None) in get_args(hint) else [hint]
    if kinds == [tuple[str, ...]]:
        return "strings"
    names = {str: "text", int: "integer", float: "number", bool: "boolean"}
    return " or ".join(names[kind] for kind in kinds)  # type: ignore[index]


def _default(value: object) -> str:
    if value is None or value == ():
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def main() -> None:
    """Write the tables."""
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
