"""`/v1/completions`: prompts as text or token ids, one or many, to a graph of independent generations, and events to the response.

The graph has two nodes for each prompt: node 2i is the prompt i, node 2i + 1 its generation. The choice j of the prompt i has the index
i * n + j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.events import Completion, Event, NodeFinished, TextDelta, TokenLogprob
from rtlang.contract.params import MAX_LOGPROBS, MAX_N
from rtlang.contract.request_graph import Generate, Node, Part, RequestGraph, Text, TokenIds
from rtlang.serve.json_parts import json_text
from rtlang.serve.openai import sampling, structured
from rtlang.serve.openai.fields import SALTS, FieldTable, check_inner, read_bool, read_cache_salt, read_ids, read_int
from rtlang.serve.openai.logprobs import CompletionLogprobs, TokenBytes
from rtlang.serve.openai.shapes import Asked, Heading, PackedChunks, UsageCount, captures_of, finish_reason

MAX_PROMPTS = 2048
DEFAULT_MAX_TOKENS = 16
_KIND = "text_completion"
FIELDS = FieldTable(
    accepted=sampling.FIELDS
    | structured.FIELDS
    | {"model", "prompt", "stream", "stream_options", "echo", "logprobs", "best_of", "return_token_ids", *SALTS},
    fixed=sampling.FIXED | {"suffix": ("",)},
    refused=structured.REFUSED,
)

Prompt = str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request as a graph, and the settings of its response.

    Attributes:
        echo: whether the text begins with the prompt.
        num_logprobs: how many of the most likely tokens to list; None for no log-probabilities.
        returns_ids: whether choices list the ids of their tokens and of the prompt.
    """

    asked: Asked
    prompts: tuple[Prompt, ...]
    n: int
    num_texts: int
    includes_usage: bool
    echo: bool
    num_logprobs: int | None
    returns_ids: bool


def read_completion(body: Mapping[str, Any]) -> CompletionRequest:
    """Read a request.

    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given = FIELDS.given(body)
    prompts = read_prompts(given)
    echo = read_bool(given, "echo")
    num_logprobs = read_int(given, "logprobs", 0, MAX_LOGPROBS)
    max_tokens = sampling.read_max_tokens(given, "max_tokens", default=DEFAULT_MAX_TOKENS, low=0)
    n = read_int(given, "n", 1, MAX_N, 1) or 1
    best_of = read_int(given, "best_of", 1, MAX_N, n) or 1
    if best_of != n and n > 1:
        raise ParameterError("best_of", best_of, "with n > 1, only the same number is supported")
    params = sampling.read_sampling(
        given,
        max_tokens,
        n=n,
        best_of=1 if best_of == n else best_of,
        logprobs=num_logprobs,
        prompt_logprobs=num_logprobs if echo else None,
    )
    if echo and params.truncate_prompt_tokens is not None:
        raise ParameterError("truncate_prompt_tokens", params.truncate_prompt_tokens, "allowed only without echo")
    form = structured.read_structured(given)
    nodes: list[Node] = []
    for i, prompt in enumerate(prompts):
        part: Part = prompt if isinstance(prompt, str) else TokenIds(prompt)
        nodes.append(Text(2 * i, None, (part,)))
        nodes.append(Generate(2 * i + 1, 2 * i, None, params, None if form is None else form.constraint))
    is_stream, includes_usage = read_stream(given)
    graph = RequestGraph(tuple(nodes), outputs=tuple(range(1, 2 * len(prompts), 2)))
    field = None if form is None else form.field
    return CompletionRequest(
        Asked(
            graph, read_model(given), sampling.read_priority(given), is_stream, "prompt", field, read_cache_salt(given)
        ),
        prompts,
        n,
        max(n, best_of),
        includes_usage,
        echo,
        num_logprobs,
        read_bool(given, "return_token_ids"),
    )


def read_model(given: Mapping[str, Any]) -> str | None:
    """The name of the model."""
    model = given.get("model")
    if model is not None and not isinstance(model, str):
        raise ParameterError("model", model, "expected a string")
    return model


def read_stream(given: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the response is a stream, and whether the stream ends with the usage."""
    is_stream = read_bool(given, "stream")
    if "stream_options" not in given:
        return is_stream, False
    if not is_stream:
        raise ParameterError("stream_options", given["stream_options"], "allowed only with stream = true")
    options = check_inner(
        "stream_options",
        given["stream_options"],
        ("include_usage", "continuous_usage_stats"),
        ignored=("include_obfuscation",),
    )
    if options.get("continuous_usage_stats", False) is not False:
        raise ParameterError("stream_options.continuous_usage_stats", True, "only false is supported")
    return is_stream, read_bool(options, "include_usage", where="stream_options.")


