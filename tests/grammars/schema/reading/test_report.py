"""Reports of compiles in notebooks."""

from __future__ import annotations

from rtlang_grammars.schema.reading.report import MAX_ROWS, KeywordStatus, Report, ReportEntry
from tests.support.servers.html_check import read_html

ODD = "</td><script>alert(1)</script>\x00\u202e"


def test_a_report_is_a_table_with_what_is_not_enforced_first() -> None:
    report = Report(
        "2020-12",
        (
            ReportEntry("#", "type", KeywordStatus.ENFORCED),
            ReportEntry("#/properties/a", "pattern", KeywordStatus.CHECKED, "a lookbehind"),
            ReportEntry("#/properties/b", ODD, KeywordStatus.IGNORED, ODD),
        ),
    )
    assert repr(report) == "<Report 2020-12: 1 enforced, 1 checked, 1 ignored>"
    html = report._repr_html_()
    root = read_html(html)
    assert [each.words for each in root.all("td")][:4] == ["#/properties/a", "pattern", "checked", "a lookbehind"]
    assert "alert(1)" in root.words
    assert not {"\x00", "\u202e"} & set(html)


def test_a_long_report_is_cut_and_says_so() -> None:
    entries = tuple(ReportEntry(f"#/{number:04}", "type", KeywordStatus.ENFORCED) for number in range(MAX_ROWS + 7))
    root = read_html(Report("2020-12", entries)._repr_html_())
    assert len(root.all("tr")) == MAX_ROWS + 1
    assert "7 more" in root.words
    assert "no keywords" in Report("2020-12", ())._repr_html_()
