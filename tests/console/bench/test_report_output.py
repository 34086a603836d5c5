"""Output of benchmark reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table

from rtlang.console.bench.report_output import check_json_path, show_report
from rtlang.console.source import CommandError


class FixedReport:
    """A report of one figure."""

    def to_plain(self) -> dict[str, Any]:
        return {"figure": 7}

    def to_tables(self) -> list[Table]:
        table = Table("name", "figure")
        table.add_row("work", "7")
        return [table]

    def to_markdown(self) -> str:
        return "| name | figure |\n"

    def facts(self) -> list[str]:
        return ["one run"]


@pytest.mark.parametrize("markdown", [True, False])
def test_a_report_is_printed_and_its_figures_written(
    markdown: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_report(FixedReport(), markdown=markdown, json_file=tmp_path / "figures.json")
    out = capsys.readouterr().out
    assert out.startswith("| name | figure |") is markdown
    assert ("work" in out and "- one run" in out) is not markdown
    assert json.loads((tmp_path / "figures.json").read_text()) == {"figure": 7}


def test_a_json_file_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    check_json_path(None)
    check_json_path(tmp_path / "figures.json")
    with pytest.raises(CommandError, match="the parent folder does not exist"):
        check_json_path(tmp_path / "none" / "figures.json")
