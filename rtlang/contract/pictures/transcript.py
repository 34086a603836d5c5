"""The texts of a run as HTML: messages with their roles, and generated texts marked by variable."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rtlang.contract.graph.node_paths import tells_more
from rtlang.contract.pictures.facts import usage_words
from rtlang.contract.pictures.labels import printable, shortened
from rtlang.contract.pictures.page_style import NUM_COLORS
from rtlang.contract.pictures.run_record import NodeSpan, RunRecord, TimeSegment, segments

MAX_SPANS = 3_000
MAX_SPAN_CHARS = 20_000
MAX_DEPTH = 30
"""Branches below this depth are shown one after the other, because browsers limit the nesting of elements."""


def transcript(record: RunRecord) -> str:
    """The legend of the variables, and the texts of all sequences. The result needs `page_style.TRANSCRIPT_CSS`."""
    writer = _Writer(record)
    body = writer.forest(segments(record))
    legend = "".join(
        f'<span class="rt-key rt-c{color}">{escape(printable(shortened(name, 60)))}</span>'
        for name, color in writer.colors.items()
    )
    more = (
        f'<div class="rt-soft">{writer.num_left_out} more pieces of text are not shown</div>'
        if writer.num_left_out
        else ""
    )
    return (f'<div class="rt-legend">{legend}</div>' if legend else "") + f'<div class="rt-texts">{body}</div>{more}'


class _Writer:
    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self.colors: dict[str, int] = {}
        self.num_left_out = 0
        self._num_spans = 0

    def forest(self, roots: Sequence[TimeSegment]) -> str:
        parts: list[str] = []
        todo: list[tuple[int, TimeSegment] | str] = [(0, segment) for segment in reversed(roots)]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                parts.append(item)
                continue
            depth, segment = item
            if not segment.spans and not segment.stages:
                continue
            if self._num_spans >= MAX_SPANS:
                self.num_left_out += max(len(segment.spans), 1)
                todo.extend((depth, each) for stage in reversed(segment.stages) for each in reversed(stage))
                continue
            parts.append('<div class="rt-seq">' + self._messages(segment.spans))
            inner: list[tuple[int, TimeSegment] | str] = []
            for stage in segment.stages:
                has_frame = len(stage) > 1 and depth < MAX_DEPTH
                inner.append('<div class="rt-forks">' if has_frame else "")
                inner.extend((depth + 1, each) for each in stage)
                inner.append("</div>" if has_frame else "")
            if depth < MAX_DEPTH:
                inner.append("</div>")
            else:
                parts.append("</div>")
            todo.extend(reversed(inner))
        return "".join(parts)

    def _messages(self, spans: Sequence[NodeSpan]) -> str:
        parts: list[str] = []
        is_open = False
        for span in spans:
            if span.kind in ("role", "end"):
                if is_open:
                    parts.append("</div></div>")
                is_open = span.kind == "role"
                if is_open:
                    parts.append(
                        f'<div class="rt-message"><div class="rt-role">{escape(span.text)}</div><div class="rt-body">'
                    )
                continue
            if not is_open:
                parts.append('<div class="rt-message"><div class="rt-body">')
                is_open = True
            parts.append(self._span(span))
        return "".join([*parts, "</div></div>" if is_open else ""])

    def _span(self, span: NodeSpan) -> str:
        self._num_spans += 1
        text = escape(printable(shortened(span.text, MAX_SPAN_CHARS)))
        if span.kind == "text":
            return text
        if span.kind == "missing" and not span.name:
            return f'<span class="rt-soft">{text}</span>'
        color = self.colors.setdefault(span.name, len(self.colors) % NUM_COLORS)
        kind = {"error": "rt-bad", "missing": f"rt-c{color} rt-soft"}.get(span.kind, f"rt-c{color}")
        return f'<span class="rt-span {kind}" title="{escape(printable(self._words(span)))}">{text or "&#8203;"}</span>'

    def _words(self, span: NodeSpan) -> str:
        record = self._record.nodes.get(span.node_id)
        if record is None:
            return span.name
        place = f"[{span.choice}]" if len(record.texts) > 1 else ""
        path = self._record.node_paths.get(span.node_id, "")
        words = [f"{path if tells_more(path) else span.name}{place}"]
        if span.choice < len(record.texts):
            words.append(f"{record.num_tokens[span.choice]} tokens, {record.finish[span.choice]}")
            logprob = record.logprobs[span.choice]
            if logprob is not None:
                words.append(f"log-probability {logprob:.2f}")
        if record.error is not None:
            words.append(record.error)
        if usage := usage_words(record):
            words.append(usage)
        return "\n".join(words)
