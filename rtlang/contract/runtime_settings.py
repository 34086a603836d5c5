"""The settings of `rt.Runtime` as keywords, for editors and type checkers.

They are the fields of `RuntimeConfig` with the texts of their help, which a test compares. A path may be a `pathlib.Path`, and a setting
with few values lists them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Literal, TypedDict, TypeVar

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError

StrPath = str | os.PathLike[str]
_F = TypeVar("_F", bound=Callable[..., Any])


class RuntimeSettings(TypedDict, total=False):
    """Settings that override those of `config`; see `RuntimeConfig`."""

    device: Literal["cpu", "cuda", "interpreter"]
    """cpu, cuda (one GPU), or interpreter (runs the GPU code on the CPU; slow, for tests)"""
    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    """type of weights and KV: auto (chosen for the device), float32, bfloat16 or, on a GPU, float16"""
    kv_dtype: Literal["auto", "int8", "float8"]
    """type of the KV cache: auto (same as dtype), int8 (with a scale for each head of a token; on the CPU) or float8 (on a GPU)"""
    linear_inputs: Literal["int8", "float", "float8"]
    """inputs of linear layers over weights of few bits: int8 (on the CPU, over integers: with a scale for 32 inputs), float (more precise,
    and slower on the CPU; on a GPU the same as int8) or float8 (on a GPU, over float8 weights with a scale per output or tensor: for long
    prompts, less precise, and the bits of a row depend on the other rows)"""
    decoder: Literal["auto", "native", "transformers"]
    """implementation of the model: auto, native (Llama, Gemma 3, Phi-4, ...) or transformers (the model code in transformers)"""
    weights: Literal["safetensors", "dummy"]
    """safetensors, or dummy for seeded random weights that need only the config"""
    weights_seed: int
    """seed of dummy weights"""
    tensor_parallel: int
    """processes that compute every layer together, each with a part of the weights and of the KV pool; on GPUs, one GPU
    each
    """
    num_threads: int | None
    """CPU threads of the forward pass, in each process; default: all cores available to the process, divided among them
    and among the replicas of a fleet on this machine
    """
    max_model_len: int | None
    """maximum length of a sequence in tokens; default: that of the checkpoint"""
    page_size: int
    """tokens per KV page"""
    num_pages: int | None
    """pages in the KV pool; default: from cache_bytes"""
    cache_bytes: int | None
    """size in bytes of the KV pool and of the states of recurrent layers together; default: room for 64 sequences of
    max_model_len, at most 4096 tokens each, and for one of max_model_len, within a quarter of memory and half of the
    free memory, divided among the replicas of a fleet on this machine; on a GPU 85% of the memory left by the weights
    """
    state_fraction: float | None
    """share of cache_bytes, or of the memory of num_pages and states, for the states of recurrent layers, if the model
    has any; default: a running state and a checkpoint for each sequence of 4096 tokens that fits, and more of small
    ones, up to an eighth of cache_bytes for each kind
    """
    cache_host_bytes: int | None
    """size in bytes of a cache in host memory below the KV pool; it also has copies of what is in the pool; default:
    none
    """
    cache_dir: StrPath | None
    """directory that stores KV pages below the pool, also for later processes; default: no directory"""
    cache_dir_bytes: int
    """maximum size of the files in cache_dir, in bytes"""
    cache_listen: str | None
    """address (host:port) where other engines may fetch the KV pages of cache_host_bytes and cache_dir; addresses other
    than loopback require cache_secret; default: none
    """
    cache_peers: str | None
    """addresses (host:port, several separated by commas) of engines whose KV pages are fetched where computing them
    would take longer; default: none
    """
    cache_secret: str | None
    """a secret of at least 16 characters, the same for all engines that exchange KV pages; commands take it from
    RTLANG_CACHE_SECRET
    """
    cache_idle_s: float
    """time without work after which cached pages that no open program keeps leave the KV pool and its memory is given
    back, in seconds; on a GPU they stay, since the memory belongs to the pool
    """
    eviction: Literal["valuable", "recent", "frequent"]
    """pages that stay in the KV pool: valuable (used last, and those with many continuations longer), recent (used
    last) or frequent (used most)
    """
    prefix_sharing: bool
    """share the KV of common prefixes and retain it for later requests"""
    chat_template: StrPath | None
    """file with a Jinja chat template to use in place of the model's; default: the model's"""
    chat_template_kwargs: str | None
    """variables of the chat template as a JSON object, such as {"enable_thinking": false}; default: none"""
    public_prompts: StrPath | None
    """JSON file of prompts whose cached pages all namespaces share; default: none"""
    retention_share: float
    """maximum share of the KV pool kept for sequences that open programs continue later; 0 keeps none"""
    infer_sessions: bool
    """find the sessions that requests continue by the tokens of their prompts, and keep their pages for them"""
    policy: Literal["program", "fcfs", "longest_prefix"]
    """order of waiting requests: program, fcfs or longest_prefix"""
    max_rows: int | None
    """maximum number of requests in one step; default: 256 on the CPU; on a GPU as many sequences of 1024 tokens as the
    KV pool holds, from 64 to 512
    """
    max_running: int | None
    """maximum number of requests that hold KV pages; if there are more than max_rows, they take turns; default:
    max_rows, or 1024 on the CPU if max_rows is not set
    """
    max_step_tokens: int | None
    """maximum number of tokens in one step; longer prompts are computed in chunks; default: 1024 on the CPU; on a GPU
    8 per row, from 1024 to 2048
    """
    max_shared_step_tokens: int | None
    """maximum number of tokens in one step while several clients have work; default: 128 on the CPU, max_step_tokens on
    a GPU
    """
    target_gap_ms: float | None
    """maximum time between two tokens that a long prompt of another request may cause, in milliseconds; default: four
    times the time of a step without prompts
    """
    max_waiting: int
    """maximum number of unfinished requests of one client (n per generation, one per choice of a select); more are
    rejected
    """
    grammar_threads: int
    """threads that compile constraints and fill masks"""
    grammar_cache_bytes: int
    """maximum size of the compiled constraints in memory, in bytes"""
    grammar_cache_dir: StrPath | None
    """directory that stores slow-to-compile constraints for later processes; default: no directory"""
    grammar_cache_dir_bytes: int
    """maximum size of the files in grammar_cache_dir, in bytes"""
    grammar_timeout_s: float
    """maximum CPU time to compile one constraint, in seconds"""
    speculation: Literal["auto", "on", "off"]
    """draft tokens and verify several in one step: auto (where no bit changes: native decoders on the CPU, and with
    deterministic on a GPU), on (elsewhere texts may change by rounding) or off
    """
    draft_model: StrPath | None
    """a smaller model with the same tokens, or a draft head of the model (EAGLE, EAGLE-3), which drafts tokens where that
    is expected to save time, on the same device: a directory or owner/name, as for model, or mtp for the head in the
    model's own checkpoint; default: none
    """
    deterministic: bool
    """the same bits for a request whatever else is computed beside it (batch invariance): also with decoders of
    transformers on the CPU, and with native decoders on a GPU, which are slower then; native decoders on the CPU always
    have this
    """
    fault_injection: bool
    """allow requests to ask for faults with x_fault; for tests, on the CPU only"""


def runtime_config(config: RuntimeConfig | None, model: StrPath | None, settings: Mapping[str, Any]) -> RuntimeConfig:
    """`config`, or the defaults, with another model and settings, where they are given.

    Raises:
        ConfigError: a setting is unknown or invalid.
    """
    known = {item.name for item in fields(RuntimeConfig)}
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(name, value, f"unknown setting; expected one of {', '.join(sorted(known))}")
    given = settings if model is None else {**settings, "model": os.fspath(model)}
    return replace(config or RuntimeConfig(), **given)


def with_settings(init: _F) -> _F:
    """Show the settings in the signature of a function that takes them as `**settings`."""
    found = inspect.signature(init)
    *own, _ = found.parameters.values()
    defaults = {item.name: item.default for item in fields(RuntimeConfig)}
    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=annotation)
        for name, annotation in RuntimeSettings.__annotations__.items()
    ]
    init.__signature__ = found.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
    return init
