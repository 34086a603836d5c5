"""A page and an API for open questions, on the loopback interface.

    GET  /            the page, with a form for each question
    GET  /questions   {"questions": [...]}
    POST /answers     {"journal": ..., "path": ..., "answer": ...}, or a form of the page

Other sites must not answer through the browser of the person: the Host header must be a name of this machine, the Origin must be the page
itself, a form has a token, and the API takes `application/json` only, which browsers do not send to other sites unasked.
"""

from __future__ import annotations

import html
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import typer
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from rtlang.cassette.questions import OpenQuestion, give_answer, open_questions
from rtlang.console.questions.prompt import hint
from rtlang.contract.errors import QuestionError, RtlangError

HOST = "127.0.0.1"
_NAMES = frozenset((HOST, "localhost", "::1"))
MAX_BODY_BYTES = 1 << 20
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}
_STYLE = (
    "body{font:16px system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}form{border:1px solid #8886;border-radius:8px;"
    "padding:1rem;margin:1rem 0}pre{white-space:pre-wrap}label{display:block;margin:.5rem 0}textarea,input,select{font:inherit;"
    "width:100%;box-sizing:border-box}small{color:#777}.problem{color:#b00}"
)
_WHOLE = "="
"""The field of a form with the whole answer. Others begin with a dot and have the properties of an object."""


def serve_questions(place: Path, port: int) -> None:
    """Serve until interrupted. Prints the address."""
    config = uvicorn.Config(create_app(place), host=HOST, port=port, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    with_socket = config.bind_socket()
    typer.echo(f"questions at http://{HOST}:{with_socket.getsockname()[1]}/")
    server.run(sockets=[with_socket])


def create_app(place: Path) -> Starlette:
    """The application for the journals of a place: a file or a directory."""
    token = secrets.token_urlsafe(24)

    def page(request: Request) -> Response:
        problem = _refusal(request)
        if problem is not None:
            return problem
        return _page(open_questions(place), token)

    def listed(request: Request) -> Response:
        problem = _refusal(request)
        if problem is not None:
            return problem
        return JSONResponse({"questions": [each.to_plain() for each in open_questions(place)]}, headers=_HEADERS)

    async def answered(request: Request) -> Response:
        problem = _refusal(request)
        if problem is not None:
            return problem
        body = await _body(request)
        if body is None:
            return _error(f"the body is longer than {MAX_BODY_BYTES} bytes", 413)
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind == "application/json":
            return _answer_json(body)
        if kind == "application/x-www-form-urlencoded":
            return _answer_form(_form(body))
        return _error("expected application/json", 415)

    def _answer_json(body: bytes) -> Response:
        try:
            given = json.loads(body)
        except ValueError as error:
            return _error(f"the body is no JSON: {error}", 400)
        match given:
            case {"journal": str(journal), "path": str(path), "answer": answer, **others} if not others:
                question = _find(journal, path)
            case _:
                return _error("expected an object with journal, path and answer", 400)
        if question is None:
            return _error(f"no open question has the path {path!r} in the journal {journal!r}", 404)
        try:
            give_answer(question, answer)
        except QuestionError as error:
            return _error(error.reason, 409 if question.is_answered else 422)
        return JSONResponse({"answered": path}, headers=_HEADERS)

    def _answer_form(fields: Mapping[str, str]) -> Response:
        if not secrets.compare_digest(fields.get("token", ""), token):
            return _error("the form is of another page; load the page again", 403)
        question = _find(fields.get("journal", ""), fields.get("path", ""))
        if question is None:
            return _page(open_questions(place), token, "the question is not open any more", 404)
        try:
            give_answer(question, _of_form(question, fields))
        except QuestionError as error:
            return _page(open_questions(place), token, error.reason, 422)
        return RedirectResponse("/", 303, headers=_HEADERS)

    def _find(journal: str, path: str) -> OpenQuestion | None:
        return next((each for each in open_questions(place) if (each.journal, each.path) == (journal, path)), None)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/questions", listed),
            Route("/answers", answered, methods=["POST"]),
        ],
        exception_handlers={RtlangError: _failed, OSError: _failed},
    )


def _failed(request: Request, error: Exception) -> Response:
    return _error(str(error), 500)


