"""The drawing of a graph as an SVG element. It looks the same without any style sheet; text takes the color of its surroundings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from rtlang.contract.pictures.labels import printable
from rtlang.contract.pictures.layout import FRAME_PAD, LINE, NOTE, PAD, TEXT, TITLE, Arrow, Box, Drawing, LayoutFrame

HUES = {
    "text": "#8792a5",
    "gen": "#3b82f6",
    "select": "#8b5cf6",
    "apply": "#14b8a6",
    "call": "#f97316",
    "switch": "#eab308",
    "repeat": "#eab308",
    "first": "#ec4899",
    "vote": "#ec4899",
    "best": "#ec4899",
    "group": "#8792a5",
}
FAILED = "#ef4444"
CHANGED = "#f59e0b"
FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
MARGIN = 16.0
SMALLEST = 0.6
"""The scale to which a wide picture shrinks to fit its surroundings; beyond it, it scrolls."""
_ROUND = 7.0


def graph_svg(
    drawing: Drawing,
    facts: Callable[[int], str] | None = None,
    color: Callable[[int], str | None] | None = None,
) -> str:
    """The SVG element of a drawing.

    Args:
        facts: the description of a node by its id; readers show it when the pointer rests on the box.
        color: the color of a node by its id, such as `FAILED`; None for that of its kind.
    """
    width, height = drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN
    lines = [
        f'<svg class="rt-graph" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" style="max-width:max(100%,{width * SMALLEST:.0f}px);height:auto" role="img" aria-label="request graph" '
        f'font-family="{FONT}" fill="currentColor">'
    ]
    _level(drawing, MARGIN, MARGIN, lines, facts, color)
    return "\n".join([*lines, "</svg>"])


def _level(
    drawing: Drawing,
    x: float,
    y: float,
    lines: list[str],
    facts: Callable[[int], str] | None,
    color: Callable[[int], str | None] | None,
) -> None:
    seen: set[tuple[float, float, bool]] = set()
    for arrow in drawing.arrows:
        lines.append(_arrow(arrow, x, y, seen))
    for box in drawing.boxes:
        hue = (None if color is None else color(box.node_id)) or HUES[box.label.kind]
        if box.frames:
            lines.append(_outline(box, x, y, hue))
        lines.append(_box(box, x, y, "" if facts is None else facts(box.node_id), hue))
        for frame in box.frames:
            left, top = x + box.x + frame.x, y + box.y + frame.y
            lines.append(_frame(box, frame, x, left, top, y))
            inner = (frame.width - frame.inside.width) / 2
            _level(frame.inside, left + inner, top + 24 + 11, lines, facts, color)


def _box(box: Box, x: float, y: float, facts: str, hue: str) -> str:
    left, top = x + box.x + (box.whole_width - box.width) / 2, y + box.y + (FRAME_PAD if box.frames else 0)
    is_group = box.label.kind == "group"
    dashes = ' stroke-dasharray="5 4"' if is_group else ""
    parts = [
        f'<g class="rt-box" data-node="{box.node_id}" tabindex="0">',
        f"<title>{escape(printable(facts))}</title>" if facts else "",
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="8" fill="{hue}" '
        f'fill-opacity="{0.05 if is_group else 0.13}" stroke="{hue}" stroke-opacity="0.75"{dashes}/>',
    ]
    if is_group:
        parts.append(_text(box.label.title, left + box.width / 2, top + PAD + 12, TEXT, "middle", 0.8))
        return "".join([*parts, "</g>"])
    baseline = top + PAD + 10
    parts.append(
        f'<text x="{left + PAD:.1f}" y="{baseline:.1f}" font-size="{TITLE:g}" font-weight="600">{_safe(box.label.title)}</text>'
    )
    if box.label.kind != box.label.title:
        parts.append(
            f'<text x="{left + box.width - PAD:.1f}" y="{baseline:.1f}" font-size="{NOTE:g}" text-anchor="end" '
            f'fill-opacity="0.7">{box.label.kind}</text>'
        )
    for line in box.lines:
        baseline += LINE
        parts.append(_text(line, left + PAD, baseline, TEXT, "start", 0.92))
    if box.note:
        parts.append(_text(box.note, left + PAD, baseline + LINE, NOTE, "start", 0.65))
    return "".join([*parts, "</g>"])


def _outline(box: Box, x: float, y: float, hue: str) -> str:
    return (
        f'<rect x="{x + box.x:.1f}" y="{y + box.y:.1f}" width="{box.whole_width:.1f}" height="{box.whole_height:.1f}" rx="12" '
        f'fill="{hue}" fill-opacity="0.04" stroke="{hue}" stroke-opacity="0.4"/>'
    )


def _frame(box: Box, frame: LayoutFrame, x: float, left: float, top: float, y: float) -> str:
    hue = HUES[box.label.kind]
    middle, bottom = x + box.middle, y + box.y + FRAME_PAD + box.height
    to = left + frame.width / 2
    points = [(middle, bottom), (middle, bottom + 14), (to, bottom + 14), (to, top)]
    if abs(to - middle) < 1:
        points = [(middle, bottom), (middle, top)]
    return (
        _line(points, False)
        + f'<rect x="{left:.1f}" y="{top:.1f}" width="{frame.width:.1f}" height="{frame.height:.1f}" rx="10" fill="none" '
        f'stroke="{hue}" stroke-opacity="0.6" stroke-dasharray="6 4"/>'
        + f'<text x="{left + 12:.1f}" y="{top + 18:.1f}" font-size="{NOTE:g}" font-weight="600" fill-opacity="0.75">'
        + f"{_safe(frame.title)}</text>"
    )


def _arrow(arrow: Arrow, x: float, y: float, seen: set[tuple[float, float, bool]]) -> str:
    points = [(x + px, y + py) for px, py in arrow.points]
    end = (*points[-1], arrow.is_value)
    found = _line(points, arrow.is_value, has_tip=end not in seen)
    seen.add(end)
    return found


def _line(points: Sequence[tuple[float, float]], is_value: bool, *, has_tip: bool = True) -> str:
    """A line with round corners that ends in a tip, straight down."""
    (end_x, end_y) = points[-1]
    path = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    stops = [*points[:-1], (end_x, end_y - (5 if has_tip else 0))]
    for (ax, ay), (bx, by), (cx, cy) in zip(stops, stops[1:], stops[2:], strict=False):
        before = min(_ROUND, (abs(bx - ax) + abs(by - ay)) / 2)
        behind = min(_ROUND, (abs(cx - bx) + abs(cy - by)) / 2)
        path.append(f"L{bx - _sign(bx - ax) * before:.1f},{by - _sign(by - ay) * before:.1f}")
        path.append(f"Q{bx:.1f},{by:.1f} {bx + _sign(cx - bx) * behind:.1f},{by + _sign(cy - by) * behind:.1f}")
    path.append(f"L{stops[-1][0]:.1f},{stops[-1][1]:.1f}")
    dashes = ' stroke-dasharray="4 4"' if is_value else ""
    tip = (
        f'<path d="M{end_x - 4:.1f},{end_y - 7:.1f} L{end_x + 4:.1f},{end_y - 7:.1f} L{end_x:.1f},{end_y:.1f} z" fill-opacity="0.6"/>'
        if has_tip
        else ""
    )
    return f'<path d="{" ".join(path)}" fill="none" stroke="currentColor" stroke-opacity="0.5" stroke-width="1.3"{dashes}/>{tip}'


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _text(line: str, x: float, y: float, size: float, anchor: str, opacity: float) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill-opacity="{opacity}">{_safe(line)}</text>'


def _safe(text: str) -> str:
    return escape(printable(text))