def read_prompts(given: Mapping[str, Any]) -> tuple[Prompt, ...]:
    """The prompts: text, token ids, or a list of either."""
    prompt = given.get("prompt")
    if isinstance(prompt, str):
        return (prompt,)
    if not isinstance(prompt, list) or not prompt:
        raise ParameterError(
            "prompt", prompt, "expected a string, a list of strings, of token ids, or of lists of token ids"
        )
    prompts = prompt if isinstance(prompt[0], (str, list)) else [prompt]
    if len(prompts) > MAX_PROMPTS:
        raise ParameterError("prompt", prompt, f"expected at most {MAX_PROMPTS} prompts")
    return tuple(each if isinstance(each, str) else read_ids("prompt", each) for each in prompts)


class CompletionWriter:
    """Turns the events of a request into its response.

    Args:
        texts, first_ids: with `echo`, the text and the first token of each prompt (see `echo_texts`).
        token_bytes: the bytes of tokens; only called with log-probabilities.
        prompt_ids: with `returns_ids`, the tokens of each prompt.
    """

    def __init__(
        self,
        request: CompletionRequest,
        heading: Heading,
        token_bytes: TokenBytes,
        texts: Sequence[str] = (),
        first_ids: Sequence[int] = (),
        prompt_ids: Sequence[Sequence[int]] = (),
    ) -> None:
        self._request, self._heading = request, heading
        self._packed = PackedChunks(heading, _KIND)
        self._texts, self._first_ids = texts, first_ids
        self._token_bytes, self._prompt_ids = token_bytes, prompt_ids
        self._usage = UsageCount()
        self._shown = [0] * (len(request.prompts) * request.n)
        self._num_logprobs_shown = [0] * len(self._shown)
        self._num_ids_shown: list[int | None] = [None] * len(self._shown)  # None before the first chunk
        self._logprobs: dict[int, CompletionLogprobs] = {}

    def response(self, events: Iterable[Event]) -> dict[str, Any]:
        """The response to all events of a graph whose nodes have all finished."""
        choices: list[dict[str, Any]] = []
        for event in events:
            if isinstance(event, NodeFinished):
                self._usage.add(event.usage, self._request.num_texts)
                choices += self._choices(event)
        choices.sort(key=lambda choice: int(choice["index"]))
        return self._heading.map(_KIND, choices, usage=self._usage.map)

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]:
        """The chunks of a stream for one event; `last_chunks` follow the final event."""
        if isinstance(event, TextDelta):
            if self._request.echo:
                return  # an echo begins with the log-probabilities of the prompt, which the end of the node tells
            index = self._index(event.node_id, event.choice)
            self._shown[index] += len(event.text)
            logprobs = self._next_logprobs(index, event.logprobs)
            if event.text or logprobs or (event.token_ids and self._request.returns_ids):
                choice = _choice(index, event.text, logprobs, None)
                yield self._chunk([choice | self._ids(index, event.token_ids)])
        elif isinstance(event, NodeFinished):
            self._usage.add(event.usage, self._request.num_texts)
            for choice in self._choices(event):
                yield self._chunk([choice])

    def text_event(self, event: TextDelta) -> str | None:
        """The server-sent events of `chunks` at a fifth of the cost; None, and nothing is noted, if only `chunks` can make them."""
        request = self._request
        if event.logprobs or request.echo:
            return None
        index, text, ids = self._index(event.node_id, event.choice), event.text, ""
        if request.returns_ids:
            shown = self._num_ids_shown[index]
            if shown is None:
                return None  # the first chunk lists the ids of the prompt
            self._num_ids_shown[index] = shown + len(event.token_ids)
            ids = f',"token_ids":[{",".join(map(str, event.token_ids))}]'
        self._shown[index] += len(text)
        if not text and not (ids and event.token_ids):
            return ""
        choice = f'{{"index":{index},"text":{json_text(text)},"logprobs":null,"finish_reason":null{ids}}}'
        return self._packed.event(choice)

    def last_chunks(self) -> Iterator[dict[str, Any]]:
        """The chunks behind those of the events."""
        if self._request.includes_usage:
            yield self._chunk([], usage=self._usage.map)

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return self._heading.map(_KIND, choices, **more)

    def _index(self, node_id: int, choice: int) -> int:
        return node_id // 2 * self._request.n + choice

    def _choices(self, event: NodeFinished) -> Iterator[dict[str, Any]]:
        """The choices of a prompt, with the text and log-probabilities that were not shown before."""
        for choice, completion in enumerate(event.completions):
            index = self._index(event.node_id, choice)
            prompt = event.node_id // 2
            text = completion.text[self._shown[index] :]
            parts: list[dict[str, Any]] = []
            if self._request.echo:
                text = self._texts[prompt] + text
                if event.prompt_logprobs is not None:
                    first = self._first_ids[prompt] if self._first_ids else None
                    parts.append(self._logprobs_of(index).take(event.prompt_logprobs, first))
            rest = self._rest(index, completion)
            if rest is not None:
                parts.append(self._logprobs_of(index, self._echoed(prompt)).take(rest))
            ids = completion.token_ids[self._num_ids_shown[index] or 0 :]
            reason = finish_reason(completion.finish_reason)
            yield _choice(index, text, _joined(parts), reason) | self._ids(index, ids) | captures_of(completion)

    def _ids(self, index: int, token_ids: Sequence[int]) -> dict[str, Any]:
        """The ids of the next tokens of a choice, with its first ones those of the prompt."""
        if not self._request.returns_ids:
            return {}
        shown = self._num_ids_shown[index]
        self._num_ids_shown[index] = (shown or 0) + len(token_ids)
        prompt = {"prompt_token_ids": list(self._prompt_ids[index // self._request.n])} if shown is None else {}
        return prompt | {"token_ids": list(token_ids)}

    def _echoed(self, prompt: int) -> int:
        return len(self._texts[prompt]) if self._request.echo else 0

    def _rest(self, index: int, completion: Completion) -> Sequence[TokenLogprob] | None:
        if completion.logprobs is None or self._request.num_logprobs is None:
            return None
        return completion.logprobs[self._num_logprobs_shown[index] :]

    def _next_logprobs(self, index: int, tokens: Sequence[TokenLogprob] | None) -> dict[str, Any] | None:
        if not tokens or self._request.num_logprobs is None:
            return None
        self._num_logprobs_shown[index] += len(tokens)
        return self._logprobs_of(index).take(tokens)

    def _logprobs_of(self, index: int, offset: int = 0) -> CompletionLogprobs:
        found = self._logprobs.get(index)
        if found is None:
            count = self._request.num_logprobs or 0
            found = self._logprobs[index] = CompletionLogprobs(count, self._token_bytes, offset)
        return found


def _choice(index: int, text: str, logprobs: dict[str, Any] | None, reason: str | None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}


def _joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if not parts:
        return None
    return {name: [each for part in parts for each in part[name]] for name in parts[0]}


def echo_texts(
    request: CompletionRequest, decode: Callable[[Sequence[int]], str], encode: Callable[[str], list[int]]
) -> tuple[list[str], list[int]]:
    """The texts of the prompts for `echo`, and with log-probabilities the first token of each; may take long."""
    if not request.echo:
        return [], []
    texts = [prompt if isinstance(prompt, str) else decode(prompt) for prompt in request.prompts]
    if request.num_logprobs is None:
        return texts, []
    return texts, [
        prompt[0] if isinstance(prompt, tuple) else next(iter(encode(prompt)), 0) for prompt in request.prompts
    ]
