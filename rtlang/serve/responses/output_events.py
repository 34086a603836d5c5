"""Events of a graph as the object and the stream of `/v1/responses`.

A reply is a list of items: reasoning, messages and calls of functions, in the order in which they were generated. In a stream, each item is
opened, grows, and is closed before the next one; events are numbered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rtlang.contract.events import Completion, Event, NodeFinished, TextDelta, TokenLogprob
from rtlang.contract.params import FinishReason
from rtlang.serve.openai.chat import ChatRequest
from rtlang.serve.openai.logprobs import TokenBytes, chat_logprobs
from rtlang.serve.openai.sections import SectionedTokens, num_thought_tokens
from rtlang.serve.openai.shapes import UsageCount, captures_of
from rtlang.serve.openai.tools import ReplyReader
from rtlang.serve.responses.client_tools import ClientTool, ClientTools, ToolKind, call_item
from rtlang.serve.responses.custom_input import CustomInput
from rtlang.serve.responses.input_items import item_id

Chunk = dict[str, Any]
Seal = Callable[[str], str]
"""Makes an opaque text of a thought."""


_PLAIN_KINDS = ("message", "reasoning", "function_call", "custom_tool_call")
"""The kinds of items that are streamed as they grow; others are sent when they are complete."""


@dataclass(slots=True)
class _Item:
    """An item of the output that grows.

    Attributes:
        captures: of the grammar, for the last message.
        call: id and name of the call, as the model wrote the name.
        tool: the tool that is called; None if the model called an unknown name.
        custom: reads the input of a custom tool from the arguments.
    """

    kind: str
    item_id: str
    text: str = ""
    call: Mapping[str, Any] = field(default_factory=dict)
    tool: ClientTool | None = None
    custom: CustomInput | None = None
    logprobs: list[Any] = field(default_factory=list)
    captures: Mapping[str, Any] = field(default_factory=dict)

    def map(self, status: str, seal: Seal | None = None) -> dict[str, Any]:
        """The item as a part of a response."""
        found: dict[str, Any] = {"id": self.item_id, "type": self.kind, "status": status}
        match self.kind:
            case "message":
                found |= {"role": "assistant", "content": [_text_part(self.text, self.logprobs)], **self.captures}
            case "reasoning":
                found |= {"summary": [], "content": [{"type": "reasoning_text", "text": self.text}]}
                if seal is not None:
                    found["encrypted_content"] = seal(self.text)
            case _:
                text = self.text if self.custom is None else self.custom.text
                found |= call_item(self.tool, self.call["name"], self.call["id"], text)
        if self.kind == "apply_patch_call" and status == "incomplete":
            found["status"] = "in_progress"  # the kind knows no other word for a call that was cut
        return found


def _text_part(text: str, logprobs: list[Any]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


class ResponsesWriter:
    """Turns the events of a request into its response.

    Args:
        request: the chat request that the body became.
        heading: the fields of the response that follow from the request: id, created_at, model and the options.
        new_id: makes an id with a prefix.
        on_done: called with the response once it is complete.
        tools: the tools that the client carries out.
        seal: makes the opaque texts of thoughts; None if the request does not ask for them.
    """

    def __init__(
        self,
        request: ChatRequest,
        heading: Mapping[str, Any],
        token_bytes: TokenBytes,
        new_id: Callable[[str], str],
        on_done: Callable[[dict[str, Any]], None],
        tools: ClientTools | None = None,
        seal: Seal | None = None,
    ) -> None:
        self._request, self._heading, self._token_bytes, self._new_id = request, dict(heading), token_bytes, new_id
        self._on_done, self._tools, self._seal = on_done, tools or ClientTools(), seal
        self._reader = ReplyReader(request.plan, lambda: new_id("call"))
        self._items: list[_Item] = []
        self._output: list[dict[str, Any]] = []  # closed items
        self._num_chars = self._num_chunks = self._num_logprobs = 0
        self._tokens = SectionedTokens(token_bytes)
        self._usage = UsageCount()

    @property
    def heading(self) -> Mapping[str, Any]:
        """The fields of the response that follow from the request."""
        return self._heading

    def response(self, events: Iterable[Event]) -> dict[str, Any]:
        """The response to all events of a graph whose nodes have all finished."""
        for event in events:
            if isinstance(event, NodeFinished):
                *_, last = self._finish(event)
                whole: dict[str, Any] = last["response"]
                return whole
        raise AssertionError("the graph has no generation")

    @property
    def has_begun(self) -> bool:
        """Whether the first events of the stream were made."""
        return self._num_chunks > 0

    def begin(self) -> Iterator[Chunk]:
        """The events before the first output; none if they were sent."""
        if self._num_chunks == 0:
            begun = self.snapshot("in_progress")
            yield self._chunk("response.created", response=begun)
            yield self._chunk("response.in_progress", response=begun)

    def queue(self) -> Iterator[Chunk]:
        """The events of a response that waits before it runs; `begin` is not needed then."""
        queued = self.snapshot("queued")
        yield self._chunk("response.created", response=queued)
        yield self._chunk("response.queued", response=queued)
        yield self._chunk("response.in_progress", response=self.snapshot("in_progress"))

    def snapshot(self, status: str) -> dict[str, Any]:
        """The response so far, with a status. Items that grow still are left out."""
        return self._object(status, self._output, None)

    def chunks(self, event: Event) -> Iterator[Chunk]:
        """The events of a stream for one event of the graph."""
        if isinstance(event, (TextDelta, NodeFinished)):
            yield from self.begin()
        if isinstance(event, TextDelta):
            self._num_chars += len(event.text)
            yield from self._add(self._reader.push(event.text), getattr(event, "logprobs", None))
        elif isinstance(event, NodeFinished):
            yield from self._finish(event)

    def prepared(self, event: Event) -> Iterator[Chunk]:
        """`chunks` for a response whose prompt only is computed."""
        if isinstance(event, NodeFinished):
            yield from self.begin()
            (completion,) = event.completions
            self._usage.add(event.usage, 1)
            whole = self._object("completed", [], completion)
            self._on_done(whole)
            yield self._chunk("response.completed", response=whole)

    def text_event(self, event: TextDelta) -> str | None:
        """None: each event has a number and the id of its item, so that `chunks` makes all of them."""
        return None

    def last_chunks(self) -> Iterator[Chunk]:
        """The events behind those of the graph: none."""
        return iter(())

    def failure(self, error: Mapping[str, Any]) -> Chunk:
        """The last event of a stream that fails. `error`: the body of an error response."""
        failed = self.snapshot("failed")
        failed["error"] = _stream_error(error["error"])
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
        if self._is_open:
            self._items[-1].captures = captures_of(completion)
        status = yield from self._end_output(is_cut=completion.finish_reason is FinishReason.LENGTH)
        whole = self._object(status, self._output, completion)
        self._on_done(whole)
        yield self._chunk(f"response.{status}", response=whole)

    def _end_output(self, *, is_cut: bool) -> Generator[Chunk, None, str]:
        """Close the open item; returns the status of the response."""
        if not self._items:
            yield from self._open("message")
        status = "incomplete" if is_cut else "completed"
        yield from self._close(status)
        return status

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
                    yield from self._open_call({"id": call["id"], "name": function["name"]})
                if function.get("arguments"):
                    yield from self._grow_call(function["arguments"])
        if self._is_open and self._items[-1].kind == "message":
            self._items[-1].logprobs += entries

    def _open(self, kind: str) -> Iterator[Chunk]:
        """Open an item unless one of this kind is open."""
        if self._is_open and self._items[-1].kind == kind:
            return
        yield from self._close("completed")
        self._items.append(_Item(kind, item_id(kind, self._new_id)))
        yield self._added()
        if kind == "message":
            yield self._of_item("response.content_part.added", content_index=0, part=_text_part("", []))

    def _open_call(self, call: Mapping[str, Any]) -> Iterator[Chunk]:
        """Open the item of a call; each call is an item of its own."""
        yield from self._close("completed")
        tool = self._tools.called(call["name"])
        kind = call_item(tool, call["name"], call["id"], "")["type"]
        custom = CustomInput() if tool is not None and tool.kind is ToolKind.CUSTOM else None
        self._items.append(_Item(kind, item_id(kind, self._new_id), call=call, tool=tool, custom=custom))
        if kind in _PLAIN_KINDS:
            yield self._added()

    def _added(self) -> Chunk:
        item = self._items[-1]
        begun = item.map("in_progress")
        if "content" in begun:
            begun["content"] = []
        return self._chunk("response.output_item.added", output_index=self._index, item=begun)

    def _grow_call(self, piece: str) -> Iterator[Chunk]:
        item = self._items[-1]
        if item.custom is not None:
            item.text += piece
            yield from self._grow_input(item.custom.push(piece))
        elif item.kind == "function_call":
            yield self._grow("response.function_call_arguments.delta", piece)
        else:
            item.text += piece

    def _grow_input(self, text: str) -> Iterator[Chunk]:
        if text:
            yield self._of_item("response.custom_tool_call_input.delta", delta=text)

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
            case "function_call":
                done = {"arguments": item.text, "name": item.map(status)["name"]}
                yield self._of_item("response.function_call_arguments.done", **done)
            case "custom_tool_call":
                assert item.custom is not None
                yield from self._grow_input(item.custom.finish())
                yield self._of_item("response.custom_tool_call_input.done", input=item.custom.text)
            case _:
                yield self._added()
        whole = item.map(status, self._seal)
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
            "completed_at": int(time.time()) if status == "completed" else None,
            "status": status,
            "error": None,
            "incomplete_details": reason,
            "output": list(output),
            "usage": usage,
        }


class CompactionWriter(ResponsesWriter):
    """Turns the events of a request for a summary into a response whose only item is a compaction.

    Args:
        compacted: the opaque text of the conversation, given the summary. Others as for `ResponsesWriter`.
    """

    def __init__(
        self,
        request: ChatRequest,
        heading: Mapping[str, Any],
        token_bytes: TokenBytes,
        new_id: Callable[[str], str],
        on_done: Callable[[dict[str, Any]], None],
        compacted: Callable[[str], str],
    ) -> None:
        super().__init__(request, heading, token_bytes, new_id, on_done)
        self._compacted, self._summary, self._id = compacted, "", item_id("compaction", new_id)

    def _add(
        self,
        deltas: Iterable[Mapping[str, Any]],
        tokens: Sequence[TokenLogprob] | None,
        *,
        is_last: bool = False,
    ) -> Iterator[Chunk]:
        self._summary += "".join(delta.get("content") or "" for delta in deltas)
        return iter(())

    def _end_output(self, *, is_cut: bool) -> Generator[Chunk, None, str]:
        begun = {"type": "compaction", "id": self._id, "encrypted_content": ""}
        yield self._chunk("response.output_item.added", output_index=0, item=begun)
        yield self._chunk("response.compaction.compacting", output_index=0, item_id=self._id)
        whole = begun | {"encrypted_content": self._compacted(self._summary)}
        yield self._chunk("response.output_item.done", output_index=0, item=whole)
        self._output.append(whole)
        return "completed"  # also with a summary that was cut


def _stream_error(inner: Mapping[str, Any]) -> dict[str, Any]:
    """The error of a response that failed, with one of the codes that clients know."""
    match inner.get("type"):
        case "rate_limit_error":
            code = "rate_limit_exceeded"
        case "invalid_request_error" if inner.get("code") != "context_length_exceeded":
            code = "invalid_prompt"
        case "invalid_request_error":
            code = "context_length_exceeded"  # not in the list of the API, but clients look for it
        case _:
            code = "server_error"
    return {"code": code, "message": inner["message"]}
