"""What a generation sees and where it ends, against transformers on the same weights and against brute force over whole texts."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import rtlang as rt
from rtlang.serve.server import running_server
from tests.support.models.tiny_models import make_checkpoint

WORDS = ["the", "model", "said", "that", "one", "of", "them", "was", "here", "and", "the", "other", "one", "there"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("bounds") / "model")


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


@pytest.fixture(scope="module")
def runtime(folder: Path) -> Iterator[rt.Runtime]:
    with rt.Runtime(str(folder), dtype="float32") as made:
        yield made


def logprobs_of(model: Any, token_ids: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return torch.log_softmax(model(torch.tensor([token_ids])).logits[0].double(), -1)


def greedy(model: Any, token_ids: list[int], count: int) -> list[int]:
    """The likeliest next tokens, each computed from the whole sequence."""
    sequence = list(token_ids)
    for _ in range(count):
        sequence.append(int(logprobs_of(model, sequence)[-1].argmax()))
    return sequence[len(token_ids) :]


@rt.program
def generate(s: rt.State, prompt: Any, options: dict[str, Any]) -> None:
    s += prompt
    s += rt.gen("x", **options)


@rt.program
def twice(s: rt.State, prompt: str, options: dict[str, Any]) -> None:
    s += prompt + rt.gen("first", **options)
    s += " and " + rt.gen("second", max_tokens=5, ignore_eos=True)


def prompt_ids(runtime: rt.Runtime, text: str) -> list[int]:
    tokenizer: Any = runtime.tokenizer
    return [*tokenizer.start_ids(), *tokenizer.encode(text, is_start=True)]


@pytest.mark.parametrize("count", [1, 2, 7, 31, 10_000])
def test_a_generation_sees_the_last_tokens_as_transformers_does(count: int, model: Any, runtime: rt.Runtime) -> None:
    text = " ".join(random.Random(count).choices(WORDS, k=40))
    before = prompt_ids(runtime, text)
    options = {"max_tokens": 6, "ignore_eos": True, "truncate_prompt_tokens": count, "prompt_logprobs": 0}
    found = generate.run(text, options, runtime=runtime)
    meta = found.meta("x")
    assert list(meta.token_ids) == greedy(model, before[-count:], 6)
    assert meta.usage.prompt_tokens == min(count, len(before))
    assert [each.token_id for each in meta.prompt_logprobs] == before[-count:][1:]


def test_what_follows_a_truncated_generation_sees_the_whole_sequence(model: Any, runtime: rt.Runtime) -> None:
    text = " ".join(random.Random(3).choices(WORDS, k=40))
    tokenizer: Any = runtime.tokenizer
    found = twice.run(text, {"max_tokens": 4, "ignore_eos": True, "truncate_prompt_tokens": 5}, runtime=runtime)
    before = prompt_ids(runtime, text)
    first = greedy(model, before[-5:], 4)
    assert list(found.meta("first").token_ids) == first
    whole = [*before, *first, *tokenizer.encode(" and ", is_start=False)]
    assert list(found.meta("second").token_ids) == greedy(model, whole, 5)


def test_a_text_that_is_too_long_for_the_model_is_cut_for_it(folder: Path, model: Any) -> None:
    text = " ".join(random.Random(5).choices(WORDS, k=200))
    with rt.Runtime(str(folder), dtype="float32", max_model_len=64) as short:
        before = prompt_ids(short, text)
        assert len(before) > 64
        options = {"max_tokens": 4, "ignore_eos": True, "truncate_prompt_tokens": 60}
        found = generate.run(text, options, runtime=short)
        assert list(found.meta("x").token_ids) == greedy(model, before[-60:], 4)
        with pytest.raises(rt.ContextLengthError):
            generate.run(text, {**options, "truncate_prompt_tokens": 64}, runtime=short)
        with pytest.raises(rt.ContextLengthError):
            generate.run(text, {"max_tokens": 4}, runtime=short)
        with pytest.raises(rt.ContextLengthError):  # 16 times the length of the model
            generate.run(text * 16, options, runtime=short)


def test_without_new_tokens_the_prompt_is_scored_as_transformers_does(model: Any, runtime: rt.Runtime) -> None:
    text = " ".join(random.Random(7).choices(WORDS, k=30))
    before = prompt_ids(runtime, text)
    for _ in range(2):  # the second time from the cache
        found = generate.run(text, {"max_tokens": 0, "prompt_logprobs": 2, "n": 2}, runtime=runtime)
        assert found["x"] == ["", ""]
        meta = found.meta("x")[0]
        assert (meta.finish_reason, meta.token_ids, meta.usage.completion_tokens) == ("length", (), 0)
        expected = logprobs_of(model, before)
        assert [each.token_id for each in meta.prompt_logprobs] == before[1:]
        for at, each in enumerate(meta.prompt_logprobs):
            assert each.logprob == pytest.approx(float(expected[at, before[at + 1]]), abs=1e-3)
            assert [top for top, _ in each.top] == expected[at].topk(2).indices.tolist()


def test_without_new_tokens_the_prompt_is_in_the_cache_afterwards(runtime: rt.Runtime) -> None:
    text = " ".join(random.Random(8).choices(WORDS, k=60))
    first = generate.run(text, {"max_tokens": 0}, runtime=runtime).meta("x")
    assert (first.usage.cached_tokens < 10, first.finish_reason) == (True, "length")
    for options in ({"max_tokens": 0}, {"max_tokens": 2}):
        again = generate.run(text, options, runtime=runtime).meta("x")
        assert again.usage.cached_tokens > 40


@pytest.mark.parametrize("count", [1, 2, 3])
def test_prompts_of_a_few_tokens_end_without_text(count: int, runtime: rt.Runtime) -> None:
    ids = prompt_ids(runtime, "the one")[:count]
    found = generate.run(rt.tokens(ids), {"max_tokens": 0}, runtime=runtime)
    assert (found["x"], found.meta("x").finish_reason) == ("", "length")
    found = generate.run(rt.tokens(ids), {"max_tokens": 0, "prompt_logprobs": 0}, runtime=runtime)
    assert len(found.meta("x").prompt_logprobs) == count - 1


def test_without_new_tokens_a_constraint_must_allow_the_empty_text(runtime: rt.Runtime) -> None:
    for empty in ("a*", "(ab)?"):
        assert generate.run("the", {"max_tokens": 0, "regex": empty}, runtime=runtime)["x"] == ""
    healed = {"max_tokens": 0, "regex": "a*", "token_healing": True}
    assert generate.run("the", healed, runtime=runtime)["x"] == ""
    with pytest.raises(rt.BudgetError):
        generate.run("the", {"max_tokens": 0, "regex": "a+"}, runtime=runtime)
    with pytest.raises(rt.ParameterError, match="min_tokens"):
        generate.run("the", {"max_tokens": 0, "min_tokens": 1}, runtime=runtime)
    following = twice.run("the", {"max_tokens": 0}, runtime=runtime)
    plain = generate.run("the and ", {"max_tokens": 5, "ignore_eos": True}, runtime=runtime)
    assert following["first"] == ""
    assert len(following.meta("second").token_ids) == len(plain.meta("x").token_ids) == 5


@pytest.mark.parametrize("seed", range(12))
def test_the_text_ends_after_the_stop_if_it_is_to_include_it(seed: int, runtime: rt.Runtime) -> None:
    rng = random.Random(seed)
    options = {"max_tokens": 40, "temperature": 1.5, "seed": seed, "ignore_eos": True}
    whole = generate.run("the", options, runtime=runtime)["x"]
    at = rng.randrange(len(whole) - 4)
    stops = [whole[at : at + rng.randint(1, 4)], "ere"]
    end = min(
        (whole.index(each) + len(each) for each in stops if each in whole), default=len(whole)
    )  # the first character with which the text ends in a stop
    stopped = generate.run("the", {**options, "stop": stops, "include_stop_str_in_output": True}, runtime=runtime)
    assert stopped["x"] == whole[:end]
    pattern = re.escape(stops[0]) + "?"
    found = generate.run("the", {**options, "stop_regex": pattern, "include_stop_str_in_output": True}, runtime=runtime)
    ends = [i for i in range(len(whole) + 1) if re.search(pattern, whole[:i])]
    assert found["x"] == whole[: ends[0]]
    stream = generate.stream("the", {**options, "stop": stops, "include_stop_str_in_output": True}, runtime=runtime)
    assert "".join(stream.text("x")) == whole[:end]


def test_a_stop_token_is_a_part_of_the_text_if_asked_but_no_end_token(runtime: rt.Runtime) -> None:
    options = {"max_tokens": 20, "temperature": 1.5, "seed": 11, "ignore_eos": True}
    tokens = list(generate.run("the", options, runtime=runtime).meta("x").token_ids)
    stop = tokens[7]
    end = tokens.index(stop)
    for includes in (False, True):
        found = generate.run(
            "the",
            {**options, "stop_token_ids": [stop], "include_stop_str_in_output": includes, "logprobs": 0},
            runtime=runtime,
        )
        meta = found.meta("x")
        assert list(meta.token_ids) == tokens[: end + includes]
        assert (meta.stop_match, len(meta.logprobs)) == (stop, end + includes)
    tokenizer: Any = runtime.tokenizer
    (eos, *_) = tokenizer.eos_token_ids
    ended = generate.run("the", {"logit_bias": {eos: 1000.0}, "include_stop_str_in_output": True}, runtime=runtime)
    assert (ended["x"], ended.meta("x").token_ids) == ("", ())


def test_a_constrained_text_never_includes_its_stop(runtime: rt.Runtime) -> None:
    with pytest.raises(rt.ParameterError, match="include_stop_str_in_output = True: allowed only without a constraint"):
        generate.run("the", {"regex": "a+", "stop": "b", "include_stop_str_in_output": True}, runtime=runtime)


@rt.program
def hurried(s: rt.State) -> None:
    s += "the"
    slow, fast = s.fork(2)
    slow += rt.gen("slow", max_tokens=400, ignore_eos=True, deadline_s=0.001)
    slow += rt.gen("after", max_tokens=2)
    fast += rt.gen("fast", max_tokens=4, ignore_eos=True, priority=-1, deadline_s=600)


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_deadline_fails_one_generation_and_what_depends_on_it(is_remote: bool, runtime: rt.Runtime) -> None:
    if is_remote:
        with running_server(runtime) as url, rt.connect(url) as there:
            result = hurried.run(runtime=there, on_error="result")
    else:
        result = hurried.run(runtime=runtime, on_error="result")
    assert len(result.text("fast")) > 0
    with pytest.raises(rt.DeadlineError, match=r"deadline_s = 0.001: the deadline of the generation has passed"):
        result["slow"]
    with pytest.raises(rt.RtlangError):
        result["after"]
    again = generate.run("the", {"max_tokens": 4, "ignore_eos": True}, runtime=runtime)
    assert result.text("fast") == again["x"]


@pytest.mark.parametrize(("option", "value"), [("deadline_s", 0), ("deadline_s", "x"), ("priority", 1 << 40)])
def test_deadlines_and_priorities_are_checked_by_name(option: str, value: Any) -> None:
    with pytest.raises(rt.ParameterError, match=option):
        rt.gen("x", **{option: value})
