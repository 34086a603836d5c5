"""`/v1/conversations`: lists of items under an id, which responses with `conversation` read and add to.

Conversations live in bounded memory: they are dropped when the share of their principal is full, and when the server ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ParameterError
from rtlang.contract.runs.principal import Principal
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.response_turn import new_id, stored_conversation
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.openai.fields import read_metadata
from rtlang.serve.responses import conversations
from rtlang.serve.responses.client_tools import ClientTools
from rtlang.serve.responses.conversations import (
    FIELDS,
    ITEM_FIELDS,
    MAX_NEW_ITEMS,
    UPDATE_FIELDS,
    Conversation,
    item_page,
    new_conversation,
)
from rtlang.serve.responses.input_items import ChatHistory, Item, read_items
from rtlang.serve.service import StreamService
from rtlang.work.prices import REPLY_S_PER_CHAR

_FULL = "the conversation does not fit into the memory for this client's conversations"

TABLES = {
    "POST /v1/conversations": conversations.FIELDS,
    "POST /v1/conversations/{id}": conversations.UPDATE_FIELDS,
    "POST /v1/conversations/{id}/items": conversations.ITEM_FIELDS,
}
"""The fields of the bodies, by method and path."""


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    group = _ConversationRoutes(service)
    one, items = "/v1/conversations/{id}", "/v1/conversations/{id}/items"
    return [
        Route("/v1/conversations", group.create, methods=["POST"]),
        Route(one, group.read, methods=["GET"]),
        Route(one, group.update, methods=["POST"]),
        Route(one, group.delete, methods=["DELETE"]),
        Route(items, group.list_items, methods=["GET"]),
        Route(items, group.add_items, methods=["POST"]),
        Route(f"{items}/{{item}}", group.read_item, methods=["GET"]),
        Route(f"{items}/{{item}}", group.delete_item, methods=["DELETE"]),
    ]


class _ConversationRoutes:
    def __init__(self, service: StreamService) -> None:
        self._service, self._store = service, service.responses.conversations

    async def create(self, request: Request) -> Response:
        principal, body = principal_of(request), await read_map(request, self._service)
        make = partial(self._made, body, principal)
        made = await run_for(request, self._service, reading_price(request), make, kind=WorkKind.READ)
        if not self._store.put(principal.name, made):
            raise HttpError(400, _FULL, code="conversation_too_large", param="items")
        return JSONResponse(made.map)

    async def read(self, request: Request) -> Response:
        return JSONResponse(self._conversation(request).map)

    async def update(self, request: Request) -> Response:
        found, body = self._conversation(request), await read_map(request, self._service)
        given = UPDATE_FIELDS.given(body)
        changed = replace(found, metadata=read_metadata(given.get("metadata", {})))
        self._store.put(principal_of(request).name, changed)
        return JSONResponse(changed.map)

    async def delete(self, request: Request) -> Response:
        found = self._conversation(request)
        self._store.remove(principal_of(request).name, found.key)
        return JSONResponse({"id": found.key, "object": "conversation.deleted", "deleted": True})

    async def list_items(self, request: Request) -> Response:
        found, query = self._conversation(request), dict(request.query_params)
        price = found.num_bytes * REPLY_S_PER_CHAR
        write = partial(_page_bytes, found, query)
        data = await run_for(request, self._service, price, write, kind=WorkKind.REPLY)
        return Response(data, media_type="application/json")

    async def add_items(self, request: Request) -> Response:
        found, principal = self._conversation(request), principal_of(request)
        body = await read_map(request, self._service)
        read = partial(self._added, ITEM_FIELDS.given(body), principal)
        items, data = await run_for(request, self._service, reading_price(request), read, kind=WorkKind.READ)
        if not self._store.append(principal.name, found.key, items, len(data)):
            raise HttpError(400, _FULL, code="conversation_too_large", param="items")
        return Response(data, media_type="application/json")

    async def read_item(self, request: Request) -> Response:
        found = self._conversation(request)
        write = partial(_item_bytes, found, request.path_params["item"])
        data = await run_for(request, self._service, found.num_bytes * REPLY_S_PER_CHAR, write, kind=WorkKind.REPLY)
        return Response(data, media_type="application/json")

    async def delete_item(self, request: Request) -> Response:
        found = self._conversation(request)
        remove = partial(self._removed, principal_of(request), found, request.path_params["item"])
        await run_for(request, self._service, found.num_bytes * REPLY_S_PER_CHAR, remove, kind=WorkKind.OTHER)
        return JSONResponse(self._conversation(request).map)

    def _conversation(self, request: Request) -> Conversation:
        return stored_conversation(self._service, principal_of(request), request.path_params["id"])

    def _removed(self, principal: Principal, found: Conversation, item_id: str) -> None:
        _item_of(found, item_id)
        self._store.remove_item(principal.name, found.key, item_id)

    def _made(self, body: Mapping[str, Any], principal: Principal) -> Conversation:
        given = FIELDS.given(body)
        items = self._new_items(given, principal) if "items" in given else []
        return new_conversation(new_id("conv"), read_metadata(given.get("metadata", {})), items)

    def _added(self, given: Mapping[str, Any], principal: Principal) -> tuple[list[Item], bytes]:
        """The items of a request, and the response with them."""
        items = self._new_items(given, principal)
        return items, json_bytes(item_page(items, {"order": "asc", "limit": str(max(1, len(items)))}))

    def _new_items(self, given: Mapping[str, Any], principal: Principal) -> list[Item]:
        """The items of a request, checked as those of a response are."""
        value = given.get("items")
        if not isinstance(value, list) or len(value) > MAX_NEW_ITEMS:
            raise ParameterError("items", value, f"expected a list of at most {MAX_NEW_ITEMS} items")
        items = read_items(value, new_id, where="items")
        opened = partial(self._service.responses.sealer.open, principal.name)
        ChatHistory(ClientTools(), opened).add(items, "items")
        return items


def _page_bytes(found: Conversation, query: dict[str, str]) -> bytes:
    return json_bytes(item_page(found.items, query))


def _item_bytes(found: Conversation, item_id: str) -> bytes:
    return json_bytes(_item_of(found, item_id))


def _item_of(found: Conversation, item_id: str) -> Item:
    for item in found.items:
        if item["id"] == item_id:
            return item
    raise HttpError(404, f"the conversation has no item {item_id[:80]!r}", code="item_not_found", param="item")
