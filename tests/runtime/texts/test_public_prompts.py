"""Namespaces on a real model: `cached_tokens` tells about one's own prompts and public ones only."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtlang.contract.errors import ConfigError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, RoleEnd, RoleStart, Text
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.runtime import Runtime
from rtlang.runtime.texts.public_prompts import read_public_prompts

SYSTEM = "You answer questions about the city in one short sentence, and you never talk about anything else."
PLAIN = "Once upon a time there was a little mouse who lived in a big house by the sea. "


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    path = tmp_path_factory.mktemp("public") / "prompts.json"
    path.write_text(json.dumps([PLAIN, {"system": SYSTEM}]))
    with Runtime(public_prompts=str(path), num_threads=1, num_pages=200) as made:
        yield made


def cached(runtime: Runtime, principal: Principal | None, *parts: object) -> tuple[int, int]:
    """Cached tokens and all tokens of a prompt."""
    ended, events = threading.Event(), list[Event]()

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, (GraphFinished, GraphFailed)):
            ended.set()

    graph = RequestGraph((Text(0, None, parts), Generate(1, 0, "x", SamplingParams(max_tokens=1))))  # type: ignore[arg-type]
    runtime.submit(graph, listen, RunOptions(principal=principal or LOCAL))
    assert ended.wait(60)
    final = events[-1]
    assert isinstance(final, GraphFinished)
    return final.usage.cached_tokens, final.usage.prompt_tokens


def test_prompts_of_others_are_not_found(runtime: Runtime) -> None:
    a, b = Principal("a", namespace="a"), Principal("b", namespace="b")
    secret = "The secret plan of the red team is to move the tower to the other side of the river at night."
    assert cached(runtime, a, secret)[0] == 0
    for other in (b, None):
        assert cached(runtime, other, secret)[0] == 0
    num_cached, num_prompt = cached(runtime, a, secret)
    assert num_cached == num_prompt - 1
    assert cached(runtime, Principal("a2", namespace="a"), secret)[0] == num_prompt - 1


def test_public_prompts_are_shared_and_what_follows_is_not(runtime: Runtime) -> None:
    a, b = Principal("a", namespace="a"), Principal("b", namespace="b")
    system = (RoleStart("system"), SYSTEM, RoleEnd())
    for start in ((PLAIN,), system):
        question = ("Where is the old tower, and who has the key of it?",)
        assert cached(runtime, a, *start, *question)[0] == 0
        num_cached, num_prompt = cached(runtime, b, *start, *question)
        assert 0 < num_cached < num_prompt - 5
        assert cached(runtime, a, *start, *question)[0] == num_prompt - 1
        assert cached(runtime, None, *start, *question)[0] == num_cached


@pytest.mark.parametrize("text", ["{", "3", "[3]", '[""]', '[{"user": "x"}]', '[{"system": 3}]'])
def test_a_bad_file_is_refused(runtime: Runtime, tmp_path: Path, text: str) -> None:
    path = tmp_path / "prompts.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="public_prompts"):
        read_public_prompts(str(path), runtime.tokenizer, 100)
    with pytest.raises(ConfigError, match="public_prompts"):
        read_public_prompts(str(tmp_path / "none"), runtime.tokenizer, 100)
