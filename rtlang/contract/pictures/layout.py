"""Places the boxes of a graph in rows, and leads arrows through the gaps between them, so that no arrow crosses a box.

Sizes are in pixels. Each level of the graph (see `structure`) has rows of its own; a branch or loop is one large box that holds the frames
of its blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rtlang.contract.graph.nodes import Node
from rtlang.contract.pictures.labels import Label, fitted, label_of, names_of, titled_blocks, width_of, wrapped
from rtlang.contract.pictures.structure import Level, level_of

MAX_BOXES = 400
"""Number of boxes that a picture shows; later nodes are left out."""

TITLE, TEXT, NOTE = 13.0, 12.0, 11.0  # sizes of fonts
LINE = 16
PAD = 11
MIN_WIDTH, MAX_WIDTH = 120.0, 250.0
MAX_LINES = 3
BESIDE = 26.0  # between boxes of a row
TRACK = 9.0  # between arrows that run side by side
GAP = 34.0  # between rows, without such arrows
FRAME_PAD = 16.0
FRAME_TITLE = 24.0


@dataclass(slots=True)
class Box:
    """A node, or a group of hidden branches (`node_id` is negative). `height` is that of the words, `whole_height` with the frames."""

    node_id: int
    label: Label
    lines: list[str]
    note: str
    width: float
    height: float
    whole_width: float
    whole_height: float
    x: float = 0.0  # left edge of the whole
    y: float = 0.0
    frames: list[LayoutFrame] = field(default_factory=list)

    @property
    def middle(self) -> float:
        """The x coordinate of the middle."""
        return self.x + self.whole_width / 2


@dataclass(slots=True)
class LayoutFrame:
    """A block, with its rows inside. Coordinates are relative to the box until it is placed."""

    title: str
    width: float
    height: float
    inside: Drawing
    x: float = 0.0
    y: float = 0.0


@dataclass(slots=True)
class Arrow:
    """A line through `points`; `is_value` if it passes a value instead of a sequence."""

    source: int
    target: int
    is_value: bool
    points: list[tuple[float, float]]


@dataclass(slots=True)
class Drawing:
    """Boxes and arrows of one level, each frame with a drawing of its own. `num_hidden` nodes were left out in all."""

    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    num_hidden: int = 0


Labelled = Callable[[Node], Label]


def draw(nodes: Sequence[Node], label: Labelled | None = None, max_boxes: int = MAX_BOXES) -> Drawing:
    """Lay out the nodes of a graph.

    Args:
        label: the words about a node; by default those of its definition.
        max_boxes: the number of boxes after which nodes are left out.
    """
    names = names_of(nodes)
    drawing, _ = _draw(nodes, label or (lambda node: label_of(node, names)), names, max_boxes)
    return drawing


def _draw(nodes: Sequence[Node], label: Labelled, names: Mapping[int, str], room: int) -> tuple[Drawing, int]:
    """The drawing of one level at the origin, and how many boxes may still be drawn."""
    by_id = {node.node_id: node for node in nodes}
    level = level_of(nodes)
    num_hidden = level.num_hidden
    boxes: dict[int, Box] = {}
    for at in level.order:
        if room <= 0:
            num_hidden += 0 if at < 0 else 1 + _num_inside(by_id[at])
            continue
        room -= 1
        if at < 0:
            boxes[at] = _group_box(at, level.groups[at])
            continue
        node = by_id[at]
        box = boxes[at] = _box(node, label(node))
        for title, block in titled_blocks(node, names):
            if block.nodes:
                inside, room = _draw(block.nodes, label, names, room)
                num_hidden += inside.num_hidden
                if inside.boxes:
                    box.frames.append(_frame(title, inside))
        if box.frames:
            _enclose(box)
    drawing = Drawing(list(boxes.values()), num_hidden=num_hidden)
    if boxes:
        _place(drawing, boxes, level)
    return drawing, room


def _num_inside(node: Node) -> int:
    return sum(1 + _num_inside(each) for _, block in titled_blocks(node, {}) for each in block.nodes)


def _box(node: Node, label: Label) -> Box:
    most = MAX_WIDTH - 2 * PAD
    title_width = 0.0 if label.kind == label.title else width_of(label.kind, NOTE) + 16
    title = fitted(label.title, TITLE * 1.07, most - title_width)
    lines = wrapped(label.text, TEXT, most, MAX_LINES)
    note = fitted(" · ".join(label.notes), NOTE, most)
    widths = [
        width_of(title, TITLE * 1.07) + title_width,
        width_of(note, NOTE),
        *(width_of(line, TEXT) for line in lines),
    ]
    width = min(max(*widths, MIN_WIDTH - 2 * PAD), most) + 2 * PAD
    height = 2.0 * PAD - 3 + LINE * (1 + len(lines) + bool(note))
    shown = Label(label.kind, title, label.text, label.notes)
    return Box(node.node_id, shown, lines, note, width, height, width, height)


def _group_box(at: int, count: int) -> Box:
    title = f"+ {count} more like these"
    width, height = width_of(title, TEXT) + 2 * PAD, 2.0 * PAD + LINE
    return Box(at, Label("group", title, ""), [], "", width, height, width, height)


def _frame(title: str, inside: Drawing) -> LayoutFrame:
    width = max(inside.width + 2 * FRAME_PAD, min(width_of(title, NOTE), MAX_WIDTH) + 2 * FRAME_PAD)
    return LayoutFrame(
        fitted(title, NOTE, width - 20), width, inside.height + FRAME_TITLE + FRAME_PAD + GAP / 2 - 6, inside
    )


def _enclose(box: Box) -> None:
    """Put the frames of a box below its words, inside of it."""
    total = sum(frame.width for frame in box.frames) + BESIDE / 2 * (len(box.frames) - 1)
    box.whole_width = max(box.width, total) + 2 * FRAME_PAD
    x = (box.whole_width - total) / 2
    for frame in box.frames:
        frame.x, frame.y = x, FRAME_PAD + box.height + GAP
        x += frame.width + BESIDE / 2
    box.whole_height = FRAME_PAD * 2 + box.height + GAP + max(frame.height for frame in box.frames)


# Places


def _place(drawing: Drawing, boxes: dict[int, Box], level: Level) -> None:
    order = [at for at in level.order if at in boxes]
    stages = {owner: [[each for each in row if each in boxes] for row in rows] for owner, rows in level.stages.items()}
    widths: dict[int | None, float] = {at: boxes[at].whole_width for at in order}
    for owner in (*reversed(order), None):
        rows = [
            _row_width(row, widths) * (2 if number in level.asides.get(owner, ()) else 1)
            for number, row in enumerate(stages.get(owner, ()))
        ]
        widths[owner] = max([widths.get(owner, 0.0), *rows])
    middles: dict[int | None, float] = {None: widths[None] / 2}
    for owner in (None, *order):
        for number, row in enumerate(stages.get(owner, ())):
            is_aside = number in level.asides.get(owner, ())
            x = middles[owner] + (BESIDE / 2 if is_aside else (BESIDE - _row_width(row, widths)) / 2)
            for each in row:
                middles[each] = x + widths[each] / 2
                boxes[each].x = middles[each] - boxes[each].whole_width / 2
                x += widths[each] + BESIDE
    ranks = {at: level.ranks[at] for at in order}
    heights = [0.0] * (max(ranks.values()) + 1)
    for at in order:
        heights[ranks[at]] = max(heights[ranks[at]], boxes[at].whole_height)
    router = _Router(boxes, ranks, len(heights))
    for at in order:
        parent = level.parents.get(at)
        if parent in boxes:
            assert parent is not None
            router.add(parent, at, is_value=False)
    for at in order:
        for source in level.sources[at]:
            if source in boxes:
                router.add(source, at, is_value=True)
    tops, y = [], 0.0
    for rank, height in enumerate(heights):
        tops.append(y)
        y += height + router.gap(rank)
    for at in order:
        boxes[at].y = tops[ranks[at]]
    drawing.arrows = router.arrows([top + height for top, height in zip(tops, heights, strict=True)], tops)
    xs = [x for arrow in drawing.arrows for x, _ in arrow.points]
    left = min(0.0, *(x - TRACK for x in xs)) if xs else 0.0
    drawing.width = max([widths[None], *(x + TRACK for x in xs)]) - left
    drawing.height = tops[-1] + heights[-1]
    if left < 0:
        for box in drawing.boxes:
            box.x -= left
        for arrow in drawing.arrows:
            arrow.points = [(x - left, y) for x, y in arrow.points]


def _row_width(row: Sequence[int], widths: Mapping[int | None, float]) -> float:
    """The width of neighbours, with half of the space between neighbours on both sides."""
    return sum(widths[each] for each in row) + BESIDE * len(row)


@dataclass(slots=True)
class _Way:
    """An arrow from one row to a later one: down from `x_out`, along a gap to `lane`, down, along a gap to `x_in`, down."""

    source: int
    target: int
    is_value: bool
    x_out: float
    lane: float
    x_in: float


class _Router:
    """Leads arrows through the gaps between rows, and between the boxes of a row."""

    def __init__(self, boxes: Mapping[int, Box], ranks: Mapping[int, int], num_rows: int) -> None:
        self._boxes, self._ranks = boxes, ranks
        self._rows: list[list[tuple[float, float]]] = [[] for _ in range(num_rows)]
        for at, box in boxes.items():
            self._rows[ranks[at]].append((box.x, box.x + box.whole_width))
        self._ways: list[_Way] = []
        self._lanes: list[tuple[float, int, int, int]] = []  # x, first and last row, source
        self._tracks: list[dict[tuple[bool, bool, int], int]] | None = None

    def add(self, source: int, target: int, *, is_value: bool) -> None:
        """Lead an arrow."""
        shift = 13.0 if is_value else 0.0
        x_out, x_in = self._boxes[source].middle + shift, self._boxes[target].middle + shift
        first, last = self._ranks[source] + 1, self._ranks[target] - 1
        lane = x_in if first > last else self._free(x_out, x_in, first, last, source)
        self._ways.append(_Way(source, target, is_value, x_out, lane, x_in))

    def _free(self, x_out: float, x_in: float, first: int, last: int, source: int) -> float:
        """The x coordinate, free of boxes and other arrows in these rows, with the shortest way."""
        taken = [(left - 8, right + 8) for row in self._rows[first : last + 1] for left, right in row]
        taken += [
            (x - TRACK + 0.5, x + TRACK - 0.5)
            for x, begin, end, owner in self._lanes
            if owner != source and begin <= last and end >= first
        ]
        taken.sort()
        merged: list[tuple[float, float]] = []
        for left, right in taken:
            if merged and left <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], right))
            else:
                merged.append((left, right))
        ends = [x for interval in merged for x in interval]
        free = [x for x in (x_in, x_out, *ends) if not any(left < x < right for left, right in merged)]
        lane = min(free, key=lambda x: abs(x_out - x) + abs(x_in - x))
        self._lanes.append((lane, first, last, source))
        return lane

    def gap(self, rank: int) -> float:
        """The height of the gap below a row."""
        tracks = self._assigned()[rank]
        return GAP + TRACK * max(max(tracks.values(), default=0), 0)

    def arrows(self, bottoms: Sequence[float], tops: Sequence[float]) -> list[Arrow]:
        """The arrows, for rows with these y coordinates."""
        tracks = self._assigned()
        found = []
        for way in self._ways:
            box = self._boxes[way.source]
            first, last = self._ranks[way.source], self._ranks[way.target]
            points = [(way.x_out, box.y + box.whole_height)]
            out_y = bottoms[first] + 12 + TRACK * tracks[first].get((way.is_value, False, way.source), 0)
            in_y = bottoms[last - 1] + 12 + TRACK * tracks[last - 1].get((way.is_value, True, way.target), 0)
            if first + 1 == last:
                if way.x_out != way.x_in:
                    y = in_y if way.is_value else out_y
                    points += [(way.x_out, y), (way.x_in, y)]
            else:
                if way.lane != way.x_out:
                    points += [(way.x_out, out_y), (way.lane, out_y)]
                if way.lane != way.x_in:
                    points += [(way.lane, in_y), (way.x_in, in_y)]
            points.append((way.x_in, tops[last]))
            found.append(Arrow(way.source, way.target, way.is_value, points))
        return found

    def _assigned(self) -> list[dict[tuple[bool, bool, int], int]]:
        """For each gap, the track of the arrows that leave a box or enter one: pieces that would overlap get different ones."""
        if self._tracks is not None:
            return self._tracks
        spans: list[dict[tuple[bool, bool, int], tuple[float, float]]] = [{} for _ in self._rows]

        def note(gap: int, key: tuple[bool, bool, int], x: float, other: float) -> None:
            if x != other:
                left, right = spans[gap].get(key, (x, x))
                spans[gap][key] = (min(left, x, other), max(right, x, other))

        for way in self._ways:
            first, last = self._ranks[way.source], self._ranks[way.target]
            leaves, enters = (way.is_value, False, way.source), (way.is_value, True, way.target)
            if first + 1 == last:
                note(first, enters if way.is_value else leaves, way.x_out, way.x_in)
            else:
                note(first, leaves, way.x_out, way.lane)
                note(last - 1, enters, way.lane, way.x_in)
        self._tracks = []
        for gap in spans:
            tracks: dict[tuple[bool, bool, int], int] = {}
            ends: list[float] = []
            for key, (left, right) in sorted(gap.items(), key=lambda item: (item[0][0], item[1])):
                track = next((number for number, end in enumerate(ends) if end + 4 < left), len(ends))
                ends[track : track + 1] = [right]
                tracks[key] = track
            self._tracks.append(tracks)
        return self._tracks
