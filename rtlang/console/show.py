"""Output of `rtlang run`: streamed text, then values and token usage.

Several variables may be generated at once, but a terminal has one cursor. One variable is in the foreground and streams; the others are
buffered and printed when their turn comes. Variables of the same name (from forks) are numbered in program order, as in the list that
the program sees.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.text import Text

from rtlang.console.source import CommandError
from rtlang.contract.errors import RtlangError
from rtlang.contract.params import Usage
from rtlang.contract.process.terminal_text import UNSAFE, terminal_text
from rtlang.contract.request_graph import Node, RequestGraph, choices_of
from rtlang.contract.request_graph import Text as TextNode
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions, abilities_of
from rtlang.contract.service.target import ForwardedRun, GraphRun, Listener, Target
from rtlang.lang.execution.result import Result
from rtlang.lang.execution.stream import EmitEvent, EndEvent, ErrorEvent, StreamEvent, TextEvent, ValueEvent

STYLES = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")
UNNAMED = "(unnamed)"
PIPED_WIDTH = 100
"""Columns of tables that are not printed to a terminal."""
Key = tuple[int, int]
"""(node id, choice) of one completion."""


class Labels:
    """A target that forwards graphs to another one and records node names for labels. Serves one program at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._nodes_by_name: dict[str, list[int]] = {}
        self._num_choices: dict[int, int] = {}
        self._recorded: Callable[[], Sequence[Node]] | None = None

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return self._target.is_alive

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`."""
        return self._target.tool_format

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`."""
        return abilities_of(self._target)

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> GraphRun:
        """See `Target.submit`."""
        self.note(graph.nodes)
        run = self._target.submit(graph, listener, options=options)
        return _LabelledRun(run, self)

    def close(self) -> None:
        """Close the wrapped target."""
        self._target.close()

    def follow(self, recorded: Callable[[], Sequence[Node]]) -> None:
        """Also count the nodes of the program that the compiler merged with others: their events come under their own ids."""
        self._recorded = recorded

    def note(self, nodes: Sequence[Node]) -> None:
        """Record the names of nodes."""
        for node in nodes:
            if not isinstance(node, TextNode) and node.node_id not in self._num_choices:
                self._nodes_by_name.setdefault(node.name or UNNAMED, []).append(node.node_id)
                self._num_choices[node.node_id] = choices_of(node)

    def label(self, name: str | None, key: Key) -> str:
        """The label of a completion: its name, with indices if nodes share the name or the node has several choices."""
        node_id, choice = key
        name = name or UNNAMED
        if self._recorded is not None:
            self.note(self._recorded())
        namesakes = sorted(self._nodes_by_name.get(name, []))
        place = f"[{namesakes.index(node_id)}]" if len(namesakes) > 1 and node_id in namesakes else ""
        return name + place + (f"[{choice}]" if self._num_choices.get(node_id, 1) > 1 else "")


class _LabelledRun(ForwardedRun):
    """A graph run that records the names of added nodes."""

    def __init__(self, run: GraphRun, labels: Labels) -> None:
        self.run, self._labels = run, labels

    def extend(self, nodes: Sequence[Node]) -> None:
        self._labels.note(nodes)
        self.run.extend(nodes)


@dataclass(slots=True)
class _Span:
    """One completion: the text received so far, and how much of it has been printed."""

    label: str
    style: str
    text: str = ""
    num_printed: int = 0
    error: RtlangError | None = None
    is_done: bool = False


@dataclass(slots=True)
class EventPrinter:
    """Prints the events of one program to `console`, in color if the console supports it."""

    console: Console
    labels: Labels
    _spans: dict[Key, _Span] = field(default_factory=dict)
    _num_spans: int = 0
    _front: Key | None = None

    def show(self, event: StreamEvent) -> None:
        """Process one event; events must arrive in order."""
        match event:
            case TextEvent():
                self._span(event.name, (event.node_id, event.choice)).text += event.text
            case ValueEvent():
                span = self._span(event.name, (event.node_id, event.choice))
                span.text, span.is_done = event.text, True
            case ErrorEvent():
                span = self._span(event.name, (event.node_id, 0))
                span.error, span.is_done = event.error, True
            case EmitEvent():
                text = to_json(plain(event.value, "an emitted value"), indent=None)
                self._spans[event.node_id, 0] = _Span(
                    f"{event.path}", STYLES[self._num_spans % len(STYLES)], text, 0, None, True
                )
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
        """Print new foreground text; when it has ended, continue with the next completion."""
        while self._spans:
            if self._front is None:
                self._front = min(self._spans)  # in the order of the program
                span = self._spans[self._front]
                self.console.print(
                    Text(terminal_text(f"{span.label}: "), style=f"bold {span.style}"), end="", soft_wrap=True
                )
            span = self._spans[self._front]
            if len(span.text) > span.num_printed:
                self.console.print(Text(terminal_text(span.text[span.num_printed :])), end="", soft_wrap=True)
                span.num_printed = len(span.text)
            if not span.is_done:
                return
            if span.error is not None:
                self.console.print(
                    Text(terminal_text(f"[failed: {span.error.message}]"), style="red"), end="", soft_wrap=True
                )
            self.console.print()
            del self._spans[self._front]
            self._front = None


def run_and_show(events: Iterable[StreamEvent], console: Console | None, labels: Labels) -> tuple[Result, float]:
    """Process all events of a program that runs on `labels`, and print them to `console` if given.

    Returns:
        The result and the elapsed time in seconds.
    """
    started = perf_counter()
    printer = None if console is None else EventPrinter(console, labels)
    result: Result | None = None
    for event in events:
        if printer is not None:
            printer.show(event)
        if isinstance(event, EndEvent):
            result = event.result
    assert result is not None, "a stream ends with an EndEvent"
    return result, perf_counter() - started


def values_of(result: Result) -> tuple[dict[str, Any], list[str]]:
    """All variables that have a value, as JSON-compatible data, and a message for each value that JSON cannot represent."""
    values, problems = {}, []
    for name in result.names:
        try:
            values[name] = plain(result[name], f"the value of {name}")
        except CommandError as error:
            problems.append(str(error))
        except RtlangError:
            continue  # failed; reported by the result's error
        except RecursionError:
            problems.append(f"the value of {name} contains itself, or is nested too deeply")
    return values, problems


def plain(value: Any, what: str) -> Any:
    """Convert a value to JSON-compatible data; handles models, dataclasses, enums, dates and similar types.

    Raises:
        CommandError: the value has no JSON form; the message calls it `what`.
    """
    import pydantic_core

    try:
        found = pydantic_core.to_jsonable_python(value, fallback=str)
        json.dumps(found, allow_nan=False)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise CommandError(f"{what} cannot be written as JSON: {error}") from None
    return found


def to_json(value: Any, indent: int | None = 2) -> str:
    """Format plain data as JSON, with non-ASCII characters unescaped, except controls (of a terminal, of direction) and lone surrogates."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def usage_line(usage: Usage, seconds: float) -> str:
    """Token counts and speed of a run, in one line."""
    rate = usage.completion_tokens / seconds if seconds > 0 else 0.0
    return (
        f"{usage.prompt_tokens} prompt tokens ({usage.cached_tokens} cached), {usage.completion_tokens} generated in "
        f"{seconds:.2f} s, {rate:.0f} tok/s"
    )
