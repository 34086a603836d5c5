"""What `rtlang run` prints: texts as they are made, then the values and what they cost.

Several variables may be generated at once, but a terminal has one cursor. So one of them is in the foreground and appears as it is
made; the others are kept and printed when their turn comes, whole if they have ended by then. Texts of one name (forks) are
numbered in the order of the program, as in the list that the program itself sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.text import Text

from rtlang.console.source import CommandError
from rtlang.contract.errors import RtlangError
from rtlang.contract.graph import Node, RequestGraph, choices_of
from rtlang.contract.graph import Text as TextNode
from rtlang.contract.params import Usage
from rtlang.contract.target import GraphRun, Listener, Target
from rtlang.lang.execution.result import Result
from rtlang.lang.execution.stream import EndEvent, ErrorEvent, StreamEvent, TextEvent, ValueEvent

STYLES = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")
UNNAMED = "(unnamed)"
Key = tuple[int, int]
"""Node id and choice: one text."""


class Labels:
    """A target that passes graphs on to another, and remembers the names of their nodes for labels. For one program at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._nodes_by_name: dict[str, list[int]] = {}
        self._num_choices: dict[int, int] = {}

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return self._target.is_alive

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        *,
        inputs: Mapping[str, str] | None = None,
        is_open: bool = False,
        priority: int = 0,
        deadline_s: float | None = None,
    ) -> GraphRun:
        """See `Target.submit`."""
        self.note(graph.nodes)
        run = self._target.submit(
            graph, listener, inputs=inputs, is_open=is_open, priority=priority, deadline_s=deadline_s
        )
        return _LabelledRun(run, self)

    def close(self) -> None:
        """Close the target behind."""
        self._target.close()

    def note(self, nodes: Sequence[Node]) -> None:
        """Remember nodes that are about to run."""
        for node in nodes:
            if not isinstance(node, TextNode):
                self._nodes_by_name.setdefault(node.name or UNNAMED, []).append(node.node_id)
                self._num_choices[node.node_id] = choices_of(node)

    def label(self, name: str | None, key: Key) -> str:
        """The name of a text, with its place where nodes share the name or a node has several texts."""
        node_id, choice = key
        name = name or UNNAMED
        namesakes = self._nodes_by_name.get(name, [])
        place = f"[{namesakes.index(node_id)}]" if len(namesakes) > 1 and node_id in namesakes else ""
        return name + place + (f"[{choice}]" if self._num_choices.get(node_id, 1) > 1 else "")


class _LabelledRun:
    """A graph run whose later nodes are remembered too."""

    def __init__(self, run: GraphRun, labels: Labels) -> None:
        self._run, self._labels = run, labels

    @property
    def graph_id(self) -> int:
        return self._run.graph_id

    def extend(self, nodes: Sequence[Node]) -> None:
        self._labels.note(nodes)
        self._run.extend(nodes)

    def close(self) -> None:
        self._run.close()

    def cancel(self) -> None:
        self._run.cancel()


@dataclass(slots=True)
class _Span:
    """One text: what has come, and how much of it is printed."""

    label: str
    style: str
    text: str = ""
    num_printed: int = 0
    error: RtlangError | None = None
    is_done: bool = False


@dataclass(slots=True)
class Shower:
    """Prints the events of one program to `console`. Colours only where the console has them."""

    console: Console
    labels: Labels
    _spans: dict[Key, _Span] = field(default_factory=dict)
    _num_spans: int = 0
    _front: Key | None = None

    def show(self, event: StreamEvent) -> None:
        """Take one event, in order."""
        match event:
            case TextEvent():
                self._span(event.name, (event.node_id, event.choice)).text += event.text
            case ValueEvent():
                span = self._span(event.name, (event.node_id, event.choice))
                span.text, span.is_done = event.text, True
            case ErrorEvent():
                span = self._span(event.name, (event.node_id, 0))
                span.error, span.is_done = event.error, True
            case EndEvent():
                for span in self._spans.values():
                    span.is_done = True
        self._print_front()

    def _span(self, name: str | None, key: Key) -> _Span:
        span = self._spans.get(key)
        if span is None:
            style = STYLES[self._num_spans % len(STYLES)]
            span = self._spans[key] = _Span(self.labels.label(name, key), style)
            self._num_spans += 1
        return span

    def _print_front(self) -> None:
        """Go on with the foreground text; when it has ended, bring the next one forward."""
        while self._spans:
            if self._front is None:
                self._front = min(self._spans)  # in the order of the program
                span = self._spans[self._front]
                self.console.print(Text(f"{span.label}: ", style=f"bold {span.style}"), end="", soft_wrap=True)
            span = self._spans[self._front]
            if len(span.text) > span.num_printed:
                self.console.print(Text(span.text[span.num_printed :]), end="", soft_wrap=True)
                span.num_printed = len(span.text)
            if not span.is_done:
                return
            if span.error is not None:
                self.console.print(Text(f"[failed: {span.error.message}]", style="red"), end="", soft_wrap=True)
            self.console.print()
            del self._spans[self._front]
            self._front = None


def run_and_show(events: Iterable[StreamEvent], console: Console | None, labels: Labels) -> tuple[Result, float]:
    """Take all events of a program that runs on `labels`, shown on `console` if there is one.

    Returns:
        The result, and the seconds it took.
    """
    started = perf_counter()
    shower = None if console is None else Shower(console, labels)
    result: Result | None = None
    for event in events:
        if shower is not None:
            shower.show(event)
        if isinstance(event, EndEvent):
            result = event.result
    assert result is not None, "a stream ends with an EndEvent"
    return result, perf_counter() - started


def values_of(result: Result) -> tuple[dict[str, Any], list[str]]:
    """Every variable that has a value, in plain data for JSON, and what is wrong with values that have no such form."""
    values, problems = {}, []
    for name in result.names:
        try:
            values[name] = plain(result[name], f"the value of {name}")
        except CommandError as error:
            problems.append(str(error))
        except RtlangError:
            continue  # it failed; the result's error says so
        except RecursionError:
            problems.append(f"the value of {name} contains itself, or is nested too deeply")
    return values, problems


def plain(value: Any, what: str) -> Any:
    """A value in maps, lists and scalars: models, dataclasses, enums, dates and the like become what JSON has for them.

    Raises:
        CommandError: it has no such form; calls it `what`.
    """
    import pydantic_core

    try:
        found = pydantic_core.to_jsonable_python(value, fallback=str)
        json.dumps(found, allow_nan=False)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise CommandError(f"{what} cannot be written as JSON: {error}") from None
    return found


def to_json(value: Any, indent: int | None = 2) -> str:
    """Plain data as JSON, in letters of any language where UTF-8 has them."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, as escapes may write it
        return json.dumps(value, indent=indent)
    return text


def usage_line(usage: Usage, seconds: float) -> str:
    """Tokens and speed of a run in one line."""
    rate = usage.completion_tokens / seconds if seconds > 0 else 0.0
    return (
        f"{usage.prompt_tokens} prompt tokens ({usage.cached_tokens} cached), {usage.completion_tokens} generated in "
        f"{seconds:.2f} s, {rate:.0f} tok/s"
    )
