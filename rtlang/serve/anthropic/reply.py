"""Events of a graph as the message and the stream of `/v1/messages`.

A reply is a list of blocks: thinking, text and uses of tools, in the order in which they were generated. In a stream, each block is
started, grows, and is stopped before the next one.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rtlang.contract.events import Completion, Event, NodeFinished, PromptComputed, TextDelta
from rtlang.contract.growing_json import GrowingJson, JsonKind, JsonPath
from rtlang.contract.params import FinishReason
from rtlang.serve.anthropic.content_blocks import signature_of
from rtlang.serve.anthropic.request import MessagesRequest
from rtlang.serve.json_parts import json_text
from rtlang.serve.openai.chat import ChatRequest
from rtlang.serve.openai.logprobs import TokenBytes
from rtlang.serve.openai.sections import num_thought_tokens
from rtlang.serve.openai.shapes import UsageCount, captures_of
from rtlang.serve.openai.tools import ReplyReader

Chunk = dict[str, Any]
PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
"""The type of the deltas of each kind of block, and the name of their text."""
_GROWS_BY = {"text": "content", "thinking": "reasoning_content", "tool_use": ""}
"""The field of a chat message's delta that is the text of a block, if that is all there is in it."""


@dataclass(slots=True)
class _Block:
    """A block of the reply that grows."""

    kind: str
    call: Mapping[str, Any] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def begun(self) -> dict[str, Any]:
        """The block as a stream starts it."""
        match self.kind:
            case "text":
                return {"type": "text", "text": "", "citations": None}
            case "thinking":
                return {"type": "thinking", "thinking": "", "signature": ""}
        return {"type": "tool_use", "id": self.call["id"], "name": self.call["function"]["name"], "input": {}}


