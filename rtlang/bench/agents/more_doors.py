"""The Responses API over HTTP and as WebSocket mode, and the Messages API, as clients of agents use them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from websockets.sync.client import ClientConnection, connect

from rtlang.bench.agents.doors import (
    TIMEOUT_S,
    HttpConnection,
    Message,
    Reading,
    Reply,
    Request,
    assistant_message,
)
from rtlang.contract.errors import RtlangError

_MAX_FRAME_BYTES = 1 << 26


class MessagesDoor:
    """`/v1/messages`, streamed."""

    def __init__(self, url: str) -> None:
        self._http = HttpConnection(url)

    def close(self) -> None:
        """See `Door.close`."""
        self._http.close()

    def ask(self, request: Request) -> Reply:
        """See `Door.ask`."""
        system, *messages = request.messages
        choice = {"type": "any", "disable_parallel_tool_use": True} if request.must_call else {"type": "none"}
        body = {
            "model": "default",
            "system": system["content"],
            "messages": [_content_blocks(each) for each in messages],
            "tools": [_input_schema(each["function"]) for each in request.tools],
            "tool_choice": choice,
            "thinking": {"type": "disabled"},
            "max_tokens": request.max_tokens,
            "stream": True,
        }
        reading, calls, content = Reading(), dict[int, dict[str, str]](), ""
        for event in self._http.events("/v1/messages", body):
            match event["type"]:
                case "message_start" | "message_delta":
                    reading.merge(_usage(event))
                case "content_block_start" if event["content_block"]["type"] == "tool_use":
                    block = event["content_block"]
                    calls[event["index"]] = {"id": block["id"], "name": block["name"], "arguments": ""}
                    reading.note_text()
                case "content_block_delta":
                    content += event["delta"].get("text", "")
                    if event["index"] in calls:
                        calls[event["index"]]["arguments"] += event["delta"].get("partial_json", "")
                    reading.note_text()
        return reading.reply(assistant_message(content, list(calls.values())))


class ResponsesDoor:
    """`/v1/responses`, streamed; nothing is stored, and every request has the whole conversation."""

    def __init__(self, url: str) -> None:
        self._http = HttpConnection(url)

    def close(self) -> None:
        """See `Door.close`."""
        self._http.close()

    def ask(self, request: Request) -> Reply:
        """See `Door.ask`."""
        body = _response_body(request, request.messages) | {"stream": True}
        return _read_response(Reading(), self._http.events("/v1/responses", body))[0]


class SocketDoor:
    """`/v1/responses` as a WebSocket: each turn sends the new items only."""

    def __init__(self, url: str) -> None:
        self._url = url.replace("http", "ws", 1) + "/v1/responses"
        self._stack = ExitStack()
        self._socket: ClientConnection | None = None
        self._last: str | None = None
        self._num_known = 0

    def close(self) -> None:
        """See `Door.close`."""
        self._stack.close()

    def ask(self, request: Request) -> Reply:
        """See `Door.ask`."""
        if self._socket is None:
            opening = connect(self._url, max_size=_MAX_FRAME_BYTES, proxy=None, open_timeout=TIMEOUT_S)
            self._socket = self._stack.enter_context(opening)
        body = _response_body(request, request.messages[self._num_known :]) | {"type": "response.create"}
        if self._last is not None:
            body["previous_response_id"] = self._last
        reading = Reading()
        self._socket.send(json.dumps(body))
        reply, self._last = _read_response(reading, self._events(self._socket))
        self._num_known = len(request.messages) + 1
        return reply

    def _events(self, socket: ClientConnection) -> Iterable[Mapping[str, Any]]:
        while True:
            event = json.loads(socket.recv(timeout=TIMEOUT_S))
            if event["type"] == "error":
                raise RtlangError(f"{self._url}: {event.get('error')}")
            yield event
            if event["type"] in ("response.completed", "response.incomplete", "response.failed"):
                return


def _response_body(request: Request, messages: Sequence[Message]) -> dict[str, Any]:
    return {
        "model": "default",
        "input": [item for message in messages for item in _items(message)],
        "tools": [{"type": "function", **each["function"]} for each in request.tools],
        "tool_choice": "required" if request.must_call else "none",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "none"},
        "max_output_tokens": request.max_tokens,
        "store": False,
        "prompt_cache_key": request.key,
    }


def _items(message: Message) -> list[dict[str, Any]]:
    """The input items of a message."""
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]} for call in message.get("tool_calls", ())
    ]
    text = {"role": message["role"], "content": message["content"]}
    return ([text] if message["content"] else []) + calls


def _read_response(reading: Reading, events: Iterable[Mapping[str, Any]]) -> tuple[Reply, str]:
    """The reply of the events of a response, and its id."""
    for event in events:
        if event["type"].endswith(".delta"):
            reading.note_text()
        if event["type"] == "response.failed":
            raise RtlangError(f"/v1/responses: {event['response']['error']}")
        if event["type"] in ("response.completed", "response.incomplete"):
            response = event["response"]
            usage = response["usage"]
            reading.count(usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"], usage["output_tokens"])
            content, calls = "", []
            for item in response["output"]:
                if item["type"] == "function_call":
                    calls.append({"id": item["call_id"], "name": item["name"], "arguments": item["arguments"]})
                elif item["type"] == "message":
                    content += "".join(part.get("text", "") for part in item["content"])
            return reading.reply(assistant_message(content, calls)), response["id"]
    raise RtlangError("/v1/responses: the stream ended without a response")


def _input_schema(function: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }


def _content_blocks(message: Message) -> dict[str, Any]:
    """A message with its content as blocks."""
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [block]}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        function = call["function"]
        arguments = json.loads(function["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments})
    return {"role": message["role"], "content": blocks}


def _usage(event: Mapping[str, Any]) -> dict[str, int]:
    """The token counts of an event; the API counts cached tokens apart."""
    usage = event["message"]["usage"] if "message" in event else event.get("usage", {})
    found: dict[str, int] = {}
    if usage.get("input_tokens") is not None:
        found["cached"] = usage.get("cache_read_input_tokens") or 0
        found["prompt"] = usage["input_tokens"] + found["cached"] + (usage.get("cache_creation_input_tokens") or 0)
    if usage.get("output_tokens") is not None:
        found["output"] = usage["output_tokens"]
    return found
