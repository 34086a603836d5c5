"""Models in this process: `Runtime`, which runs programs, and `Engine`, which completes prompts as well.

There is no server process beside the model, so options of such a server have no effect. `ServerArgs` is a dataclass, because programs hand
it on with `Engine(**dataclasses.asdict(args))`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Self

from rtlang.compat.sglang.backends import Backend, check_template
from rtlang.compat.sglang.expressions import Gen, Tokens
from rtlang.compat.sglang.pieces import Generated, Known, Many
from rtlang.compat.sglang.program import SglFunction
from rtlang.compat.sglang.state import ProgramState
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, ParameterError


@dataclasses.dataclass
class ServerArgs:
    """Options of an `Engine`; None leaves an option as it is.

    Raises:
        TypeError: an option is unknown.
    """

    model_path: str | None = None
    tokenizer_path: str | None = None
    chat_template: str | None = None
    context_length: int | None = None
    dtype: str | None = None
    device: str | None = None
    page_size: int | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    chunked_prefill_size: int | None = None
    mem_fraction_static: float | None = None
    disable_radix_cache: bool | None = None
    disable_cuda_graph: bool | None = None
    attention_backend: str | None = None
    sampling_backend: str | None = None
    grammar_backend: str | None = None
    schedule_policy: str | None = None
    trust_remote_code: bool | None = None
    tp_size: int | None = None
    dp_size: int | None = None
    log_level: str | None = None
    host: str | None = None
    port: int | None = None
    api_key: str | None = None

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> None:
        """Add an argument for each option: `--model-path`, ..."""
        for item in dataclasses.fields(ServerArgs):
            kind = str(item.type).partition(" ")[0]
            flags = [f"--{item.name.replace('_', '-')}"]
            if item.name in _SHORT:
                flags.append(f"--{_SHORT[item.name]}")
            if kind == "bool":
                parser.add_argument(*flags, dest=item.name, action="store_const", const=True, default=None)
            else:
                types: dict[str, Any] = {"int": int, "float": float, "str": str}
                parser.add_argument(*flags, dest=item.name, type=types[kind], default=None)

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace) -> ServerArgs:
        """The options of parsed arguments; others are left out."""
        return cls(**{item.name: getattr(args, item.name, None) for item in dataclasses.fields(cls)})


_SHORT = {"tp_size": "tp", "dp_size": "dp"}


class Runtime(Backend):
    """A model in this process. Loaded at once; `shutdown` frees it.

    Args:
        model_path: a checkpoint directory, a name on a model hub, or "rtlang:tiny", which is part of the package.
        server_args: the options as one object; those that are given here override them.
        launch_timeout: no effect; nothing is launched.
        options: `context_length`, `dtype`, `device`, `page_size`, `max_running_requests`, `chunked_prefill_size`, `max_total_tokens`,
            `disable_radix_cache`, `log_level`, and all settings of `rt.Runtime`.
    Raises:
        ConfigError: an option is unknown, or would change results and has no counterpart; names it and what to use instead. Options that
            only tune a server's speed are accepted with a warning.
        ModelLoadError: the model cannot be loaded.
    """

    def __init__(
        self,
        model_path: str | None = None,
        *,
        server_args: ServerArgs | None = None,
        log_level: str | None = None,
        launch_timeout: float | None = None,
        **options: Any,
    ) -> None:
        if server_args is not None:
            given = {name: value for name, value in dataclasses.asdict(server_args).items() if value is not None}
            model_path, log_level = (
                model_path or given.pop("model_path", None),
                log_level or given.pop("log_level", None),
            )
            options = given | options
        if log_level is not None:
            logging.getLogger("rtlang").setLevel(log_level.upper())
        from rtlang.runtime import runtime  # loads torch, which programs on a server never need

        super().__init__(runtime.Runtime(**runtime_settings(model_path, options)).start())

    def shutdown(self) -> None:
        """End all programs and free the model."""
        self.target.close()

    def get_tokenizer(self) -> Any:
        """The tokenizer of the model, as `transformers` loads it."""
        import transformers

        target: Any = self.target
        return transformers.AutoTokenizer.from_pretrained(target.model_directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def generate(
        self,
        prompt: str | Sequence[str],
        sampling_params: Mapping[str, Any] | None = None,
        return_logprob: bool = False,
        logprob_start_len: int | None = None,
        top_logprobs_num: int | None = None,
        lora_path: str | None = None,
    ) -> str:
        """Complete a prompt, or several; the result of `Engine.generate` as JSON text."""
        logprobs = _logprob_options(return_logprob, logprob_start_len, top_logprobs_num)
        _refuse(lora_path=lora_path)
        return json.dumps(complete(self, prompt, sampling_params, logprobs))

    async def async_generate(self, prompt: str, sampling_params: Mapping[str, Any] | None = None) -> AsyncIterator[str]:
        """Complete a prompt and yield its text as it appears."""
        state = _stream(self, prompt, sampling_params, {})
        async for chunk in state.text_async_iter("text"):
            yield chunk

    def encode(self, prompt: object) -> NoReturn:
        """Refused: embeddings are not supported.

        Raises:
            ConfigError: always.
        """
        raise ConfigError("encode", prompt, "embeddings are not supported; use an embedding model of another package")


class Engine(Runtime):
    """A `Runtime` whose prompts are completed with `generate`. See `Runtime` for the options."""

    def generate(  # type: ignore[override]
        self,
        prompt: str | Sequence[str] | None = None,
        sampling_params: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        input_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
        image_data: object = None,
        return_logprob: bool = False,
        logprob_start_len: int | None = None,
        top_logprobs_num: int | None = None,
        return_text_in_logprobs: bool = False,
        lora_path: object = None,
        custom_logit_processor: object = None,
        stream: bool = False,
    ) -> Any:
        """Complete a prompt, given as text or as token ids, or several.

        Args:
            sampling_params: `max_new_tokens`, `temperature`, `stop`, ... for all prompts, or one map for each.
            return_logprob, logprob_start_len, top_logprobs_num, return_text_in_logprobs: as for `gen`.
            image_data, lora_path, custom_logit_processor: only None.
            stream: return an iterator over the text so far; one prompt only.
        Returns:
            For a prompt a dict with `text`, `output_ids` and `meta_info`; for several a list of them, where `n` give `n` each.
        Raises:
            ParameterError: an argument is invalid, or not supported.
        """
        _refuse(image_data=image_data, lora_path=lora_path, custom_logit_processor=custom_logit_processor)
        logprobs = _logprob_options(return_logprob, logprob_start_len, top_logprobs_num, return_text_in_logprobs)
        given = self._one_of(prompt, input_ids)
        return (
            self._streamed(given, sampling_params, logprobs)
            if stream
            else complete(self, given, sampling_params, logprobs)
        )

    async def async_generate(  # type: ignore[override]
        self, prompt: Any = None, sampling_params: Any = None, *, stream: bool = False, **others: Any
    ) -> Any:
        """`generate` for coroutines; with `stream=True` it returns an async iterator."""
        if not stream:
            return await asyncio.to_thread(lambda: self.generate(prompt, sampling_params, **others))
        return self._async_streamed(self.generate(prompt, sampling_params, stream=True, **others))

    async def _async_streamed(self, found: Iterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        while True:
            item = await asyncio.to_thread(next, found, None)
            if item is None:
                return
            yield item

    def _one_of(self, prompt: Any, input_ids: Any) -> Any:
        if (prompt is None) == (input_ids is None):
            raise ParameterError("prompt", prompt, "expected either prompt or input_ids")
        return prompt if input_ids is None else input_ids

    def _streamed(self, prompt: Any, sampling_params: Any, logprobs: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if _is_batch(prompt):
            raise ParameterError("stream", True, "expected one prompt")
        state = _stream(self, prompt, sampling_params, logprobs)

        def iterate() -> Iterator[dict[str, Any]]:
            reader = state._reader("text")
            text = ""
            while True:
                chunk = reader.next()
                text += chunk
                if chunk or reader.is_over:
                    yield {"text": text, "meta_info": reader.meta_so_far()}
                if reader.is_over:
                    return
                if not chunk:
                    reader.wait()

        return iterate()


def complete(backend: Backend, prompt: Any, sampling_params: Any, logprobs: dict[str, Any]) -> Any:
    """Complete one or several prompts. See `Engine.generate`."""
    prompts = list(prompt) if _is_batch(prompt) else [prompt]
    options = sampling_params if isinstance(sampling_params, (list, tuple)) else [sampling_params] * len(prompts)
    if len(options) != len(prompts):
        raise ParameterError("sampling_params", len(options), f"expected one map for each of {len(prompts)} prompts")
    runs = [_arguments(backend, *pair, logprobs) for pair in zip(prompts, options, strict=True)]
    states = _completion.run_batch(runs, backend=backend)
    results = [result for state in states for result in _results(state)]
    return results if _is_batch(prompt) or len(results) > 1 else results[0]


def _stream(backend: Backend, prompt: Any, sampling_params: Any, logprobs: dict[str, Any]) -> ProgramState:
    return _completion.run(**_arguments(backend, prompt, sampling_params, logprobs), backend=backend, stream=True)


def _body(s: ProgramState, before: list[Any], generation: Gen) -> None:
    for each in before:
        s += each
    s += generation


_completion = SglFunction(_body)


def _arguments(
    backend: Backend, prompt: Any, sampling_params: Mapping[str, Any] | None, logprobs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of `_body`."""
    options: dict[str, Any] = {}
    for name, value in (sampling_params or {}).items():
        if name not in _SAMPLING:
            raise ParameterError("sampling_params", name, f"expected names among {', '.join(sorted(_SAMPLING))}")
        if value is not None:
            options[name.replace("_new_", "_")] = value
    before = [prompt] if isinstance(prompt, str) else _of_token_ids(backend, prompt)
    return {"before": before, "generation": Gen("text", options | logprobs)}


