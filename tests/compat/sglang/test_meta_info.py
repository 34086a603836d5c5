"""The meta information of generated texts, with the model of the package."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import rtlang.compat.sglang as sgl
from tests.support.models.tiny_models import BOS_TOKEN_ID, make_checkpoint


@sgl.function
def say(s: sgl.ProgramState, **options: Any) -> None:
    s += "The color of the lamp"
    s += sgl.gen("x", temperature=0, max_tokens=4, ignore_eos=True, **options)


def test_a_text_says_how_it_ended_and_what_it_cost(backend: sgl.Runtime) -> None:
    info = say.run().get_meta_info("x")
    assert info["finish_reason"] == {"type": "length", "length": 4}
    assert (info["completion_tokens"], info["id"]) == (4, "x")
    assert info["prompt_tokens"] > info["cached_tokens"] >= 0
    assert info["e2e_latency"] > 0
    assert "output_token_logprobs" not in info
    whole = say.run()["x"]
    stopped = say.run(stop=whole[2], temperature=0)
    assert stopped["x"] == whole[:2]  # without the stop
    assert stopped.get_meta_info("x")["finish_reason"] == {"type": "stop", "matched": whole[2]}


def test_log_probabilities_have_values_tokens_and_texts(backend: sgl.Runtime) -> None:
    info = say.run(return_logprob=True, top_logprobs_num=3, return_text_in_logprobs=True).get_meta_info("x")
    logprobs, tops = info["output_token_logprobs"], info["output_top_logprobs"]
    assert "".join(text for _, _, text in logprobs) == say.run()["x"]
    assert [len(top) for top in tops] == [3] * 4
    for entry, top in zip(logprobs, tops, strict=True):
        assert entry == top[0]  # greedy
        assert [value for value, _, _ in top] == sorted((value for value, _, _ in top), reverse=True)
    assert info["input_token_logprobs"] == []
    plain = say.run(return_logprob=True).get_meta_info("x")
    assert [entry[:2] for entry in logprobs] == [entry[:2] for entry in plain["output_token_logprobs"]]
    assert {text for _, _, text in plain["output_token_logprobs"]} == {None}
    assert "output_top_logprobs" not in plain


def test_log_probabilities_of_the_prompt_begin_at_a_token(backend: sgl.Runtime) -> None:
    whole = say.run(return_logprob=True, logprob_start_len=0, return_text_in_logprobs=True, top_logprobs_num=2)
    info = whole.get_meta_info("x")
    given = info["input_token_logprobs"]
    assert len(given) == len(info["input_top_logprobs"]) == info["prompt_tokens"]
    assert given[0] == (None, None, None)  # nothing is before the first token
    assert "The color of the lamp".endswith("".join(text for _, _, text in given[1:]))
    later = say.run(return_logprob=True, logprob_start_len=2, return_text_in_logprobs=True).get_meta_info("x")
    assert [entry[1:] for entry in later["input_token_logprobs"]] == [entry[1:] for entry in given[2:]]


def test_no_tokens_give_the_next_log_probabilities_and_no_text(backend: sgl.Runtime) -> None:
    @sgl.function
    def peek(s: sgl.ProgramState) -> None:
        s += "The color of the lamp"
        s += sgl.gen("peek", max_tokens=0, return_logprob=True, top_logprobs_num=5, return_text_in_logprobs=True)
        s += sgl.gen("x", temperature=0, max_tokens=1)

    state = peek.run()
    info = state.get_meta_info("peek")
    (top,) = info["output_top_logprobs"]
    assert (state["peek"], info["completion_tokens"], len(top)) == ("", 0, 5)
    assert sum(math.exp(value) for value, _, _ in top) <= 1
    assert state["x"] == top[0][2]
    assert state.text() == "The color of the lamp" + state["x"]


def test_a_text_that_would_end_at_once_has_log_probabilities_too(backend: sgl.Runtime) -> None:
    @sgl.function
    def peek(s: sgl.ProgramState) -> None:
        s += sgl.user("Hello!")
        with s.assistant():
            s += sgl.gen("answer", max_tokens=64)
            s += sgl.gen("peek", max_tokens=0, return_logprob=True, top_logprobs_num=2)

    state = peek.run(temperature=0)
    assert state.get_meta_info("answer")["finish_reason"]["type"] == "stop"
    ((_, token_id, _), _) = state.get_meta_info("peek")["output_top_logprobs"][0]
    assert state["peek"] == ""
    assert token_id in backend.target.tokenizer.eos_token_ids


def test_the_numbers_of_a_stream_grow(backend: sgl.Runtime) -> None:
    async def read() -> list[Any]:
        state = say.run(stream=True)
        return [item async for item in state.text_async_iter("x", return_meta_data=True)]

    found = asyncio.run(read())
    counts = [info["completion_tokens"] for _, info in found]
    assert counts == sorted(counts)
    assert found[-1][1]["finish_reason"] == {"type": "length", "length": 4}
    assert "".join(text for text, _ in found) == say.run()["x"]


def test_the_numbers_are_those_of_the_stock_model(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path, "llama", seed=3)  # every token is a byte
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    prompt, choices = "It is ", ["red", "blue"]

    @sgl.function
    def body(s: sgl.ProgramState) -> None:
        s += prompt
        s += sgl.gen("peek", max_tokens=0, return_logprob=True, logprob_start_len=0, top_logprobs_num=3)
        s += sgl.select("color", choices)

    @torch.inference_mode()
    def logprobs(ids: list[int]) -> torch.Tensor:
        found: torch.Tensor = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        return found

    with sgl.Runtime(model_path=str(path), dtype="float32", num_pages=256) as backend:
        state = body.run(backend=backend)
        peek, color = state.get_meta_info("peek"), state.get_meta_info("color")
    tokens = [BOS_TOKEN_ID, *prompt.encode()]
    expected = logprobs(tokens)
    assert [token_id for _, token_id, _ in peek["input_token_logprobs"]] == [None, *tokens[1:]]
    for position, (value, token_id, _) in enumerate(peek["input_token_logprobs"][1:]):
        assert value == pytest.approx(float(expected[position, token_id]), abs=1e-4)
    for position, top in enumerate([*peek["input_top_logprobs"][1:], peek["output_top_logprobs"][0]]):
        best = expected[position].topk(3)
        assert [token_id for _, token_id, _ in top] == best.indices.tolist()
        assert [value for value, _, _ in top] == pytest.approx(best.values.tolist(), abs=1e-4)
    for choice, option in zip(choices, color["input_token_logprobs"], strict=True):
        assert bytes(token_id for _, token_id, _ in option).decode() == choice
        found = logprobs([*tokens, *choice.encode()])
        for number, (value, token_id, _) in enumerate(option):
            assert value == pytest.approx(float(found[len(tokens) - 1 + number, token_id]), abs=1e-4)
