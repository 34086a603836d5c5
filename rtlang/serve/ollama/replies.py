"""Replies of `/api/chat` and `/api/generate`, made from those of chat completions and completions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from rtlang.contract.events import Event, TextDelta


class Inner(Protocol):
    """The writer of a chat completion or of a completion."""

    def response(self, events: Iterable[Event]) -> dict[str, Any]: ...

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]: ...

    def last_chunks(self) -> Iterator[dict[str, Any]]: ...


class OllamaWriter:
    """Turns the events of a request into its reply, or into the lines of a stream.

    Args:
        inner: writes the reply as the OpenAI API has it. Its stream ends with the usage.
        is_chat: whether the text stands in `message`, not in `response`.
        clock: seconds, for the durations.
    """

    def __init__(self, inner: Inner, model: str, *, is_chat: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._inner, self._model, self._is_chat, self._clock = inner, model, is_chat, clock
        self._started = clock()
        self._first: float | None = None
        self._reason = "stop"
        self._calls: dict[int, dict[str, str]] = {}

    def response(self, events: Iterable[Event]) -> dict[str, Any]:
        """The reply to all events of a graph."""
        whole = self._inner.response(events)
        (choice,) = whole["choices"]
        self._reason = choice["finish_reason"]
        message = choice.get("message") or {"content": choice["text"]}
        calls = [(each["function"]["name"], each["function"]["arguments"]) for each in message.get("tool_calls") or ()]
        line = self._line(message.get("content") or "", message.get("reasoning_content") or "", calls)
        return self._with_logprobs(line, choice) | self._end(whole["usage"])

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]:
        """The lines of a stream for one event; `last_chunks` follow the final event. A call is written once it is whole."""
        for chunk in self._inner.chunks(event):
            for choice in chunk["choices"]:
                self._reason = choice["finish_reason"] or self._reason
                delta = choice.get("delta") or {"content": choice.get("text")}
                content, thinking = delta.get("content") or "", delta.get("reasoning_content") or ""
                if content or thinking:
                    yield from self._finished_calls()
                for part in delta.get("tool_calls") or ():
                    if part["index"] not in self._calls:
                        yield from self._finished_calls()
                    call = self._calls.setdefault(part["index"], {"name": "", "arguments": ""})
                    for name in call:
                        call[name] += part.get("function", {}).get(name) or ""
                if content or thinking or choice.get("logprobs"):
                    if self._first is None:
                        self._first = self._clock()
                    yield self._with_logprobs(self._line(content, thinking, ()), choice) | {"done": False}

    def text_event(self, event: TextDelta) -> str | None:
        """None: `chunks` makes the lines."""
        return None

    def last_chunks(self) -> Iterator[dict[str, Any]]:
        """The last call, and the line that ends the stream."""
        yield from self._finished_calls()
        usage: Mapping[str, Any] = {}
        for chunk in self._inner.last_chunks():
            usage = chunk.get("usage") or usage
        yield self._line("", "", ()) | self._end(usage)

    def _finished_calls(self) -> Iterator[dict[str, Any]]:
        """The line of the calls that have come: a later call or text follows, or nothing more."""
        if self._calls:
            calls = [(each["name"], each["arguments"]) for each in self._calls.values()]
            self._calls.clear()
            yield self._line("", "", calls) | {"done": False}

    def _line(self, content: str, thinking: str, calls: Iterable[tuple[str, str]]) -> dict[str, Any]:
        heading = {"model": self._model, "created_at": created_at(time.time())}
        if not self._is_chat:
            return heading | {"response": content} | ({"thinking": thinking} if thinking else {})
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if thinking:
            message["thinking"] = thinking
        listed = [{"function": {"name": name, "arguments": _arguments(text)}} for name, text in calls]
        if listed:
            message["tool_calls"] = listed
        return heading | {"message": message}

    def _end(self, usage: Mapping[str, Any]) -> dict[str, Any]:
        now = self._clock()
        first = now if self._first is None else self._first
        return {
            "done": True,
            "done_reason": "length" if self._reason == "length" else "stop",
            "total_duration": _ns(now - self._started),
            "load_duration": 0,
            "prompt_eval_count": usage.get("prompt_tokens", 0),
            "prompt_eval_duration": _ns(first - self._started),
            "eval_count": usage.get("completion_tokens", 0),
            "eval_duration": _ns(now - first),
        }

    def _with_logprobs(self, line: dict[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
        found = choice.get("logprobs")
        if not found:
            return line
        if "content" in found:
            rows = [
                _token(each) | {"top_logprobs": [_token(top) for top in each["top_logprobs"]]}
                for each in found["content"] or ()
            ]
        else:  # a completion has one list for each field
            tops = found["top_logprobs"] or [None] * len(found["tokens"])
            rows = [
                {
                    "token": token,
                    "logprob": logprob,
                    "top_logprobs": [{"token": t, "logprob": p} for t, p in (top or {}).items()],
                }
                for token, logprob, top in zip(found["tokens"], found["token_logprobs"], tops, strict=True)
            ]
        return line | ({"logprobs": rows} if rows else {})


def loaded_reply(model: str, *, is_chat: bool) -> dict[str, Any]:
    """The reply to a request without a prompt, by which clients load a model."""
    text = {"message": {"role": "assistant", "content": ""}} if is_chat else {"response": ""}
    return {"model": model, "created_at": created_at(time.time())} | text | {"done": True, "done_reason": "load"}


def created_at(seconds: float) -> str:
    """A time since 1970 as RFC 3339 has it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _token(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"token": entry["token"], "logprob": entry["logprob"]}


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a call; text that was cut off by the token limit gives none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
