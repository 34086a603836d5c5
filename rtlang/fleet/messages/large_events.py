"""Divides results with many log-probabilities into parts for the way between the two processes, and joins them there.

A result of a million numbers takes seconds to pack and to read, and the tokens of all other graphs would wait for it. Its lists of
log-probabilities travel in parts instead, before the event without them. The writer sends the parts of a graph in order, but lets the
events of other graphs pass (`FrameWriter`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtlang.contract.events import Event, NodeFinished, TokenLogprob
from rtlang.protocol.event_codec import logprobs_from_wire, logprobs_to_wire

MAX_WHOLE = 2_000
"""Log-probabilities of an event that travels as a whole."""
_PART = 1_000  # log-probabilities of one part

Logprobs = tuple[TokenLogprob, ...]


@dataclass(frozen=True, slots=True)
class LogprobsPart:
    """A part of one of the lists of log-probabilities of an event that follows.

    Attributes:
        index: the place of the list in `_lists_of`.
    """

    node_id: int
    index: int
    logprobs: Sequence[TokenLogprob]

    def to_wire(self, graph_id: int) -> dict[str, Any]:
        """The message of the part."""
        return {"t": "part", "s": graph_id, "n": self.node_id, "k": self.index, "lp": logprobs_to_wire(self.logprobs)}


def divide(event: Event) -> Iterator[LogprobsPart | Event]:
    """The parts of an event, then the event without them; the event alone if it is not large."""
    lists = _lists_of(event) if isinstance(event, NodeFinished) else []
    if not isinstance(event, NodeFinished) or sum(map(_num_numbers, lists)) <= MAX_WHOLE:
        yield event
        return
    for index, logprobs in enumerate(lists):
        size = max(1, _PART * len(logprobs) // max(1, _num_numbers(logprobs)))
        for start in range(0, len(logprobs), size):
            yield LogprobsPart(event.node_id, index, logprobs[start : start + size])
    yield _with_lists(event, [()] * len(lists))


class Joiner:
    """The parts of one graph whose event has not come yet."""

    def __init__(self) -> None:
        self._parts: dict[int, dict[int, list[TokenLogprob]]] = {}

    def take(self, message: dict[str, Any]) -> None:
        """Take the message of a part."""
        found = self._parts.setdefault(message["n"], {}).setdefault(message["k"], [])
        found.extend(logprobs_from_wire(message, "lp"))

    def join(self, event: Event | None) -> Event | None:
        """The event with the parts that came before it."""
        if not isinstance(event, NodeFinished) or event.node_id not in self._parts:
            return event
        parts = self._parts.pop(event.node_id)
        return _with_lists(event, [tuple(parts.get(index, ())) for index in range(len(_lists_of(event)))])


def _num_numbers(logprobs: Logprobs) -> int:
    return len(logprobs) * (1 + len(logprobs[-1].top)) if logprobs else 0


def _lists_of(event: NodeFinished) -> list[Logprobs]:
    """The lists of log-probabilities of an event, in a fixed order."""
    lists = [each.logprobs for each in event.completions if each.logprobs is not None]
    if event.prompt_logprobs is not None:
        lists.append(event.prompt_logprobs)
    return [*lists, *(event.choice_logprobs or ()), *(event.unconditional_logprobs or ())]


def _with_lists(event: NodeFinished, lists: Sequence[Logprobs]) -> NodeFinished:
    """The event with other lists, in the order of `_lists_of`."""
    rest = iter(lists)
    completions = tuple(
        each if each.logprobs is None else replace(each, logprobs=next(rest)) for each in event.completions
    )
    prompt = None if event.prompt_logprobs is None else next(rest)
    choices, unconditional = (
        None if each is None else tuple(next(rest) for _ in each)
        for each in (event.choice_logprobs, event.unconditional_logprobs)
    )
    return replace(
        event,
        completions=completions,
        prompt_logprobs=prompt,
        choice_logprobs=choices,
        unconditional_logprobs=unconditional,
    )
