"""The page on grammars groups the keywords as the generated table of the grammar library does, and names its grammars."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "grammar-support.md").read_text(encoding="utf-8")
TABLE = (ROOT / "grammars" / "README.md").read_text(encoding="utf-8")


def keywords(cell: str) -> list[str]:
    return re.findall(r"`([$\w]+)`", cell)


def test_every_assertion_of_json_schema_has_its_status() -> None:
    rows = [line.strip("|").split("|") for line in TABLE.splitlines() if re.match(r"\| `[$\w]+` \|", line)]
    statuses = {keywords(row[0])[0]: row[1].strip() for row in rows}
    section = PAGE.partition("\n## JSON Schema\n")[2].partition("\n### ")[0]
    described = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            names, status = line.strip("|").split("|")
            described |= dict.fromkeys(keywords(names), status.strip())
    assert described.keys() == statuses.keys()
    for keyword, status in statuses.items():
        assert ("checked" in described[keyword]) is ("checked" in status), keyword
        assert ("refused" in described[keyword]) is ("refused" in status), keyword


def test_every_grammar_of_the_library_is_named() -> None:
    library = {path.stem for path in (ROOT / "grammars" / "rtlang_grammars").rglob("library/**/*.lark")}
    assert library
    assert {name for name in library if f"`{name}`" not in PAGE} == set()
