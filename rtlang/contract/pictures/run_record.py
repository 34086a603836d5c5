"""The record of a run, from which pictures of it are drawn: plain data that can be kept and pickled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import NodeFinished, Timing
from rtlang.contract.graph.nodes import (
    Apply,
    Arg,
    Call,
    Decide,
    Generate,
    Node,
    Part,
    Ref,
    Repeat,
    RoleEnd,
    RoleStart,
    Switch,
    Text,
    TokenIds,
)
from rtlang.contract.graph.value_text import text_of_plain
from rtlang.contract.params import Usage
from rtlang.contract.pictures.labels import names_of
from rtlang.contract.pictures.structure import level_of


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """The outcome of a node.

    Attributes:
        texts: the text of each completion.
        finish: why each ended.
        value: the text of the value of a node that computes one.
        logprobs: the sum of the log-probabilities of each completion's tokens, if they were requested.
        num_tokens: the number of tokens of each completion.
        ended_s: when it ended, in seconds since the start of the run.
        error: the type and message of its error.
    """

    texts: tuple[str, ...] = ()
    finish: tuple[str, ...] = ()
    value: str | None = None
    usage: Usage = field(default_factory=Usage)
    timing: Timing = field(default_factory=Timing)
    ended_s: float | None = None
    num_tokens: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    probabilities: tuple[float, ...] | None = None
    is_replayed: bool = False
    error: str | None = None

    @classmethod
    def of(cls, outcome: NodeFinished | RtlangError, ended_s: float | None = None) -> NodeRecord:
        """The record of a node that ended with this event or error."""
        if isinstance(outcome, RtlangError):
            return cls(error=f"{type(outcome).__name__}: {outcome.message}", ended_s=ended_s)
        completions = outcome.completions
        return cls(
            tuple(each.text for each in completions),
            tuple(str(each.finish_reason.value) for each in completions),
            None if completions else text_of_plain(outcome.value),
            outcome.usage,
            outcome.timing,
            ended_s,
            tuple(len(each.token_ids) for each in completions),
            tuple(None if each.logprobs is None else sum(one.logprob for one in each.logprobs) for each in completions),
            outcome.probabilities,
            outcome.is_replayed,
        )


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run that has ended or is still running.

    Attributes:
        graph: the nodes as submitted, after the passes of the compiler.
        recorded: the nodes as the program recorded them, from which its texts are read.
        nodes: how nodes ended, by the ids under which they ran.
        copies: the ids under which a node of a loop ran, by its id in the graph.
        names: the names of nodes by the ids under which they ran.
        node_paths: the paths of nodes (`node_paths`) by the ids under which they ran.
        paths: the parts that branches and loops have added to their sequences.
        partial: the text so far of completions that have not ended, by node and choice.
        breaks: the graph breaks, as lines of text.
        total: tokens of the whole run.
        seconds: the duration of the run, if it is known.
        error: the error of the run, as a line of text.
        returned: the returned value, as Python writes it.
    """

    graph: tuple[Node, ...] = ()
    recorded: tuple[Node, ...] = ()
    nodes: Mapping[int, NodeRecord] = field(default_factory=dict)
    copies: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    node_paths: Mapping[int, str] = field(default_factory=dict)
    paths: Mapping[int, tuple[Part, ...]] = field(default_factory=dict)
    partial: Mapping[tuple[int, int], str] = field(default_factory=dict)
    breaks: tuple[str, ...] = ()
    total: Usage = field(default_factory=Usage)
    seconds: float | None = None
    error: str | None = None
    returned: str | None = None

    def titles(self) -> dict[int, str]:
        """The names of nodes by the ids under which they ran; of a value without a name, that of its function."""
        names = names_of(self.graph)
        ran = {run_id: names[node_id] for node_id, ids in self.copies.items() if node_id in names for run_id in ids}
        return {**names, **ran, **self.names}

    def text_of(self, node_id: int, choice: int = 0) -> str | None:
        """The text or value of a node, as far as it is known; None if nothing is."""
        record = self.nodes.get(node_id)
        if record is not None and record.error is None:
            if choice < len(record.texts):
                return record.texts[choice]
            if record.value is not None:
                return record.value
        return self.partial.get((node_id, choice))

    def runs_of(self, node_id: int) -> list[NodeRecord]:
        """The records of a node of the graph: one, or one per iteration of the enclosing loop."""
        found = [self.nodes[each] for each in self.copies.get(node_id, ()) if each in self.nodes]
        if found:
            return found
        return [self.nodes[node_id]] if node_id in self.nodes else []


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A piece of a sequence.

    Attributes:
        kind: "text" for given text, "role" for the start of a message, "end" for its end, "generated", "missing" for a text that is
            not there yet, "error".
        name: the variable of a generated text.
        node_id: the id under which its node ran.
    """

    kind: str
    text: str
    node_id: int
    name: str = ""
    choice: int = 0


@dataclass(slots=True)
class TimeSegment:
    """A run of spans without a branch, followed by stages of branches that continue it."""

    spans: list[NodeSpan] = field(default_factory=list)
    stages: list[list[TimeSegment]] = field(default_factory=list)


def segments(record: RunRecord) -> list[TimeSegment]:
    """The texts of all sequences; shared beginnings appear once. A text after a join follows the branches that it joins."""
    nodes = {node.node_id: node for node in record.recorded}
    names = {**names_of(record.recorded), **record.names}
    level = level_of(record.recorded, collapses=False)
    children: dict[int | None, list[list[int]]] = {}
    for rows in level.stages.values():
        for row in rows:
            by_parent: dict[tuple[int | None, int | None], list[int]] = {}
            for each in row:
                node = nodes[each]
                if isinstance(node, (Apply, Call, Decide)):
                    continue
                alone = (
                    each if isinstance(node, Generate) and node.params.n > 1 else None
                )  # its completions are branches
                by_parent.setdefault((level.parents.get(each), alone), []).append(each)
            for (parent, _), members in by_parent.items():
                children.setdefault(parent, []).append(members)
    for found in children.values():
        found.sort()
    roots: list[TimeSegment] = []
    todo: list[tuple[int, TimeSegment]] = []
    for row in children.get(None, ()):
        for each in row:
            root = TimeSegment()
            roots.append(root)
            todo.append((each, root))
    while todo:
        node_id, segment = todo.pop()
        while True:
            node = nodes[node_id]
            is_fanned = isinstance(node, Generate) and node.params.n > 1
            if is_fanned:
                assert isinstance(node, Generate)
                segment.stages.append(
                    [TimeSegment([_generated(node_id, choice, names, record)]) for choice in range(node.params.n)]
                )
            else:
                segment.spans.extend(_spans(node, names, record))
            rows = children.get(node_id, [])
            if len(rows) == 1 and len(rows[0]) == 1 and not is_fanned:
                node_id = rows[0][0]
                continue
            for row in rows:
                stage = [TimeSegment() for _ in row]
                segment.stages.append(stage)
                todo.extend(zip(row, stage, strict=True))
            break
    return roots


def _spans(node: Node, names: Mapping[int, str], record: RunRecord) -> Iterator[NodeSpan]:
    match node:
        case Text():
            yield from _of_parts(node.parts, node.node_id, names, record)
        case Switch() | Repeat() if node.node_id in record.paths:
            yield from _of_parts(record.paths[node.node_id], node.node_id, names, record, is_generated=True)
        case _:
            yield _generated(node.node_id, 0, names, record)


def _of_parts(
    parts: tuple[Part, ...], node_id: int, names: Mapping[int, str], record: RunRecord, *, is_generated: bool = False
) -> Iterator[NodeSpan]:
    for part in parts:
        match part:
            case str():
                if part:
                    yield NodeSpan("text", part, node_id)
            case RoleStart():
                yield NodeSpan("role", part.role, node_id)
            case RoleEnd():
                yield NodeSpan("end", "", node_id)
            case Ref() if is_generated:
                yield _generated(part.node_id, part.choice, names, record)
            case Ref():
                text = record.text_of(part.node_id, part.choice)
                name = names.get(part.node_id, f"#{part.node_id}")
                yield (
                    NodeSpan("text", text, node_id)
                    if text is not None
                    else NodeSpan("missing", "{" + name + "}", node_id)
                )
            case Arg():
                yield NodeSpan("missing", "{" + part.name + "}", node_id)
            case TokenIds():
                kind, shown = ("text", part.text) if part.text else ("missing", f"[{len(part.ids)} tokens]")
                yield NodeSpan(kind, shown, node_id)


def _generated(node_id: int, choice: int, names: Mapping[int, str], record: RunRecord) -> NodeSpan:
    name = names.get(node_id, "(unnamed)")
    ended = record.nodes.get(node_id)
    if ended is not None and ended.error is not None:
        return NodeSpan("error", ended.error, node_id, name, choice)
    text = record.text_of(node_id, choice)
    return NodeSpan(
        "generated" if text is not None else "missing", "…" if text is None else text, node_id, name, choice
    )
