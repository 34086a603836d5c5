"""The maps of the repository name every part and nothing that is gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAPS = ("CONTRIBUTING.md", "docs/design/index.md")
PARTS = sorted(path.parent.name for path in (ROOT / "rtlang").glob("*/__init__.py"))


@pytest.mark.parametrize("page", MAPS)
@pytest.mark.parametrize("part", PARTS)
def test_a_map_names_every_part(page: str, part: str) -> None:
    assert f"`rtlang/{part}`" in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*MAPS, *(f"docs/design/{path.name}" for path in (ROOT / "docs/design").glob("*.md"))])
def test_every_path_on_a_page_exists(page: str) -> None:
    paths = re.findall(
        r"`((?:rtlang|kernels|grammars|tests|docs|benchmarks|examples)/[\w./-]*)`",
        (ROOT / page).read_text(encoding="utf-8"),
    )
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_map_of_contributing_names_every_top_folder() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = [path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))]
    known = {"rtlang", "site", "dist", "build"}
    assert [name for name in folders if name not in known and f"`{name}/`" not in text] == []
