"""The cache of a server for its clients: the methods of a local one, and its errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import rtlang as rt
from rtlang.client.async_runtime import connect_async
from rtlang.client.connect import connect
from rtlang.client.remote_cache import CacheRequests, RemoteCache
from rtlang.client.remote_runtime import RemoteRuntime
from rtlang.contract.errors import (
    ConnectionLostError,
    ContextLengthError,
    GraphError,
    OverloadError,
    ParameterError,
    RtlangError,
)
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.contract.service.cache_report import CacheExplanation, PageRun
from rtlang.serve.server import running_server
from tests.serve.http.routes.test_cache import KEYS, CachedTarget, cache_of
from tests.support.engine.fake_cache_service import MAX_TOKENS
from tests.support.servers.serving import Serving, serving

TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(CachedTarget(), keys=KEYS) as server:
        yield server


@pytest.fixture
def remote(server: Serving) -> Iterator[RemoteRuntime]:
    cache_of(server).grants.clear()
    with connect(server.url, api_key="ana", timeout_s=TIMEOUT_S) as runtime:
        yield runtime


def test_prompts_are_explained_as_by_a_local_cache(remote: RemoteRuntime) -> None:
    found = remote.cache.explain("Fix: dog")
    assert isinstance(found, CacheExplanation)
    assert (found.num_tokens, found.num_cached_tokens) == (8, 4)
    assert found.divergence is not None
    assert found.divergence.stored_text == "cat of ana"
    assert found.pages == (PageRun(0, 16, "host", 1.5),)
    assert "4 of 8 tokens" in str(found)
    assert remote.cache.explain(token_ids=(5, 6)).num_tokens == 2
    assert remote.cache.explain([{"role": "user", "content": "hi"}]).num_tokens > 2
    assert remote.cache.tree(2) == [{"id": 0, "text": "of ana"}, {"id": 1, "text": "of ana"}]


def test_a_server_counts_texts_and_messages() -> None:
    tools = '[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]'
    options = rt.TemplateOptions(chat_template="{{ messages[0].content }}{{ kind }}", variables={"kind": "!!"}).text
    chat = [RoleStart("user", tools), "hello", RoleEnd(), RoleStart("assistant"), TokenIds((5, 6), "hi"), RoleEnd()]
    cases: list[list[Part]] = [
        ["a plain text"],
        chat,
        [*chat, RoleStart("tool"), '{"degrees": 21}', RoleEnd(), RoleStart("assistant")],
        [RoleStart("user", None, options), "hello", RoleEnd()],
    ]
    with rt.Runtime() as runtime, running_server(runtime) as url, rt.connect(url) as remote:
        service = runtime.text_service
        for parts in cases:
            texts = [part.text if isinstance(part, TokenIds) else part for part in parts]
            assert remote.count_tokens(parts) == len(service.encode_parts(texts)), parts
        assert remote.count_tokens([TokenIds((5, 6, 7))]) == 3
        assert remote.count_tokens([]) == 0


def test_a_pin_says_what_was_granted_and_is_released(remote: RemoteRuntime) -> None:
    with remote.cache.pin("abcdef", ttl_s=30, computes=False) as pinned:
        assert (pinned.num_tokens, pinned.num_granted_tokens, pinned.ttl_s) == (6, 3, 30)
        assert "3 of 6 tokens" in repr(pinned)
        assert pinned.is_kept
        assert [grant.pin_id for grant in remote.cache.pins()] == [pinned.pin_id]
    assert not pinned.is_kept
    assert remote.cache.pins() == []
    pinned.release()
    assert not remote.cache.unpin("a/../b?")


def test_refusals_are_raised_as_the_errors_that_they_are(remote: RemoteRuntime) -> None:
    with pytest.raises(ContextLengthError) as long:
        remote.cache.explain("a" * (MAX_TOKENS + 1))
    assert (long.value.num_prompt_tokens, long.value.max_model_len) == (MAX_TOKENS + 1, MAX_TOKENS)
    for _ in range(3):
        remote.cache.pin("a", computes=False)
    with pytest.raises(OverloadError) as full:
        remote.cache.pin("a", computes=False)
    assert full.value.retry_after_s == 60
    with pytest.raises(ParameterError, match="exactly one"):
        remote.cache.explain()
    with pytest.raises(ParameterError, match="ttl_s = 0"):
        remote.cache.pin("a", ttl_s=0)
    with pytest.raises(ParameterError, match="max_nodes = 0"):
        remote.cache.tree(0)
    with pytest.raises(GraphError, match="content"):
        remote.cache.explain([{"role": "user"}])
    with pytest.raises(ParameterError) as refused:
        remote.cache.explain("")
    assert refused.value.field == "prompt"


def test_a_server_that_refuses_the_key_or_is_gone_is_told(server: Serving) -> None:
    with pytest.raises(ConnectionLostError, match="API key"):
        RemoteCache(CacheRequests(server.url, "wrong", TIMEOUT_S)).tree()
    with serving() as plain:
        cache = RemoteCache(CacheRequests(plain.url, None, TIMEOUT_S))
        with pytest.raises(RtlangError, match="no prefix cache"):
            cache.tree()
    with pytest.raises(ConnectionLostError, match=r"127\.0\.0\.1"):
        cache.tree()


def test_the_methods_are_coroutines_of_an_async_client(server: Serving) -> None:
    cache_of(server).grants.clear()

    async def use() -> None:
        async with connect_async(server.url, api_key="ana", timeout_s=TIMEOUT_S) as remote:
            assert (await remote.cache.explain("Fix: dog")).num_cached_tokens == 4
            grant = await remote.cache.pin(token_ids=[1, 2, 3, 4], computes=False)
            assert (grant.num_granted_tokens, grant.ttl_s) == (2, 600)
            assert await remote.cache.pins() == [grant]
            assert await remote.cache.unpin(grant.pin_id)
            assert not await remote.cache.unpin(grant.pin_id)
            assert len(await remote.cache.tree()) == 3

    asyncio.run(use())
