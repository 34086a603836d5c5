"""HTML pictures: one self-contained page per graph or run, and fragments for notebooks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from rtlang.contract.graph.nodes import Node, blocks_of
from rtlang.contract.pictures.facts import facts_of, labels_of_run, seconds
from rtlang.contract.pictures.labels import printable, shortened
from rtlang.contract.pictures.layout import MAX_BOXES, Drawing, draw
from rtlang.contract.pictures.page_style import PAGE_CSS, SCRIPT, TRANSCRIPT_CSS
from rtlang.contract.pictures.run_record import RunRecord
from rtlang.contract.pictures.svg import CHANGED, FAILED, graph_svg
from rtlang.contract.pictures.timeline import PHASES, phases_of, timeline_svg
from rtlang.contract.pictures.transcript import transcript

MAX_FRAGMENT_BOXES = 120
MAX_BREAKS = 200
MAX_RETURNED_CHARS = 2_000


def graph_page(nodes: Sequence[Node], title: str) -> str:
    """A page with the picture of a graph: zoom with the wheel, drag, hover or click a node. Without scripts it is a plain picture."""
    drawing = draw(nodes)
    return whole_page(title, _summary(nodes), [*_canvas(tuple(nodes), drawing, None)])


def run_page(record: RunRecord, title: str) -> str:
    """A page with the graph of a run, its timeline, its graph breaks and its texts."""
    drawing = draw(record.graph, labels_of_run(record.graph, record))
    parts = [f'<div class="rt-error">{_safe(record.error)}</div>'] if record.error is not None else []
    parts.extend(_canvas(record.graph, drawing, record))
    timeline = timeline_svg(record)
    if timeline:
        legend = "".join(
            f'<span class="rt-phase" style="background:{PHASES[phase]}"></span>{phase}' for phase in phases_of(record)
        )
        parts.append(f'<h2>Timeline <span class="rt-soft">{legend}</span></h2>{timeline}')
    if record.breaks:
        rows = "".join(f"<li><code>{_safe(line)}</code></li>" for line in record.breaks[:MAX_BREAKS])
        more = len(record.breaks) - MAX_BREAKS
        parts.append(
            f'<h2>Graph breaks</h2><ol class="rt-breaks">{rows}</ol>'
            + (f'<p class="rt-soft">{more} more</p>' if more > 0 else "")
        )
    parts.append(f"<h2>Text</h2>{transcript(record)}")
    parts.append(_returned(record))
    return whole_page(title, f"{_summary(record.graph)}; {run_words(record)}", parts)


def graph_fragment(nodes: Sequence[Node]) -> str:
    """The picture of a graph for a notebook."""
    drawing = draw(nodes, max_boxes=MAX_FRAGMENT_BOXES)
    picture = graph_svg(drawing, facts_of(tuple(nodes), None)) if drawing.boxes else ""
    return fragment(
        f'<div class="rt-scroll">{picture}</div><div class="rt-facts">{escape(_summary(nodes))}{_hidden(drawing)}</div>'
    )


def run_fragment(record: RunRecord) -> str:
    """The texts of a run for a notebook, with one line of facts."""
    error = f'<div class="rt-error">{_safe(record.error)}</div>' if record.error is not None else ""
    return fragment(
        f'<div class="rt-scroll">{transcript(record)}</div>{error}{_returned(record)}'
        f'<div class="rt-facts">{escape(run_words(record))}</div>'
    )


def table_fragment(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], facts: str = "", after: str = ""
) -> str:
    """A table for a notebook; without columns it has no head. `after` is a line below it."""
    head = "".join(f"<th>{_safe(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{_safe(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    table = f'<table class="rt-table">{f"<thead><tr>{head}</tr></thead>" if head else ""}<tbody>{body}</tbody></table>'
    words = f' <span class="rt-soft">{_safe(facts)}</span>' if facts else ""
    return fragment(
        f'<div class="rt-head">{_safe(title)}{words}</div>{table if rows else ""}'
        + (f'<div class="rt-facts">{_safe(after)}</div>' if after else "")
    )


def whole_page(title: str, facts: str, parts: Sequence[str]) -> str:
    """A self-contained page: a title, a line of facts, and parts that are HTML."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{_safe(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<style>{TRANSCRIPT_CSS}{PAGE_CSS}</style></head>\n"
        f'<body class="rt rt-page"><h1>{_safe(title)}</h1><p class="rt-page-facts">{escape(facts)}</p>{"".join(parts)}\n'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def fragment(content: str) -> str:
    """Content with the style that it needs, for a notebook."""
    return f'<style>{TRANSCRIPT_CSS}</style><div class="rt">{content}</div>'


def run_words(record: RunRecord) -> str:
    """Tokens, duration and graph breaks of a run, in one line."""
    usage = record.total
    words = [f"{usage.prompt_tokens} prompt tokens ({usage.cached_tokens} cached), {usage.completion_tokens} generated"]
    if record.seconds is not None:
        words.append(seconds(record.seconds))
    if record.breaks:
        words.append(f"{len(record.breaks)} graph break{'s' if len(record.breaks) > 1 else ''}")
    return ", ".join(words)


def marked_graph(record: RunRecord, node_ids: Collection[int]) -> str:
    """The graph of a run, with some nodes marked as changed."""
    drawing = draw(record.graph, labels_of_run(record.graph, record))
    return "".join(_canvas(record.graph, drawing, record, frozenset(node_ids)))


def _canvas(
    nodes: tuple[Node, ...], drawing: Drawing, record: RunRecord | None, marked: frozenset[int] = frozenset()
) -> list[str]:
    if not drawing.boxes:
        return ['<p class="rt-soft">no nodes</p>']

    def color(node_id: int) -> str | None:
        assert record is not None
        if any(each.error is not None for each in record.runs_of(node_id)):
            return FAILED
        return CHANGED if not marked.isdisjoint((node_id, *record.copies.get(node_id, ()))) else None

    picture = graph_svg(drawing, facts_of(nodes, record), None if record is None else color)
    parts = [
        f'<div class="rt-canvas">{picture}<div class="rt-buttons"><button aria-label="zoom in">+</button>'
        '<button aria-label="zoom out">−</button><button>whole</button></div><div class="rt-details"></div></div>'
    ]
    if drawing.num_hidden:
        parts.append(
            f'<div class="rt-note">The picture leaves out {drawing.num_hidden} of {_count(nodes)} nodes: branches like those '
            f"that it shows, and nodes after the first {MAX_BOXES}.</div>"
        )
    return parts


def _hidden(drawing: Drawing) -> str:
    return f"; {drawing.num_hidden} nodes are not shown" if drawing.num_hidden else ""


def _returned(record: RunRecord) -> str:
    if record.returned is None:
        return ""
    return (
        f'<div class="rt-returned"><span class="rt-soft">returned</span> '
        f"{_safe(shortened(record.returned, MAX_RETURNED_CHARS))}</div>"
    )


def _summary(nodes: Sequence[Node]) -> str:
    kinds: dict[str, int] = {}
    todo = list(nodes)
    while todo:
        node = todo.pop()
        kind = type(node).__name__.lower()
        kinds[kind] = kinds.get(kind, 0) + 1
        todo.extend(inner for block in blocks_of(node) for inner in block.nodes)
    total = sum(kinds.values())
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"{total} node{'s' if total != 1 else ''}" + (f" ({counted})" if counted else "")


def _count(nodes: Sequence[Node]) -> int:
    return sum(1 + sum(_count(block.nodes) for block in blocks_of(node)) for node in nodes)


def _safe(text: str) -> str:
    return escape(printable(text))
