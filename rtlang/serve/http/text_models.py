"""The served model by its names, its limits, and the texts of its tokens, for the HTTP routes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.events import Event, NodeFinished, TextDelta, TokenLogprob
from rtlang.contract.nodes import RoleEnd, RoleStart
from rtlang.contract.params import MAX_MAX_TOKENS
from rtlang.contract.principal import Principal
from rtlang.contract.text_service import TextService, text_service_of
from rtlang.serve.http.errors import HttpError
from rtlang.serve.openai.chat import ChatFormat, ChatRequest, read_chat
from rtlang.serve.service import StreamService
from rtlang_grammars.formats.catalogue import FORMATS

ANY_MODEL = "default"
"""A name that clients may send for any served model."""


def model_names(service: StreamService) -> list[str]:
    """The names of the served models; empty if the server does not know them."""
    return [str(model["model"]) for model in service.server_info.models]


def served_model(service: StreamService, asked: str | None) -> str:
    """The name of the model that a request gets.

    Raises:
        HttpError: there is no model of this name (404).
    """
    names = model_names(service)
    if asked is None or asked == ANY_MODEL or not names:
        return asked or (names[0] if names else ANY_MODEL)
    for name in names:
        if asked in (name, name.rstrip("/").rpartition("/")[2]):
            return asked
    raise HttpError(
        404,
        f"model = {asked[:200]!r}: expected {' or '.join(map(repr, names))}",
        code="model_not_found",
        param="model",
    )


def longest_output(service: StreamService) -> int:
    """The largest `max_tokens` that can matter; the engine stops at the context length."""
    known = [int(model["max_model_len"]) for model in service.server_info.models if model.get("max_model_len")]
    return min([MAX_MAX_TOKENS, *known])


def read_served_chat(
    service: StreamService, body: Mapping[str, Any], principal: Principal | None = None
) -> ChatRequest:
    """`read_chat` for the served model. Call it on a thread: a history of calls needs the tokenizer, and schemas become constraints.

    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    text_service = text_service_of(service.target)
    if service.chat_format is None:
        name = service.target.tool_format
        service.chat_format = ChatFormat(name, _begins_reasoning(text_service, name))
    limit = None if principal is None else principal.limits.max_output_tokens
    name, is_reasoning = service.chat_format
    return read_chat(body, name, longest_output(service), text_service, is_reasoning=is_reasoning, all_tokens=limit)


def _begins_reasoning(text_service: TextService | None, name: str | None) -> bool:
    """Whether the generation prompt of the model's chat template ends with the mark that begins its reasoning."""
    span = FORMATS[name].reasoning if name in FORMATS else None
    if text_service is None or span is None:
        return False
    parts = (RoleStart("user"), "Hello", RoleEnd(), RoleStart("assistant"))
    prompt = text_service.decode(text_service.encode_parts(parts), shows_special=True)
    return prompt.rstrip().endswith(span.begin.strip())


def needed_text_service(service: StreamService, field: str) -> TextService:
    """The text service of the target.

    Raises:
        ParameterError: it has none; names the field that needs it.
    """
    found = text_service_of(service.target)
    if found is None:
        raise ParameterError(field, True, "not supported: this server cannot tell the texts of tokens")
    return found


class TokenTexts:
    """The bytes of tokens, fetched on a thread as they are needed and kept. One object serves a request."""

    def __init__(self, text_service: TextService | None) -> None:
        self._text_service = text_service
        self._known: dict[int, bytes] = {}

    async def load(self, events: Iterable[Event]) -> None:
        """Fetch the tokens of the log-probabilities of some events."""
        if self._text_service is None:
            return
        missing = {token_id for token in _tokens_of(events) for token_id in _ids_of(token)} - self._known.keys()
        if missing:
            ids = sorted(missing)
            found = await asyncio.to_thread(self._text_service.token_bytes, ids)
            self._known.update(zip(ids, found, strict=True))

    def bytes_of(self, token_ids: Sequence[int]) -> list[bytes]:
        """The bytes of each token; none for one that was not loaded."""
        return [self._known.get(token_id, b"") for token_id in token_ids]

    async def load_ids(self, token_ids: Sequence[int]) -> None:
        """Fetch these tokens."""
        if self._text_service is not None and token_ids:
            ids = sorted(set(token_ids))
            found = await asyncio.to_thread(self._text_service.token_bytes, ids)
            self._known.update(zip(ids, found, strict=True))


def _tokens_of(events: Iterable[Event]) -> Iterable[TokenLogprob]:
    for event in events:
        if isinstance(event, TextDelta):
            yield from event.logprobs or ()
        elif isinstance(event, NodeFinished):
            yield from event.prompt_logprobs or ()
            for completion in event.completions:
                yield from completion.logprobs or ()


def _ids_of(token: TokenLogprob) -> Iterable[int]:
    yield token.token_id
    for token_id, _ in token.top:
        yield token_id
