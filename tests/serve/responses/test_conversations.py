"""Conversations in bounded memory, their pages and their metadata."""

from __future__ import annotations

import pytest
from openai.types.conversations import Conversation as ClientConversation

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.fields import read_metadata
from rtlang.serve.responses.conversations import ConversationStore, item_page, new_conversation

ITEMS = [{"type": "message", "id": f"msg_{i}", "role": "user", "content": []} for i in range(5)]


def test_items_are_added_and_removed_for_the_owner_only() -> None:
    store = ConversationStore()
    conversation = new_conversation("conv_1", {"a": "b"}, ITEMS[:1])
    ClientConversation.model_validate(conversation.map)
    assert store.put("ann", conversation)
    assert not store.append("bob", "conv_1", ITEMS[1:2], 70)
    assert store.append("ann", "conv_1", ITEMS[1:3], 140)
    assert store.remove_item("ann", "conv_1", "msg_1")
    found = store.get("ann", "conv_1")
    assert found is not None
    assert [item["id"] for item in found.items] == ["msg_0", "msg_2"]
    assert store.get("bob", "conv_1") is None
    assert found.num_bytes < conversation.num_bytes + 140
    for _ in range(3):
        store.remove_item("ann", "conv_1", "msg_0")
    assert 0 < store.num_bytes <= found.num_bytes


def test_a_conversation_that_outgrows_its_share_stays_as_it_was() -> None:
    store = ConversationStore(max_bytes=8_000)
    store.put("ann", new_conversation("conv_1", {}, []))
    results = [store.append("ann", "conv_1", ITEMS, 350) for _ in range(20)]
    assert results[0]
    assert not results[-1]
    assert 0 < store.num_bytes <= 2_000
    found = store.get("ann", "conv_1")
    assert found is not None
    assert len(found.items) == 5 * sum(results)


def test_pages_follow_each_other() -> None:
    for order in ("asc", "desc"):
        seen: list[str] = []
        query = {"order": order, "limit": "2"}
        for _ in range(3):
            page = item_page(ITEMS, query)
            seen += [item["id"] for item in page["data"]]
            assert page["has_more"] is (len(seen) < 5)
            query["after"] = page["last_id"]
        assert seen == [item["id"] for item in (ITEMS if order == "asc" else reversed(ITEMS))]
    assert item_page([], {})["data"] == []


def test_wrong_parameters_are_named() -> None:
    for query in ({"limit": "0"}, {"limit": "101"}, {"limit": "x"}, {"limit": "-1"}, {"order": "up"}, {"after": "no"}):
        with pytest.raises(ParameterError, match=next(iter(query))):
            item_page(ITEMS, query)
    assert read_metadata({"a": "b"}) == {"a": "b"}
    for metadata in (3, {"a": 1}, {"a" * 65: ""}, {"a": "b" * 513}, {str(i): "" for i in range(17)}):
        with pytest.raises(ParameterError, match="metadata"):
            read_metadata(metadata)
