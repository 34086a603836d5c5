"""The routes of SGLang's clients: generation, information, the cache, and a probe that generates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rtlang.contract.errors import ConstraintError
from rtlang.serve.network.key_table import entry_of
from tests.support.programs.fake_target import FakeTarget, answer, by_name
from tests.support.programs.fake_text_service import START_ID, FakeTextService
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving


class TextTarget(FakeTarget):
    text_service = FakeTextService()
    num_cleared = 0

    def clear_cache(self) -> None:
        self.num_cleared += 1


@pytest.fixture(scope="module")
def target() -> Iterator[TextTarget]:
    with TextTarget(chunk=4) as target:
        yield target


@pytest.fixture(scope="module")
def client(target: TextTarget) -> Iterator[HttpClient]:
    with serving(target) as server:  # type: ignore[arg-type]
        yield HttpClient(server.url)


def test_a_prompt_is_generated_from(client: HttpClient) -> None:
    found = client.post("/generate", {"text": "hello", "sampling_params": {"max_new_tokens": 9}}).json
    assert found["text"] == answer("hello", None)
    found = client.post("/generate", {"text": ["hello", "you"]}).json
    assert [each["text"] for each in found] == [answer("hello", None), answer("you", None)]


def test_a_stream_repeats_the_text_so_far_and_ends(client: HttpClient) -> None:
    chunks = client.post("/generate", {"text": "hello", "stream": True}).events
    whole = answer("hello", None)
    texts = [chunk["text"] for chunk in chunks]
    assert texts[-1] == whole
    assert all(whole.startswith(each) for each in texts)
    assert chunks[-1]["meta_info"]["finish_reason"]["type"] == "stop"


def test_a_scored_prompt_is_sent_as_its_tokens(client: HttpClient, target: TextTarget) -> None:
    client.post("/generate", {"text": "hi", "return_logprob": True, "logprob_start_len": 0})
    assert target.runs[-1].graph.nodes[0].parts[0].ids == (START_ID, ord("h"), ord("i"))  # type: ignore[union-attr]


def test_errors_are_responses(client: HttpClient, target: TextTarget) -> None:
    error = client.post("/generate", {"text": "a", "sampling_params": {"top_p": 7}}).json["error"]
    assert (error["param"], error["code"]) == ("sampling_params.top_p", "parameter")
    script, target.script = target.script, by_name({})
    target.script = lambda call: ConstraintError("json_schema", "no such thing")
    try:
        for stream in (False, True):
            reply = client.post("/generate", {"text": "a", "stream": stream})
            assert (reply.status, reply.json["error"]["code"]) == (400, "constraint")
    finally:
        target.script = script


def test_information_and_the_cache(client: HttpClient, target: TextTarget) -> None:
    assert client.get("/get_model_info").json["is_generation"] is True
    info = client.get("/get_server_info").json
    assert info["version"]
    assert "max_frame_bytes" in info["limits"]
    assert "key" not in str(info)
    assert client.post("/flush_cache", {}).status == 200
    assert client.get("/flush_cache").status == 200
    assert target.num_cleared == 2
    assert client.get("/health_generate").status == 200


def test_the_routes_are_behind_the_key_and_can_be_left_out() -> None:
    with FakeTarget() as target:
        with serving(target, api_key="secret") as server:  # type: ignore[arg-type]
            for path in ("/generate", "/flush_cache"):
                assert HttpClient(server.url).post(path, {"text": "a"}).status == 401
            assert HttpClient(server.url, "secret").post("/flush_cache", {}).json["error"]["code"] == "no_cache"
        with serving(target, sglang_routes=False) as server:  # type: ignore[arg-type]
            for path in ("/generate", "/flush_cache"):
                assert HttpClient(server.url).post(path, {"text": "a"}).status == 404


def test_one_of_several_principals_cannot_clear_the_cache_of_all() -> None:
    keys = {name: name * 8 for name in ("anna", "bert")}
    entries = "\n".join(entry_of(name, key) for name, key in keys.items())
    with TextTarget() as target, serving(target, keys=entries) as server:  # type: ignore[arg-type]
        answer = HttpClient(server.url, keys["anna"]).post("/flush_cache", {})
        assert (answer.status, answer.json["error"]["code"]) == (403, "shared_cache")
        assert target.num_cleared == 0
        assert HttpClient(server.url, keys["bert"]).post("/generate", {"text": "a"}).status == 200
