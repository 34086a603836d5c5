"""Log-probabilities in the two shapes of the OpenAI API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rtlang.contract.events import TokenLogprob

TokenBytes = Callable[[Sequence[int]], list[bytes]]
"""The bytes of each of some tokens."""
LOWEST = -9999.0
"""Stands for an infinitely small log-probability, which JSON cannot write."""


def chat_logprobs(
    tokens: Iterable[TokenLogprob], num_top: int, token_bytes: TokenBytes, thought: Sequence[TokenLogprob] = ()
) -> dict[str, Any]:
    """The `logprobs` of a choice of a chat completion: tokens, their bytes and the most likely ones.

    Args:
        thought: the tokens before content and calls: of the thought, its marks, and the header of the content.
    """
    found: dict[str, Any] = {"content": [_entry(token, num_top, token_bytes) for token in tokens], "refusal": None}
    if thought:
        found["reasoning"] = [_entry(token, num_top, token_bytes) for token in thought]
    return found


def _entry(token: TokenLogprob, num_top: int, token_bytes: TokenBytes) -> dict[str, Any]:
    top = token.top[:num_top]
    (own, *others) = token_bytes([token.token_id, *(token_id for token_id, _ in top)])
    entry = _token(own, token.logprob)
    entry["top_logprobs"] = [_token(each, logprob) for each, (_, logprob) in zip(others, top, strict=True)]
    return entry


def _token(data: bytes, logprob: float) -> dict[str, Any]:
    return {"token": data.decode(errors="replace"), "logprob": finite(logprob), "bytes": list(data)}


def finite(logprob: float) -> float:
    """The log-probability, or `LOWEST` if it is not a finite number."""
    return logprob if logprob > LOWEST else LOWEST


class CompletionLogprobs:
    """Builds the `logprobs` of one choice of a text completion, in pieces.

    Args:
        num_top: how many of the most likely tokens to list.
        offset: position of the first token in the text, in characters.
    """

    def __init__(self, num_top: int, token_bytes: TokenBytes, offset: int = 0) -> None:
        self._num_top, self._token_bytes, self._offset = num_top, token_bytes, offset

    def take(self, tokens: Sequence[TokenLogprob], first_id: int | None = None) -> dict[str, Any]:
        """The map for some tokens. `first_id`: a token before them whose log-probability is not known."""
        names: list[str] = []
        values: list[float | None] = []
        tops: list[dict[str, float] | None] = []
        if first_id is not None:
            names.append(self._name(first_id))
            values.append(None)
            tops.append(None)
        for token in tokens:
            name = self._name(token.token_id)
            names.append(name)
            values.append(finite(token.logprob))
            top = {self._name(token_id): finite(logprob) for token_id, logprob in token.top[: self._num_top]}
            tops.append(top | {name: finite(token.logprob)})
        offsets = []
        for name in names:
            offsets.append(self._offset)
            self._offset += len(name)
        return {"tokens": names, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}

    def _name(self, token_id: int) -> str:
        return self._token_bytes([token_id])[0].decode(errors="replace")
