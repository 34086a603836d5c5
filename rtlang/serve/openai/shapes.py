"""Parts of requests and responses that several routes share: the graph with its options, usage, finish reasons, headings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rtlang.contract.events import Completion
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.session_options import SessionOptions
from rtlang.serve.json_parts import json_text


@dataclass(frozen=True, slots=True)
class Asked:
    """A request but for the shape of its response.

    Attributes:
        model: as the client named it; None if it did not.
        prompt_field, constraint_field, budget_field: the fields that errors of the prompt, of the constraint, and of a number of tokens
            that is too small for it are about.
        cache_salt, session: see `RunOptions`.
        reports_prompt: the response needs `PromptComputed`.
        is_chat: whether the prompt is that of a conversation, which a later request may continue.
    """

    graph: RequestGraph
    model: str | None
    priority: int
    is_stream: bool
    prompt_field: str
    constraint_field: str | None
    cache_salt: str | None = None
    session: SessionOptions | None = None
    reports_prompt: bool = False
    budget_field: str = "max_tokens"
    is_chat: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """The fields that every response and chunk of one request repeats.

    Attributes:
        response_id: made by the server.
        created: seconds since 1970.
        model: as the client named it.
    """

    response_id: str
    created: int
    model: str

    def map(self, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """A response or chunk; `kind` is its `object`."""
        return {
            "id": self.response_id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        } | more


class PackedChunks:
    """The chunks of one stream with one choice each, whose other fields are packed once.

    Args:
        kind: the `object` of each chunk.
    """

    def __init__(self, heading: Heading, kind: str) -> None:
        self._before = f"data: {json_text(heading.map(kind, []))[: -len(']}')]}"

    def event(self, choice: str) -> str:
        """The server-sent event of the chunk with a choice, which is JSON text."""
        return f"{self._before}{choice}]}}\n\n"


class UsageCount:
    """Adds up the token counts of a request. Several texts from one prompt count the prompt once."""

    def __init__(self) -> None:
        self._total = Usage()
        self.num_reasoning = 0
        """Tokens of thoughts, which are among the completion tokens."""

    def add(self, usage: Usage, num_texts: int) -> None:
        """Add the usage of a node whose `num_texts` requests have the same prompt."""
        prompt = usage.prompt_tokens // num_texts
        cached = max(0, usage.cached_tokens - prompt * (num_texts - 1))
        self._total = self._total + Usage(prompt, cached, usage.completion_tokens)

    @property
    def map(self) -> dict[str, Any]:
        """The `usage` of a response."""
        prompt, completion = self._total.prompt_tokens, self._total.completion_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": self._total.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": self.num_reasoning},
        }


def captures_of(completion: Completion) -> dict[str, Any]:
    """The field `captures` of a reply, an extension: the texts of the rules with the option `capture`; empty if there are none."""
    if completion.captures is None:
        return {}
    return {"captures": {name: list(texts) for name, texts in completion.captures.items()}}


def finish_reason(reason: FinishReason, *, has_calls: bool = False) -> str:
    """The `finish_reason` of a choice."""
    if reason is FinishReason.LENGTH:
        return "length"
    return "tool_calls" if has_calls else "stop"
