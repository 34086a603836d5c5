"""Events of the graph of a `/generate` request to its responses.

Each completion is one map with `text` and `meta_info`. In a stream, each chunk repeats the whole text so far, as SGLang does. Entries of
log-probabilities are `[log-probability, token id, text]`. Those of a prompt begin behind the token at `logprob_start_len`, but at 0 with
the first token, whose log-probability is null: clients that score choices expect that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rtlang.contract.events import Completion, Event, GraphFailed, NodeFailed, NodeFinished, TextDelta, TokenLogprob
from rtlang.contract.params import FinishReason
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.openai.logprobs import finite
from rtlang.serve.openai.shapes import captures_of
from rtlang.serve.sglang.generate_requests import GenerateRequest, Item

Entry = list[Any]


class GenerateReply:
    """Builds the responses of one request.

    Args:
        ids: the tokens of the prompts that were encoded, by item.
        token_texts: the text of each of some tokens, for `return_text_in_logprobs`.
        response_id: of the request, made by the server.
    """

    def __init__(
        self,
        request: GenerateRequest,
        ids: Mapping[int, Sequence[int]],
        token_texts: Callable[[Sequence[int]], list[str]],
        response_id: str,
    ) -> None:
        self._request, self._ids, self._token_texts = request, ids, token_texts
        self._first: list[int] = []  # number of the first completion of each item
        self._meta_ids: list[str] = []
        self._item_of: list[Item] = []
        for i, item in enumerate(request.items):
            self._first.append(len(self._meta_ids))
            self._item_of += [item] * item.params.n
            rid = item.rid or (f"{response_id}_{i}" if len(request.items) > 1 else response_id)
            self._meta_ids += [rid] if item.params.n == 1 else [f"{rid}_{choice}" for choice in range(item.params.n)]
        count = len(self._meta_ids)
        self._texts = [""] * count
        self._num_tokens = [0] * count
        self._done: list[bytes | None] = [
            None
        ] * count  # in JSON at once: as objects, log-probabilities take ten times the memory

    def take(self, event: Event) -> list[int]:
        """Take an event; returns the numbers of the completions that it changed.

        Raises:
            RtlangError: of a prompt or the graph that failed: a request fails as a whole.
        """
        match event:
            case TextDelta() if event.node_id % 2:
                number = self._first[event.node_id // 2] + event.choice
                item = self._request.items[event.node_id // 2]
                self._texts[number] += event.text
                self._num_tokens[number] += len(event.token_ids)
                return [] if item.is_empty else [number]
            case NodeFinished() if event.node_id % 2:
                return self._finish(event)
            case NodeFailed() | GraphFailed():
                raise event.error
            case _:
                return []

    @property
    def response(self) -> bytes:
        """The response behind the last event, in JSON: a map, or a list of them if the prompts were a list or have several completions."""
        found = [each for each in self._done if each is not None]
        return b"[" + b",".join(found) + b"]" if self._is_many else found[0]

    def chunk(self, number: int) -> bytes:
        """The present state of a completion, in JSON."""
        done = self._done[number]
        if done is None:
            meta = {
                "id": self._meta_ids[number],
                "finish_reason": None,
                "completion_tokens": self._num_tokens[number],
            }
            text = _before_stop(self._item_of[number], self._texts[number])[0]
            done = json_bytes({"text": text, "meta_info": meta})
        return b'{"index":%d,' % number + done[1:] if self._is_many else done

    @property
    def _is_many(self) -> bool:
        return self._request.is_list or len(self._done) > 1

    def _finish(self, event: NodeFinished) -> list[int]:
        i = event.node_id // 2
        item, n = self._request.items[i], len(event.completions)
        prompt_tokens = event.usage.prompt_tokens // n
        shared = {
            "prompt_tokens": prompt_tokens,
            "cached_tokens": max(0, event.usage.cached_tokens - prompt_tokens * (n - 1)),
            "e2e_latency": event.timing.total_s,
        }
        inputs = self._input_logprobs(i, item, event) if item.has_logprobs else {}
        numbers: list[int] = []
        for choice, completion in enumerate(event.completions):
            number = self._first[i] + choice
            num_tokens = 0 if item.is_empty else event.usage.completion_tokens if n == 1 else _count(completion)
            meta: dict[str, Any] = {"id": self._meta_ids[number], "finish_reason": _finish_reason(item, completion)}
            meta |= captures_of(completion)
            meta |= shared | {"completion_tokens": num_tokens} | inputs
            if item.has_logprobs:
                entries = () if item.is_empty else completion.logprobs or ()
                meta["output_token_logprobs"] = self._entries(entries)
                meta["output_top_logprobs"] = [self._top(each, item.num_top) for each in entries]
            self._done[number] = json_bytes(
                {
                    "text": _text(item, completion),
                    "output_ids": [] if item.is_empty else list(completion.token_ids),
                    "meta_info": meta,
                }
            )
            numbers.append(number)
        return numbers

    def _input_logprobs(self, i: int, item: Item, event: NodeFinished) -> dict[str, Any]:
        if item.start is None:
            return {"input_token_logprobs": [], "input_top_logprobs": []}
        prompt = self._ids.get(i, item.prompt)
        known = (event.prompt_logprobs or ())[item.start :]
        entries, tops = self._entries(known), [self._top(each, item.num_top) for each in known]
        if item.start == 0 and prompt:
            first_id = prompt[0]
            assert isinstance(first_id, int)
            entries.insert(0, [None, first_id, self._texts_of([first_id])[0]])
            tops.insert(0, [])
        return {"input_token_logprobs": entries, "input_top_logprobs": tops}

    def _entries(self, tokens: Sequence[TokenLogprob]) -> list[Entry]:
        texts = self._texts_of([each.token_id for each in tokens])
        return [[finite(each.logprob), each.token_id, text] for each, text in zip(tokens, texts, strict=True)]

    def _top(self, token: TokenLogprob, num_top: int) -> list[Entry]:
        top = token.top[:num_top]
        texts = self._texts_of([token_id for token_id, _ in top])
        return [[finite(logprob), token_id, text] for (token_id, logprob), text in zip(top, texts, strict=True)]

    def _texts_of(self, ids: Sequence[int]) -> Sequence[str | None]:
        return self._token_texts(ids) if self._request.has_text else [None] * len(ids)


def _text(item: Item, completion: Completion) -> str:
    if item.is_empty:
        return ""
    text, cut = _before_stop(item, completion.text)
    stop = completion.stop_match if cut is None else cut
    return text + stop if item.keeps_stop and isinstance(stop, str) else text


def _before_stop(item: Item, text: str) -> tuple[str, str | None]:
    """A constrained text up to its first stop string, and this string. The engine ends such text by its constraint only."""
    found = [(place, stop) for stop in item.params.stop if (place := text.find(stop)) >= 0] if item.constraint else []
    return (text[: min(found)[0]], min(found)[1]) if found else (text, None)


def _count(completion: Completion) -> int:
    return len(completion.token_ids) + isinstance(completion.stop_match, int)


def _finish_reason(item: Item, completion: Completion) -> dict[str, Any]:
    if item.is_empty:
        return {"type": "length", "length": 0}
    _, stop = _before_stop(item, completion.text)
    if stop is not None:
        return {"type": "stop", "matched": stop}
    if completion.finish_reason is FinishReason.LENGTH:
        return {"type": "length", "length": item.params.max_tokens}
    if completion.finish_reason is FinishReason.STOP:
        return {"type": "stop", "matched": completion.stop_match}
    return {"type": "abort", "message": completion.finish_reason.value}
