"""The doors of a server, each as a client of an agent uses it.

A conversation is a list of messages in the form of chat completions. A door sends it in its own form and reads the stream of the reply.
Only the standard library and `websockets` are needed, so that the benchmark runs from the base installation.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol
from urllib.parse import urlsplit

from rtlang.contract.errors import RtlangError

TIMEOUT_S = 900.0
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to one turn.

    Attributes:
        message: the assistant's, as a later request sends it.
        first_s: seconds from the request to the first text of the reply.
        num_prompt, num_cached, num_output: tokens, as the server counts them.
    """

    message: Message
    first_s: float
    num_prompt: int
    num_cached: int
    num_output: int


@dataclass(frozen=True, slots=True)
class Request:
    """A turn.

    Attributes:
        messages: the whole conversation, from the system text on.
        must_call: whether the reply is a call of one of the tools, or a text.
        key: the client's name of the conversation.
    """

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]]
    must_call: bool
    max_tokens: int
    key: str


class Door(Protocol):
    """A door, as one conversation uses it. Not thread-safe."""

    def ask(self, request: Request) -> Reply:
        """The reply to a request.

        Raises:
            RtlangError: the server refuses it, or the stream ends early.
        """

    def close(self) -> None:
        """Close the connection."""


class HttpConnection:
    """A connection that is opened again when the server has closed it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer to a request.

        Raises:
            RtlangError: the server refuses it.
        """
        with self._open(method, path, body) as response:
            return json.loads(response.read())

    def events(self, path: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of a stream, without its end mark.

        Raises:
            RtlangError: the server refuses the request, or reports an error.
        """
        with self._open("POST", path, body) as response:
            for line in response:
                data = line.removeprefix(b"data:").strip()
                if not line.startswith(b"data:") or data == b"[DONE]":
                    continue
                event = json.loads(data)
                if event.get("error"):
                    raise RtlangError(f"{path}: {event['error']}")
                yield event

    @contextmanager
    def _open(self, method: str, path: str, body: Mapping[str, Any] | None) -> Iterator[http.client.HTTPResponse]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
        self._connection.close()  # an idle one may be closed by the server while it is used
        self._connection.request(method, path, data, headers)
        response = self._connection.getresponse()
        try:
            if response.status >= 300:
                raise RtlangError(f"{path}: {response.status} {response.read()[:500].decode(errors='replace')}")
            yield response
        finally:
            response.close()


class ChatDoor:
    """`/v1/chat/completions`, streamed."""

    def __init__(self, url: str) -> None:
        self._http = HttpConnection(url)

    def close(self) -> None:
        """See `Door.close`."""
        self._http.close()

    def ask(self, request: Request) -> Reply:
        """See `Door.ask`."""
        body = {
            "model": "default",
            "messages": list(request.messages),
            "tools": list(request.tools),
            "tool_choice": "required" if request.must_call else "none",
            "parallel_tool_calls": False,
            "reasoning_effort": "none",
            "max_tokens": request.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "prompt_cache_key": request.key,
        }
        reading, calls, content = Reading(), dict[int, dict[str, str]](), ""
        for chunk in self._http.events("/v1/chat/completions", body):
            usage = chunk.get("usage")
            if usage:
                cached = usage["prompt_tokens_details"]["cached_tokens"]
                reading.count(usage["prompt_tokens"], cached, usage["completion_tokens"])
            for choice in chunk["choices"]:
                delta = choice["delta"]
                content += delta.get("content") or ""
                for call in delta.get("tool_calls") or ():
                    found = calls.setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
                    found["id"] = call.get("id") or found["id"]
                    found["name"] += call["function"].get("name") or ""
                    found["arguments"] += call["function"].get("arguments") or ""
                if delta.get("content") or delta.get("tool_calls"):
                    reading.note_text()
        return reading.reply(assistant_message(content, list(calls.values())))


def assistant_message(content: str, calls: Sequence[Mapping[str, str]]) -> Message:
    """A message of the assistant with these calls, each a map of `id`, `name` and `arguments`."""
    if not calls:
        return {"role": "assistant", "content": content}
    listed = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in calls
    ]
    return {"role": "assistant", "content": content or None, "tool_calls": listed}


class Reading:
    """Notes times and counts while a stream is read. It begins when it is made."""

    def __init__(self) -> None:
        self._started = perf_counter()
        self._first_s: float | None = None
        self._counts: dict[str, int] = {}

    def note_text(self) -> None:
        """Note that text has come."""
        if self._first_s is None:
            self._first_s = perf_counter() - self._started

    def count(self, num_prompt: int, num_cached: int, num_output: int) -> None:
        """Note the tokens."""
        self.merge({"prompt": num_prompt, "cached": num_cached, "output": num_output})

    def merge(self, counts: Mapping[str, int]) -> None:
        """Note some of the tokens; later counts replace earlier ones."""
        self._counts |= counts

    def reply(self, message: Message) -> Reply:
        """The reply with this message.

        Raises:
            RtlangError: the stream had no counts.
        """
        if len(self._counts) < 3:
            raise RtlangError("the stream ended without usage")
        first_s = perf_counter() - self._started if self._first_s is None else self._first_s
        return Reply(message, first_s, self._counts["prompt"], self._counts["cached"], self._counts["output"])
