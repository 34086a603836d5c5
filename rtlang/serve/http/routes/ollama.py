"""Ollama's API: `/api/chat`, `/api/generate`, and the routes by which its clients look for models.

The server has one model, which is loaded: clients cannot pull, copy or delete models. Errors are `{"error": "text"}`, as those clients
read them.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ParameterError, RtlangError
from rtlang.contract.service.text_service import text_service_of
from rtlang.contract.version import VERSION
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError, described_error, retry_header
from rtlang.serve.http.events.sse import StreamForm, json_line
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.routes.openai import respond
from rtlang.serve.http.text_models import (
    TokenTexts,
    longest_output,
    model_names,
    needed_text_service,
    read_served_chat,
    served_format,
    served_model,
    texts_of_reply,
)
from rtlang.serve.ollama import bodies
from rtlang.serve.ollama.bodies import LATEST, chat_body, generate_body, renamed_error
from rtlang.serve.ollama.replies import OllamaWriter, created_at, loaded_reply
from rtlang.serve.openai.chat import ChatFormat, ChatWriter
from rtlang.serve.openai.completions import CompletionWriter, read_completion
from rtlang.serve.openai.fields import FieldTable
from rtlang.serve.openai.shapes import Heading
from rtlang.serve.service import StreamService
from rtlang.work.prices import CALL_S
from rtlang_grammars.formats.catalogue import format_named

API_VERSION = "0.12.0"
"""The version of Ollama whose API this is: clients ask for it and want a newer one than they need."""
SHOW_FIELDS = FieldTable(accepted=frozenset(("model", "name")), hints=frozenset(("verbose",)))
"""The fields of `/api/show`."""
_REFUSED = {
    "/api/embed": "this server computes no embeddings; use a server of an embedding model",
    "/api/embeddings": "this server computes no embeddings; use a server of an embedding model",
    "/api/pull": "this server serves the model that it was started with; it pulls no others",
    "/api/push": "this server pushes no models",
    "/api/create": "this server creates no models",
    "/api/copy": "this server copies no models",
    "/api/delete": "this server deletes no models",
}
_FAR_S = 365 * 86_400  # a model that is never unloaded "expires" in a year
Handler = Callable[[Request], Awaitable[Response]]

TABLES = {
    "POST /api/chat": bodies.CHAT_FIELDS,
    "POST /api/generate": bodies.GENERATE_FIELDS,
    "POST /api/show": SHOW_FIELDS,
}
"""The fields of the bodies, by method and path."""


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    group = _OllamaRoutes(service)
    found = [
        Route("/api/chat", _answering(group.chat), methods=["POST"]),
        Route("/api/generate", _answering(group.generate), methods=["POST"]),
        Route("/api/show", _answering(group.show), methods=["POST"]),
        Route("/api/tags", _answering(group.tags), methods=["GET"]),
        Route("/api/ps", _answering(group.running), methods=["GET"]),
        Route("/api/version", _answering(group.version), methods=["GET"]),
    ]
    refused = [Route(path, _refusing(reason), methods=["POST", "DELETE"]) for path, reason in _REFUSED.items()]
    return [*found, *refused]


class _OllamaRoutes:
    def __init__(self, service: StreamService) -> None:
        self._service, self._started = service, time.time()

    async def chat(self, request: Request) -> Response:
        body = await read_map(request, self._service)
        return await self._chat(request, body, chat_body, is_chat=True)

    async def generate(self, request: Request) -> Response:
        service = self._service
        body = await read_map(request, service)
        if body.get("raw") is not True:
            return await self._chat(request, body, lambda body: generate_body(body)[0], is_chat=False)
        plain = generate_body(body)[0]
        model = served_model(service, None if plain is None else plain.get("model"))
        if plain is None:
            return JSONResponse(loaded_reply(model, is_chat=False))
        plain.setdefault("max_tokens", longest_output(service))
        principal = principal_of(request)
        reading = partial(read_completion, plain)
        read = await run_for(request, service, reading_price(request), reading, kind=WorkKind.READ)
        texts = None if read.num_logprobs is None else needed_text_service(service, "logprobs", principal)
        tokens = TokenTexts(service, principal, texts)
        inner = CompletionWriter(read, _heading(model), tokens.bytes_of, [], [], ())
        writer = OllamaWriter(inner, model, is_chat=False)
        return await respond(request, service, read.asked, writer, tokens, _error_lines, _JSON_LINES)

    async def _chat(
        self, request: Request, body: dict[str, Any], translate: Callable[[dict[str, Any]], Any], *, is_chat: bool
    ) -> Response:
        service, principal = self._service, principal_of(request)

        def read_all() -> Any:
            plain = translate(body)
            return None if plain is None else read_served_chat(service, plain, principal)

        read = await run_for(request, service, reading_price(request), read_all, kind=WorkKind.READ, may_wait=True)
        if read is None:
            name = body.get("model")
            model = served_model(service, name.removesuffix(LATEST) if isinstance(name, str) else name)
            return JSONResponse(loaded_reply(model, is_chat=is_chat))
        model = served_model(service, read.asked.model)
        tokens = texts_of_reply(service, read, "logprobs", principal)
        inner = ChatWriter(read, _heading(model), tokens.bytes_of, lambda: f"call_{secrets.token_hex(12)}")
        writer = OllamaWriter(inner, model, is_chat=is_chat)
        return await respond(request, service, read.asked, writer, tokens, _error_lines, _JSON_LINES)

    async def tags(self, request: Request) -> Response:
        return JSONResponse({"models": [self._described(name) for name in model_names(self._service)]})

    async def running(self, request: Request) -> Response:
        more = {
            "expires_at": created_at(time.time() + _FAR_S),
            "size_vram": 0,
            "context_length": self._facts.get("max_model_len"),
        }
        names = model_names(self._service)[:1]
        return JSONResponse({"models": [self._described(name) | more for name in names]})

    async def show(self, request: Request) -> Response:
        service, principal = self._service, principal_of(request)
        given = SHOW_FIELDS.given(await read_map(request, service))
        name = given.get("model", given.get("name"))
        served_model(service, name.removesuffix(LATEST) if isinstance(name, str) else name)

        def read() -> tuple[ChatFormat, str]:
            text_service = text_service_of(service.target, principal)
            template = None if text_service is None else text_service.info.chat_template
            return served_format(service, text_service), template or ""

        found, template = await run_for(request, service, CALL_S, read, kind=WorkKind.OTHER, may_wait=True)
        has_thoughts = found.name is not None and found.thinks and format_named(found.name).reasoning is not None
        facts = self._facts
        capabilities = ["completion"]
        capabilities += ["tools"] * (found.name is not None) + ["thinking"] * has_thoughts
        info = {"general.architecture": "rtlang", "rtlang.context_length": facts.get("max_model_len")}
        info["rtlang.vocab_size"] = facts.get("vocab_size")
        shown = {
            "modelfile": "",
            "parameters": "",
            "template": template,
            "details": self._details(),
            "model_info": {key: value for key, value in info.items() if value is not None},
            "capabilities": capabilities,
            "modified_at": created_at(self._started),
        }
        return JSONResponse(shown)

    async def version(self, request: Request) -> Response:
        return JSONResponse({"version": API_VERSION, "rtlang": VERSION})

    @property
    def _facts(self) -> dict[str, Any]:
        models = self._service.server_info.models
        return dict(models[0]) if models else {}

    def _described(self, name: str) -> dict[str, Any]:
        digest = hashlib.sha256(f"{self._facts.get('identity')} {name}".encode()).hexdigest()
        return {
            "name": name,
            "model": name,
            "modified_at": created_at(self._started),
            "size": 0,
            "digest": digest,
            "details": self._details(),
        }

    @staticmethod
    def _details() -> dict[str, Any]:
        return {
            "parent_model": "",
            "format": "safetensors",
            "family": "rtlang",
            "families": ["rtlang"],
            "parameter_size": "",
            "quantization_level": "",
        }


def _heading(model: str) -> Heading:
    return Heading("", int(time.time()), model)


def _answering(handler: Handler) -> Handler:
    """The handler with errors as Ollama's clients read them."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except (RtlangError, HttpError) as error:
            return _refusal(error)

    return answer


def _refusing(reason: str) -> Handler:
    async def refuse(request: Request) -> Response:
        return JSONResponse({"error": reason}, 501)

    return refuse


def _refusal(error: BaseException) -> Response:
    if isinstance(error, ParameterError):
        error = renamed_error(error)
    status, body = described_error(error)
    return JSONResponse({"error": body["error"]["message"]}, status, retry_header(body["error"].get("retry_after")))


def _error_lines(error: BaseException) -> Sequence[bytes]:
    return (json_line({"error": described_error(error)[1]["error"]["message"]}).encode(errors="replace"),)


_JSON_LINES = StreamForm("application/x-ndjson", json_line, b"", b"", _refusal)
