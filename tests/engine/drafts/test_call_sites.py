"""Drafts from earlier texts of the same call site, and of no other."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.engine.drafts import call_sites
from rtlang.engine.drafts.call_sites import MAX_SITE_TOKENS, CallSites
from rtlang.engine.requests.request import Request
from rtlang.engine.sessions.return_times import ReplyKind
from rtlang.engine.sessions.session_table import SessionTable
from rtlang.engine.sessions.token_chain import BLOCK_TOKENS
from tests.engine.requests.test_request import request


def call(site: Hashable, output: list[int], principal: Principal = LOCAL) -> Request:
    made = request([1, 2], {"max_tokens": 4096}, site=site, principal=principal)
    made.token_ids += output
    return made


def test_a_text_begins_and_goes_on_as_the_last_one_did() -> None:
    source = CallSites()
    source.forget(call("a", [50, 51, 52]))
    source.forget(call("a", [60, 61, 62, 63]))
    found = source.propose(call("a", []), 8)
    assert found is not None
    assert list(found.token_ids) == [60, 61, 62, 63], "a draft ends with the text that it comes from"
    found = source.propose(call("a", [50]), 8)
    assert found is not None
    assert list(found.token_ids) == [51, 52]
    assert source.propose(call("a", [50, 51, 52]), 8) is None


def test_sites_principals_and_namespaces_are_apart() -> None:
    source = CallSites()
    source.forget(call("a", [50, 51, 52]))
    assert source.propose(call("a", [50]), 8) is not None
    assert source.propose(call("b", [50]), 8) is None
    assert source.propose(call(None, [50]), 8) is None
    assert source.propose(call("a", [50], Principal("other")), 8) is None
    assert source.propose(call("a", [50], Principal(namespace="other")), 8) is None


def test_a_chat_drafts_from_its_session_and_from_sessions_that_begin_alike() -> None:
    table = SessionTable()

    def chat(prompt: list[int], output: list[int], owner: str = "a") -> Request:
        made = call(1, output, Principal(owner))
        made.turn = table.begin(owner, "", prompt, len(prompt), 0.0)
        made.turn.is_of_chat = True
        table.end(made.turn, output, ReplyKind.CALLS, 0.0)
        return made

    source, system = CallSites(), [7] * BLOCK_TOKENS
    first = chat([*system, 1], [50, 51, 52])
    source.forget(first)
    source.forget(call(1, [90, 91, 92]))
    for alike in (chat([*system, 1, 50, 51, 52, 3], []), chat([*system, 2], [])):
        found = source.propose(alike, 8)
        assert found is not None
        assert list(found.token_ids) == [50, 51, 52]
    assert source.propose(chat([8] * BLOCK_TOKENS, []), 8) is None
    assert source.propose(chat([*system, 2], [], "b"), 8) is None


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_sites, "MAX_TOKENS", 3 * MAX_SITE_TOKENS)
    source = CallSites()
    for site in range(10):
        for text in range(12):
            source.forget(call(site, [site * 100 + text] * 1000))
    held = sum(len(index.tokens) for index in source._sites.values())
    assert held == source._num_tokens <= 3 * MAX_SITE_TOKENS
    assert all(len(index.tokens) <= MAX_SITE_TOKENS for index in source._sites.values())
    assert source.propose(call(9, [911, 911]), 1) is not None
    assert source.propose(call(0, [11, 11]), 1) is None, "the oldest site is dropped"
