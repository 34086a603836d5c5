"""The routes of scores on the embedded model, against the log-probabilities that completions echo."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

import rtlang
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server
from tests.support.servers.http_client import HttpClient

PROMPT = "The capital of France is"
TEXTS = [" Paris", " a dog", " Paris and a red dog", " Paris"]


@pytest.fixture(scope="module")
def client() -> Iterator[HttpClient]:
    with rtlang.Runtime(num_pages=200) as runtime, running_server(runtime, ServeConfig(port=0)) as url:
        yield HttpClient(url)


def test_scores_are_the_log_probabilities_of_the_texts(client: HttpClient) -> None:
    def echoed(text: str) -> list[float]:
        body = {"prompt": PROMPT + text, "max_tokens": 0, "echo": True, "logprobs": 0}
        (choice,) = client.post("/v1/completions", body).json["choices"]
        found, end = choice["logprobs"], len(PROMPT)
        starts = zip(found["text_offset"], found["token_logprobs"], strict=True)
        return [logprob for start, logprob in starts if start >= end]

    expected = [echoed(text) for text in TEXTS]
    for path in ("/score", "/v1/score"):
        answer = client.post(path, {"text_1": PROMPT, "text_2": TEXTS})
        rows = answer.json["data"]
        assert [row["index"] for row in rows] == [0, 1, 2, 3]
        assert [row["logprob"] for row in rows] == pytest.approx([sum(each) for each in expected], abs=1e-3)
        assert [row["score"] for row in rows] == pytest.approx([sum(each) for each in expected], abs=1e-3)
        assert [row["num_tokens"] for row in rows] == [len(each) for each in expected]
        total = sum(math.exp(sum(each)) for each in expected[:3])
        assert rows[1]["probability"] == pytest.approx(math.exp(sum(expected[1])) / total, rel=1e-2)
        assert answer.json["usage"]["prompt_tokens"] > 0
    body = {"queries": [PROMPT] * 2, "documents": TEXTS[1:3], "method": "token_length_normalized"}
    means = [row["score"] for row in client.post("/score", body).json["data"]]
    assert means == pytest.approx([sum(each) / len(each) for each in expected[1:3]], abs=1e-3)


def test_what_needs_another_model_is_refused_by_name(client: HttpClient) -> None:
    for name in ("rerank", "classify", "pooling"):
        for prefix in ("", "/v1"):
            answer = client.post(f"{prefix}/{name}", {"input": "x"})
            assert (answer.status, answer.json["error"]["code"]) == (404, "not_supported")
    assert client.post("/score", {"text_1": PROMPT}).json["error"]["param"] == "text_2"