class MessageWriter:
    """Turns the events of a request into its message.

    Args:
        request: the chat request that the body became.
        asked: the body.
        message_id: the id of the message.
        model: the name of the model in the message.
        token_bytes: the bytes of tokens, for the number of tokens of the thought.
        new_id: makes the id of a use of a tool.
        num_cleared_tokens: by which edits of the context made the prompt shorter.
    """

    def __init__(
        self,
        request: ChatRequest,
        asked: MessagesRequest,
        message_id: str,
        model: str,
        token_bytes: TokenBytes,
        new_id: Callable[[], str],
        num_cleared_tokens: int = 0,
    ) -> None:
        self._request, self._asked, self._token_bytes = request, asked, token_bytes
        self._message_id, self._model = message_id, model
        self._num_cleared_tokens = num_cleared_tokens
        self._reader = ReplyReader(request.plan, new_id)
        self._blocks: list[_Block] = []
        self._is_begun = self._is_open = False
        self._num_chars = 0
        self._before = ""  # of the text in a delta of the open block, as a server-sent event; empty if it is not shown
        self._grows_by = ""  # the field of a message's delta with this text
        self._prompt: PromptComputed | None = None
        self._usage = UsageCount()

    def response(self, events: Iterable[Event]) -> dict[str, Any]:
        """The message for all events of a graph whose nodes have all finished."""
        for event in events:
            if isinstance(event, NodeFinished):
                (completion,) = event.completions
                for _ in self._read(event, completion):
                    pass
                message = self._message([self._whole(block) for block in self._blocks], self._final_usage())
                return message | self._ending(completion) | self._report()
        raise AssertionError("the graph has no generation")

    def chunks(self, event: Event) -> Iterator[Chunk]:
        """The events of a stream for one event of the graph."""
        if isinstance(event, PromptComputed):
            self._prompt = event
        if not isinstance(event, (TextDelta, NodeFinished)):
            return
        if not self._is_begun:
            self._is_begun = True
            yield {"type": "message_start", "message": self._message([], self._first_usage())}
            yield {"type": "ping"}
        if isinstance(event, TextDelta):
            self._num_chars += len(event.text)
            yield from self._add(self._reader.push(event.text))
        else:
            (completion,) = event.completions
            yield from self._read(event, completion)
            usage = self._final_usage()
            for name in ("cache_creation", "service_tier"):
                del usage[name]
            yield {"type": "message_delta", "delta": self._ending(completion), "usage": usage} | self._report()

    def text_event(self, event: TextDelta) -> str | None:
        """The server-sent events of `chunks` at a part of their cost; None, and nothing is noted, before the message has begun."""
        if not self._is_begun or self._asked.is_prefill:
            return None
        self._num_chars += len(event.text)
        deltas = self._reader.push(event.text)
        if len(deltas) == 1 and self._before and (text := deltas[0].get(self._grows_by)):
            return f"{self._before}{json_text(text)}}}}}\n\n"
        return "".join([f"event: {chunk['type']}\ndata: {json_text(chunk)}\n\n" for chunk in self._add(deltas)])

    def last_chunks(self) -> Iterator[Chunk]:
        """The events that end the stream."""
        yield {"type": "message_stop"}

    def _read(self, event: NodeFinished, completion: Completion) -> Iterator[Chunk]:
        """The events for the rest of the reply."""
        self._usage.add(event.usage, 1)
        deltas = self._reader.push(completion.text[self._num_chars :]) + self._reader.finish()
        num_tokens = len(completion.token_ids) or event.usage.completion_tokens
        sections = self._reader.sections
        self._usage.num_reasoning = num_thought_tokens(completion.token_ids, num_tokens, sections, self._token_bytes)
        yield from self._add(deltas)
        if not (self._blocks or self._asked.is_prefill):
            yield from self._open("text")
        yield from self._close()

    def _add(self, deltas: Iterable[Mapping[str, Any]]) -> Iterator[Chunk]:
        """The events for deltas of a chat message."""
        if self._asked.is_prefill:
            return
        for delta in deltas:
            if "content" in delta:
                yield from self._open("text")
                yield from self._grow(delta["content"])
            elif "reasoning_content" in delta:
                yield from self._open("thinking")
                yield from self._grow(delta["reasoning_content"])
            for call in delta.get("tool_calls", ()):
                function = call["function"]
                if "name" in function:
                    yield from self._open("tool_use", call)
                if function.get("arguments"):
                    yield from self._grow(function["arguments"])

    def _open(self, kind: str, call: Mapping[str, Any] | None = None) -> Iterator[Chunk]:
        """Start a block unless one of this kind is open; each use of a tool is a block of its own."""
        if self._is_open and self._blocks[-1].kind == kind and call is None:
            return
        yield from self._close()
        block = _Block(kind, call or {})
        self._blocks.append(block)
        self._is_open = True
        delta, name = _DELTAS[kind]
        is_hidden = kind == "thinking" and not self._asked.shows_thought
        self._grows_by = _GROWS_BY[kind]
        self._before = (
            ""
            if is_hidden
            else (
                f'event: content_block_delta\ndata: {{"type":"content_block_delta","index":{self._index},'
                f'"delta":{{"type":"{delta}","{name}":'
            )
        )
        yield {"type": "content_block_start", "index": self._index, "content_block": block.begun()}

    def _grow(self, text: str) -> Iterator[Chunk]:
        block = self._blocks[-1]
        block.pieces.append(text)
        if block.kind == "thinking" and not self._asked.shows_thought:
            return
        delta, name = _DELTAS[block.kind]
        yield self._delta({"type": delta, name: text})

    def _close(self) -> Iterator[Chunk]:
        """Stop the open block, if there is one."""
        if not self._is_open:
            return
        self._is_open, self._before = False, ""
        block = self._blocks[-1]
        if block.kind == "thinking":
            signature = signature_of(block.text, is_shown=self._asked.shows_thought)
            yield self._delta({"type": "signature_delta", "signature": signature})
        yield {"type": "content_block_stop", "index": self._index}

    @property
    def _index(self) -> int:
        return len(self._blocks) - 1

    def _delta(self, delta: Mapping[str, Any]) -> Chunk:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _whole(self, block: _Block) -> dict[str, Any]:
        found = block.begun()
        match block.kind:
            case "text":
                found["text"] = block.text
            case "thinking":
                found["signature"] = signature_of(block.text, is_shown=self._asked.shows_thought)
                found["thinking"] = block.text if self._asked.shows_thought else ""
            case _:
                found["input"] = tool_input(block.text)
        return found

    def _message(self, content: list[dict[str, Any]], usage: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }

    def _ending(self, completion: Completion) -> dict[str, Any]:
        reason, sequence = "end_turn", None
        if self._asked.is_prefill:
            reason = "max_tokens"
        elif completion.finish_reason is FinishReason.LENGTH:
            (node,) = [node for node in self._request.asked.graph.nodes if hasattr(node, "params")]
            is_cut = self._usage.map["completion_tokens"] >= node.params.max_tokens
            reason = "max_tokens" if is_cut else "model_context_window_exceeded"
        elif isinstance(completion.stop_match, str) and completion.stop_match in self._asked.stops:
            reason, sequence = "stop_sequence", completion.stop_match
        elif self._reader.calls:
            reason = "tool_use"
        return {"stop_reason": reason, "stop_sequence": sequence} | captures_of(completion)

    def _report(self) -> dict[str, Any]:
        if not self._asked.edits_context:
            return {}
        edit = {
            "type": "clear_thinking_20251015",
            "cleared_thinking_turns": self._asked.num_cleared,
            "cleared_input_tokens": self._num_cleared_tokens,
        }
        return {"context_management": {"applied_edits": [edit] if self._asked.num_cleared else []}}

    def _first_usage(self) -> dict[str, Any]:
        """The usage at the start of a stream; without tokens of the prompt if the engine has not reported them."""
        prompt = self._prompt
        return _usage(*((0, 0) if prompt is None else (prompt.num_prompt_tokens, prompt.num_cached_tokens)), 0)

    def _final_usage(self) -> dict[str, Any]:
        chat = self._usage.map
        num_output = 0 if self._asked.is_prefill else chat["completion_tokens"]
        found = _usage(chat["prompt_tokens"], chat["prompt_tokens_details"]["cached_tokens"], num_output)
        return found | {"output_tokens_details": {"thinking_tokens": self._usage.num_reasoning}}