_SAMPLING = frozenset(
    (
        *(
            "max_new_tokens",
            "min_new_tokens",
            "n",
            "stop",
            "stop_token_ids",
            "stop_regex",
            "temperature",
            "top_p",
            "top_k",
        ),
        *("min_p", "frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "ignore_eos"),
        *("regex", "json_schema"),
    )
)


def _of_token_ids(backend: Backend, token_ids: Any) -> list[Any]:
    """The prompt to append for these tokens: text if it is tokenized to exactly these tokens, otherwise the tokens themselves.

    Raises:
        ParameterError: they are no token ids, or no sequence can begin with them.
    """
    if not isinstance(token_ids, (list, tuple)) or not token_ids or not all(type(each) is int for each in token_ids):
        raise ParameterError("input_ids", token_ids, "expected a list of token ids")
    tokenizer = backend._tokenizer
    start = tokenizer.start_ids()
    rest = list(token_ids[len(start) :] if list(token_ids[: len(start)]) == start else token_ids)
    named = [number for number, each in enumerate(rest) if each in tokenizer.special_token_ids]
    text_end = named[0] if named else len(rest)
    text = tokenizer.decode(rest[:text_end])
    if text and tokenizer.encode(text, is_start=True) == rest[:text_end]:
        return [text, Tokens(tuple(rest[text_end:]))] if named else [text]
    if not start:
        raise ParameterError(
            "input_ids", token_ids, "a sequence of this model cannot begin with them; pass the prompt as text"
        )
    return [Tokens(tuple(rest))]


def _results(state: ProgramState) -> list[dict[str, Any]]:
    found = state._variable("text")
    results = []
    for item in found.items if isinstance(found, Many) else (found,):
        assert isinstance(item, (Generated, Known))
        token_ids = item.token_ids() if isinstance(item, Generated) else ()
        results.append({"text": item.read(), "output_ids": list(token_ids), "meta_info": item.meta_info()})
    return results


def _is_batch(prompt: Any) -> bool:
    is_list = isinstance(prompt, (list, tuple))
    return is_list and not (prompt and all(type(each) is int for each in prompt))


def _logprob_options(
    return_logprob: bool, start: int | None, num_top: int | None, has_text: bool = False
) -> dict[str, Any]:
    found = {
        "return_logprob": return_logprob,
        "logprob_start_len": start,
        "top_logprobs_num": num_top,
        "return_text_in_logprobs": has_text,
    }
    return {name: value for name, value in found.items() if value is not None and value is not False}


def _refuse(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ParameterError(name, value, "expected None; it is not supported")


_RENAMED = {
    "context_length": "max_model_len",
    "max_running_requests": "max_rows",
    "chunked_prefill_size": "max_step_tokens",
}
_INSTEAD = {
    "random_seed": "no seed of the whole engine; pass seed to rt.gen, or temperature=0 for texts that repeat",
    "quantization": "no counterpart; the weights decide",
    "lora_paths": "adapters are not supported; merge the adapter into the weights",
}
_OF_A_SERVER = ("host", "port", "api_key", "additional_ports", "nccl_port", "log_requests", "show_time_cost")
_OF_ITS_SPEED = frozenset(
    (
        *("mem_fraction_static", "attention_backend", "prefill_attention_backend", "decode_attention_backend"),
        *("sampling_backend", "grammar_backend", "mm_attention_backend", "moe_runner_backend"),
        *("disable_cuda_graph", "disable_cuda_graph_padding", "cuda_graph_max_bs", "cuda_graph_bs"),
        *("enable_torch_compile", "torch_compile_max_bs", "disable_overlap_schedule", "enable_mixed_chunk"),
        *("schedule_policy", "schedule_conservativeness", "max_prefill_tokens", "num_continuous_decode_steps"),
        *("stream_interval", "watchdog_timeout", "decode_log_interval", "enable_metrics", "log_level_http"),
        *("disable_custom_all_reduce", "enable_p2p_check", "triton_attention_num_kv_splits", "enable_memory_saver"),
        *("tokenizer_mode", "tokenizer_worker_num", "download_dir", "load_format", "skip_server_warmup"),
    )
)
"""Options that tune a server of SGLang and change no result."""
_ONE_ONLY = ("tp_size", "dp_size", "pp_size", "nnodes", "tp", "dp")
_DTYPES = {"half": "float16", "float": "float32"}


def runtime_settings(model_path: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Settings of `rt.Runtime` from the options of a server.

    Raises:
        ConfigError: an option is unknown or has no counterpart.
    """
    known = RuntimeConfig.__dataclass_fields__
    settings: dict[str, Any] = {} if model_path is None else {"model": model_path}
    for name, value in options.items():
        renamed = _RENAMED.get(name, name)
        if value is None:  # as `dataclasses.asdict(ServerArgs(...))` gives it
            continue
        if name in _INSTEAD:
            raise ConfigError(name, value, _INSTEAD[name])
        if name in _OF_A_SERVER or name == "trust_remote_code":
            warnings.warn(
                f"{name} has no effect: the model runs in this process, and runs no code of its own", stacklevel=3
            )
        elif name in _OF_ITS_SPEED and not (name == "load_format" and value == "dummy"):
            advice = "; cache_bytes= is the size of the KV pool" if name == "mem_fraction_static" else ""
            warnings.warn(f"{name} has no effect{advice}", stacklevel=3)
        elif name == "load_format":
            settings["weights"] = "dummy"
        elif name == "model_path":
            settings["model"] = value
        elif name == "log_level":
            logging.getLogger("rtlang").setLevel(value.upper())
        elif name in _ONE_ONLY:
            if value != 1:
                raise ConfigError(name, value, "expected 1: one device")
        elif name == "tokenizer_path":
            if value not in (None, model_path):
                raise ConfigError(name, value, "expected that of the model; put the tokenizer into its directory")
        elif name == "chat_template":
            check_template(value)
        elif name == "dtype":
            settings["dtype"] = _DTYPES.get(value, value)
        elif name == "disable_radix_cache":
            settings["prefix_sharing"] = not value
        elif name == "max_total_tokens":
            page_size = options.get("page_size") or known["page_size"].default
            settings["num_pages"] = -(-value // page_size)
        elif renamed in known:
            settings[renamed] = value
        else:
            raise ConfigError(name, value, f"unknown option; expected one of {', '.join(sorted(known))}")
    return settings
