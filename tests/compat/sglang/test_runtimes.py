"""Models in this process: options, tokenizers and completions of prompts."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
import rtlang.compat.sglang as sgl
from rtlang.compat.sglang.runtimes import runtime_settings


def test_options_of_a_server_become_settings_of_a_runtime() -> None:
    options = {
        "context_length": 512,
        "dtype": "half",
        "max_running_requests": 8,
        "chunked_prefill_size": 256,
        "max_total_tokens": 1000,
        "page_size": 32,
        "disable_radix_cache": True,
        "tp_size": 1,
        "num_threads": 2,
        "tokenizer_path": "m",
    }
    assert runtime_settings("m", options) == {
        "model": "m",
        "max_model_len": 512,
        "dtype": "float16",
        "max_rows": 8,
        "max_step_tokens": 256,
        "num_pages": 32,
        "page_size": 32,
        "prefix_sharing": False,
        "num_threads": 2,
    }
    with pytest.warns(UserWarning, match="port has no effect"):
        assert runtime_settings(None, {"port": 30000}) == {}
    assert runtime_settings("m", {"load_format": "dummy", "port": None}) == {"model": "m", "weights": "dummy"}


@pytest.mark.parametrize(
    "options",
    [
        {"attention_backend": "flashinfer"},
        {"disable_cuda_graph": True},
        {"schedule_policy": "lpm"},
        {"mem_fraction_static": 0.8},
        {"load_format": "auto"},
    ],
)
def test_options_of_the_speed_of_a_server_have_no_effect_and_warn(options: Any) -> None:
    (name,) = options
    with pytest.warns(UserWarning, match=f"{name} has no effect"):
        assert runtime_settings("m", options) == {"model": "m"}


def test_an_engine_takes_server_args() -> None:
    args = sgl.ServerArgs(model_path="rtlang:tiny", context_length=128, log_level="warning")
    with sgl.Engine(server_args=args) as engine:
        target: Any = engine.target
        assert target.config.max_model_len == 128
        assert engine.generate("The lamp is", {"max_new_tokens": 1, "temperature": 0})["text"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tp_size": 2}, "tp_size = 2: expected 1"),
        ({"random_seed": 1}, "random_seed = 1: no seed of the whole engine"),
        ({"tokenizer_path": "other"}, "tokenizer_path"),
        ({"chat_template": "x"}, "chat_template"),
        ({"speculative": 1}, "speculative = 1: unknown option; expected one of cache_bytes"),
    ],
)
def test_options_without_a_counterpart_are_refused(options: Any, message: str) -> None:
    with pytest.raises(rt.ConfigError, match=message):
        sgl.Runtime(model_path="rtlang:tiny", **options)


def test_a_runtime_has_the_tokenizer_of_its_model(backend: sgl.Runtime) -> None:
    tokenizer = backend.get_tokenizer()
    target: Any = backend.target
    assert tokenizer.encode("Hello there") == target.tokenizer.encode("Hello there", is_start=True)
    assert "<|user|>Hi" in tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)


def test_a_runtime_completes_prompts(backend: sgl.Runtime) -> None:
    params = {"max_new_tokens": 4, "temperature": 0}
    found = json.loads(backend.generate("The lamp is", params, return_logprob=True, top_logprobs_num=2))
    assert found["meta_info"]["completion_tokens"] == len(found["meta_info"]["output_top_logprobs"]) == 4

    async def read() -> str:
        return "".join([chunk async for chunk in backend.async_generate("The lamp is", params)])

    assert asyncio.run(read()) == found["text"]
    with pytest.raises(rt.ConfigError, match="embeddings are not supported"):
        backend.encode("x")


@pytest.fixture(scope="module")
def engine() -> Iterator[sgl.Engine]:
    engine = sgl.Engine(model_path="rtlang:tiny")
    yield engine
    engine.shutdown()


GREEDY = {"max_new_tokens": 6, "temperature": 0}


def test_an_engine_completes_one_prompt_or_several(engine: sgl.Engine) -> None:
    one = engine.generate("The lamp is", GREEDY)
    assert one["meta_info"]["completion_tokens"] == len(one["output_ids"])
    target: Any = engine.target
    assert target.tokenizer.decode(one["output_ids"]) == one["text"]
    several = engine.generate(["The lamp is", "The mug is"], GREEDY)
    assert [each["text"] for each in several] == [one["text"], engine.generate("The mug is", GREEDY)["text"]]
    lengths = engine.generate(["a b", "c d"], [{"max_new_tokens": n, "ignore_eos": True} for n in (1, 2)])
    assert [each["meta_info"]["completion_tokens"] for each in lengths] == [1, 2]
    assert len(engine.generate("x y", {"n": 3, "max_new_tokens": 2})) == 3


def test_an_engine_takes_token_ids(engine: sgl.Engine) -> None:
    target: Any = engine.target
    ids = target.tokenizer.encode("The lamp is", is_start=True)
    expected = engine.generate("The lamp is", GREEDY)["text"]
    assert engine.generate(input_ids=ids, sampling_params=GREEDY)["text"] == expected
    assert [each["text"] for each in engine.generate(input_ids=[ids, ids], sampling_params=GREEDY)] == [expected] * 2
    # Text, a special token, text: the tokens of the special one cannot be written as text.
    special = min(target.tokenizer.special_token_ids)
    mixed = [*ids, special, *target.tokenizer.encode(" red", is_start=False)]
    found = engine.generate(input_ids=mixed, sampling_params=GREEDY)
    assert found["meta_info"]["prompt_tokens"] == len(mixed)
    with pytest.raises(rt.ParameterError, match="cannot begin with them"):
        engine.generate(input_ids=[special, *ids], sampling_params=GREEDY)
    with pytest.raises(rt.ParameterError, match="expected a list of token ids"):
        engine.generate(input_ids=[[]], sampling_params=GREEDY)


def test_an_engine_streams_the_text_so_far(engine: sgl.Engine) -> None:
    expected = engine.generate("The lamp is", GREEDY)["text"]
    chunks = list(engine.generate("The lamp is", GREEDY, stream=True))
    assert [expected.startswith(chunk["text"]) for chunk in chunks] == [True] * len(chunks)
    assert chunks[-1]["text"] == expected
    assert chunks[-1]["meta_info"]["completion_tokens"] == 6

    async def read() -> list[Any]:
        one = await engine.async_generate("The lamp is", GREEDY)
        stream = await engine.async_generate("The lamp is", GREEDY, stream=True)
        return [one, *[item async for item in stream]]

    found = asyncio.run(read())
    assert found[0]["text"] == found[-1]["text"] == expected
    with pytest.raises(rt.ParameterError, match="stream"):
        engine.generate(["a", "b"], GREEDY, stream=True)


def test_an_engine_constrains_texts(engine: sgl.Engine) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    found = engine.generate("JSON: ", {"json_schema": json.dumps(schema), "max_new_tokens": 20, "temperature": 0})
    assert isinstance(json.loads(found["text"])["n"], int)
    assert engine.generate("It is ", {"regex": "red|blue", "temperature": 0})["text"] in ("red", "blue")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected either prompt or input_ids"),
        ({"prompt": "a", "input_ids": [1]}, "expected either prompt or input_ids"),
        ({"prompt": "a", "image_data": "x"}, "image_data = 'x': expected None"),
        ({"prompt": "a", "sampling_params": {"temprature": 1}}, "'temprature': expected names among"),
        ({"prompt": ["a", "b"], "sampling_params": [{}]}, "expected one map for each of 2 prompts"),
    ],
)
def test_wrong_arguments_of_an_engine_are_refused(engine: sgl.Engine, arguments: Any, message: str) -> None:
    with pytest.raises(rt.ParameterError, match=message):
        engine.generate(**arguments)


def test_arguments_of_a_command_line_become_settings() -> None:
    parser = argparse.ArgumentParser()
    sgl.ServerArgs.add_cli_args(parser)
    given = ["--model-path", "m", "--tp", "1", "--disable-radix-cache", "--context-length", "64"]
    args = sgl.ServerArgs.from_cli_args(parser.parse_args(given))
    assert (args.model_path, args.tp_size, args.disable_radix_cache, args.host) == ("m", 1, True, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settings = runtime_settings(None, dataclasses.asdict(args))
    assert settings == {"model": "m", "prefix_sharing": False, "max_model_len": 64}


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="speed"):
        sgl.ServerArgs(speed=3)  # type: ignore[call-arg]
