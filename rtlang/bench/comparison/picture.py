"""A picture of a report: for each workload the ratio with its interval, the share of the machine, and where time goes.

One self-contained file that suits light and dark surroundings: an SVG image, or a page that also has the tables and the facts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from rtlang.bench.comparison.report import Report, Row
from rtlang.bench.comparison.step_profile import PARTS, Profile
from rtlang.contract.errors import ConfigError
from rtlang.contract.pictures.labels import fitted
from rtlang.contract.pictures.page import whole_page
from rtlang.contract.pictures.svg import FAILED, FONT

SUFFIXES = (".svg", ".html")
BETTER, WORSE, SHARE = "#3b82f6", FAILED, "#14b8a6"
PART_COLORS = (
    *("#1d4ed8", "#3b82f6", "#f59e0b", "#93c5fd", "#bfdbfe", "#8b5cf6", "#ec4899", "#f97316", "#fda4af", "#64748b"),
    *("#14b8a6", "#84cc16", "#eab308", "#22c55e", "#06b6d4", "#94a3b8", "#cbd5e1"),
)
"""By part of PARTS."""
STYLE = (
    ".rt-bench{color:#1b2130}.rt-ground{fill:#fbfcfe}"
    "@media (prefers-color-scheme:dark){.rt-bench{color:#e7eaf1}.rt-ground{fill:#12151c}}"
)
_WIDTH, _NAMES, _RATIOS, _SHARES, _GAP = 920.0, 110.0, 440.0, 190.0, 84.0
_ROW, _BAR, _TOP = 34.0, 16.0, 64.0


def check_picture_path(path: Path) -> None:
    """Check the name of a picture.

    Raises:
        ConfigError: it has another suffix than those of SUFFIXES, or its folder does not exist.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigError("picture", str(path), f"expected a name that ends with {' or '.join(SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise ConfigError("picture", str(path), "the parent folder does not exist")


def write_picture(report: Report, path: Path) -> None:
    """Write the picture of a report; the suffix decides its form, see `check_picture_path`."""
    path.write_text(report_svg(report) if path.suffix == ".svg" else report_page(report), encoding="utf-8")


def report_page(report: Report) -> str:
    """A page with the picture, the tables and the facts."""
    tables = []
    for title, (head, *rows) in report.cells():
        cells = "".join(f"<th>{escape(each)}</th>" for each in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
        tables.append(
            f'<h2>{escape(title)}</h2><div class="rt-scroll"><table class="rt-table"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody>'
            "</table></div>"
        )
    facts = "".join(f"<li>{escape(each)}</li>" for each in report.facts())
    return whole_page(
        _title(report), report.environment.machine, [report_svg(report), *tables, f'<ul class="rt-facts">{facts}</ul>']
    )


def report_svg(report: Report) -> str:
    """The picture as an SVG image."""
    rows_end = _TOP + len(report.rows) * _ROW
    parts = [_ratios(report.rows, report.baseline), _shares(report.rows)]
    height = rows_end + 44
    if report.profiles:
        parts.append(_profiles(report.profiles, height))
        height += 40 + len(report.profiles) * _ROW + 22 * math.ceil(len(_shown(report.profiles)) / _LEGEND_COLUMNS) + 14
    size = f'viewBox="0 0 {_WIDTH:.0f} {height:.0f}" width="{_WIDTH:.0f}" height="{height:.0f}"'
    return "\n".join(
        [
            f'<svg class="rt-bench" xmlns="http://www.w3.org/2000/svg" {size} style="max-width:100%;height:auto" role="img" '
            f'aria-label="{escape(_title(report))}" font-family="{FONT}" font-size="13" fill="currentColor">',
            f"<style>{STYLE}</style>",
            f'<rect class="rt-ground" width="{_WIDTH:.0f}" height="{height:.0f}"/>',
            _words(16, 24, _title(report), size=15, weight=600),
            _words(16, 42, f"{report.environment.model}; {report.environment.dtype}, {_threads(report)}", opacity=0.65),
            *parts,
            "</svg>\n",
        ]
    )


def _title(report: Report) -> str:
    return f"rtlang against {report.baseline}"


def _threads(report: Report) -> str:
    number = report.environment.num_threads
    return f"{number} thread{'s' if number > 1 else ''}"


def _ratios(rows: Sequence[Row], baseline: str) -> str:
    """The bars of the ratios; whiskers are the extremes of the pairs."""
    largest = max((row.ratio_max for row in rows if row.ratio_max is not None), default=1.0)
    scale = _RATIOS / max(largest, 1.25)
    bottom = _TOP + len(rows) * _ROW
    lines = []
    for tick in _ticks(max(largest, 1.25)):
        x = _NAMES + tick * scale
        lines.append(_line(x, _TOP - 4, x, bottom, 0.12))
        lines.append(_words(x, bottom + 18, f"{tick:g}", anchor="middle", opacity=0.65))
    for number, row in enumerate(rows):
        y = _TOP + number * _ROW + (_ROW - _BAR) / 2
        lines.append(_words(_NAMES - 10, y + 13, fitted(row.workload, 13, _NAMES - 14), anchor="end"))
        if row.ratio is None or row.ratio_min is None or row.ratio_max is None:
            lines.append(_words(_NAMES + 6, y + 13, f"baseline not run: {row.reason}", opacity=0.65))
            continue
        color = BETTER if row.ratio >= 1 else WORSE
        about = f"{row.workload}: {row.ratio:.2f} times ({row.ratio_min:.2f}-{row.ratio_max:.2f}), {row.ratio_of}"
        lines.append(f"<g><title>{escape(about)}</title>{_bar(_NAMES, y, row.ratio * scale, color)}")
        low, high, middle = _NAMES + row.ratio_min * scale, _NAMES + row.ratio_max * scale, y + _BAR / 2
        lines += [
            _line(low, middle, high, middle, 0.8),
            *(_line(x, middle - 4, x, middle + 4, 0.8) for x in (low, high)),
        ]
        lines.append(_words(high + 8, y + 13, f"{row.ratio:.2f}{'*' if _is_latency(row) else ''}", weight=600) + "</g>")
    one = _NAMES + scale
    lines.append(
        f'<line x1="{one:.1f}" y1="{_TOP - 6:.1f}" x2="{one:.1f}" y2="{bottom:.1f}" stroke="currentColor" stroke-dasharray="4 3"/>'
    )
    about = f"output tokens a second, relative to {baseline}"
    if any(map(_is_latency, rows)):
        about += "; *: its mean latency, relative to ours"
    lines.append(_words(_NAMES, bottom + 32, about, size=11, opacity=0.65))
    return "\n".join(lines)


def _shares(rows: Sequence[Row]) -> str:
    """The bars of the shares of the machine."""
    left = _NAMES + _RATIOS + _GAP
    lines = [_words(left, _TOP - 10, "of the machine", size=11, opacity=0.65)]
    for number, row in enumerate(rows):
        if row.machine_share is None:
            continue
        y = _TOP + number * _ROW + (_ROW - _BAR) / 2
        lines.append(
            f'<rect x="{left:.1f}" y="{y:.1f}" width="{_SHARES:g}" height="{_BAR:g}" rx="2" fill-opacity="0.08"/>'
        )
        lines.append(_bar(left, y, min(1.0, row.machine_share) * _SHARES, SHARE))
        lines.append(_words(left + _SHARES + 8, y + 13, f"{row.machine_share:.0%}"))
    return "\n".join(lines)


_LEGEND_COLUMNS = 5


def _profiles(profiles: Sequence[Profile], top: float) -> str:
    """The bars of the parts of a step, one for each workload."""
    width, shown = _WIDTH - _NAMES - 96, _shown(profiles)
    lines = [_words(16, top + 18, "where time goes", size=15, weight=600)]
    for number, each in enumerate(profiles):
        y = top + 34 + number * _ROW + (_ROW - _BAR) / 2
        lines.append(_words(_NAMES - 10, y + 13, fitted(each.workload, 13, _NAMES - 14), anchor="end"))
        x = _NAMES
        for name in shown:
            part = each.parts_s[name] / each.total_s * width
            title = f"{each.workload}: {name} {each.parts_s[name] / each.total_s:.1%}"
            color = PART_COLORS[PARTS.index(name)]
            lines.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{part:.1f}" height="{_BAR:g}" fill="{color}"><title>{escape(title)}</title></rect>'
            )
            x += part
        step_ms = 1e3 * each.total_s / max(1, each.num_steps)
        lines.append(_words(_NAMES + width + 8, y + 13, f"{step_ms:.1f} ms a step", size=11, opacity=0.65))
    top += 34 + len(profiles) * _ROW + 18
    for number, name in enumerate(shown):
        x = _NAMES + number % _LEGEND_COLUMNS * 160
        y = top + number // _LEGEND_COLUMNS * 22
        color = PART_COLORS[PARTS.index(name)]
        lines.append(f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="11" height="11" rx="2" fill="{color}"/>')
        lines.append(_words(x + 17, y, name, size=11))
    return "\n".join(lines)


def _shown(profiles: Sequence[Profile]) -> list[str]:
    return [name for name in PARTS if any(each.parts_s[name] >= 2e-3 * each.total_s for each in profiles)]


def _is_latency(row: Row) -> bool:
    return row.ratio is not None and row.ratio_of == "mean latency"


def _ticks(end: float) -> list[float]:
    """Round ratios from 0 to the end, at most ten."""
    step = next(
        each for each in (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0 ** math.ceil(math.log10(end))) if end / each <= 10
    )
    return [step * number for number in range(int(end / step + 1e-9) + 1)]


def _bar(x: float, y: float, width: float, color: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(1.0, width):.1f}" height="{_BAR:g}" rx="2" fill="{color}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, opacity: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="currentColor" stroke-opacity="{opacity:g}"/>'


def _words(
    x: float, y: float, words: str, *, anchor: str = "start", size: int = 13, weight: int = 400, opacity: float = 1.0
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill-opacity="{opacity:g}">'
        f"{escape(words)}</text>"
    )
