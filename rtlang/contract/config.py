"""Settings of runtimes and servers, with their defaults.

The metadata of each field holds its help text, from which the command line is generated. Settings are immutable, checked on creation and
passed down explicitly; this module does not read the environment.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rtlang.contract.errors import ConfigError
from rtlang.contract.process.peer_address import check_peers

EMBEDDED_MODEL = "rtlang:tiny"
SCRIPT_SCHEME = "script:"
"""Before the path of a script, in place of the name of a model."""
MAX_NAME_LENGTH = 200
"""Maximum of a name of the model for clients, in characters."""
MAX_SECONDS = 1e6
"""Maximum of every setting in seconds: longer timeouts overflow the clocks of some platforms."""
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w./-]+)?", re.ASCII)
LEAST_DEVICE_ROWS = 64
"""Default of `max_rows` on a device whose memory has room for few rows, or is not known yet."""
# More rows would keep the host from preparing a step in the time of one. With 8 tokens per row, rows that end are replaced at once, if
# prompts are up to seven times as long as outputs.
_MAX_DEVICE_ROWS, _STEP_TOKENS, _STEP_TOKENS_PER_ROW, _MAX_DEVICE_STEP_TOKENS = 512, 1024, 8, 2048
MAX_TARGET_GAP_MS = 1e9
"""Maximum of `target_gap_ms`, which bounds nothing."""


def _setting(default: Any, help_text: str, *, variable: str | None = None) -> Any:
    """A field; with a variable of the environment it is a secret, which has no flag on the command line and is not shown."""
    return field(default=default, repr=variable is None, metadata={"help": help_text, "variable": variable})


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """Settings of one runtime: the model, its cache, the scheduler and the constraint compiler."""

    model: str = _setting(
        EMBEDDED_MODEL,
        "directory of a safetensors checkpoint, a GGUF file, owner/name or owner/name@revision on a model "
        "hub, rtlang:tiny, which is part of the package, or script:FILE, a scripted model for tests",
    )
    device: str = _setting("cpu", "cpu, cuda (one GPU), or interpreter (runs the GPU code on the CPU; slow, for tests)")
    dtype: str = _setting(
        "auto",
        "type of weights and KV: auto (chosen for the device), float32, bfloat16 or, on a GPU, float16",
    )
    kv_dtype: str = _setting(
        "auto",
        "type of the KV cache: auto (same as dtype), int8 (with a scale for each head of a token; on the CPU) or float8 (on a GPU)",
    )
    linear_inputs: str = _setting(
        "int8",
        "inputs of linear layers over weights of few bits: int8 (on the CPU, over integers: with a scale for 32 inputs), float (more "
        "precise, and slower on the CPU; on a GPU the same as int8) or float8 (on a GPU, over float8 weights with a scale per output or "
        "tensor: for long prompts, less precise, and the bits of a row depend on the other rows)",
    )
    decoder: str = _setting(
        "auto",
        "implementation of the model: auto, native (Llama, Gemma 3, Phi-4, ...) or transformers (the model code in transformers)",
    )
    weights: str = _setting("safetensors", "safetensors, or dummy for seeded random weights that need only the config")
    weights_seed: int = _setting(0, "seed of dummy weights")
    tensor_parallel: int = _setting(
        1,
        "processes that compute every layer together, each with a part of the weights and of the KV pool; on GPUs, one GPU each",
    )
    num_threads: int | None = _setting(
        None,
        "CPU threads of the forward pass, in each process; default: all cores available to the process, divided among them and "
        "among the replicas of a fleet on this machine",
    )
    max_model_len: int | None = _setting(
        None, "maximum length of a sequence in tokens; default: that of the checkpoint"
    )
    page_size: int = _setting(16, "tokens per KV page")
    num_pages: int | None = _setting(None, "pages in the KV pool; default: from cache_bytes")
    cache_bytes: int | None = _setting(
        None,
        "size in bytes of the KV pool and of the states of recurrent layers together; default: room for 64 sequences of max_model_len, at "
        "most 4096 tokens each, and for one of max_model_len, within a quarter of memory and half of the free memory, divided among the "
        "replicas of a fleet on this machine; on a GPU 85% of the memory left by the weights",
    )
    state_fraction: float | None = _setting(
        None,
        "share of cache_bytes, or of the memory of num_pages and states, for the states of recurrent layers, if the model has any; "
        "default: a running state and a checkpoint for each sequence of 4096 tokens that fits, and more of small ones, up to an eighth of "
        "cache_bytes for each kind",
    )
    cache_host_bytes: int | None = _setting(
        None,
        "size in bytes of a cache in host memory below the KV pool; it also has copies of what is in the pool; default: none",
    )
    cache_dir: str | None = _setting(
        None, "directory that stores KV pages below the pool, also for later processes; default: no directory"
    )
    cache_dir_bytes: int = _setting(16 << 30, "maximum size of the files in cache_dir, in bytes")
    cache_listen: str | None = _setting(
        None,
        "address (host:port) where other engines may fetch the KV pages of cache_host_bytes and cache_dir; addresses other than loopback "
        "require cache_secret; default: none",
    )
    cache_peers: str | None = _setting(
        None,
        "addresses (host:port, several separated by commas) of engines whose KV pages are fetched where computing them would take longer; "
        "default: none",
    )
    cache_secret: str | None = _setting(
        None,
        "a secret of at least 16 characters, the same for all engines that exchange KV pages; commands take it from RTLANG_CACHE_SECRET",
        variable="RTLANG_CACHE_SECRET",
    )
    cache_idle_s: float = _setting(
        600.0,
        "time without work after which cached pages that no open program keeps leave the KV pool and its memory is given back, in seconds; "
        "on a GPU they stay, since the memory belongs to the pool",
    )
    eviction: str = _setting(
        "valuable",
        "pages that stay in the KV pool: valuable (used last, and those with many continuations longer), recent (used last) or "
        "frequent (used most)",
    )
    prefix_sharing: bool = _setting(True, "share the KV of common prefixes and retain it for later requests")
    chat_template: str | None = _setting(
        None, "file with a Jinja chat template to use in place of the model's; default: the model's"
    )
    chat_template_kwargs: str | None = _setting(
        None, 'variables of the chat template as a JSON object, such as {"enable_thinking": false}; default: none'
    )
    public_prompts: str | None = _setting(
        None, "JSON file of prompts whose cached pages all namespaces share; default: none"
    )
    retention_share: float = _setting(
        0.5, "maximum share of the KV pool kept for sequences that open programs continue later; 0 keeps none"
    )
    infer_sessions: bool = _setting(
        True, "find the sessions that requests continue by the tokens of their prompts, and keep their pages for them"
    )
    policy: str = _setting("program", "order of waiting requests: program, fcfs or longest_prefix")
    max_rows: int | None = _setting(
        None,
        "maximum number of requests in one step; default: 256 on the CPU; on a GPU as many sequences of 1024 tokens as the KV pool holds, "
        "from 64 to 512",
    )
    max_running: int | None = _setting(
        None,
        "maximum number of requests that hold KV pages; if there are more than max_rows, they take turns; default: max_rows, "
        "or 1024 on the CPU if max_rows is not set",
    )
    max_step_tokens: int | None = _setting(
        None,
        "maximum number of tokens in one step; longer prompts are computed in chunks; default: 1024 on the CPU; on a GPU 8 per row, from "
        "1024 to 2048",
    )
    max_shared_step_tokens: int | None = _setting(
        None,
        "maximum number of tokens in one step while several clients have work; default: 128 on the CPU, max_step_tokens on a GPU",
    )
    target_gap_ms: float | None = _setting(
        None,
        "maximum time between two tokens that a long prompt of another request may cause, in milliseconds; default: four times the time of "
        "a step without prompts",
    )
    max_waiting: int = _setting(
        20_000,
        "maximum number of unfinished requests of one client (n per generation, one per choice of a select); more are rejected",
    )
    grammar_threads: int = _setting(1, "threads that compile constraints and fill masks")
    grammar_cache_bytes: int = _setting(256 << 20, "maximum size of the compiled constraints in memory, in bytes")
    grammar_cache_dir: str | None = _setting(
        None, "directory that stores slow-to-compile constraints for later processes; default: no directory"
    )
    grammar_cache_dir_bytes: int = _setting(256 << 20, "maximum size of the files in grammar_cache_dir, in bytes")
    grammar_timeout_s: float = _setting(7.0, "maximum CPU time to compile one constraint, in seconds")
    speculation: str = _setting(
        "auto",
        "draft tokens and verify several in one step: auto (where no bit changes: native decoders on the CPU, and with deterministic on "
        "a GPU), on (elsewhere texts may change by rounding) or off",
    )
    draft_model: str | None = _setting(
        None,
        "a smaller model with the same tokens, or a draft head of the model (EAGLE, EAGLE-3), which drafts tokens where that is "
        "expected to save time, on the same device: a directory or owner/name, as for model, or mtp for the head in the model's own "
        "checkpoint; default: none",
    )
    deterministic: bool = _setting(
        False,
        "the same bits for a request whatever else is computed beside it (batch invariance): also with decoders of transformers on the "
        "CPU, and with native decoders on a GPU, which are slower then; native decoders on the CPU always have this",
    )
    fault_injection: bool = _setting(False, "allow requests to ask for faults with x_fault; for tests, on the CPU only")

    def __post_init__(self) -> None:
        speculation: object = self.speculation
        if isinstance(speculation, bool):
            object.__setattr__(self, "speculation", "on" if speculation else "off")
        _texts_and_switches(self)
        _one_of(self, "device", "cpu", "cuda", "interpreter")
        _one_of(self, "dtype", "auto", "float32", "bfloat16", "float16")
        _one_of(self, "kv_dtype", "auto", "int8", "float8")
        _one_of(self, "linear_inputs", "int8", "float", "float8")
        if self.linear_inputs == "float8":
            self._check_float8_inputs()
        if self.fault_injection and self.device != "cpu":
            raise ConfigError("fault_injection", True, "requires device cpu")
        if self.device == "cpu" and self.dtype == "float16":
            raise ConfigError("dtype", "float16", "requires device cuda or interpreter")
        if self.device == "cpu" and self.kv_dtype == "float8":
            raise ConfigError("kv_dtype", "float8", "requires device cuda or interpreter; device cpu has auto and int8")
        if self.device != "cpu" and self.kv_dtype == "int8":
            raise ConfigError("kv_dtype", "int8", f"requires device cpu; device {self.device} has auto and float8")
        _one_of(self, "decoder", "auto", "native", "transformers")
        _one_of(self, "weights", "safetensors", "dummy")
        _one_of(self, "speculation", "auto", "on", "off")
        _at_least(self, 1, "tensor_parallel")
        for name in ("cache_host_bytes", "cache_dir", "cache_peers"):
            if self.tensor_parallel > 1 and getattr(self, name) is not None:
                raise ConfigError(
                    name, getattr(self, name), "requires tensor_parallel 1: each process has a part of a page"
                )
        if self.deterministic and self.device != "cpu" and self.tensor_parallel > 1:
            raise ConfigError(
                "deterministic", True, "requires tensor_parallel 1 on a GPU: sums over ranks follow the load"
            )
        draft_model = self.draft_model
        if draft_model is not None:
            if not isinstance(draft_model, str | os.PathLike) or not os.fspath(draft_model):
                raise ConfigError(
                    "draft_model", draft_model, "expected the directory of a model or head, owner/name, or mtp"
                )
            if self.device != "cpu" and self.tensor_parallel > 1:
                raise ConfigError("draft_model", draft_model, "requires tensor_parallel 1, or device cpu")
            if self.speculation == "off":
                raise ConfigError("draft_model", draft_model, "requires speculation auto or on")
        _one_of(self, "policy", "program", "fcfs", "longest_prefix")
        _at_least(
            self,
            1,
            "num_threads",
            "page_size",
            "max_rows",
            "max_running",
            "max_shared_step_tokens",
            "max_step_tokens",
            "max_waiting",
            "grammar_threads",
        )
        _at_least(self, 2, "num_pages", "max_model_len")
        _at_least(self, 1, "cache_host_bytes", "cache_dir_bytes")
        _at_least(self, 1, "cache_bytes", "grammar_cache_bytes", "grammar_cache_dir_bytes")
        share = self.retention_share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ConfigError("retention_share", share, "expected a number from 0 to 1")
        fraction = self.state_fraction
        if fraction is not None and (
            isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction < 1
        ):
            raise ConfigError("state_fraction", fraction, "expected a number between 0 and 1")
        for name in ("grammar_cache_dir", "cache_dir"):
            folder = getattr(self, name)
            if folder is not None and (not isinstance(folder, str | os.PathLike) or not os.fspath(folder)):
                raise ConfigError(name, folder, "expected the path of a directory")
        check_peers(self.cache_listen, self.cache_peers, self.cache_secret)
        if self.cache_listen is not None and self.cache_host_bytes is None and self.cache_dir is None:
            raise ConfigError(
                "cache_listen", self.cache_listen, "requires cache_host_bytes or cache_dir, whose pages it serves"
            )
        _seconds(self, "grammar_timeout_s", "cache_idle_s")
        _one_of(self, "eviction", "valuable", "recent", "frequent")
        gap = self.target_gap_ms
        if gap is not None and (
            isinstance(gap, bool) or not isinstance(gap, int | float) or not 0 < gap <= MAX_TARGET_GAP_MS
        ):
            raise ConfigError(
                "target_gap_ms", gap, f"expected a positive number of milliseconds, at most {MAX_TARGET_GAP_MS:.0e}"
            )

    def may_draft(self, *, is_row_invariant: bool) -> bool:
        """Whether steps may have drafts; see `Runner.is_row_invariant`."""
        return self.speculation == "on" or (self.speculation == "auto" and is_row_invariant)

    def _check_float8_inputs(self) -> None:
        """Raise ConfigError for settings that exclude linear_inputs="float8"."""
        name = "linear_inputs"
        if self.device == "cpu":
            raise ConfigError(name, "float8", "requires device cuda or interpreter; device cpu has int8 and float")
        if self.deterministic:
            raise ConfigError(
                name, "float8", "requires deterministic=False: the bits of a row depend on the other rows"
            )
        if self.device == "cuda" and self.dtype not in ("auto", "bfloat16"):
            raise ConfigError(name, "float8", f"requires dtype bfloat16, which float8 products give, not {self.dtype}")

    @property
    def has_tiers(self) -> bool:
        """Whether there are tiers below the KV pool: host memory, files or peers."""
        return self.cache_host_bytes is not None or self.cache_dir is not None or self.cache_peers is not None

    @property
    def model_name(self) -> str:
        """The name of the model for clients, never a path: `owner/name` on a hub, else the name of its directory."""
        if self.model.startswith(SCRIPT_SCHEME):
            return os.path.splitext(os.path.basename(self.model))[0] or "script"
        folders = os.path.abspath(os.path.expanduser(self.model)).split(os.sep)
        if _HUB_NAME.fullmatch(self.model) and not os.path.exists(self.model):
            return self.model.partition("@")[0]
        if len(folders) > 2 and folders[-2] == "snapshots" and folders[-3].startswith("models--"):  # the cache of a hub
            return folders[-3].removeprefix("models--").replace("--", "/", 1)
        return EMBEDDED_MODEL if self.model == EMBEDDED_MODEL else folders[-1] or "model"

    @property
    def row_limit(self) -> int:
        """`max_rows` or its default: on a GPU the least one, until its runner has loaded the model."""
        return self.max_rows or (256 if self.device == "cpu" else LEAST_DEVICE_ROWS)

    @property
    def running_limit(self) -> int:
        """`max_running` or its default; at least `row_limit`."""
        default = 1024 if self.device == "cpu" and self.max_rows is None else 0
        return max(self.row_limit, self.max_running or default)

    @property
    def step_limit(self) -> int:
        """`max_step_tokens` or its default: on a GPU the least one, as for `row_limit`."""
        return self.max_step_tokens or _STEP_TOKENS

    @property
    def shared_step_limit(self) -> int:
        """`max_shared_step_tokens` or its default; at most `step_limit`."""
        default = 128 if self.device == "cpu" else self.step_limit
        return min(self.step_limit, self.max_shared_step_tokens or default)

    def with_device_rows(self, num_rows: int) -> RuntimeConfig:
        """These settings, with the limits that are not set chosen for a device whose memory has room for `num_rows` rows."""
        rows = self.max_rows or min(max(num_rows, LEAST_DEVICE_ROWS), _MAX_DEVICE_ROWS)
        tokens = min(max(_STEP_TOKENS, _STEP_TOKENS_PER_ROW * rows), _MAX_DEVICE_STEP_TOKENS)
        return replace(self, max_rows=rows, max_step_tokens=self.max_step_tokens or tokens)


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """Settings and limits of a server."""

    host: str = _setting(
        "127.0.0.1", "address to listen on; addresses other than loopback require a key or allow_public"
    )
    port: int = _setting(8420, "port to listen on; 0 chooses a free port")
    api_key: str | None = _setting(
        None, "a key that clients may send; rtlang serve takes it from RTLANG_API_KEY", variable="RTLANG_API_KEY"
    )
    keys_file: str | None = _setting(None, "file of hashed keys with a name and limits each; see rtlang keys")
    keys: str | None = _setting(
        None, "text in the form of keys_file; rtlang serve takes it from RTLANG_KEYS", variable="RTLANG_KEYS"
    )
    allow_public: bool = _setting(False, "allow a non-loopback address without a key")
    allowed_origins: tuple[str, ...] = _setting((), "browser origins that may connect, in addition to loopback origins")
    served_model_name: tuple[str, ...] = _setting(
        (),
        "names of the model for HTTP clients; answers have the first; default: owner/name of a model on a hub, else the name of its "
        "directory",
    )
    max_connections: int = _setting(1024, "maximum number of open WebSocket connections")
    max_connections_per_principal: int | None = _setting(
        None,
        "maximum number of open WebSocket connections of one principal without a limit of its own; default: half of "
        "max_connections if several have keys",
    )
    max_streams: int = _setting(256, "maximum number of open streams per connection")
    max_streams_per_principal: int | None = _setting(
        None,
        "maximum number of unfinished graphs of one principal without a limit of its own, over WebSocket and HTTP together; default: no "
        "limit",
    )
    max_frame_bytes: int = _setting(4 << 20, "maximum size of a message from a client, in bytes")
    max_sockets: int = _setting(4096, "maximum number of open connections of all kinds; more are closed at once")
    max_sockets_per_address: int | None = _setting(
        None, "the same for each client address; behind a proxy all clients have one address; default: no limit"
    )
    tls_certificate: str | None = _setting(
        None, "file with the certificate chain (PEM); the server then speaks TLS only"
    )
    tls_key: str | None = _setting(
        None, "file with the private key of tls_certificate (PEM); default: in the same file"
    )
    tls_client_ca: str | None = _setting(
        None, "file with certificates (PEM) of which one must have signed the certificate of every client"
    )
    tls_handshake_timeout_s: float = _setting(5.0, "maximum time of the TLS handshake of a client, in seconds")
    hello_timeout_s: float = _setting(
        5.0, "maximum time until the header of an HTTP request, and until the first frame of a WebSocket, in seconds"
    )
    request_timeout_s: float = _setting(30.0, "maximum time until the body of an HTTP request, in seconds")
    keep_alive_s: float = _setting(5.0, "time that an idle HTTP connection stays open, in seconds")
    responses_connection_s: float = _setting(
        3600.0, "time after which a WebSocket at /v1/responses takes no more requests and is closed, in seconds"
    )
    slow_timeout_s: float = _setting(10.0, "time after which a connection that reads no output is closed, in seconds")
    send_buffer_bytes: int = _setting(
        16 << 20, "output buffered for one connection, beyond its largest message, before it counts as slow, in bytes"
    )
    resume_buffer_bytes: int = _setting(
        64 << 20,
        "memory for replaying events to clients that reconnect, in bytes; one stream may use a sixteenth of it",
    )
    max_detached: int = _setting(
        1024, "maximum number of graphs of one principal that run without a connection, to be resumed"
    )
    files_dir: str | None = _setting(
        None,
        "folder of uploaded files and batches, which go on after a restart; default: a temporary folder, deleted at the end of the server",
    )
    files_bytes: int = _setting(
        1 << 30, "maximum size of all files of one principal together, outputs of batches included, in bytes"
    )
    mcp_servers: tuple[str, ...] = _setting(
        (),
        "MCP servers whose tools the server calls for clients of /v1/responses, each LABEL=URL or LABEL=COMMAND",
    )
    request_log: bool = _setting(True, "write one line about each request to the log, without any text of it")
    sglang_routes: bool = _setting(True, "serve /generate and the other routes of SGLang's clients")
    parse_special: bool = _setting(
        False, "names of special tokens in the raw prompts of /generate are these tokens, not text"
    )
    drain_timeout_s: float = _setting(30.0, "maximum time for running requests to finish on shutdown, in seconds")

    def __post_init__(self) -> None:
        _texts_and_switches(self)
        _at_least(self, 0, "port")
        if self.port > 65535:
            raise ConfigError("port", self.port, "expected 0 to 65535")
        _at_least(
            self,
            1,
            *("max_connections", "max_streams", "max_frame_bytes", "send_buffer_bytes", "resume_buffer_bytes"),
            "files_bytes",
        )
        _at_least(self, 0, "max_detached")
        _at_least(
            self,
            1,
            "max_sockets",
            "max_sockets_per_address",
            "max_connections_per_principal",
            "max_streams_per_principal",
        )
        names = self.served_model_name
        is_usable = isinstance(names, tuple) and all(
            isinstance(each, str) and each.isprintable() and len(each.strip()) > 0 and len(each) <= MAX_NAME_LENGTH
            for each in names
        )
        if not is_usable or len(set(names)) < len(names):
            raise ConfigError(
                "served_model_name",
                names,
                f"expected different printable names of at most {MAX_NAME_LENGTH} characters",
            )
        _seconds(self, "tls_handshake_timeout_s")
        _seconds(self, "hello_timeout_s", "request_timeout_s", "keep_alive_s", "slow_timeout_s", "drain_timeout_s")
        _seconds(self, "responses_connection_s")
        for name in ("tls_key", "tls_client_ca"):
            if getattr(self, name) is not None and self.tls_certificate is None:
                raise ConfigError(name, getattr(self, name), "requires tls_certificate")
        if self.api_key is not None and not self.api_key.strip():
            raise ConfigError("api_key", self.api_key, "expected a non-empty key or None")
        for name in ("keys_file", "keys"):
            value = getattr(self, name)
            if value is not None and not value.strip():
                raise ConfigError(name, value if name == "keys_file" else "...", "expected non-empty text or None")
        has_keys = not (self.api_key is None and self.keys_file is None and self.keys is None)
        if self.host not in ("127.0.0.1", "::1", "localhost") and not has_keys and not self.allow_public:
            raise ConfigError(
                "host", self.host, "addresses other than loopback require api_key, keys_file, keys or allow_public"
            )


def setting_help(config: type) -> dict[str, str]:
    """Help text of every field of a settings class, in order."""
    return {item.name: str(item.metadata["help"]) for item in fields(config)}


def secret_settings(config: type) -> dict[str, str]:
    """Fields of a settings class that no command line may show, and the variables of the environment that commands take them from."""
    return {item.name: item.metadata["variable"] for item in fields(config) if item.metadata.get("variable")}


def _texts_and_switches(config: RuntimeConfig | ServeConfig) -> None:
    """Check the type of every field that holds a text, or True or False. A path becomes a text."""
    for item in fields(config):
        value, expected = getattr(config, item.name), str(item.type)
        if expected.startswith("str") and isinstance(value, os.PathLike):
            value = os.fspath(value)
            object.__setattr__(config, item.name, value)
        if expected.startswith("str") and not (isinstance(value, str) or (value is None and "None" in expected)):
            shown = "..." if item.metadata.get("is_secret") else value
            raise ConfigError(item.name, shown, "expected text or None" if "None" in expected else "expected text")
        if expected == "bool" and not isinstance(value, bool):
            raise ConfigError(item.name, value, "expected True or False")


def _one_of(config: object, name: str, *allowed: str) -> None:
    if getattr(config, name) not in allowed:
        raise ConfigError(name, getattr(config, name), f"expected one of {', '.join(allowed)}")


def _seconds(config: object, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
            raise ConfigError(name, value, f"expected a positive number of seconds, at most {MAX_SECONDS:g}")


def _at_least(config: object, low: int, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < low):
            raise ConfigError(name, value, f"expected an integer >= {low}")
