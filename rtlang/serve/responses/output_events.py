"""Events of a graph as the object and the stream of `/v1/responses`.

A reply is a list of items: reasoning, messages and calls of functions, in the order in which they were generated. In a stream, each item is
opened, grows, and is closed before the next one; events are numbered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rtlang.contract.events import Completion, Event, NodeFinished, TextDelta, TokenLogprob
from rtlang.contract.params import FinishReason
from rtlang.serve.openai.chat import ChatRequest
from rtlang.serve.openai.logprobs import TokenBytes, chat_logprobs
from rtlang.serve.openai.sections import SectionedTokens, num_thought_tokens
from rtlang.serve.openai.shapes import UsageCount
from rtlang.serve.openai.tools import ReplyReader

Chunk = dict[str, Any]


@dataclass(slots=True)
class _Item:
    """An item of the output that grows."""

    kind: str
    item_id: str
    text: str = ""
    call: Mapping[str, Any] = field(default_factory=dict)
    logprobs: list[Any] = field(default_factory=list)

    def map(self, status: str) -> dict[str, Any]:
        """The item as a part of a response."""
        found: dict[str, Any] = {"id": self.item_id, "type": self.kind, "status": status}
        match self.kind:
            case "message":
                found |= {"role": "assistant", "content": [_text_part(self.text, self.logprobs)]}
            case "reasoning":
                found |= {"summary": [], "content": [{"type": "reasoning_text", "text": self.text}]}
            case _:
                found |= {"call_id": self.call["id"], "name": self.call["name"], "arguments": self.text}
        return found


def _text_part(text: str, logprobs: list[Any]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


class ResponsesWriter:
    """Turns the events of a request into its response.

    Args:
        request: the chat request that the body became.
        heading: the fields of the response that follow from the request: id, created_at, model and the options.
        new_id: makes an id with a prefix.
        on_done: called with the response and the assistant's message once it is complete.
    """

    def __init__(
        self,
        request: ChatRequest,
        heading: Mapping[str, Any],
        token_bytes: TokenBytes,
        new_id: Callable[[str], str],
        on_done: Callable[[dict[str, Any], dict[str, Any]], None],
    ) -> None:
        self._request, self._heading, self._token_bytes, self._new_id = request, dict(heading), token_bytes, new_id
        self._on_done = on_done
        self._reader = ReplyReader(request.plan, lambda: new_id("call"))
        self._items: list[_Item] = []
        self._output: list[dict[str, Any]] = []  # closed items
        self._num_chars = self._num_chunks = self._num_logprobs = 0
        self._tokens = SectionedTokens(token_bytes)
        self._usage = UsageCount()

    def response(self, events: Iterable[Event]) -> dict[str, Any]:
        """The response to all events of a graph whose nodes have all finished."""
        for event in events:
            if isinstance(event, NodeFinished):
                *_, last = self._finish(event)
                whole: dict[str, Any] = last["response"]
                return whole
        raise AssertionError("the graph has no generation")

    def chunks(self, event: Event) -> Iterator[Chunk]:
        """The events of a stream for one event of the graph."""
        if self._num_chunks == 0 and isinstance(event, (TextDelta, NodeFinished)):
            begun = self._object("in_progress", [], None)
            yield self._chunk("response.created", response=begun)
            yield self._chunk("response.in_progress", response=begun)
        if isinstance(event, TextDelta):
            self._num_chars += len(event.text)
            yield from self._add(self._reader.push(event.text), getattr(event, "logprobs", None))
        elif isinstance(event, NodeFinished):
            yield from self._finish(event)

    def text_event(self, event: TextDelta) -> str | None:
        """None: each event has a number and the id of its item, so that `chunks` makes all of them."""
        return None

    def last_chunks(self) -> Iterator[Chunk]:
        """The events behind those of the graph: none."""
        return iter(())

    def failure(self, error: Mapping[str, Any]) -> Chunk:
        """The last event of a stream that fails. `error`: the body of an error response."""
        inner = error["error"]
        failed = self._object("failed", self._output, None)
        failed["error"] = {"code": inner.get("code") or "server_error", "message": inner["message"]}
        return self._chunk("response.failed", response=failed)

    def _finish(self, event: NodeFinished) -> Iterator[Chunk]:
        (completion,) = event.completions
        self._usage.add(event.usage, 1)
        deltas = self._reader.push(completion.text[self._num_chars :]) + self._reader.finish()
        num_tokens = len(completion.token_ids) or event.usage.completion_tokens
        self._usage.num_reasoning = num_thought_tokens(
            completion.token_ids, num_tokens, self._reader.sections, self._token_bytes
        )
        yield from self._add(deltas, (completion.logprobs or ())[self._num_logprobs :], is_last=True)
        if not self._items:
            yield from self._open("message")
        is_cut = completion.finish_reason is FinishReason.LENGTH
        yield from self._close("incomplete" if is_cut else "completed")
        status = "incomplete" if is_cut else "completed"
        whole = self._object(status, self._output, completion)
        self._on_done(whole, self._reader.message())
        yield self._chunk(f"response.{status}", response=whole)

    def _add(
        self,
        deltas: Iterable[Mapping[str, Any]],
        tokens: Sequence[TokenLogprob] | None,
        *,
        is_last: bool = False,
    ) -> Iterator[Chunk]:
        """The events for deltas of a chat message. The tokens of the thought are not part of the response."""
        self._num_logprobs += len(tokens or ())
        _, content = self._tokens.push(tokens or (), self._reader.sections, is_last=is_last)
        entries = self._entries(content)
        for delta in deltas:
            if "content" in delta:
                yield from self._open("message")
                self._items[-1].logprobs += entries
                yield self._grow("response.output_text.delta", delta["content"], content_index=0, logprobs=entries)
                entries = []
            elif "reasoning_content" in delta:
                yield from self._open("reasoning")
                yield self._grow("response.reasoning_text.delta", delta["reasoning_content"], content_index=0)
            for call in delta.get("tool_calls", ()):
                function = call["function"]
                if "name" in function:
                    yield from self._open("function_call", {"id": call["id"], "name": function["name"]})
                if function.get("arguments"):
                    yield self._grow("response.function_call_arguments.delta", function["arguments"])
        if self._is_open and self._items[-1].kind == "message":
            self._items[-1].logprobs += entries

    def _open(self, kind: str, call: Mapping[str, Any] | None = None) -> Iterator[Chunk]:
        """Open an item unless one of this kind is open; each call is an item of its own."""
        if self._is_open and self._items[-1].kind == kind and call is None:
            return
        yield from self._close("completed")
        item = _Item(kind, self._new_id({"message": "msg", "reasoning": "rs"}.get(kind, "fc")), call=call or {})
        self._items.append(item)
        begun = item.map("in_progress")
        if kind != "function_call":
            begun["content"] = []
        yield self._chunk("response.output_item.added", output_index=self._index, item=begun)
        if kind == "message":
            yield self._of_item("response.content_part.added", content_index=0, part=_text_part("", []))

    def _close(self, status: str) -> Iterator[Chunk]:
        """Close the open item, if there is one."""
        if not self._is_open:
            return
        item = self._items[-1]
        match item.kind:
            case "message":
                part = _text_part(item.text, item.logprobs)
                done = {"text": item.text, "logprobs": item.logprobs}
                yield self._of_item("response.output_text.done", content_index=0, **done)
                yield self._of_item("response.content_part.done", content_index=0, part=part)
            case "reasoning":
                yield self._of_item("response.reasoning_text.done", content_index=0, text=item.text)
            case _:
                done = {"arguments": item.text, "name": item.call["name"]}
                yield self._of_item("response.function_call_arguments.done", **done)
        whole = item.map(status)
        yield self._chunk("response.output_item.done", output_index=self._index, item=whole)
        self._output.append(whole)

    @property
    def _is_open(self) -> bool:
        return len(self._items) > len(self._output)

    @property
    def _index(self) -> int:
        return len(self._items) - 1

    def _grow(self, kind: str, delta: str, **more: Any) -> Chunk:
        self._items[-1].text += delta
        return self._of_item(kind, delta=delta, **more)

    def _of_item(self, kind: str, **more: Any) -> Chunk:
        return self._chunk(kind, item_id=self._items[-1].item_id, output_index=self._index, **more)

    def _chunk(self, kind: str, **more: Any) -> Chunk:
        self._num_chunks += 1
        return {"type": kind, "sequence_number": self._num_chunks - 1} | more

    def _entries(self, tokens: Iterable[TokenLogprob] | None) -> list[Any]:
        if not tokens or self._request.num_top is None:
            return []
        found: list[Any] = chat_logprobs(tokens, self._request.num_top, self._token_bytes)["content"]
        return found

    def _object(self, status: str, output: list[dict[str, Any]], completion: Completion | None) -> dict[str, Any]:
        usage = None
        if completion is not None:
            chat = self._usage.map
            usage = {
                "input_tokens": chat["prompt_tokens"],
                "input_tokens_details": {"cache_write_tokens": 0} | chat["prompt_tokens_details"],
                "output_tokens": chat["completion_tokens"],
                "output_tokens_details": chat["completion_tokens_details"],
                "total_tokens": chat["total_tokens"],
            }
        reason = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return self._heading | {
            "status": status,
            "error": None,
            "incomplete_details": reason,
            "output": list(output),
            "usage": usage,
        }
