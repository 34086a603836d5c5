"""The case of a number: the same for the same seed, whatever came before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from rtlang_bench.worst_cases.draws import Draws
from rtlang_bench.worst_cases.frame_cases import FRAMES, frames, open_program
from rtlang_bench.worst_cases.graph_cases import ARGUMENTS, NODES, GraphDraft, function_graph, graph_body, node_graph
from rtlang_bench.worst_cases.requests import DEADLINE_MS, Case, Frames, HttpRequest
from rtlang_bench.worst_cases.route_cases import BODY_BYTES, ROUTES, post, program, route_requests

_MEGABYTE = 999_000


def _references(count: int) -> tuple[HttpRequest, ...]:
    """A list of so many references to one text of 1 MB, four times."""
    draft = GraphDraft(Draws(Random(0)))
    text = draft.add("apply", function="replace", args=[{"value": "a" * 999}, {"value": "a"}, {"value": "b" * 1_000}])
    for number in range(4):
        draft.add("apply", function="list", args=[{"ref": text}] * count, name=f"v{number}")
    return (post("/v1/programs", graph_body(draft) | {"deadline_ms": DEADLINE_MS}),)


def _format() -> tuple[HttpRequest, ...]:
    """A text of 1 MB formatted into 2,000 places."""
    draft = GraphDraft(Draws(Random(0)))
    text = draft.add("apply", function="replace", args=[{"value": "a" * 999}, {"value": "a"}, {"value": "b" * 1_000}])
    draft.add("apply", function="format", args=[{"value": "{0}" * 2_000}, {"ref": text}], name="v")
    return (post("/v1/programs", graph_body(draft) | {"deadline_ms": DEADLINE_MS}),)


def _splits() -> tuple[HttpRequest, ...]:
    """Five hundred splits of a text into 330,000 parts, each another one."""
    draft = GraphDraft(Draws(Random(0)))
    text = draft.add("apply", function="replace", args=[{"value": "a" * 600}, {"value": "a"}, {"value": "b " * 500}])
    for number in range(500):
        part = draft.add("apply", function="slice", args=[{"ref": text}, {"value": number}, {"value": None}])
        draft.add("apply", function="split", args=[{"ref": part}])
    return (post("/v1/programs", graph_body(draft) | {"deadline_ms": DEADLINE_MS}),)


def _tokenizations() -> tuple[HttpRequest, ...]:
    """Twenty-four texts of 1 MB to tokenize at once."""
    return (post("/tokenize", {"prompt": "The red fox sleeps. " * (_MEGABYTE // 20)}),) * 24


def _votes() -> tuple[HttpRequest | Frames, ...]:
    """Votes of 4,000 operands that depend on one call, answered late, and of 4,000 constants."""
    draft = GraphDraft(Draws(Random(0)))
    called = draft.add("call", function="f", args=[])
    kinds: list[dict[str, object]] = [{"ref": called}, {"value": 1}]
    for operand in kinds:
        parts = [{"ref": draft.add("apply", function="list", args=[operand])} for _ in range(4_000)]
        for how in ("vote", "first"):
            draft.add("decide", how=how, of=parts, name=f"{how}{draft.next_id}")
        draft.add("decide", how="best", of=parts, by=[{"value": number % 7} for number in range(4_000)], name="best")
    return (Frames("rtlang.v1.msgpack", (open_program(1, draft),), 5),)


def _graphs() -> tuple[HttpRequest | Frames, ...]:
    """A hundred graphs of a thousand small functions each, at once."""
    draft = GraphDraft(Draws(Random(0)))
    for number in range(1_000):
        draft.add("apply", function="add", args=[{"value": number}, {"value": 1}])
    return (Frames("rtlang.v1.msgpack", tuple(open_program(stream, draft) for stream in range(1, 101))),)


def _readers() -> tuple[HttpRequest, ...]:
    """Two hundred readers of the feed of snapshots."""
    return (HttpRequest("GET", "/v1/engine/snapshot/stream?interval_ms=100", leaves_after=200_000),) * 200


def _too_long() -> tuple[HttpRequest, ...]:
    """Bodies of twice the longest that is read."""
    return (HttpRequest("POST", "/v1/chat/completions", b" " * (2 * BODY_BYTES)),) * 4


ISSUE: dict[str, Callable[[], tuple[HttpRequest | Frames, ...]]] = {
    "list-200": lambda: _references(200),
    "list-1000": lambda: _references(1_000),
    "format": _format,
    "splits": _splits,
    "tokenizations": _tokenizations,
    "readers": _readers,
    "too-long": _too_long,
    "votes": _votes,
    "graphs": _graphs,
}
"""Cases that once held up others, by name; they have the first numbers."""

KINDS = ("issue", "function", "node", "route", "frame")
_PATTERN = ("function", "node", "function", "route", "frame")
_NAMES: dict[str, tuple[str, ...]] = {
    "issue": tuple(ISSUE),
    "function": tuple(ARGUMENTS),
    "node": tuple(NODES),
    "route": tuple(ROUTES),
    "frame": tuple(FRAMES),
}


def kind_and_name(number: int) -> tuple[str, str]:
    """The kind of a case and what it is about; both follow from its number, whatever the seed."""
    if number < len(ISSUE):
        return "issue", tuple(ISSUE)[number]
    turn, place = divmod(number - len(ISSUE), len(_PATTERN))
    kind, names = _PATTERN[place], _NAMES[_PATTERN[place]]
    at = 2 * turn + place // 2 if kind == "function" else turn
    return kind, names[at % len(names)]


def make_case(seed: int, number: int) -> Case:
    """The case of this number."""
    kind, name = kind_and_name(number)
    if kind == "issue":
        return Case(number, kind, name, ISSUE[name]())
    draws = Draws(Random(f"{seed}/{number}"))
    if kind == "route":
        return Case(number, kind, name, route_requests(draws, name))
    if kind == "frame":
        return Case(number, kind, name, (frames(draws, name),))
    draft = function_graph(draws, name) if kind == "function" else node_graph(draws, name)
    if draws.chance(0.5):
        return Case(number, kind, name, (program(draws, draft),))
    encoding = draws.pick("rtlang.v1.json", "rtlang.v1.msgpack")
    reply = draws.plain(draws.size(1_000_000))
    return Case(number, kind, name, (Frames(encoding, (open_program(1, draft),), reply),))


def numbers(count: int, first: int = 0, only: str = "") -> Iterator[int]:
    """The numbers of `count` cases from `first` on, of one kind (`function`) or one name (`function:list`) only if `only` says so."""
    number = first
    while count:
        kind, name = kind_and_name(number)
        if only in ("", kind, f"{kind}:{name}"):
            yield number
            count -= 1
        number += 1
        if only.startswith("issue") and number >= len(ISSUE):
            return


def is_known(only: str) -> bool:
    """Whether `only` is a kind, or a kind and one of its names."""
    kind, _, name = only.partition(":")
    return kind in _NAMES and (not name or name in _NAMES[kind])
