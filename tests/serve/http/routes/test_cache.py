"""The cache routes answer for the principal of the key, refuse what is wrong, and let few calls run at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rtlang.contract.request_graph import TokenIds
from rtlang.serve.http.routes.cache import MAX_EACH
from rtlang.serve.network.key_table import digest_of
from tests.support.engine.fake_cache_service import MAX_TOKENS, FakeCacheService
from tests.support.programs.fake_text_service import FakeTextService
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import Serving, serving
from tests.support.waiting import wait_until

NUM_THREADS_EACH = 1  # of the threads for requests, for questions to engines
KEYS = "".join(f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(name)}"\n' for name in ("ana", "ben"))


class CachedTarget(ScriptedTarget):
    text_service = FakeTextService()

    def __init__(self) -> None:
        super().__init__()
        self.cache_service = FakeCacheService()


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(CachedTarget(), keys=KEYS) as server:
        yield server


@pytest.fixture(autouse=True)
def _forget(server: Serving) -> None:
    cache_of(server).grants.clear()
    cache_of(server).parts.clear()


def cache_of(server: Serving) -> FakeCacheService:
    assert isinstance(server.target, CachedTarget)
    return server.target.cache_service


@pytest.fixture
def ana(server: Serving) -> HttpClient:
    return HttpClient(server.url, "ana")


def test_a_prompt_is_explained_as_text_messages_and_tokens(server: Serving, ana: HttpClient) -> None:
    answer = ana.post("/v1/cache/explain", {"model": "m", "prompt": "Fix: dog"})
    assert answer.status == 200
    assert answer.json == {
        "num_tokens": 8,
        "num_cached_tokens": 4,
        "divergence": {
            "position": 4,
            "token_id": 5,
            "text": "dog",
            "stored_token_id": 6,
            "stored_text": "cat of ana",
        },
        "pages": [{"start": 0, "num_tokens": 16, "tier": "host", "evicted_s_ago": 1.5}],
        "states": None,
    }
    ana.post("/v1/cache/explain", {"messages": [{"role": "user", "content": "hi"}]})
    ana.post("/v1/cache/explain", {"token_ids": [5, 17]})
    assert cache_of(server).parts == [
        ("Fix: dog",),
        (TokenIds(tuple(map(ord, "<user>hi</><assistant>"))),),
        (TokenIds((5, 17)),),
    ]


def test_a_pin_says_what_was_granted_and_belongs_to_its_principal(server: Serving, ana: HttpClient) -> None:
    ben = HttpClient(server.url, "ben")
    answer = ana.post("/v1/cache/pins", {"prompt": "abcdef", "ttl_s": 30, "computes": False})
    assert answer.status == 201
    grant = answer.json
    assert (grant["num_tokens"], grant["num_granted_tokens"], grant["ttl_s"], grant["is_kept"]) == (6, 3, 30, True)
    path = answer.headers["location"]
    assert path == f"/v1/cache/pins/{grant['pin_id']}"
    assert ana.get(path).json == grant
    assert ana.get("/v1/cache/pins").json == {"pins": [grant]}
    assert ben.get("/v1/cache/pins").json == {"pins": []}
    assert ben.get(path).status == ben.request("DELETE", path).status == 404
    assert ana.request("DELETE", path).status == 204
    refused = ana.request("DELETE", path)
    assert (refused.status, refused.json["error"]["code"]) == (404, "not_found")
    default = ana.post("/v1/cache/pins", {"prompt": "abcdef", "computes": False}).json
    assert default["ttl_s"] == 600


def test_a_pin_computes_its_prompt_as_a_request_of_the_principal(server: Serving, ana: HttpClient) -> None:
    num_before = len(server.target.runs)
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(ana.post, "/v1/cache/pins", {"token_ids": [5, 6, 7]})
        wait_until(lambda: len(server.target.runs) > num_before)
        run = server.target.runs[-1]
        assert not pending.done()
        assert run.principal is not None
        assert (run.principal.name, run.nodes[0].parts) == ("ana", (TokenIds((5, 6, 7)),))
        while not pending.done():
            server.target.step()
        assert pending.result().json["num_granted_tokens"] == 1


def test_the_tree_is_that_of_the_principal(ana: HttpClient) -> None:
    assert ana.get("/v1/cache/tree").json == {"nodes": [{"id": number, "text": "of ana"} for number in range(3)]}
    assert len(ana.get("/v1/cache/tree?max_nodes=2").json["nodes"]) == 2


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("explain", {}, "prompt"),
        ("explain", {"prompt": "a", "token_ids": [1]}, "prompt"),
        ("explain", {"prompt": ""}, "prompt"),
        ("explain", {"prompt": ["a"]}, "prompt"),
        ("explain", {"token_ids": []}, "token_ids"),
        ("explain", {"token_ids": "1"}, "token_ids"),
        ("explain", {"token_ids": [1, -1]}, "token_ids"),
        ("explain", {"messages": []}, "messages"),
        ("explain", {"messages": [{"role": "user"}]}, "messages[0].content"),
        ("explain", {"prompt": "a", "tools": []}, "tools"),
        ("explain", {"prompt": "a", "ttl_s": 3}, "ttl_s"),
        ("explain", {"prompt": "a", "namespace": "ben"}, "namespace"),
        ("pins", {"prompt": "a", "ttl_s": 0}, "ttl_s"),
        ("pins", {"prompt": "a", "ttl_s": 86_401}, "ttl_s"),
        ("pins", {"prompt": "a", "ttl_s": "long"}, "ttl_s"),
        ("pins", {"prompt": "a", "computes": 1}, "computes"),
    ],
)
def test_wrong_bodies_are_refused_by_the_name_of_the_field(
    ana: HttpClient, path: str, body: dict[str, Any], param: str
) -> None:
    answer = ana.post(f"/v1/cache/{path}", body)
    assert (answer.status, answer.json["error"]["code"], answer.json["error"]["param"]) == (400, "parameter", param)


def test_refusals_have_the_facts_of_their_error(ana: HttpClient) -> None:
    answer = ana.post("/v1/cache/explain", {"prompt": "a" * (MAX_TOKENS + 1)})
    assert (answer.status, answer.json["error"]["code"]) == (400, "context_length_exceeded")
    assert answer.json["error"]["facts"] == {
        "num_prompt_tokens": MAX_TOKENS + 1,
        "max_tokens": 0,
        "max_model_len": MAX_TOKENS,
    }
    for _ in range(3):
        ana.post("/v1/cache/pins", {"prompt": "a", "computes": False})
    answer = ana.post("/v1/cache/pins", {"prompt": "a", "computes": False})
    assert (answer.status, answer.headers["retry-after"]) == (429, "60")
    assert answer.json["error"]["facts"] == {"retry_after_s": 60.0}
    for number in ("0", "5000", "x", "-1"):
        answer = ana.get(f"/v1/cache/tree?max_nodes={number}")
        assert (answer.status, answer.json["error"]["param"]) == (400, "max_nodes")


def test_a_key_is_needed_and_a_target_without_a_cache_says_so(server: Serving) -> None:
    for method, path in (("POST", "explain"), ("POST", "pins"), ("GET", "pins"), ("GET", "tree")):
        assert HttpClient(server.url).request(method, f"/v1/cache/{path}").status == 401
    with serving() as plain:
        answer = HttpClient(plain.url).post("/v1/cache/explain", {"prompt": "a"})
        assert (answer.status, answer.json["error"]["code"]) == (501, "no_cache")


def test_a_principal_runs_and_queues_few_calls_and_another_waits_for_none_of_them(
    server: Serving, ana: HttpClient
) -> None:
    cache, ben = cache_of(server), HttpClient(server.url, "ben")
    cache.may_answer.clear()
    cache.most_answering = 0
    try:
        with ThreadPoolExecutor(MAX_EACH + 2) as pool:
            asked = [pool.submit(ana.post, "/v1/cache/explain", {"prompt": "a"}) for _ in range(MAX_EACH + 1)]
            wait_until(lambda: any(each.done() for each in asked))  # the one that is refused
            wait_until(lambda: cache.num_answering == NUM_THREADS_EACH)
            other = pool.submit(ben.post, "/v1/cache/explain", {"prompt": "a"})
            wait_until(lambda: cache.num_answering == NUM_THREADS_EACH + 1)
            assert ben.get("/v1/cache/tree?max_nodes=x").status == 400, "the event loop goes on"
            cache.may_answer.set()
            answers = [each.result(timeout=30) for each in asked]
            assert other.result(timeout=30).status == 200
        assert sorted(answer.status for answer in answers) == [*[200] * MAX_EACH, 429]
        assert {answer.json["error"]["code"] for answer in answers if answer.status == 429} == {"overload"}
    finally:
        cache.may_answer.set()
    assert cache.most_answering == NUM_THREADS_EACH + 1
