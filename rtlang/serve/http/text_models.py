"""The served model by its names, its limits, and the texts of its tokens, for the HTTP routes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ParameterError
from rtlang.contract.events import Event, NodeFinished, TextDelta, TokenLogprob
from rtlang.contract.graph.nodes import Part, RoleEnd, RoleStart, TokenIds
from rtlang.contract.params import MAX_MAX_TOKENS
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.service.text_service import TextService, text_service_of
from rtlang.serve.http.answered_prompts import history_owner
from rtlang.serve.http.errors import HttpError
from rtlang.serve.openai.chat import ChatFormat, ChatRequest, read_chat
from rtlang.serve.openai.fields import SALTS, read_cache_salt
from rtlang.serve.service import StreamService
from rtlang.work.prices import DETOKENIZE_S_PER_TOKEN
from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.formats.description import ToolFormat
from rtlang_grammars.formats.reasoning import PromptEnd, prompt_end, shows_reasoning

ANY_MODEL = "default"
"""A name that clients may send for any served model."""
_MAX_PROMPT_END = 64
"""Tokens at the end of a prompt that say whether it has begun the reasoning: a generation prompt has fewer."""


def model_names(service: StreamService) -> list[str]:
    """The names of the served model; empty if the server does not know them. The first one is that of answers."""
    return list(service.config.served_model_name) or [str(model["model"]) for model in service.server_info.models]


def served_model(service: StreamService, asked: object) -> str:
    """The name of the model that a request gets.

    Raises:
        ParameterError: the name is no text.
        HttpError: there is no model of this name (404).
    """
    names = model_names(service)
    if asked is not None and not isinstance(asked, str):
        raise ParameterError("model", asked, "expected a string")
    if not names:
        return asked or ANY_MODEL
    if asked is None or asked == ANY_MODEL or any(asked in (name, name.rpartition("/")[2]) for name in names):
        return names[0]
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


def read_served_chat(service: StreamService, body: Mapping[str, Any], principal: Principal = LOCAL) -> ChatRequest:
    """`read_chat` for the served model. Call it on a thread: a history of calls needs the tokenizer, and schemas become constraints.

    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    salt = read_cache_salt({name: body[name] for name in SALTS if body.get(name) is not None})
    text_service = text_service_of(service.target, history_owner(principal, salt))
    found = served_format(service, text_service)
    return read_chat(
        body,
        found.name,
        longest_output(service),
        text_service,
        thinks=found.thinks,
        hides_marks=found.hides_marks,
        start_of=lambda parts: _start_of(parts, text_service, found),
        all_tokens=principal.limits.max_output_tokens,
    )


def served_format(service: StreamService, text_service: TextService | None) -> ChatFormat:
    """The format of the served model's replies. Call it on a thread: the first call asks the tokenizer."""
    if service.chat_format is None:
        service.chat_format = _format_of(text_service, service.target.tool_format)
    return service.chat_format


def _format_of(text_service: TextService | None, name: str | None) -> ChatFormat:
    """The format of a model. Without its tokenizer it is taken to know the marks of the format."""
    if text_service is None or name is None:
        return ChatFormat(name)
    found = format_named(name)
    parts = (RoleStart("user"), "Hello", RoleEnd(), RoleStart("assistant"))
    prompt = text_service.decode(text_service.encode_parts(parts), shows_special=True)
    return ChatFormat(
        name, _knows_marks(text_service, found), _hides_marks(text_service, found), prompt_end(found, prompt)
    )


def _knows_marks(text_service: TextService, found: ToolFormat) -> bool:
    """Whether the chat template shows the marks of the reasoning, or the vocabulary has a token for one."""
    if found.reasoning is None:
        return False
    if shows_reasoning(found, text_service.info.chat_template or ""):
        return True
    return len(text_service.encode(found.reasoning.end, adds_start=False, allow_special=True)) == 1


def _hides_marks(text_service: TextService, found: ToolFormat) -> bool:
    """Whether a mark of the format has a special token, whose name free text lacks."""
    spans = [span for span in (found.reasoning, found.content) if span is not None]
    for mark in (text.strip() for span in spans for text in (span.begin, span.end) if text):
        ids = text_service.encode(mark, adds_start=False, allow_special=True)
        if text_service.decode(ids).strip() != mark:
            return True
    return False


def _start_of(parts: Sequence[Part], text_service: TextService | None, model: ChatFormat) -> PromptEnd:
    """The state of the reasoning at the end of a prompt."""
    last = parts[-1] if parts else ""
    if isinstance(last, str) and model.name is not None:
        return prompt_end(format_named(model.name), last)
    if isinstance(last, TokenIds) and model.name is not None and text_service is not None:
        text = text_service.decode(last.ids[-_MAX_PROMPT_END:], shows_special=True)
        return prompt_end(format_named(model.name), text)
    return model.start


def needed_text_service(service: StreamService, field: str, principal: Principal) -> TextService:
    """The text service of the target.

    Raises:
        ParameterError: it has none; names the field that needs it.
    """
    found = text_service_of(service.target, principal)
    if found is None:
        raise ParameterError(field, True, "not supported: this server cannot decode tokens to text")
    return found


class TokenTexts:
    """The bytes of tokens, fetched on a thread as they are needed and kept. One object serves a request.

    Args:
        text_service: of the principal.
        reads_replies: the tokens of whole replies are needed, too.
    """

    def __init__(
        self,
        service: StreamService,
        principal: Principal,
        text_service: TextService | None,
        *,
        reads_replies: bool = False,
    ) -> None:
        self._service, self._principal = service, principal
        self._text_service, self._reads_replies = text_service, reads_replies
        self._known: dict[int, bytes] = {}

    async def load(self, events: Sequence[Event]) -> None:
        """Fetch the tokens of the log-probabilities of some events."""
        if self._text_service is None:
            return
        missing = await self._service.encode(self._principal, events, partial(self._missing, events))
        await self.load_ids(missing)

    def _missing(self, events: Sequence[Event]) -> set[int]:
        missing = {token_id for token in _tokens_of(events) for token_id in _ids_of(token)}
        if self._reads_replies:
            ended = [each for event in events if isinstance(event, NodeFinished) for each in event.completions]
            missing |= {token_id for completion in ended for token_id in completion.token_ids}
        return missing - self._known.keys()

    def bytes_of(self, token_ids: Sequence[int]) -> list[bytes]:
        """The bytes of each token; none for one that was not loaded."""
        return [self._known.get(token_id, b"") for token_id in token_ids]

    async def load_ids(self, token_ids: Collection[int]) -> None:
        """Fetch these tokens."""
        if self._text_service is not None and token_ids:
            ids, price = sorted(set(token_ids)), len(token_ids) * DETOKENIZE_S_PER_TOKEN
            fetch = partial(self._text_service.token_bytes, ids)
            found = await self._service.run(self._principal, price, fetch, kind=WorkKind.DETOKENIZE, may_wait=True)
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


def texts_of_reply(service: StreamService, read: ChatRequest, field: str, principal: Principal) -> TokenTexts:
    """The texts of the tokens that the response needs.

    Raises:
        ParameterError: `field` asks for log-probabilities, but the target has no text service.
    """
    if read.num_top is not None:
        needed_text_service(service, field, principal)
    thinks = read.plan.tool_format is not None and read.plan.tool_format.reasoning is not None
    is_needed = read.num_top is not None or thinks
    text_service = text_service_of(service.target, principal) if is_needed else None
    return TokenTexts(service, principal, text_service, reads_replies=thinks)
