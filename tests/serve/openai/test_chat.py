"""Chat completions from request to response, without a server; the `openai` package reads what comes out."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.events import Completion, Event, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import Generate, RoleStart, Text
from rtlang.serve.http.events.sse import sse_text
from rtlang.serve.openai.chat import ChatRequest, ChatWriter, read_chat
from rtlang.serve.openai.shapes import Heading
from tests.support.servers.openai_models import calls_of, joined_chunks
from tests.support.servers.openai_models import read_chat as parsed

MESSAGES = [{"role": "user", "content": "Hi"}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}}]
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def read(model_format: str | None = "hermes", **body: Any) -> ChatRequest:
    return read_chat({"model": "m", "messages": MESSAGES} | body, model_format, 500)


def writer(request: ChatRequest) -> ChatWriter:
    letters = lambda ids: [chr(each).encode() for each in ids]  # noqa: E731
    return ChatWriter(request, Heading("chatcmpl-1", 5, "m"), letters, lambda: "call_1")


def finished(*texts: str, reason: FinishReason = FinishReason.STOP, **more: Any) -> NodeFinished:
    completions = tuple(Completion(text, tuple(map(ord, text)), reason, **more) for text in texts)
    return NodeFinished(0, 1, None, completions, Usage(9 * len(texts), 0, 5), Timing())


def test_a_request_is_one_generation() -> None:
    request = read(max_completion_tokens=7, temperature=0.5, n=2, tools=TOOLS)
    prompt, generation = request.asked.graph.nodes
    assert isinstance(prompt, Text)
    assert isinstance(generation, Generate)
    assert isinstance(prompt.parts[0], RoleStart)
    assert prompt.parts[0].tools is not None
    assert prompt.parts[1] == "Hi"
    assert (generation.params.max_tokens, generation.params.temperature, generation.params.n) == (7, 0.5, 2)
    assert generation.constraint is not None
    request.asked.graph.validate()
    assert read(n=3).asked.graph.nodes[1].params.max_tokens == 500  # type: ignore[union-attr]
    limited = read_chat({"messages": MESSAGES, "n": 3}, None, 500, all_tokens=600)
    assert limited.asked.graph.nodes[1].params.max_tokens == 200  # type: ignore[union-attr]


def test_a_session_knows_how_calls_begin() -> None:
    session = read(tools=TOOLS, prompt_cache_key="k" * 999).asked.session
    assert session is not None
    assert (session.call_marks, len(session.key or "")) == (("<tool_call>",), 256)
    plain = read(prompt_cache_key=7).asked.session
    assert plain is not None
    assert (plain.call_marks, plain.key) == ((), None)


def test_a_response_has_content_reasoning_calls_and_usage() -> None:
    request = read(n=3, tools=TOOLS)
    found = parsed(writer(request).response([finished("Hello", f"<think>why</think>{CALL}", f"So:{CALL}\n{CALL}")]))
    assert [choice.finish_reason for choice in found.choices] == ["stop", "tool_calls", "tool_calls"]
    assert [choice.message.content for choice in found.choices] == ["Hello", None, "So:"]
    assert [calls_of(found, i) for i in range(3)] == [[], [("f", '{"a": 1}')], [("f", '{"a": 1}')] * 2]
    assert found.choices[1].message.reasoning_content == "why"  # type: ignore[attr-defined]
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (9, 5)


def test_captures_of_a_grammar_are_in_the_message_and_in_the_last_chunk() -> None:
    event = finished("Hello", captures={"who": ("lo", "é")})
    whole = writer(read()).response([event])
    assert whole["choices"][0]["message"]["captures"] == {"who": ["lo", "é"]}
    *chunks, last = writer(read(stream=True)).chunks(event)
    assert last["choices"][0]["delta"] == {"captures": {"who": ["lo", "é"]}}
    assert not any("captures" in chunk["choices"][0]["delta"] for chunk in chunks)
    assert "captures" not in writer(read()).response([finished("Hello")])["choices"][0]["message"]
    again = read(messages=[*MESSAGES, whole["choices"][0]["message"], *MESSAGES])  # clients send it back
    assert "captures" not in str(again.asked.graph)


def test_a_text_that_was_cut_says_so() -> None:
    assert (
        parsed(writer(read()).response([finished("He", reason=FinishReason.LENGTH)])).choices[0].finish_reason
        == "length"
    )


def test_log_probabilities_come_with_bytes() -> None:
    tokens = (TokenLogprob(97, -1.0, ((98, -0.5), (99, float("-inf")))),)
    (choice,) = parsed(writer(read(logprobs=True, top_logprobs=2)).response([finished("a", logprobs=tokens)])).choices
    assert choice.logprobs is not None
    assert choice.logprobs.content is not None
    (entry,) = choice.logprobs.content
    assert (entry.token, entry.bytes, entry.logprob) == ("a", [97], -1.0)
    assert [(top.token, top.logprob) for top in entry.top_logprobs] == [("b", -0.5), ("c", -9999.0)]


@pytest.mark.parametrize("seed", range(6))
def test_a_stream_adds_up_to_the_response(seed: int) -> None:
    rng = random.Random(seed)
    texts = ["Hello <b>there", f"<think>why not</think>\n\n{CALL}\n{CALL}", f"So:{CALL}"]
    tokens = tuple(TokenLogprob(ord(each), -0.5) for each in texts[0])
    end = NodeFinished(
        0,
        1,
        None,
        tuple(Completion(text, (), FinishReason.STOP, logprobs=tokens) for text in texts),
        Usage(27, 0, 5),
        Timing(),
    )
    request = read(n=3, tools=TOOLS, stream=True, stream_options={"include_usage": True}, logprobs=True)
    whole = parsed(writer(request).response([end]))
    events: list[Event] = []
    left = dict(enumerate(texts))
    while left and rng.random() < 0.95:
        choice = rng.choice(list(left))
        size = rng.randrange(1, 8)
        events.append(TextDelta(0, 1, choice, left[choice][:size]))
        left[choice] = left[choice][size:]
        if not left[choice]:
            del left[choice]
    stream = writer(request)
    chunks = [chunk for event in (*events, end) for chunk in stream.chunks(event)]
    (last,) = stream.last_chunks()
    assert last["choices"] == []
    assert last["usage"] == whole.usage.model_dump(exclude_unset=True)  # type: ignore[union-attr]
    found = joined_chunks([*chunks, last])
    for choice in whole.choices:
        joined = found[choice.index]
        assert joined["content"] == (choice.message.content or "")
        assert joined["reasoning"] == getattr(choice.message, "reasoning_content", "")
        assert [(name, arguments) for name, arguments, _ in joined["calls"]] == calls_of(whole, choice.index)
        assert joined["finish"] == choice.finish_reason
        assert whole.choices[choice.index].logprobs is not None
        assert len(joined["tokens"]) + len(joined["thought"]) == len(tokens)
        assert [each.token for each in joined["tokens"]] == [
            each.token
            for each in choice.logprobs.content or ()  # type: ignore[union-attr]
        ]


def test_arguments_are_streamed_before_the_call_is_complete() -> None:
    stream = writer(read(tools=TOOLS, stream=True))
    seen = [
        chunk
        for piece in ('<tool_call>\n{"name": "f", "arg', 'uments": {"a"', ": 1")
        for chunk in stream.chunks(TextDelta(0, 1, 0, piece))
    ]
    (choice,) = joined_chunks(seen).values()
    assert choice["calls"] == [["f", '{"a": 1', "call_1"]]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": None}, "messages"),
        ({"prompt": "x"}, "prompt"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": 3}, "logprobs"),
        ({"logprobs": True, "top_logprobs": 101}, "top_logprobs"),
        ({"functions": []}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"audio": {}}, "audio"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"chat_template": 3}, "chat_template"),
        ({"chat_template_kwargs": [1]}, "chat_template_kwargs"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs"),
        ({"continue_final_message": True}, "continue_final_message"),
        ({"continue_final_message": True, "add_generation_prompt": True}, "add_generation_prompt"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens"),
        ({"allowed_token_ids": []}, "allowed_token_ids"),
        ({"anything": 0}, "anything"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read(**body)
    assert caught.value.field == field


def test_what_clients_send_without_effect_is_accepted() -> None:
    plain = read()
    sent = {
        "user": "u",
        "metadata": {},
        "store": False,
        "modalities": ["text"],
        "stop": None,
        "parallel_tool_calls": True,
    }
    assert read(**sent) == plain


@pytest.mark.parametrize("has_logprobs", [False, True])
@pytest.mark.parametrize("model_format", [None, "hermes"])
def test_events_packed_at_once_are_those_of_the_chunks(model_format: str | None, has_logprobs: bool) -> None:
    dice = random.Random(3)
    request = read(model_format, n=2, tools=TOOLS if model_format else [], stream=True, logprobs=has_logprobs)
    texts = [f"<think>why not</think>\n\n{CALL}\n{CALL}", 'Hello "there"\n\u2028é漢 ' * 20]
    tokens = tuple(TokenLogprob(97, -0.5) for text in texts for _ in text) if has_logprobs else None
    slow, fast = writer(request), writer(request)
    num_packed, left = 0, dict(enumerate(texts))
    while left:
        choice, size = dice.choice(list(left)), dice.randrange(4)
        piece, left[choice] = left[choice][:size], left[choice][size:]
        event = TextDelta(0, 1, choice, piece, (1,) * len(piece), tokens and tokens[: len(piece)])
        expected = "".join(sse_text(chunk) for chunk in slow.chunks(event))
        packed = fast.text_event(event)
        num_packed += packed is not None
        assert expected == (packed if packed is not None else "".join(sse_text(chunk) for chunk in fast.chunks(event)))
        if not left[choice]:
            del left[choice]
    end = finished(*texts, logprobs=tokens)
    assert list(slow.chunks(end)) == list(fast.chunks(end))
    assert (num_packed > 20) != has_logprobs
