"""The table of the fields of all routes in docs/http-fields.md, from the tables with which the server reads bodies.

python -m tests.support.servers.field_table        # write the table
"""

from __future__ import annotations

from pathlib import Path

from rtlang.serve.http.app import TABLES
from rtlang.serve.http.openapi import FieldEntry, entries
from tests.support.models.family_table import write_table

PAGE = Path(__file__).parents[3] / "docs" / "http-fields.md"
MARKERS = "<!-- fields: made by tests/support/servers/field_table.py -->", "<!-- fields end -->"


def field_table() -> str:
    """The section between the markers: for each route, its fields by how they are taken."""
    lines: list[str] = []
    for name, table in TABLES.items():
        found = list(entries(table))
        lines += [f"### `{name}`", "", "| taken | fields |", "|---|---|"]
        for taken in ("accepted", "fixed", "hint", "refused"):
            shown = [_shown(entry) for entry in found if entry.taken == taken]
            lines += [f"| {taken} | {', '.join(shown)} |"] if shown else []
        lines.append("")
    return "\n".join(lines).strip()


def _shown(entry: FieldEntry) -> str:
    note = entry.note.replace("|", "\\|")
    match entry.taken:
        case "fixed":
            return f"`{entry.name}`: `{note}`"
        case "refused":
            return f"`{entry.name}` ({note})"
    return f"`{entry.name}`"


if __name__ == "__main__":
    write_table(PAGE, field_table(), MARKERS)
