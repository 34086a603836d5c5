"""Long texts are encoded beside the engine thread, with the same tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed
from rtlang.contract.graph.nodes import Generate
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Arg, Part, Ref, RequestGraph, RoleEnd, RoleStart, Text
from rtlang.runtime.executors import text_nodes
from rtlang.runtime.executors.text_nodes import SHORT_CHARS, is_long, num_chars, with_texts
from rtlang.runtime.runtime import Runtime
from rtlang.runtime.texts.token_sequence import TokenSequence


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("a" * SHORT_CHARS,), False),
        (("a" * SHORT_CHARS, "b"), True),
        ((RoleStart("user"), "a", RoleEnd()) * 20, False),
        ((RoleStart("user"), "a", RoleEnd()) * 200, True),
        ((RoleStart("user", "[]"), "a", RoleEnd()), True),
    ],
)
def test_long_texts_many_messages_and_tools_are_long(parts: tuple[Part, ...], expected: bool) -> None:
    assert is_long(parts, TokenSequence()) == expected


def test_references_and_inputs_become_text() -> None:
    parts = with_texts(("a", Ref(1), Arg("x"), RoleEnd()), lambda part: "b" if isinstance(part, Ref) else "cc")
    assert parts == ("a", "b", "cc", RoleEnd())
    assert num_chars(parts) == 4


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
    monkeypatch.setattr(text_nodes, "SHORT_CHARS", 1000)
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
