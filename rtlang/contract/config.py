"""Every setting of a runtime and of a server, with its one default.

Field metadata holds the help text; the command line is made from it. Settings are frozen, checked on creation, and passed down
explicitly: nothing is read from the environment here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Any

from rtlang.contract.errors import ConfigError

EMBEDDED_MODEL = "rtlang:tiny"
MAX_SECONDS = 1e6
"""Of any setting in seconds: the clocks of a machine cannot wait for every number."""


def _setting(default: Any, help_text: str) -> Any:
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """Settings of one runtime: the model, its cache, the scheduler and the constraint compiler."""

    model: str = _setting(
        EMBEDDED_MODEL,
        "directory of a safetensors checkpoint, owner/name on a model hub, or rtlang:tiny in the package",
    )
    device: str = _setting(
        "cpu", "cpu, cuda (one GPU), or interpreter (the GPU's way on the CPU, slow; for tests of it)"
    )
    dtype: str = _setting(
        "auto",
        "auto, float32, bfloat16 or (GPU only) float16: how weights and KV are held; auto is what suits the device",
    )
    kv_dtype: str = _setting("auto", "auto (as dtype) or, on a GPU, float8: how KV is held")
    decoder: str = _setting(
        "auto",
        "auto, native (our own decoder for Llama-family models) or transformers (the model's code in transformers)",
    )
    weights: str = _setting("safetensors", "safetensors, or dummy for seeded random weights from the config alone")
    weights_seed: int = _setting(0, "seed of dummy weights")
    num_threads: int | None = _setting(None, "CPU threads of the forward pass; default: the cores this process may use")
    max_model_len: int | None = _setting(None, "longest sequence in tokens; default: what the checkpoint says")
    page_size: int = _setting(16, "tokens per KV page")
    num_pages: int | None = _setting(None, "pages in the KV pool; default: from cache_bytes")
    cache_bytes: int | None = _setting(
        None,
        "bytes for the KV pool; default: an eighth of memory, at most 2 GiB, and on a GPU 85% of what weights leave",
    )
    prefix_sharing: bool = _setting(True, "keep and share KV of common prefixes")
    policy: str = _setting("program", "order of waiting requests: program, fcfs, longest_prefix or priority")
    max_rows: int = _setting(64, "most requests computed in one step")
    max_step_tokens: int = _setting(1024, "token budget of one step; longer prompts are computed in chunks")
    max_waiting: int = _setting(
        20_000,
        "most requests of accepted nodes that have not ended (n of a generation, choices of a select); more are refused",
    )
    grammar_backend: str = _setting(
        "rtlang", "what holds text to constraints: rtlang (own engine), llguidance, xgrammar or outlines"
    )
    grammar_threads: int = _setting(1, "threads that compile constraints and fill masks")
    grammar_cache_bytes: int = _setting(256 << 20, "bytes of compiled constraints kept")
    grammar_cache_dir: str | None = _setting(
        None, "directory where constraints that took long to compile are kept for later processes; default: none is"
    )
    grammar_cache_dir_bytes: int = _setting(256 << 20, "bytes of files in grammar_cache_dir")
    grammar_timeout_s: float = _setting(10.0, "longest wait for one constraint to compile")

    def __post_init__(self) -> None:
        _one_of(self, "device", "cpu", "cuda", "interpreter")
        _one_of(self, "dtype", "auto", "float32", "bfloat16", "float16")
        _one_of(self, "kv_dtype", "auto", "float8")
        for name, value in (("dtype", "float16"), ("kv_dtype", "float8")):
            if self.device == "cpu" and getattr(self, name) == value:
                raise ConfigError(name, value, "it needs device cuda")
        _one_of(self, "decoder", "auto", "native", "transformers")
        _one_of(self, "weights", "safetensors", "dummy")
        _one_of(self, "policy", "program", "fcfs", "longest_prefix", "priority")
        _one_of(self, "grammar_backend", "rtlang", "llguidance", "xgrammar", "outlines")
        _at_least(
            self,
            1,
            "num_threads",
            "page_size",
            "max_rows",
            "max_step_tokens",
            "max_waiting",
            "grammar_threads",
        )
        _at_least(self, 2, "num_pages", "max_model_len")
        _at_least(self, 1, "cache_bytes", "grammar_cache_bytes", "grammar_cache_dir_bytes")
        folder = self.grammar_cache_dir
        if folder is not None and (not isinstance(folder, str | os.PathLike) or not os.fspath(folder)):
            raise ConfigError("grammar_cache_dir", folder, "the path of a directory is allowed")
        if folder is not None and self.grammar_backend != "rtlang":
            raise ConfigError("grammar_cache_dir", folder, "it needs grammar_backend rtlang")
        _seconds(self, "grammar_timeout_s")


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """Settings and limits of a server."""

    host: str = _setting("127.0.0.1", "address to listen on; other than loopback needs api_key or allow_public")
    port: int = _setting(8420, "port to listen on; 0 takes a free one")
    api_key: str | None = _setting(None, "key that clients must present")
    allow_public: bool = _setting(False, "listen beyond loopback without a key")
    allowed_origins: tuple[str, ...] = _setting((), "browser origins that may connect, besides loopback ones")
    max_connections: int = _setting(1024, "WebSocket connections at a time")
    max_streams: int = _setting(256, "streams open at a time on one connection")
    max_frame_bytes: int = _setting(1 << 20, "largest message from a client")
    hello_timeout_s: float = _setting(5.0, "time for the first frame of a connection")
    slow_timeout_s: float = _setting(10.0, "a connection that accepts no bytes for so long is closed")
    send_buffer_bytes: int = _setting(
        16 << 20, "bytes held for one connection, besides its largest message, before it counts as slow"
    )
    resume_buffer_bytes: int = _setting(
        64 << 20, "memory for what clients that come back are told again, of all streams; a sixteenth of it for one"
    )
    drain_timeout_s: float = _setting(30.0, "time for running requests to end on shutdown")

    def __post_init__(self) -> None:
        _at_least(self, 0, "port")
        if self.port > 65535:
            raise ConfigError("port", self.port, "0 to 65535 is allowed")
        _at_least(
            self, 1, "max_connections", "max_streams", "max_frame_bytes", "send_buffer_bytes", "resume_buffer_bytes"
        )
        _seconds(self, "hello_timeout_s", "slow_timeout_s", "drain_timeout_s")
        if self.api_key is not None and not self.api_key.strip():
            raise ConfigError("api_key", self.api_key, "a key that is not empty is allowed, or None for no key")
        if self.host not in ("127.0.0.1", "::1", "localhost") and self.api_key is None and not self.allow_public:
            raise ConfigError("host", self.host, "listening beyond loopback needs api_key or allow_public")


def setting_help(config: type) -> dict[str, str]:
    """Help text of every field of a settings class."""
    return {item.name: str(item.metadata["help"]) for item in fields(config)}


def _one_of(config: object, name: str, *allowed: str) -> None:
    if getattr(config, name) not in allowed:
        raise ConfigError(name, getattr(config, name), f"allowed are {', '.join(allowed)}")


def _seconds(config: object, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
            raise ConfigError(name, value, f"a positive number of seconds, at most {MAX_SECONDS:g}, is allowed")


def _at_least(config: object, low: int, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < low):
            raise ConfigError(name, value, f"an integer of at least {low} is allowed")
