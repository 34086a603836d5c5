"""Token counts of a batch: sums over its responses, in the shapes that its routes have for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class BatchUsage:
    """Sums over responses.

    Attributes:
        input_tokens: cached ones included.
        reasoning_tokens: those among the output tokens.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    def add(self, body: object) -> None:
        """Count a response; one without `usage` counts nothing."""
        usage = body.get("usage") if isinstance(body, Mapping) else None
        if not isinstance(usage, Mapping):
            return
        if "prompt_tokens" in usage:  # chat completions and completions
            names = ("prompt_tokens", "prompt_tokens_details", "completion_tokens", "completion_tokens_details")
        else:  # responses and messages
            names = ("input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details")
        self.input_tokens += _count(usage, names[0])
        self.cached_tokens += _count(usage.get(names[1]), "cached_tokens")
        self.output_tokens += _count(usage, names[2])
        self.reasoning_tokens += _count(usage.get(names[3]), "reasoning_tokens")
        # Messages leave cached tokens out of `input_tokens`.
        num_read = _count(usage, "cache_read_input_tokens")
        self.input_tokens += num_read + _count(usage, "cache_creation_input_tokens")
        self.cached_tokens += num_read

    def to_object(self) -> dict[str, Any]:
        """The sums as clients of the OpenAI API see them."""
        return {
            "input_tokens": self.input_tokens,
            "input_tokens_details": {"cached_tokens": self.cached_tokens},
            "output_tokens": self.output_tokens,
            "output_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
            "total_tokens": self.input_tokens + self.output_tokens,
        }


def _count(usage: object, name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
