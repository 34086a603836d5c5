"""Conversations: lists of items under an id, which responses read and add to."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.serve.json_parts import json_text
from rtlang.serve.openai.fields import FieldTable
from rtlang.serve.responses.input_items import Item
from rtlang.serve.responses.store import EntryStore

FIELDS = FieldTable(accepted=frozenset(("items", "metadata")), hints=frozenset())
"""The fields of a new conversation."""
UPDATE_FIELDS = FieldTable(accepted=frozenset(("metadata",)), hints=frozenset())
"""The fields of an update."""
ITEM_FIELDS = FieldTable(accepted=frozenset(("items",)), hints=frozenset(("include",)))
"""The fields of new items."""
MAX_NEW_ITEMS = 20
"""Maximum number of items in one request."""
MAX_PAGE = 100
_BYTES = 500  # of a conversation without its items


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation.

    Attributes:
        items: the oldest first.
    """

    key: str
    created_at: int
    metadata: Mapping[str, str]
    items: tuple[Item, ...]
    num_bytes: int

    @property
    def map(self) -> dict[str, Any]:
        """The conversation without its items, as the routes send it."""
        return {
            "id": self.key,
            "object": "conversation",
            "created_at": self.created_at,
            "metadata": dict(self.metadata),
        }


def new_conversation(key: str, metadata: Mapping[str, str], items: Sequence[Item]) -> Conversation:
    """A new conversation with these items."""
    num_bytes = _BYTES + len(json_text([dict(metadata), list(items)]))
    return Conversation(key, int(time.time()), metadata, tuple(items), num_bytes)


class ConversationStore(EntryStore[Conversation]):
    """The conversations of a server."""

    def append(self, owner: str, key: str, items: Sequence[Item], num_bytes: int) -> bool:
        """Add items of a size, as JSON text, to a conversation; False if it is gone, or its share is full."""
        return self._change(owner, key, lambda found: ((*found.items, *items), num_bytes))

    def remove_item(self, owner: str, key: str, item_id: str) -> bool:
        """Remove the items with an id; whether the conversation exists."""

        def without(found: Conversation) -> tuple[tuple[Item, ...], int]:
            removed = [item for item in found.items if item["id"] == item_id]
            return tuple(item for item in found.items if item["id"] != item_id), -len(json_text(removed))

        return self._change(owner, key, without)

    def _change(self, owner: str, key: str, change: Callable[[Conversation], tuple[tuple[Item, ...], int]]) -> bool:
        """Replace the items of a conversation by those of `change`, whose size differs by its second value."""
        with self._lock:
            found = self.get(owner, key)
            if found is None:
                return False
            items, num_more = change(found)
            num_bytes = max(_BYTES, found.num_bytes + num_more)
            return self.put(owner, replace(found, items=items, num_bytes=num_bytes))


def item_page(items: Sequence[Item], query: Mapping[str, str]) -> dict[str, Any]:
    """A page of a list of items, as `limit`, `order` and `after` of a query ask for it.

    Raises:
        ParameterError: a parameter is invalid, or no item has the id `after`; names it.
    """
    limit, order = query.get("limit", "20"), query.get("order", "desc")
    if not limit.isdecimal() or len(limit) > 3 or not 1 <= int(limit) <= MAX_PAGE:
        raise ParameterError("limit", limit, f"expected a number from 1 to {MAX_PAGE}")
    if order not in ("asc", "desc"):
        raise ParameterError("order", order, "expected asc or desc")
    listed = list(items) if order == "asc" else list(reversed(items))
    if "after" in query:
        places = [i for i, item in enumerate(listed) if item["id"] == query["after"]]
        if not places:
            raise ParameterError("after", query["after"], "no item has this id")
        listed = listed[places[0] + 1 :]
    page = listed[: int(limit)]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": len(listed) > len(page),
    }
