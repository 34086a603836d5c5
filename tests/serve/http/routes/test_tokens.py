"""The token routes answer in the shapes of vLLM and SGLang, and refuse what they do not support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.programs.fake_text_service import END_ID, START_ID, VOCAB_SIZE, FakeTextService
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving


class TextTarget(ScriptedTarget):
    text_service = FakeTextService()


@pytest.fixture(scope="module")
def client() -> Iterator[HttpClient]:
    with serving(TextTarget()) as server:
        yield HttpClient(server.url)


def test_text_becomes_tokens_and_comes_back(client: HttpClient) -> None:
    answer = client.post("/tokenize", {"model": "m", "prompt": "añ"}).json
    assert answer == {"tokens": [START_ID, 97, 241], "count": 3, "max_model_len": 64, "token_strs": None}
    back = client.post("/detokenize", {"model": "m", "tokens": answer["tokens"]}).json
    assert back == {"prompt": "<start>añ", "text": "añ"}
    assert client.post("/v1/detokenize", {"tokens": [START_ID, 97], "skip_special_tokens": False}).json == {
        "prompt": "<start>a",
        "text": "<start>a",
    }


def test_lists_are_answered_with_lists(client: HttpClient) -> None:
    body = {"prompt": ["a", "bc"], "add_special_tokens": False, "return_token_strs": True}
    assert client.post("/v1/tokenize", body).json == {
        "tokens": [[97], [98, 99]],
        "count": [1, 2],
        "max_model_len": 64,
        "token_strs": [["a"], ["b", "c"]],
    }
    assert client.post("/detokenize", {"tokens": [[97], [98]]}).json["text"] == ["a", "b"]
    assert client.post("/detokenize", {"tokens": []}).json == {"prompt": "", "text": ""}


def test_names_of_special_tokens_are_text_unless_they_are_the_whole_prompt_or_allowed(client: HttpClient) -> None:
    def tokens(prompt: str, **more: Any) -> list[int]:
        found: list[int] = client.post("/tokenize", {"prompt": prompt, "add_special_tokens": False} | more).json[
            "tokens"
        ]
        return found

    assert tokens("a<end>") == [ord(each) for each in "a<end>"]
    assert tokens("a<end>", parse_special=True) == [97, END_ID]
    assert tokens("<end>") == [END_ID]


def test_messages_are_encoded_as_the_chat_route_does(client: HttpClient) -> None:
    def shown(**more: Any) -> str:
        body = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}]} | more
        ids = client.post("/tokenize", body).json["tokens"]
        return "".join(map(chr, ids))

    assert shown() == "<user>hi</><assistant>a</><assistant>"
    assert shown(add_generation_prompt=False) == "<user>hi</><assistant>a</>"
    assert shown(continue_final_message=True) == "<user>hi</><assistant>a"
    assert client.post("/tokenize", {"messages": [], "prompt": "a"}).json["error"]["param"] == "prompt"
    assert client.post("/tokenize", {"prompt": "a", "tools": []}).json["error"]["param"] == "tools"


def test_the_tokenizer_is_described(client: HttpClient) -> None:
    info = client.get("/tokenizer_info").json
    assert (info["eos_token"], info["eos_token_id"], info["bos_token"]) == ("<end>", END_ID, "<start>")
    assert (info["vocab_size"], info["chat_template"]) == (VOCAB_SIZE, "{{ messages }}")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": 3}, "prompt"),
        ("/tokenize", {"prompt": ["a", None]}, "prompt"),
        ("/tokenize", {"prompt": ["a"] * 1025}, "prompt"),
        ("/tokenize", {"prompt": "a", "add_special_tokens": "no"}, "add_special_tokens"),
        ("/tokenize", {"prompt": "a", "speed": 2}, "speed"),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": [VOCAB_SIZE]}, "tokens"),
        ("/detokenize", {"tokens": [-1]}, "tokens"),
        ("/detokenize", {"tokens": [True]}, "tokens"),
        ("/detokenize", {"tokens": [[1], 2]}, "tokens"),
    ],
)
def test_what_is_wrong_is_named(client: HttpClient, path: str, body: Any, param: str) -> None:
    answer = client.post(path, body)
    assert (answer.status, answer.json["error"]["param"]) == (400, param)


def test_a_target_without_a_tokenizer_says_so() -> None:
    with serving() as server:
        answer = HttpClient(server.url).get("/tokenizer_info")
        assert (answer.status, answer.json["error"]["code"]) == (501, "no_tokenizer")