def _error(reason: str, status: int) -> Response:
    return JSONResponse({"error": reason}, status, headers=_HEADERS)


def _refusal(request: Request) -> Response | None:
    """The answer to a request that another site may have made."""
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname
    origin = request.headers.get("origin")
    if host not in _NAMES:
        return _error(f"the host {host!r} is not this machine", 403)
    if origin is not None and urlsplit(origin).netloc != request.headers["host"]:
        return _error(f"the origin {origin!r} is another site", 403)
    return None


async def _body(request: Request) -> bytes | None:
    """The body; None if it is too long."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY_BYTES:
            return None
    return data


def _form(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _page(found: list[OpenQuestion], token: str, problem: str | None = None, status: int = 200) -> Response:
    forms = "".join(_form_of(each, token) for each in found) or "<p>No open questions.</p>"
    told = "" if problem is None else f'<p class="problem">{html.escape(problem)}</p>'
    title = f"{sum(not each.is_answered for each in found)} open questions"
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>'
        f"<body><h1>Questions</h1>{told}{forms}</body></html>"
    )
    return HTMLResponse(text, status, headers=_HEADERS)


def _form_of(question: OpenQuestion, token: str) -> str:
    where = html.escape(f"{question.journal} {question.path}")
    asked = f"<pre>{html.escape(question.text)}</pre><small>{where}</small>"
    if question.is_answered:
        return f"<form>{asked}<p>Answered; the run takes it when it goes on.</p></form>"
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{html.escape(value)}">'
        for name, value in (("token", token), ("journal", question.journal), ("path", question.path))
    )
    refused = "" if question.refused is None else f'<p class="problem">{html.escape(question.refused)}</p>'
    fields = _fields(question)
    return (
        f'<form method="post" action="/answers">{asked}{refused}{hidden}{fields}<p><button>Answer</button></p></form>'
    )


def _fields(question: OpenQuestion) -> str:
    properties = _simple_properties(question)
    if properties is None:
        note = html.escape(hint(question.schema, question.is_unknown))
        return f"<label>{_input(_WHOLE, question.schema, is_required=True)}<small>{note}</small></label>"
    required = question.schema.get("required", [])
    return "".join(
        f"<label>{html.escape(name)}{_input(f'.{name}', schema, is_required=name in required)}</label>"
        for name, schema in properties.items()
    )


def _simple_properties(question: OpenQuestion) -> dict[str, Any] | None:
    """The properties of an object whose values have fields of their own; None for other answers."""
    schema = question.schema
    if question.is_unknown or not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return None
    simple = all(isinstance(each, dict) and _is_simple(each) for each in properties.values())
    return properties if simple else None


def _is_simple(schema: Mapping[str, Any]) -> bool:
    return isinstance(schema.get("enum"), list) or schema.get("type") in ("boolean", "integer", "number", "string")


def _input(name: str, schema: Any, *, is_required: bool) -> str:
    """The field for a value, whose name has a dot in front for a property."""
    name, must = html.escape(name), " required" if is_required else ""
    match schema:
        case {"enum": list(items)}:
            return _select(name, [json.dumps(each) for each in items], must)
        case {"type": "boolean"}:
            return _select(name, ["true", "false"], must)
        case {"type": "integer" | "number" as kind}:
            return f'<input type="number" name="{name}" step="{"1" if kind == "integer" else "any"}"{must}>'
    return f'<textarea name="{name}" rows="3"></textarea>'


def _select(name: str, items: list[str], must: str) -> str:
    options = "".join(f'<option value="{html.escape(each)}">{html.escape(each)}</option>' for each in items)
    return f'<select name="{name}"{must}><option value=""></option>{options}</select>'


def _of_form(question: OpenQuestion, fields: Mapping[str, str]) -> Any:
    """The answer in the fields of a form.

    Raises:
        QuestionError: it does not fit.
    """
    properties = _simple_properties(question)
    if properties is None:
        return question.read(fields.get(_WHOLE, "").replace("\r\n", "\n"))
    found: dict[str, Any] = {}
    for name, schema in properties.items():
        text = fields.get(f".{name}", "").replace("\r\n", "\n")
        if text == "" and name not in question.schema.get("required", []):
            continue
        found[name] = text if schema.get("type") == "string" and "enum" not in schema else _json(text)
    return question.check(found)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
