"""`cache_salt` at every door: cached prefixes are found with the same salt of the same principal, and with no other."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.network.key_table import entry_of
from rtlang.serve.server import TokenizerInfo, running_server
from tests.client.test_connect_javascript import NODE
from tests.client.test_connect_javascript import run as run_javascript
from tests.support.servers.http_client import HttpClient
from tests.support.servers.wire_client import WireClient

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    keys = "".join(entry_of(name, f"key-{name}") for name in ("ana", "bob"))
    with rt.Runtime() as runtime:
        info = TokenizerInfo("rtlang:tiny", 2048, 1024, runtime.tool_format)
        with running_server(runtime, ServeConfig(port=0, keys=keys), info) as address:
            yield address


Ask = Callable[[str, str, "str | None"], int]


def chat(url: str, key: str, prompt: str, salt: str | None) -> int:
    return _openai(url, key, "chat/completions", {"messages": [{"role": "user", "content": prompt}]}, salt)


def completion(url: str, key: str, prompt: str, salt: str | None) -> int:
    return _openai(url, key, "completions", {"prompt": prompt}, salt)


def _openai(url: str, key: str, route: str, body: dict[str, Any], salt: str | None) -> int:
    body = {"max_tokens": 1, "cache_salt": salt} | body
    usage = _post(url, key, f"/v1/{route}", body)["usage"]
    return int(usage["prompt_tokens_details"]["cached_tokens"])


def response(url: str, key: str, prompt: str, salt: str | None) -> int:
    body = {"input": prompt, "max_output_tokens": 1, "store": False, "cache_salt": salt}
    return int(_post(url, key, "/v1/responses", body)["usage"]["input_tokens_details"]["cached_tokens"])


def generate(url: str, key: str, prompt: str, salt: str | None) -> int:
    body = {"text": prompt, "sampling_params": {"max_new_tokens": 1}, "extra_key": salt}
    return int(_post(url, key, "/generate", body)["meta_info"]["cached_tokens"])


def program(url: str, key: str, prompt: str, salt: str | None) -> int:
    body = {"graph": _graph(prompt), "stream": False, "cache_salt": salt}
    return int(_post(url, key, "/v1/programs", body)["usage"]["cached_tokens"])


def explanation(url: str, key: str, prompt: str, salt: str | None) -> int:
    return int(_post(url, key, "/v1/cache/explain", {"prompt": prompt, "cache_salt": salt})["num_cached_tokens"])


def websocket(url: str, key: str, prompt: str, salt: str | None) -> int:
    with WireClient(url, headers={"authorization": f"Bearer key-{key}"}) as client:
        client.greet()
        body = {"graph": _graph(prompt)} | ({} if salt is None else {"cache_salt": salt})
        client.send(t="open", s=1, kind="program", body=body)
        return int(client.receive_end(1)[-1]["usage"]["cached_tokens"])


def remote(url: str, key: str, prompt: str, salt: str | None) -> int:
    @rt.program
    def told(s: rt.State) -> None:
        s += rt.text(prompt)
        s += rt.gen("x", max_tokens=1)

    with rt.connect(url, api_key=f"key-{key}") as runtime:
        return told.run(runtime=runtime, cache_salt=salt).usage.cached_tokens


def javascript(url: str, key: str, prompt: str, salt: str | None) -> int:
    script = """
