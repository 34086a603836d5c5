"""The timeline of a run as an SVG element: one row per node, divided into waiting, reading the prompt, and generating."""

from __future__ import annotations

import math
from html import escape

from rtlang.contract.graph.nodes import Decide, Repeat, Switch, blocks_of
from rtlang.contract.pictures.facts import seconds, usage_words
from rtlang.contract.pictures.labels import fitted, printable
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord
from rtlang.contract.pictures.svg import FAILED, FONT

PHASES = {
    "waiting": "#94a3b8",
    "reading the prompt": "#f59e0b",
    "generating": "#3b82f6",
    "outside of the model": "#14b8a6",
    "branches, loops and decisions": "#eab308",
}
MAX_ROWS = 200
_NAMES, _WIDTH, _ROW, _BAR = 150.0, 780.0, 22.0, 14.0


def timeline_svg(record: RunRecord) -> str:
    """One bar per node that ended, in the order of their starts. Empty without any."""
    rows = []
    for node_id, ended in record.nodes.items():
        if ended.ended_s is not None and (ended.timing.total_s or ended.error is not None):
            rows.append((max(0.0, ended.ended_s - ended.timing.total_s), node_id, ended))
    if not rows:
        return ""
    rows.sort(key=lambda row: row[:2])
    end = max(ended.ended_s or 0.0 for _, _, ended in rows) or 1e-9
    shown = rows[:MAX_ROWS]
    body = len(shown) * _ROW
    height = body + 34 + (18 if len(rows) > MAX_ROWS else 0)
    width = _NAMES + _WIDTH + 70
    lines = [
        f'<svg class="rt-timeline" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="timeline" font-family="{FONT}" font-size="12" fill="currentColor">'
    ]
    scale, titles, spanning = _WIDTH / end, record.titles(), _spanning(record)
    for tick in _ticks(end):
        x = _NAMES + tick * scale
        lines.append(
            f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{body + 4:.0f}" stroke="currentColor" stroke-opacity="0.15"/>'
        )
        words = "0" if tick == 0 else _tick_words(tick)
        lines.append(f'<text x="{x:.1f}" y="{body + 20:.0f}" text-anchor="middle" fill-opacity="0.65">{words}</text>')
    for number, (start, node_id, ended) in enumerate(shown):
        name = titles.get(node_id, f"#{node_id}")
        lines.append(_bar(start, node_id, ended, name, node_id in spanning, number * _ROW, scale))
    if len(rows) > MAX_ROWS:
        lines.append(
            f'<text x="0" y="{height - 4:.0f}" fill-opacity="0.65">{len(rows) - MAX_ROWS} more nodes are not shown</text>'
        )
    return "\n".join([*lines, "</svg>"])


def phases_of(record: RunRecord) -> list[str]:
    """The phases that the timeline of a run shows, for its legend."""
    spanning = _spanning(record)
    found = {
        "generating" if each.texts else "spanning" if node_id in spanning else "outside"
        for node_id, each in record.nodes.items()
        if each.ended_s is not None and each.timing.total_s
    }
    reading, outside, others = list(PHASES)[:3], list(PHASES)[3], list(PHASES)[4]
    return [
        *(reading if "generating" in found else []),
        *([outside] if "outside" in found else []),
        *([others] if "spanning" in found else []),
    ]


def _spanning(record: RunRecord) -> set[int]:
    """Ids under which branches, loops and decisions ran, whose time is that of other nodes."""
    found: set[int] = set()
    todo = list(record.graph)
    while todo:
        node = todo.pop()
        if isinstance(node, (Switch, Repeat, Decide)):
            found.update((node.node_id, *record.copies.get(node.node_id, ())))
        todo.extend(inner for block in blocks_of(node) for inner in block.nodes)
    return found


def _bar(start: float, node_id: int, ended: NodeRecord, name: str, is_spanning: bool, y: float, scale: float) -> str:
    assert ended.ended_s is not None
    timing = ended.timing
    words = ended.error if ended.error is not None else f"{usage_words(ended)}"
    parts = [
        f'<g data-node="{node_id}"><title>{escape(printable(f"{name}: {words}"))}</title>',
        f'<text x="{_NAMES - 10:.0f}" y="{y + _BAR:.1f}" text-anchor="end">{escape(fitted(name, 12, _NAMES - 16))}</text>',
    ]
    if ended.texts:
        first_step, first_token = start + timing.queued_s, start + timing.first_token_s
        pieces = [
            ("waiting", start, first_step),
            ("reading the prompt", first_step, first_token),
            ("generating", first_token, ended.ended_s),
        ]
    else:
        pieces = [(list(PHASES)[4 if is_spanning else 3], start, ended.ended_s)]
    opacity = ' fill-opacity="0.35"' if is_spanning else ""
    for phase, left, right in pieces:
        if ended.error is None and right > left:
            parts.append(
                f'<rect x="{_NAMES + left * scale:.1f}" y="{y + 3:.1f}" width="{max(1.0, (right - left) * scale):.1f}" height="{_BAR:g}" '
                f'rx="2" fill="{PHASES[phase]}"{opacity}/>'
            )
    x = _NAMES + ended.ended_s * scale
    if ended.error is not None:
        parts.append(f'<circle cx="{x:.1f}" cy="{y + 3 + _BAR / 2:.1f}" r="5" fill="{FAILED}"/>')
        parts.append(f'<text x="{x + 9:.1f}" y="{y + _BAR:.1f}" font-size="11" fill-opacity="0.65">failed</text>')
    else:
        parts.append(
            f'<text x="{x + 6:.1f}" y="{y + _BAR:.1f}" font-size="11" fill-opacity="0.65">{seconds(timing.total_s)}</text>'
        )
    return "".join([*parts, "</g>"])


def _ticks(end: float) -> list[float]:
    """Four to ten round times from 0 to the end."""
    step = 10.0 ** math.floor(math.log10(end))
    for part in (1.0, 0.5, 0.2, 0.1):
        if end / (step * part) >= 4:
            step *= part
            break
    return [number * step for number in range(int(end / step + 1e-9) + 1)]


def _tick_words(tick: float) -> str:
    return f"{tick:g} s" if tick >= 1 else f"{tick * 1000:g} ms"
