"""The probability mass that masks removed, per token and per field."""

from __future__ import annotations

from dataclasses import dataclass

from rtlang.contract.events import Completion
from rtlang.contract.growing_json import GrowingJson, JsonPath, Path
from rtlang.contract.params import ConstraintKind
from rtlang.contract.request_graph import Generate, Node


@dataclass(frozen=True, slots=True)
class Distortion:
    """The probability that a constraint removed along a text, as a sum of logarithms in nats.

    At each step it is -log of the probability of all tokens that the mask allowed, under the model's own distribution (before temperature,
    penalties and filters): 0 if the mask removed nothing, log 2 if it removed half.

    Attributes:
        total: the sum over all steps.
        per_token: one number for each sampled token; the end token that ended the text, if any, is the last.
        by_field: for JSON, the sum over the tokens that begin in each place, without the places inside it, by path; names, punctuation and
            blanks belong to the object or array around them. None for other texts.
    """

    total: float
    per_token: tuple[float, ...]
    by_field: dict[Path, float] | None = None


def distortion_of(node: Node, completion: Completion) -> Distortion | None:
    """The distortion of one completion of a node; None if it is not known."""
    steps = completion.distortion
    if steps is None:
        return None
    per_token = tuple(nats for nats, _ in steps)
    constraint = node.constraint if isinstance(node, Generate) else None
    is_json = constraint is not None and constraint.kind is ConstraintKind.JSON_SCHEMA
    return Distortion(sum(per_token), per_token, _by_field(steps, completion.text) if is_json else None)


def _by_field(steps: tuple[tuple[float, int], ...], text: str) -> dict[Path, float]:
    growing = GrowingJson()
    growing.push(text)
    growing.finish()
    places: list[JsonPath] = []
    waiting = [] if growing.root is None else [growing.root]
    while waiting:  # every place before those inside it, in the order of the text
        place = waiting.pop()
        places.append(place)
        waiting.extend(reversed(place.children.values()))
    found: dict[Path, float] = {}
    inside: list[JsonPath] = []
    next_place = start = 0
    for nats, end in steps:
        while next_place < len(places) and places[next_place].start <= start:
            while inside and inside[-1] is not places[next_place].parent:
                inside.pop()
            inside.append(places[next_place])
            next_place += 1
        while inside and inside[-1].end is not None and inside[-1].end <= start:
            inside.pop()
        path = inside[-1].path if inside else ()
        found[path] = found.get(path, 0.0) + nats
        start = end
    return found