const [url, key, prompt, salt] = args;
const client = await rtlang.connect(url, { key });
const options = { cacheSalt: salt === "" ? null : salt, context: { requestId: "from-js" } };
const stream = client.generate({ prompt, params: { max_tokens: 1 } }, options);
const end = await stream.result;
const pin = await client.cache.pin({ prompt, computes: false, ttl_s: 1 }, options);
const { num_cached_tokens } = await client.cache.explain({ prompt }, options);
client.close();
console.log(JSON.stringify([stream.requestId, end.usage.cached_tokens, num_cached_tokens, pin.num_granted_tokens]));
"""
    request_id, cached, explained, pinned = run_javascript(script, url, f"key-{key}", prompt, salt or "")
    assert request_id == "from-js"
    assert min(explained, pinned) >= 16  # after the run, under the same salt
    return int(cached)


def remote_explanation(url: str, key: str, prompt: str, salt: str | None) -> int:
    with rt.connect(url, api_key=f"key-{key}") as runtime:
        found = runtime.cache.explain(prompt, cache_salt=salt).num_cached_tokens
        with runtime.cache.pin(prompt, cache_salt=salt, computes=False, ttl_s=1) as pinned:
            assert pinned.num_granted_tokens == found
        return found


def async_explanation(url: str, key: str, prompt: str, salt: str | None) -> int:
    async def ask() -> int:
        async with rt.connect_async(url, api_key=f"key-{key}") as runtime:
            found = (await runtime.cache.explain(prompt, cache_salt=salt)).num_cached_tokens
            assert (await runtime.cache.pin(prompt, cache_salt=salt, computes=False)).num_granted_tokens == found
            return found

    return asyncio.run(ask())


def _graph(prompt: str) -> dict[str, Any]:
    nodes = [{"id": 0, "parent": None, "kind": "text", "parts": [prompt]}]
    return {"nodes": [*nodes, {"id": 1, "parent": 0, "kind": "generate", "name": "x", "params": {"max_tokens": 1}}]}


def _post(url: str, key: str, path: str, body: dict[str, Any]) -> Any:
    answer = HttpClient(url, f"key-{key}").post(path, body)
    assert answer.status == 200, answer.body
    return answer.json


DOORS: tuple[Ask, ...] = (chat, completion, response, generate, program, websocket, remote)  # type: ignore[assignment]
if NODE is not None:
    DOORS = (*DOORS, javascript)


@pytest.mark.parametrize("ask", DOORS, ids=lambda each: each.__name__)
def test_a_prefix_is_found_with_the_salt_that_stored_it_alone(url: str, ask: Any) -> None:
    prompt = f"Story {next(_NUMBERS)} of {ask.__name__}: a little mouse lived in a big house by the sea, and it was not alone."
    unfound = ask(url, "ana", prompt, "red")  # the start of a chat template may be found
    assert unfound < 8
    assert ask(url, "ana", prompt, "red") > 20
    for key, salt in (("ana", "blue"), ("ana", None), ("bob", "red"), ("bob", None)):
        assert ask(url, key, prompt, salt) < 8, (key, salt)
    assert ask(url, "ana", prompt, None) > 20, "without a salt the namespace is that of the principal"
    assert ask(url, "ana", prompt, "blue") > 20


def test_doors_with_one_salt_share_and_a_view_of_the_cache_follows_it(url: str) -> None:
    prompt = "The view of the cache: a little mouse lived in a big house by the sea, and it was not alone."
    assert completion(url, "ana", prompt, "red") < 8
    for door in (*DOORS[3:], explanation, remote_explanation, async_explanation):
        assert door(url, "ana", prompt, "red") > 20, door
    for view in (explanation, remote_explanation, async_explanation):
        others = [view(url, key, prompt, salt) for key, salt in (("ana", "green"), ("ana", None), ("bob", "red"))]
        assert others == [0, 0, 0], view


def test_a_client_refuses_a_malformed_salt_before_it_asks(url: str) -> None:
    with rt.connect(url, api_key="key-ana") as runtime:
        for salt in ("", "a\nb", "x" * 257):
            with pytest.raises(rt.ParameterError, match="cache_salt"):
                runtime.cache.explain("a", cache_salt=salt)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/completions", {"prompt": "Hi"}),
        ("/v1/responses", {"input": "Hi"}),
        ("/generate", {"text": "Hi"}),
        ("/v1/programs", {"graph": _graph("Hi"), "stream": False}),
        ("/v1/cache/explain", {"prompt": "Hi"}),
        ("/v1/cache/pins", {"prompt": "Hi"}),
    ],
)
def test_a_malformed_salt_is_refused_by_name_at_every_route(url: str, path: str, body: dict[str, Any]) -> None:
    client = HttpClient(url, "key-ana")
    for salt in ("", "x" * 257, "a\nb", 3, ["a"], {}):
        answer = client.post(path, body | {"cache_salt": salt})
        error = answer.json["error"]
        assert (answer.status, error["code"], error["param"]) == (400, "parameter", "cache_salt"), salt


def test_both_names_of_the_salt_together_are_another_salt(url: str) -> None:
    client = HttpClient(url, "key-ana")
    prompt = "Two salts: a little mouse lived in a big house by the sea, and it was not alone at all."

    def cached(**salts: str) -> int:
        body = {"prompt": prompt, "max_tokens": 1, **salts}
        return int(client.post("/v1/completions", body).json["usage"]["prompt_tokens_details"]["cached_tokens"])

    assert cached(cache_salt="a", extra_key="b") == 0
    assert cached(cache_salt="a", extra_key="b") > 20
    assert [cached(cache_salt="a"), cached(extra_key="b"), cached(cache_salt="b", extra_key="a")] == [0, 0, 0]
    assert cached(extra_key="a") > 20, "alone, both names mean the same"