def _usage(num_prompt: int, num_cached: int, num_output: int) -> dict[str, Any]:
    """The `usage` of a message. Every prompt is cached, at no price, so no tokens are reported as written to the cache."""
    return {
        "input_tokens": num_prompt - num_cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": num_cached,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": num_output,
        "service_tier": "standard",
    }


def tool_input(text: str) -> dict[str, Any]:
    """The input of a tool from the text of its arguments; of a text that was cut, the values so far.

    JSON knows larger numbers than its readers: a number beyond the range of floats becomes the largest float.
    """
    try:
        found = json.loads(text or "{}", parse_float=_float, parse_int=_int)
    except (ValueError, RecursionError):
        growing = GrowingJson()
        growing.push(text)
        found = {} if growing.root is None else _value(growing.root, growing)
    return found if isinstance(found, dict) else {}


def _float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else math.copysign(sys.float_info.max, value)


def _int(text: str) -> float:
    try:
        return int(text)
    except ValueError:  # Python reads at most 4300 digits
        return _float(text)


def _value(place: JsonPath, growing: GrowingJson) -> Any:
    """The value at a place of a text that was cut, without scalars that have not ended, except strings."""
    match place.kind:
        case JsonKind.OBJECT:
            return {name: _value(each, growing) for name, each in place.children.items() if _has_value(each)}
        case JsonKind.ARRAY:
            return [_value(each, growing) for each in place.children.values() if _has_value(each)]
        case JsonKind.STRING:
            return "".join(place.pieces)
    assert place.end is not None
    return json.loads(growing.text(place.start, place.end), parse_float=_float, parse_int=_int)


def _has_value(place: JsonPath) -> bool:
    return place.end is not None or place.kind not in (JsonKind.NUMBER, JsonKind.WORD)
