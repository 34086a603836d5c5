"""The routes about tokens: `/tokenize`, `/detokenize` and `/tokenizer_info`.

Requests and responses have the fields of both vLLM and SGLang, whose clients read different ones: `/detokenize` answers with `prompt`,
which shows special tokens, and with `text`, which shows them on request only. Names of special tokens in a prompt are ordinary text, as in
every route that takes text, unless `parse_special` says that they are tokens, or the prompt is such a name and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import AbortedError, ParameterError
from rtlang.contract.service.text_service import HistoryEnd, TextService, text_service_of
from rtlang.protocol.serialization import Encoding
from rtlang.protocol.sliced_packing import LazyList, pack_slices
from rtlang.serve.http.body import read_map
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.text_models import served_model
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.openai.fields import FieldTable, read_bool, read_id_lists
from rtlang.serve.openai.messages import read_messages
from rtlang.serve.openai.template_options import FIELDS as TEMPLATE_FIELDS
from rtlang.serve.openai.template_options import read_template_options
from rtlang.serve.openai.tools import read_tool_request
from rtlang.serve.service import StreamService
from rtlang.work.fair_executor import is_unwanted
from rtlang.work.prices import CALL_S, DETOKENIZE_S_PER_TOKEN, TOKENIZE_S_PER_CHAR

MAX_PROMPTS = 1024
_MAX_NAME = 1024  # characters of the name of a special token; a longer text is not encoded twice
_TOKENIZE = FieldTable(
    accepted=frozenset(
        (
            "model",
            "prompt",
            "messages",
            "tools",
            "add_generation_prompt",
            "continue_final_message",
            "add_special_tokens",
            "parse_special",
            "return_token_strs",
        )
    )
    | TEMPLATE_FIELDS,
)
_DETOKENIZE = FieldTable(accepted=frozenset(("model", "tokens", "skip_special_tokens")))
TABLES = {"POST /tokenize": _TOKENIZE, "POST /detokenize": _DETOKENIZE}
"""The fields of the bodies, by method and path."""


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""

    async def tokenize(request: Request) -> Response:
        given = _TOKENIZE.given(await read_map(request, service))
        served_model(service, given.get("model"))
        texts = await text_service(service, request)
        prompt = given.get("prompt")
        tool_format = service.target.tool_format
        has_names = read_bool(given, "return_token_strs")

        def encode() -> tuple[list[list[int]], list[list[str]] | None]:
            if "messages" in given:
                found = [_chat_ids(given, texts, tool_format)]
            else:
                found = _prompt_ids(given, texts)
            return found, [texts.token_names(ids) for ids in found] if has_names else None

        def respond() -> bytes:
            found, names = encode()
            tokens, counts = [LazyList(ids, list) for ids in found], [len(ids) for ids in found]
            shown = None if names is None else [LazyList(each, list) for each in names]
            is_many = isinstance(prompt, list)
            response = {
                "tokens": tokens if is_many else tokens[0],
                "count": counts if is_many else counts[0],
                "max_model_len": texts.info.max_model_len,
                "token_strs": shown if shown is None or is_many else shown[0],
            }
            return b"".join(pack_slices(Encoding.JSON, response))

        price = request.state.num_body_bytes * TOKENIZE_S_PER_CHAR
        data = await run_for(request, service, price, respond, kind=WorkKind.TOKENIZE, may_wait=True)
        return Response(data, media_type="application/json")

    async def detokenize(request: Request) -> Response:
        given = _DETOKENIZE.given(await read_map(request, service))
        served_model(service, given.get("model"))
        texts = await text_service(service, request)
        size = texts.info.vocab_size
        hides_special = read_bool(given, "skip_special_tokens", True)

        def respond() -> bytes:
            lists, is_many = read_id_lists("tokens", given.get("tokens"), MAX_PROMPTS, size, may_be_empty=True)
            whole = [texts.decode(ids, shows_special=True) for ids in lists]
            shown = [texts.decode(ids) for ids in lists] if hides_special else whole
            return json_bytes({"prompt": whole if is_many else whole[0], "text": shown if is_many else shown[0]})

        price = request.state.num_body_bytes * DETOKENIZE_S_PER_TOKEN  # two bytes or more for each token
        data = await run_for(request, service, price, respond, kind=WorkKind.DETOKENIZE, may_wait=True)
        return Response(data, media_type="application/json")

    async def tokenizer_info(request: Request) -> Response:
        texts = await text_service(service, request)
        describe = partial(described, texts)
        return JSONResponse(await run_for(request, service, CALL_S, describe, kind=WorkKind.DETOKENIZE, may_wait=True))

    return [
        Route("/tokenize", tokenize, methods=["POST"]),
        Route("/v1/tokenize", tokenize, methods=["POST"]),
        Route("/detokenize", detokenize, methods=["POST"]),
        Route("/v1/detokenize", detokenize, methods=["POST"]),
        Route("/tokenizer_info", tokenizer_info),
    ]


async def text_service(service: StreamService, request: Request) -> TextService:
    """The tokenizer of the server's target, for the work of a client. Its `info` can be read without waiting.

    Raises:
        HttpError: the target has none (501).
    """

    def find() -> TextService:
        found = text_service_of(service.target, principal_of(request))
        if found is None:
            raise HttpError(501, "this server does not know the tokenizer of its model", code="no_tokenizer")
        found.info  # noqa: B018  # fetched from another process once, and kept
        return found

    return await run_for(request, service, 0.0, find, kind=WorkKind.TOKENIZE, may_wait=True)


def _prompt_ids(given: Mapping[str, Any], texts: TextService) -> list[list[int]]:
    for name in ("tools", "add_generation_prompt", "continue_final_message"):
        if name in given:
            raise ParameterError(name, given[name], "allowed only with messages")
    prompt = given.get("prompt")
    prompts: list[Any] = prompt if isinstance(prompt, list) else [prompt]
    if len(prompts) > MAX_PROMPTS or not all(isinstance(each, str) for each in prompts):
        raise ParameterError("prompt", prompt, f"expected a string, or a list of at most {MAX_PROMPTS} strings")
    adds_start, is_special = read_bool(given, "add_special_tokens", True), read_bool(given, "parse_special")
    found = []
    for each in prompts:
        if is_unwanted():  # the client has left
            raise AbortedError("the request was cancelled")
        found.append(encoded(texts, each, adds_start=adds_start, is_special=is_special))
    return found


def _chat_ids(given: Mapping[str, Any], texts: TextService, tool_format: str | None) -> list[int]:
    """The prompt of a chat request with these messages and tools."""
    for name in ("prompt", "parse_special", "add_special_tokens"):
        if given.get(name, False) is not False:
            raise ParameterError(name, given[name], "not together with messages")
    continues = read_bool(given, "continue_final_message")
    asks = read_bool(given, "add_generation_prompt", not continues)
    if asks and continues:
        raise ParameterError("add_generation_prompt", asks, "not together with continue_final_message")
    tools = read_tool_request({"tools": given["tools"]} if "tools" in given else {}).text
    end: HistoryEnd = "prompt" if asks else "open" if continues else "closed"
    options = read_template_options(given)
    return texts.encode_parts(read_messages(given, tools, tool_format, texts, end=end, template_options=options))


def encoded(texts: TextService, text: str, *, adds_start: bool, is_special: bool) -> list[int]:
    """The tokens of a text; of the name of a special token, this token."""
    if is_special or len(text) <= _MAX_NAME:
        ids = texts.encode(text, adds_start=adds_start, allow_special=True)
        if is_special or (ids and texts.info.special_token_ids and _names_a_token(texts, text, ids[-1])):
            return ids
    return texts.encode(text, adds_start=adds_start)


def _names_a_token(texts: TextService, text: str, token_id: int) -> bool:
    return token_id in texts.info.special_token_ids and texts.token_names([token_id]) == [text]


def described(texts: TextService) -> dict[str, Any]:
    """The answer of `/tokenizer_info`: names that clients know from tokenizer_config.json, and ids."""
    info = texts.info

    def name(token_id: int | None) -> str | None:
        return None if token_id is None else texts.token_names([token_id])[0]

    eos_id = info.eos_token_ids[0] if info.eos_token_ids else None
    return {
        "tokenizer_class": "rtlang",
        "vocab_size": info.vocab_size,
        "model_max_length": info.max_model_len,
        "bos_token": name(info.bos_token_id),
        "bos_token_id": info.bos_token_id,
        "eos_token": name(eos_id),
        "eos_token_id": eos_id,
        "eos_token_ids": list(info.eos_token_ids),
        "special_token_ids": list(info.special_token_ids),
        "chat_template": info.chat_template,
    }
