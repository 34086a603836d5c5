"""Long texts are encoded beside the engine thread, with the same tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from rtlang.contract.errors import ApplyError, ContextLengthError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed
from rtlang.contract.graph.nodes import Generate
from rtlang.contract.graph.value_size import measured
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import RequestGraph, RoleEnd, RoleStart, Text, TokenIds
from rtlang.runtime.executors.text_nodes import KnownPart, price_of_text, with_texts
from rtlang.runtime.nodes.work_slices import CHAR_US, SMALL_WORK_US
from rtlang.runtime.runtime import Runtime
from rtlang.runtime.texts.token_sequence import TokenSequence

SHORT_CHARS = int(SMALL_WORK_US / CHAR_US)


@pytest.mark.parametrize(
    ("parts", "is_long"),
    [
        (("a" * SHORT_CHARS,), False),
        (("a" * SHORT_CHARS, "b" * 2), True),
        ((RoleStart("user"), "a", RoleEnd()) * 10, False),
        ((RoleStart("user"), "a", RoleEnd()) * 200, True),
        ((RoleStart("user", "[]"), "a", RoleEnd()), True),
        ((measured([1] * 10),), False),
        ((measured([1] * 1_000),), True),
        ((TokenIds((1,) * 20_000),), True),
    ],
)
def test_long_texts_many_messages_tools_and_large_values_are_long(parts: tuple[KnownPart, ...], is_long: bool) -> None:
    assert (price_of_text(parts, TokenSequence()) > SMALL_WORK_US) == is_long


def test_a_value_becomes_text_once_however_often_it_occurs() -> None:
    value = measured([1, "a"])
    parts = with_texts(("a", value, RoleEnd(), value), 100, 9)
    assert parts == ("a", "[1, 'a']", RoleEnd(), "[1, 'a']")
    assert parts[1] is parts[3]


def test_values_that_are_too_long_for_the_context_are_refused_before_they_are_joined() -> None:
    value = measured("x" * 900_000)
    with pytest.raises(ContextLengthError, match="at least 10 tokens"):
        with_texts((value,) * 100_000, 2_000_000, 9)
    with pytest.raises(ApplyError, match="the result has more than 1000000 characters"):
        with_texts((measured([0.123456789] * 400_000),), 2_000_000, 9)


def run(runtime: Runtime, graph: RequestGraph) -> list[Event]:
    events: list[Event] = []
    ended = threading.Event()

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, (GraphFinished, GraphFailed)):
            ended.set()

    runtime.submit(graph, listen)
    assert ended.wait(60)
    return events


def on_other_threads(runtime: Runtime, seen: set[str]) -> Callable[..., list[int]]:
    encode = runtime.tokenizer.encode

    def watched(text: str, **options: bool) -> list[int]:
        if len(text) > 1000:
            seen.add(threading.current_thread().name)
        return encode(text, **options)

    return watched


def test_a_long_text_gives_the_text_of_its_parts_and_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "The red fox sleeps. " * 60
    params = SamplingParams(max_tokens=8, ignore_eos=True)
    with Runtime("rtlang:tiny", num_pages=128) as runtime:
        seen: set[str] = set()
        monkeypatch.setattr(runtime.tokenizer, "encode", on_other_threads(runtime, seen))
        whole = run(runtime, RequestGraph((Text(0, None, (long,)), Generate(1, 0, "x", params))))
        assert seen == {"rtlang-work-0"}
        ids = runtime.tokenizer.encode(long, is_start=True)
        assert isinstance(whole[-1], GraphFinished)
        assert whole[-1].usage.prompt_tokens == len(ids) + len(runtime.tokenizer.start_ids())
        too_long = run(runtime, RequestGraph((Text(0, None, (long * 20,)), Generate(1, 0, "x", params))))
        failed = [event for event in too_long if isinstance(event, NodeFailed)]
        assert failed[0].error.code == "context_length"
