"""`/v1/chat/completions`: messages, tools and constraints to a graph of one generation, and events to the response.

Node 0 is the prompt, node 1 the generation; choices of the response are its choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rtlang.contract.errors import ParameterError
from rtlang.contract.events import Completion, Event, NodeFinished, TextDelta, TokenLogprob
from rtlang.contract.params import MAX_LOGPROBS, MAX_N
from rtlang.contract.request_graph import Generate, Part, RequestGraph, Text, TokenIds
from rtlang.contract.runs.session_options import MAX_KEY_LENGTH, MAX_MARK_LENGTH, MAX_MARKS, SessionOptions
from rtlang.contract.service.text_service import TextService
from rtlang.serve.json_parts import json_text
from rtlang.serve.openai import reasoning, sampling, structured, template_options, tools
from rtlang.serve.openai.completions import read_model, read_stream
from rtlang.serve.openai.fields import SALTS, FieldTable, read_bool, read_cache_salt, read_int
from rtlang.serve.openai.logprobs import TokenBytes, chat_logprobs
from rtlang.serve.openai.messages import content_text, read_messages
from rtlang.serve.openai.reasoning import ReasoningRequest, ThoughtPlace
from rtlang.serve.openai.sections import SectionedTokens, num_thought_tokens
from rtlang.serve.openai.shapes import Asked, Heading, PackedChunks, UsageCount, captures_of, finish_reason
from rtlang.serve.openai.tools import ReplyPlan, ReplyReader
from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.formats.description import triggers
from rtlang_grammars.formats.reasoning import PromptEnd, continued_end

_CHUNK = "chat.completion.chunk"
VERBOSITIES = ("low", "medium", "high")
FIELDS = FieldTable(
    accepted=sampling.FIELDS
    | structured.FIELDS
    | tools.FIELDS
    | reasoning.FIELDS
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
        "verbosity",
        *SALTS,
    }
    | template_options.FIELDS,
    fixed=sampling.FIXED
    | {
        "modalities": (["text"],),
        "echo": (False,),
        "return_token_ids": (False,),
        "best_of": (1,),
    },
    refused=structured.REFUSED
    | {
        "functions": "not supported; use tools",
        "function_call": "not supported; use tool_choice",
    },
)


class ChatFormat(NamedTuple):
    """The format of the served model's replies.

    Attributes:
        name: its name; None if the chat template shows none.
        thinks: whether the model knows the marks of its reasoning.
        hides_marks: whether marks of the format are special tokens, which free text does not show by itself.
        start: the state of the reasoning at the end of the chat template's generation prompt.
    """

    name: str | None
    thinks: bool = True
    hides_marks: bool = True
    start: PromptEnd = PromptEnd.UNDECIDED


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

    @property
    def num_prompt_tokens(self) -> int | None:
        """Length of the prompt; None where the target has no tokenizer."""
        prompt = self.asked.graph.nodes[0]
        if not isinstance(prompt, Text):
            return None
        lengths = [len(part.ids) if isinstance(part, TokenIds) else None for part in prompt.parts]
        return None if None in lengths else sum(filter(None, lengths))


def read_chat(
    body: Mapping[str, Any],
    model_format: str | None,
    longest_output: int,
    texts: TextService | None = None,
    *,
    thinks: bool = True,
    hides_marks: bool = True,
    start_of: Callable[[Sequence[Part]], PromptEnd] = lambda parts: PromptEnd.UNDECIDED,
    all_tokens: int | None = None,
) -> ChatRequest:
    """Read a request.

    Args:
        model_format: the name of the format of the model's tool calls; None if its chat template shows none.
        longest_output: the maximum number of tokens if the request says none.
        thinks, hides_marks: see `ChatFormat`.
        start_of: the state of the reasoning at the end of a prompt, given by its parts.
        texts: the tokenizer and chat template of the model, for a history of calls; None if they are not known here.
        all_tokens: as `longest_output` for all choices together; None for no limit.
    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given = FIELDS.given(body)
    asked = tools.read_tool_request(given)
    continues = read_bool(given, "continue_final_message")
    form, thought = structured.read_structured(given), reasoning.read_reasoning(given)
    if read_bool(given, "add_generation_prompt", not continues) is continues:
        raise ParameterError("add_generation_prompt", continues, "expected the opposite of continue_final_message")
    parts = read_messages(
        given,
        asked.text,
        model_format,
        texts,
        end="open" if continues else "prompt",
        template_options=template_options.read_template_options(given, _controls(given, thought)),
        max_tokens=None if texts is None or "truncate_prompt_tokens" in given else texts.info.max_model_len,
    )
    plan = tools.plan_reply(
        asked,
        form,
        model_format,
        start=_start(given, parts, model_format, start_of, continues),
        thinks=thinks,
        hides_marks=hides_marks,
        reasoning=thought,
    )
    num_top = _read_top(given)
    default_tokens = longest_output
    if all_tokens is not None:
        default_tokens = max(1, min(longest_output, all_tokens // (read_int(given, "n", 1, MAX_N, 1) or 1)))
    max_tokens = sampling.read_max_tokens(given, "max_completion_tokens", "max_tokens", default=default_tokens)
    params = sampling.read_sampling(given, max_tokens, logprobs=num_top, **plan.sampling(max_tokens))
    is_stream, includes_usage = read_stream(given)
    graph = RequestGraph((Text(0, None, parts), Generate(1, 0, None, params, plan.constraint)), outputs=(1,))
    model, priority = read_model(given), sampling.read_priority(given)
    session = SessionOptions(_call_marks(plan), _session_key(body))
    return ChatRequest(
        Asked(graph, model, priority, is_stream, "messages", plan.field, read_cache_salt(given), session, is_chat=True),
        plan,
        params.n,
        includes_usage,
        num_top,
    )


def _call_marks(plan: ReplyPlan) -> tuple[str, ...]:
    """The texts that begin calls in a reply; none if it has none."""
    if not plan.reads_calls or plan.tool_format is None:
        return ()
    names = [tool.name for tool in plan.tools]
    found = (
        mark[:MAX_MARK_LENGTH]
        for around in plan.tool_format.around
        for mark in triggers(plan.tool_format, around, names)
    )
    return tuple(dict.fromkeys(found))[:MAX_MARKS]


def _session_key(body: Mapping[str, Any]) -> str | None:
    key = body.get("prompt_cache_key")
    return key[:MAX_KEY_LENGTH] if isinstance(key, str) and key else None


def _controls(given: Mapping[str, Any], thought: ReasoningRequest) -> dict[str, Any]:
    """The wishes that the chat template may read."""
    if "verbosity" not in given:
        return dict(thought.controls)
    if given["verbosity"] not in VERBOSITIES:
        raise ParameterError("verbosity", given["verbosity"], f"expected one of {', '.join(VERBOSITIES)}")
    return {**thought.controls, "verbosity": given["verbosity"]}


def _start(
    given: Mapping[str, Any],
    parts: Sequence[Part],
    model_format: str | None,
    start_of: Callable[[Sequence[Part]], PromptEnd],
    continues: bool,
) -> PromptEnd:
    if model_format is None or not continues:
        return PromptEnd.UNDECIDED if model_format is None else start_of(parts)
    content = content_text(given["messages"][-1].get("content") or "", "content")
    return continued_end(format_named(model_format), content)


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
        self._packed = PackedChunks(heading, _CHUNK)
        self._readers = [ReplyReader(request.plan, new_id) for _ in range(request.n)]
        self._tokens = [SectionedTokens(token_bytes) for _ in range(request.n)]
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
                self._count_thought(reader, completion, event)
                choices.append(
                    {
                        "index": index,
                        "message": reader.message() | captures_of(completion),
                        "logprobs": self._logprobs(index, completion.logprobs, is_last=True),
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
                self._count_thought(reader, completion, event)
                tokens = (completion.logprobs or ())[self._num_logprobs[index] :]
                yield from self._deltas(index, deltas, tokens, is_last=True)
                reason = finish_reason(completion.finish_reason, has_calls=bool(reader.calls))
                yield self._chunk(index, captures_of(completion), None, reason)

    def text_event(self, event: TextDelta) -> str | None:
        """The server-sent events of `chunks` at a third of the cost; None, and nothing is noted, if only `chunks` can make them."""
        index = event.choice
        if not self._has_begun[index] or self._request.num_top is not None:
            return None
        self._num_chars[index] += len(event.text)
        self._num_logprobs[index] += len(event.logprobs or ())
        deltas = self._readers[index].push(event.text)
        if not deltas:
            return ""
        before, after = f'{{"index":{index},"delta":', ',"logprobs":null,"finish_reason":null}'
        return "".join([self._packed.event(f"{before}{json_text(delta)}{after}") for delta in deltas])

    def last_chunks(self) -> Iterator[dict[str, Any]]:
        """The chunks behind those of the events."""
        if self._request.includes_usage:
            yield self._heading.map(_CHUNK, [], usage=self._usage.map)

    def _count_thought(self, reader: ReplyReader, completion: Completion, event: NodeFinished) -> None:
        num_tokens = len(completion.token_ids) or event.usage.completion_tokens // self._request.n
        self._usage.num_reasoning += num_thought_tokens(
            completion.token_ids, num_tokens, reader.sections, self._token_bytes
        )

    def _deltas(
        self,
        index: int,
        deltas: list[dict[str, Any]],
        tokens: Iterable[TokenLogprob] | None,
        *,
        is_last: bool = False,
    ) -> Iterator[dict[str, Any]]:
        if not self._has_begun[index]:
            self._has_begun[index] = True
            yield self._chunk(index, {"role": "assistant", "content": ""}, None, None)
        logprobs = self._logprobs(index, tokens or (), is_last=is_last)
        if logprobs is not None and not (logprobs["content"] or logprobs.get("reasoning")):
            logprobs = None
        if logprobs is not None and not deltas:
            deltas = [{}]
        for delta in deltas:
            yield self._chunk(index, delta, logprobs, None)
            logprobs = None

    def _chunk(
        self, index: int, delta: dict[str, Any], logprobs: dict[str, Any] | None, reason: str | None
    ) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return self._heading.map(_CHUNK, [choice])

    def _logprobs(self, index: int, tokens: Iterable[TokenLogprob] | None, *, is_last: bool) -> dict[str, Any] | None:
        if tokens is None or self._request.num_top is None:
            return None
        thought, content = self._tokens[index].push(tokens, self._readers[index].sections, is_last=is_last)
        match self._request.plan.place:
            case ThoughtPlace.IN_CONTENT:
                thought, content = [], thought + content
            case ThoughtPlace.NOWHERE:
                thought = []
        return chat_logprobs(content, self._request.num_top, self._token_bytes, thought)
