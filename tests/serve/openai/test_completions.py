"""Text completions from request to response, without a server; the `openai` package reads what comes out."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.events import Completion, Event, GraphFinished, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import Generate, Text, TokenIds
from rtlang.serve.http.events.sse import sse_text
from rtlang.serve.openai.completions import CompletionRequest, CompletionWriter, echo_texts, read_completion
from rtlang.serve.openai.shapes import Heading
from tests.support.servers.openai_models import read_completion as parsed

HEADING = Heading("cmpl-1", 5, "m")


def token(text: str, logprob: float = -0.5) -> TokenLogprob:
    return TokenLogprob(ord(text), logprob, ((ord("z"), -0.1),))


def letters(token_ids: Any) -> list[bytes]:
    return [chr(each).encode() for each in token_ids]


def finished(
    node_id: int, *texts: str, prompt: tuple[TokenLogprob, ...] | None = None, cached: int = 0
) -> NodeFinished:
    completions = tuple(
        Completion(text, tuple(map(ord, text)), FinishReason.LENGTH, logprobs=tuple(map(token, text))) for text in texts
    )
    usage = Usage(10 * len(texts), cached, sum(map(len, texts)))
    return NodeFinished(0, node_id, None, completions, usage, Timing(), prompt_logprobs=prompt)


def writer(request: CompletionRequest, **options: Any) -> CompletionWriter:
    return CompletionWriter(request, HEADING, letters, **options)


def test_prompts_become_independent_generations() -> None:
    request = read_completion({"model": "m", "prompt": [[1, 2], [3]], "max_tokens": 4, "n": 2, "seed": 7, "regex": "a"})
    texts = [node for node in request.asked.graph.nodes if isinstance(node, Text)]
    generations = [node for node in request.asked.graph.nodes if isinstance(node, Generate)]
    assert [text.parts for text in texts] == [(TokenIds((1, 2)),), (TokenIds((3,)),)]
    assert [(each.parent, each.params.n, each.params.max_tokens, each.params.seed) for each in generations] == [
        (0, 2, 4, 7),
        (2, 2, 4, 7),
    ]
    assert all(each.constraint is not None for each in generations)
    assert request.asked.constraint_field == "regex"
    request.asked.graph.validate()
    assert read_completion({"prompt": "x"}).asked.graph.nodes[1].params.max_tokens == 16  # type: ignore[union-attr]


def test_choices_are_numbered_by_prompt_and_choice_and_prompts_counted_once() -> None:
    request = read_completion({"prompt": ["a", "b"], "n": 2})
    events: list[Event] = [finished(3, "x", "y", cached=16), finished(1, "v", "w"), GraphFinished(0, {}, Usage())]
    found = parsed(writer(request).response(events))
    assert [(choice.index, choice.text, choice.finish_reason) for choice in found.choices] == [
        (0, "v", "length"),
        (1, "w", "length"),
        (2, "x", "length"),
        (3, "y", "length"),
    ]
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.total_tokens) == (20, 4, 24)
    assert found.usage.prompt_tokens_details is not None
    assert found.usage.prompt_tokens_details.cached_tokens == 6


def test_log_probabilities_list_the_own_token_and_the_most_likely_ones() -> None:
    request = read_completion({"prompt": "p", "logprobs": 1})
    (choice,) = parsed(writer(request).response([finished(1, "ab")])).choices
    assert choice.logprobs is not None
    assert choice.logprobs.model_dump() == {
        "tokens": ["a", "b"],
        "token_logprobs": [-0.5, -0.5],
        "top_logprobs": [{"z": -0.1, "a": -0.5}, {"z": -0.1, "b": -0.5}],
        "text_offset": [0, 1],
    }


def test_an_echo_puts_the_prompt_and_its_log_probabilities_in_front() -> None:
    request = read_completion({"prompt": ["pq", [112, 113]], "echo": True, "logprobs": 0, "max_tokens": 1})
    texts, first_ids = echo_texts(request, lambda ids: "".join(map(chr, ids)), lambda text: list(map(ord, text)))
    assert (texts, first_ids) == (["pq", "pq"], [112, 112])
    events = [finished(node_id, "x", prompt=(token("q", float("-inf")),)) for node_id in (1, 3)]
    found = parsed(writer(request, texts=texts, first_ids=first_ids).response(events))
    for choice in found.choices:
        assert choice.text == "pqx"
        assert choice.logprobs is not None
        assert choice.logprobs.tokens == ["p", "q", "x"]
        assert choice.logprobs.token_logprobs == [0.0, -9999.0, -0.5]  # null
        assert choice.logprobs.text_offset == [0, 1, 2]


def test_without_new_tokens_only_the_prompt_is_scored() -> None:
    request = read_completion({"prompt": "pq", "echo": True, "logprobs": 1, "max_tokens": 0})
    (generate,) = (node for node in request.asked.graph.nodes if isinstance(node, Generate))
    assert generate.params.max_tokens == 0
    (choice,) = parsed(
        writer(request, texts=["pq"], first_ids=[112]).response([finished(1, "", prompt=(token("q"),))])
    ).choices
    assert (choice.text, choice.finish_reason) == ("pq", "length")
    assert choice.logprobs is not None
    assert choice.logprobs.tokens == ["p", "q"]


@pytest.mark.parametrize("has_deltas", [True, False])
def test_a_stream_adds_up_to_the_response(has_deltas: bool) -> None:
    request = read_completion(
        {"prompt": ["a", "b"], "n": 2, "logprobs": 1, "stream": True, "stream_options": {"include_usage": True}}
    )
    events: list[Event] = [finished(1, "abc", "de"), finished(3, "", "f")]
    whole = parsed(writer(request).response(events))
    if has_deltas:
        events[:0] = [TextDelta(0, 1, 0, "a", (97,)), TextDelta(0, 1, 1, "", ()), TextDelta(0, 1, 0, "b", (98,))]
    stream = writer(request)
    chunks = [parsed(chunk) for event in events for chunk in stream.chunks(event)]
    (last,) = [parsed(chunk) for chunk in stream.last_chunks()]
    assert (last.choices, last.usage) == ([], whole.usage)
    for choice in whole.choices:
        parts = [each for chunk in chunks for each in chunk.choices if each.index == choice.index]
        assert "".join(part.text for part in parts) == choice.text
        assert parts[-1].finish_reason == choice.finish_reason
        assert [part.finish_reason for part in parts[:-1]] == ["content_filter"] * (len(parts) - 1)  # null
        assert choice.logprobs is not None
        tokens = [name for part in parts if part.logprobs for name in part.logprobs.tokens or ()]
        assert tokens == choice.logprobs.tokens


@pytest.mark.parametrize("echo", [True, False])
def test_a_client_that_counts_ids_gets_every_token_once(echo: bool) -> None:
    """Also tokens without text, such as the first bytes of a character."""
    request = read_completion({"prompt": ["a", [7, 8]], "n": 2, "stream": True, "return_token_ids": True, "echo": echo})
    options: dict[str, Any] = {"prompt_ids": [[97], [7, 8]], "texts": ["a", "bc"] if echo else []}
    events: list[Event] = [
        TextDelta(0, 1, 0, "", (97,)),
        TextDelta(0, 1, 0, "ab", (98,)),
        TextDelta(0, 3, 1, "", (102,)),
        finished(1, "abc", ""),
        finished(3, "x", "f"),
    ]
    whole = writer(request, **options).response(events)["choices"]
    assert [choice["token_ids"] for choice in whole] == [[97, 98, 99], [], [120], [102]]
    assert [choice["prompt_token_ids"] for choice in whole] == [[97], [97], [7, 8], [7, 8]]
    stream = writer(request, **options)
    chunks = [choice for event in events for chunk in stream.chunks(event) for choice in chunk["choices"]]
    for choice in whole:
        parts = [each for each in chunks if each["index"] == choice["index"]]
        assert [token_id for part in parts for token_id in part["token_ids"]] == choice["token_ids"]
        assert parts[0]["prompt_token_ids"] == choice["prompt_token_ids"]
        assert not any("prompt_token_ids" in part for part in parts[1:])
        assert "".join(part["text"] for part in parts) == choice["text"]
    assert echo or [len(each["token_ids"]) for each in chunks] == [1, 1, 1, 1, 0, 1, 0]


def test_nobody_else_sees_ids_or_chunks_without_text() -> None:
    stream = writer(read_completion({"prompt": "a", "stream": True}))
    assert list(stream.chunks(TextDelta(0, 1, 0, "", (97,)))) == []
    (chunk,) = stream.chunks(TextDelta(0, 1, 0, "a", (97,)))
    assert set(chunk["choices"][0]) == {"index", "text", "logprobs", "finish_reason"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": "a", "return_token_ids": 1}, "return_token_ids"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, "a"]}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": ["a"] * 3000}, "prompt"),
        ({"prompt": "a", "suffix": "b"}, "suffix"),
        ({"prompt": "a", "best_of": 3, "n": 2}, "best_of"),
        ({"prompt": "a", "logprobs": True}, "logprobs"),
        ({"prompt": "a", "stream": 1}, "stream"),
        ({"prompt": "a", "stream_options": {}}, "stream_options"),
        ({"prompt": "a", "stream": True, "stream_options": {"x": 1}}, "stream_options.x"),
        ({"prompt": "a", "messages": []}, "messages"),
        ({"prompt": "a", "model": 3}, "model"),
        ({"prompt": "a", "top_logprobs": 3}, "top_logprobs"),
        ({"prompt": "a", "max_tokens": -1}, "max_tokens"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_completion(body)
    assert caught.value.field == field


@pytest.mark.parametrize("options", [{}, {"return_token_ids": True}, {"echo": True}, {"logprobs": 1}], ids=str)
def test_events_packed_at_once_are_those_of_the_chunks(options: dict[str, Any]) -> None:
    dice = random.Random(4)
    request = read_completion({"prompt": [[1], [2, 3]], "n": 2, "stream": True} | options)
    prompt_ids = [[1], [2, 3]] if request.returns_ids else ()
    slow, fast = (writer(request, texts=["a", "b"], prompt_ids=prompt_ids) for _ in range(2))
    num_packed = 0
    for number in range(400):
        event: Event = finished(1, "abc", "de")
        if number < 390:
            text = dice.choice(["", "x", ' "quoted"\n', "\ud800", "\u2028é漢\0"])
            ids = tuple(dice.randrange(99) for _ in range(dice.choice([0, 1, 1, 3])))
            logprobs = tuple(map(token, "ab")) if "logprobs" in options and dice.random() < 0.5 else None
            event = TextDelta(0, dice.choice([1, 3]), dice.randrange(2), text, ids, logprobs)
        expected = "".join(sse_text(chunk) for chunk in slow.chunks(event))
        packed = fast.text_event(event) if isinstance(event, TextDelta) else None
        num_packed += packed is not None
        found = packed if packed is not None else "".join(sse_text(chunk) for chunk in fast.chunks(event))
        assert found == expected
    assert (num_packed > 100) == (options.keys() <= {"return_token_ids", "logprobs"})
