"""Events become the maps that clients of SGLang's runtime read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang.contract.errors import BudgetError, RtlangError
from rtlang.contract.events import Completion, GraphFinished, NodeFailed, NodeFinished, TextDelta, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, Usage
from rtlang.serve.sglang.generate_replies import GenerateReply
from rtlang.serve.sglang.generate_requests import read_generate
from tests.support.programs.fake_text_service import FakeTextService

TEXTS = FakeTextService()


def reply_of(body: dict[str, Any]) -> GenerateReply:
    request = read_generate(body)
    ids = {i: TEXTS.encode(str(request.items[i].prompt), adds_start=False) for i in request.needs_ids}
    return GenerateReply(request, ids, TEXTS.token_names, "r")


def done(node_id: int, *completions: Completion, prompt: str = "", usage: Usage | None = None) -> NodeFinished:
    scores = tuple(TokenLogprob(ord(each), -1.0 - i, ((ord(each), -1.0 - i),)) for i, each in enumerate(prompt[1:]))
    usage = usage or Usage(4, 2, 3)
    return NodeFinished(0, node_id, None, completions, usage, Timing(0, 0, 0.5), prompt_logprobs=scores)


def text(text: str, reason: FinishReason = FinishReason.STOP, **more: Any) -> Completion:
    return Completion(text, tuple(map(ord, text)), reason, **more)


def test_one_text_is_one_map() -> None:
    reply = reply_of({"text": "abcd", "rid": "mine", "sampling_params": {"max_new_tokens": 7}})
    reply.take(done(1, text("xyz", FinishReason.LENGTH)))
    reply.take(GraphFinished(0, {}, Usage()))
    assert json.loads(reply.response) == {
        "text": "xyz",
        "output_ids": [120, 121, 122],
        "meta_info": {
            "id": "mine",
            "finish_reason": {"type": "length", "length": 7},
            "prompt_tokens": 4,
            "cached_tokens": 2,
            "e2e_latency": 0.5,
            "completion_tokens": 3,
        },
    }


def test_captures_of_a_grammar_are_in_the_meta_info() -> None:
    reply = reply_of({"text": "abcd", "sampling_params": {"max_new_tokens": 7}})
    reply.take(done(1, text("xyz", captures={"who": ("x", "é")})))
    reply.take(GraphFinished(0, {}, Usage()))
    assert json.loads(reply.response)["meta_info"]["captures"] == {"who": ["x", "é"]}


def test_lists_and_several_completions_are_lists_in_the_order_of_the_prompts() -> None:
    reply = reply_of({"text": ["a", "b"], "rid": "mine", "sampling_params": {"n": 2}})
    reply.take(done(3, text("3"), text("4")))
    reply.take(done(1, text("1"), text("2", stop_match=0), usage=Usage(8, 6, 3)))
    found = json.loads(reply.response)
    assert [each["text"] for each in found] == ["1", "2", "3", "4"]
    assert [each["meta_info"]["id"] for each in found] == ["mine_0_0", "mine_0_1", "mine_1_0", "mine_1_1"]
    meta = found[1]["meta_info"]
    assert (meta["prompt_tokens"], meta["cached_tokens"], meta["completion_tokens"]) == (4, 2, 2)
    assert meta["finish_reason"] == {"type": "stop", "matched": 0}


def test_a_stop_string_is_kept_on_request() -> None:
    for keeps, expected in ((True, "ab."), (False, "ab")):
        reply = reply_of({"text": "a", "sampling_params": {"stop": ".", "no_stop_trim": keeps}})
        reply.take(done(1, text("ab", stop_match=".")))
        assert json.loads(reply.response)["text"] == expected


def test_log_probabilities_have_the_first_token_of_the_prompt_at_zero_only() -> None:
    body = {"text": "abc", "return_logprob": True, "top_logprobs_num": 1, "return_text_in_logprobs": True}
    made = text("x", logprobs=(TokenLogprob(120, -0.5, ((121, -0.25), (120, -0.5))),))
    reply = reply_of(body | {"logprob_start_len": 0})
    reply.take(done(1, made, prompt="abc"))
    meta = json.loads(reply.response)["meta_info"]
    assert meta["input_token_logprobs"] == [[None, 97, "a"], [-1.0, 98, "b"], [-2.0, 99, "c"]]
    assert meta["input_top_logprobs"] == [[], [[-1.0, 98, "b"]], [[-2.0, 99, "c"]]]
    assert meta["output_token_logprobs"] == [[-0.5, 120, "x"]]
    assert meta["output_top_logprobs"] == [[[-0.25, 121, "y"]]]
    reply = reply_of(body | {"logprob_start_len": 1})
    reply.take(done(1, made, prompt="abc"))
    assert json.loads(reply.response)["meta_info"]["input_token_logprobs"] == [[-2.0, 99, "c"]]
    reply = reply_of(body)
    reply.take(done(1, made))
    assert json.loads(reply.response)["meta_info"]["input_token_logprobs"] == []


def test_without_new_tokens_the_prompt_is_scored() -> None:
    reply = reply_of({"input_ids": [97, 98], "return_logprob": True, "sampling_params": {"max_new_tokens": 0}})
    assert reply.take(TextDelta(0, 1, 0, "x", (120,))) == []
    reply.take(done(1, text("x", logprobs=(TokenLogprob(120, -0.5),)), prompt="ab"))
    found = json.loads(reply.response)
    assert (found["text"], found["output_ids"], found["meta_info"]["completion_tokens"]) == ("", [], 0)
    assert found["meta_info"]["output_token_logprobs"] == []
    assert found["meta_info"]["input_token_logprobs"] == [[None, 97, None], [-1.0, 98, None]]


def test_chunks_repeat_the_text_so_far() -> None:
    reply = reply_of({"text": ["a", "b"]})
    assert reply.take(TextDelta(0, 3, 0, "x", (5,))) == [1]
    assert reply.take(TextDelta(0, 3, 0, "y", (6,))) == [1]
    chunk = json.loads(reply.chunk(1))
    assert (chunk["index"], chunk["text"], chunk["meta_info"]["finish_reason"]) == (1, "xy", None)
    assert reply.take(done(3, text("xyz"))) == [1]
    assert json.loads(reply.chunk(1))["meta_info"]["finish_reason"] == {"type": "stop", "matched": None}
    alone = reply_of({"text": "a"})
    alone.take(TextDelta(0, 1, 0, "x", (5,)))
    assert "index" not in json.loads(alone.chunk(0))


def test_a_prompt_that_fails_fails_the_request() -> None:
    reply = reply_of({"text": "a"})
    with pytest.raises(RtlangError):
        reply.take(NodeFailed(0, 1, None, BudgetError(1, 2)))


def test_a_constrained_text_ends_before_its_stop_string() -> None:
    reply = reply_of({"text": "a", "sampling_params": {"regex": r"\d+[ \n]*", "stop": [" ", "\n"]}})
    reply.take(TextDelta(0, 1, 0, "37", (5,)))
    reply.take(TextDelta(0, 1, 0, " \n", (5,)))
    assert json.loads(reply.chunk(0))["text"] == "37"
    reply.take(done(1, text("37 \n")))
    assert json.loads(reply.response)["text"] == "37"
    assert json.loads(reply.response)["meta_info"]["finish_reason"] == {"type": "stop", "matched": " "}
