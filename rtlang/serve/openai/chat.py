"""`/v1/chat/completions`: messages, tools and constraints to a graph of one generation, and events to the response.

Node 0 is the prompt, node 1 the generation; choices of the response are its choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rtlang.contract.errors import ParameterError
from rtlang.contract.events import Event, NodeFinished, TextDelta, TokenLogprob
from rtlang.contract.graph import Generate, RequestGraph, Text
from rtlang.contract.params import MAX_LOGPROBS, MAX_N
from rtlang.contract.text_service import TextService
from rtlang.serve.openai import sampling, structured, template_options, tools
from rtlang.serve.openai.completions import read_model, read_stream
from rtlang.serve.openai.fields import FieldTable, read_bool, read_int
from rtlang.serve.openai.logprobs import TokenBytes, chat_logprobs
from rtlang.serve.openai.messages import read_prompt
from rtlang.serve.openai.shapes import Asked, Heading, UsageCount, finish_reason
from rtlang.serve.openai.tools import ReplyPlan, ReplyReader

_FIELDS = FieldTable(
    accepted=sampling.FIELDS
    | structured.FIELDS
    | tools.FIELDS
    | {
        "model",
        "messages",
        "stream",
        "stream_options",
        "logprobs",
        "top_logprobs",
        "max_completion_tokens",
        "add_generation_prompt",
        "continue_final_message",
        "reasoning_effort",
    }
    | template_options.FIELDS,
    fixed=sampling.FIXED
    | {
        "modalities": (["text"],),
        "verbosity": ("medium",),
        "echo": (False,),
        "include_reasoning": (True,),
        "separate_reasoning": (True,),
        "best_of": (1,),
    },
    refused=structured.REFUSED
    | {
        "functions": "not supported; use tools",
        "function_call": "not supported; use tool_choice",
    },
)


class ChatFormat(NamedTuple):
    """The format of the served model's replies: its name, or None, and whether the generation prompt begins the reasoning."""

    name: str | None
    is_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request as a graph, and the settings of its response.

    Attributes:
        num_top: how many of the most likely tokens to list; None for no log-probabilities.
    """

    asked: Asked
    plan: ReplyPlan
    n: int
    includes_usage: bool
    num_top: int | None


def read_chat(
    body: Mapping[str, Any],
    model_format: str | None,
    longest_output: int,
    texts: TextService | None = None,
    *,
    is_reasoning: bool = False,
    all_tokens: int | None = None,
) -> ChatRequest:
    """Read a request.

    Args:
        model_format: the name of the format of the model's tool calls; None if its chat template shows none.
        longest_output: the maximum number of tokens if the request says none.
        is_reasoning: the generation prompt of the model begins its reasoning.
        texts: the tokenizer and chat template of the model, for a history of calls; None if they are not known here.
        all_tokens: as `longest_output` for all choices together; None for no limit.
    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given = _FIELDS.given(body)
    asked = tools.read_tool_request(given)
    continues = read_bool(given, "continue_final_message")
    is_reasoning = is_reasoning and not continues
    plan = tools.plan_reply(asked, structured.read_structured(given), model_format, is_reasoning=is_reasoning)
    if read_bool(given, "add_generation_prompt", not continues) is continues:
        raise ParameterError("add_generation_prompt", continues, "expected the opposite of continue_final_message")
    effort = {"reasoning_effort": given["reasoning_effort"]} if "reasoning_effort" in given else {}
    prompt = read_prompt(
        given,
        asked.text,
        model_format,
        texts,
        end="open" if continues else "prompt",
        template_options=template_options.read_template_options(given, effort),
    )
    num_top = _read_top(given)
    default_tokens = longest_output
    if all_tokens is not None:
        default_tokens = max(1, min(longest_output, all_tokens // (read_int(given, "n", 1, MAX_N, 1) or 1)))
    params = sampling.read_sampling(
        given,
        sampling.read_max_tokens(given, "max_completion_tokens", "max_tokens", default=default_tokens),
        logprobs=num_top,
    )
    is_stream, includes_usage = read_stream(given)
    graph = RequestGraph((Text(0, None, prompt.parts), Generate(1, 0, None, params, plan.constraint)), outputs=(1,))
    model, priority = read_model(given), sampling.read_priority(given)
    return ChatRequest(
        Asked(graph, model, priority, is_stream, "messages", plan.field), plan, params.n, includes_usage, num_top
    )


def _read_top(given: Mapping[str, Any]) -> int | None:
    num_top = read_int(given, "top_logprobs", 0, MAX_LOGPROBS)
    if not read_bool(given, "logprobs"):
        if num_top:
            raise ParameterError("top_logprobs", num_top, "allowed only with logprobs = true")
        return None
    return num_top or 0


class ChatWriter:
    """Turns the events of a request into its response.

    Args:
        new_id: makes the id of a tool call.
        token_bytes: the bytes of tokens; only called with log-probabilities.
    """

    def __init__(
        self, request: ChatRequest, heading: Heading, token_bytes: TokenBytes, new_id: Callable[[], str]
    ) -> None:
        self._request, self._heading, self._token_bytes = request, heading, token_bytes
        self._readers = [ReplyReader(request.plan, new_id) for _ in range(request.n)]
        self._num_chars = [0] * request.n
        self._num_logprobs = [0] * request.n
        self._has_begun = [False] * request.n
        self._usage = UsageCount()

    def response(self, events: Iterable[Event]) -> dict[str, Any]:
        """The response to all events of a graph whose nodes have all finished."""
        choices = []
        for event in events:
            if not isinstance(event, NodeFinished):
                continue
            self._usage.add(event.usage, self._request.n)
            for index, completion in enumerate(event.completions):
                reader = self._readers[index]
                reader.push(completion.text)
                reader.finish()
                choices.append(
                    {
                        "index": index,
                        "message": reader.message(),
                        "logprobs": self._logprobs(completion.logprobs),
                        "finish_reason": finish_reason(completion.finish_reason, has_calls=bool(reader.calls)),
                    }
                )
        return self._heading.map("chat.completion", choices, usage=self._usage.map)

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]:
        """The chunks of a stream for one event; `last_chunks` follow the final event."""
        if isinstance(event, TextDelta):
            index = event.choice
            self._num_chars[index] += len(event.text)
            tokens = event.logprobs
            self._num_logprobs[index] += len(tokens or ())
            yield from self._deltas(index, self._readers[index].push(event.text), tokens)
        elif isinstance(event, NodeFinished):
            self._usage.add(event.usage, self._request.n)
            for index, completion in enumerate(event.completions):
                reader = self._readers[index]
                deltas = reader.push(completion.text[self._num_chars[index] :]) + reader.finish()
                tokens = (completion.logprobs or ())[self._num_logprobs[index] :]
                yield from self._deltas(index, deltas, tokens)
                reason = finish_reason(completion.finish_reason, has_calls=bool(reader.calls))
                yield self._chunk(index, {}, None, reason)

    def last_chunks(self) -> Iterator[dict[str, Any]]:
        """The chunks behind those of the events."""
        if self._request.includes_usage:
            yield self._heading.map("chat.completion.chunk", [], usage=self._usage.map)

    def _deltas(
        self, index: int, deltas: list[dict[str, Any]], tokens: Iterable[TokenLogprob] | None
    ) -> Iterator[dict[str, Any]]:
        if not self._has_begun[index]:
            self._has_begun[index] = True
            yield self._chunk(index, {"role": "assistant", "content": ""}, None, None)
        logprobs = self._logprobs(tokens) if tokens else None
        if logprobs is not None and not deltas:
            deltas = [{}]
        for delta in deltas:
            yield self._chunk(index, delta, logprobs, None)
            logprobs = None

    def _chunk(
        self, index: int, delta: dict[str, Any], logprobs: dict[str, Any] | None, reason: str | None
    ) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return self._heading.map("chat.completion.chunk", [choice])

    def _logprobs(self, tokens: Iterable[TokenLogprob] | None) -> dict[str, Any] | None:
        if tokens is None or self._request.num_top is None:
            return None
        return chat_logprobs(tokens, self._request.num_top, self._token_bytes)
