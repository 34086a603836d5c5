"""Labels and tooltips of nodes after a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rtlang.contract.graph.node_paths import tells_more
from rtlang.contract.graph.nodes import Node, Repeat, Select, Switch, Text, blocks_of, path_of
from rtlang.contract.pictures.labels import Label, label_of, names_of, shortened
from rtlang.contract.pictures.run_record import NodeRecord, RunRecord

MAX_FACT_CHARS = 1_500


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    if value >= 60:
        return f"{int(value // 60)} min {value % 60:.0f} s"
    if value >= 1:
        return f"{value:.3g} s"
    milliseconds = value * 1000
    if milliseconds < 0.1 and value > 0:
        return f"{value * 1e6:.0f} µs"
    return f"{milliseconds:.0f} ms" if milliseconds >= 99.5 else f"{milliseconds:.3g} ms"


def labels_of_run(nodes: tuple[Node, ...], record: RunRecord) -> Callable[[Node], Label]:
    """The labels of boxes after a run: the text that a node made, with its tokens and duration."""
    names = names_of(nodes)

    def label(node: Node) -> Label:
        planned = label_of(node, names)
        runs = record.runs_of(node.node_id)
        if not runs or isinstance(node, Text):
            return planned
        last = runs[-1]
        notes = [] if len(runs) == 1 else [f"{len(runs)} times"]
        if last.error is not None:
            return Label(planned.kind, planned.title, last.error, tuple(notes))
        if last.finish and set(last.finish) == {"cancelled"}:
            return Label(planned.kind, planned.title, "", (*notes, "cancelled"))
        text = " | ".join(last.texts) if last.texts else last.value or ""
        if isinstance(node, (Switch, Repeat)):
            text = planned.text if text == "None" else f"{planned.text} → {text}"
        if last.timing.total_s:
            notes.append(seconds(sum(each.timing.total_s for each in runs)))
        if last.usage.prompt_tokens:
            cached = sum(each.usage.cached_tokens for each in runs)
            made = f" → {_generated(runs)}" if _generated(runs) else ""
            notes.append(f"{sum(each.usage.prompt_tokens for each in runs)}{made} tok")
            if cached:
                notes.append(f"{cached} cached")
        return Label(planned.kind, planned.title, text, tuple(notes))

    return label


def facts_of(nodes: tuple[Node, ...], record: RunRecord | None) -> Callable[[int], str]:
    """The description of each node by its id, for readers who point at it."""
    names = names_of(nodes)
    by_id: dict[int, Node] = {}
    todo = list(nodes)
    while todo:
        node = todo.pop()
        by_id[node.node_id] = node
        todo.extend(inner for block in blocks_of(node) for inner in block.nodes)

    def facts(node_id: int) -> str:
        node = by_id.get(node_id)
        if node is None:
            return "branches like those beside it, left out of the picture"
        return "\n".join(_lines(node, names, record))

    return facts


def usage_words(record: NodeRecord) -> str:
    """Tokens and duration of a node, in one line."""
    words = []
    if record.usage.prompt_tokens:
        words.append(
            f"{record.usage.prompt_tokens} prompt tokens ({record.usage.cached_tokens} cached), "
            f"{record.usage.completion_tokens} generated"
        )
    if record.timing.total_s:
        words.append(seconds(record.timing.total_s))
    if record.is_replayed:
        words.append("replayed")
    return ", ".join(words)


def _generated(runs: list[NodeRecord]) -> int:
    return sum(each.usage.completion_tokens for each in runs)


def _lines(node: Node, names: Mapping[int, str], record: RunRecord | None) -> list[str]:
    label = label_of(node, names)
    path = path_of(node) or ""
    title = path if tells_more(path) else label.title if label.title != label.kind else ""
    lines = [f"#{node.node_id} {label.kind} {title}".rstrip()]
    if label.text:
        lines.append(shortened(label.text, MAX_FACT_CHARS))
    if label.notes or label.marks:
        lines.append(", ".join((*label.notes, *label.marks)))
    runs = [] if record is None else record.runs_of(node.node_id)
    for number, run in enumerate(runs):
        lines.append("" if len(runs) == 1 else f"\niteration {number + 1}")
        lines.extend(_run_lines(node, run))
    return lines


def _run_lines(node: Node, run: NodeRecord) -> list[str]:
    if run.error is not None:
        return [shortened(run.error, MAX_FACT_CHARS)]
    lines = [words] if (words := usage_words(run)) else []
    timing = run.timing
    if timing.total_s and run.texts:
        lines.append(f"waited {seconds(timing.queued_s)}, first token after {seconds(timing.first_token_s)}")
    if isinstance(node, Select) and run.probabilities is not None:
        lines.extend(
            f"{probability:6.1%} {shortened(choice, 80)}"
            for choice, probability in sorted(
                zip(node.choices, run.probabilities, strict=True), key=lambda pair: -pair[1]
            )[:12]
        )
    for number, text in enumerate(run.texts):
        place = f"[{number}] " if len(run.texts) > 1 else ""
        lines.append(f"{place}{shortened(text, MAX_FACT_CHARS)}  ({run.finish[number]})")
    if not run.texts and run.value is not None and not isinstance(node, (Switch, Repeat, Text)):
        lines.append(f"value: {shortened(run.value, MAX_FACT_CHARS)}")
    return lines
