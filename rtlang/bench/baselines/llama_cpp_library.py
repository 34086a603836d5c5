"""The shared libraries of llama.cpp, called through their C functions.

Imports the standard library and numpy only, since it also runs in the process of the baseline. The structures are those of the headers of
2026; another version has others, so every setting that can be asked for again is compared with what was set.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILE_TYPES = {"f16": 1, "q4_0": 2, "q8_0": 7, "q4_k_m": 15}
"""Kinds of files that `quantize` writes: numbers of `llama_ftype`."""
MAX_BATCH_TOKENS, MAX_STEP_TOKENS = 2048, 512
"""Tokens of a call, and of a forward pass inside it: llama.cpp's defaults."""

_C = ctypes


class _ModelParams(_C.Structure):
    _fields_ = (
        ("devices", _C.c_void_p),
        ("buffer_overrides", _C.c_void_p),
        ("n_gpu_layers", _C.c_int32),
        ("split_mode", _C.c_int32),
        ("load_mode", _C.c_int32),
        ("lazy_mode", _C.c_int32),
        ("main_gpu", _C.c_int32),
        ("tensor_split", _C.c_void_p),
        ("on_progress", _C.c_void_p),
        ("progress_data", _C.c_void_p),
        ("key_overrides", _C.c_void_p),
        ("vocab_only", _C.c_bool),
        ("more", _C.c_ubyte * 247),  # a larger structure may follow
    )


class _ContextParams(_C.Structure):
    _fields_ = (
        ("n_ctx", _C.c_uint32),
        ("n_batch", _C.c_uint32),
        ("n_ubatch", _C.c_uint32),
        ("n_seq_max", _C.c_uint32),
        ("n_rs_seq", _C.c_uint32),
        ("n_outputs_max", _C.c_uint32),
        ("n_outputs_max_per_seq", _C.c_uint32),
        ("n_threads", _C.c_int32),
        ("n_threads_batch", _C.c_int32),
        ("kinds", _C.c_int32 * 5),
        ("rope", _C.c_uint32 * 8),
        ("callback", _C.c_void_p * 2),
        ("cache_types", _C.c_int32 * 2),
        ("abort", _C.c_void_p * 2),
        ("embeddings", _C.c_bool),
        ("offload_kqv", _C.c_bool),
        ("no_perf", _C.c_bool),
        ("op_offload", _C.c_bool),
        ("swa_full", _C.c_bool),
        ("kv_unified", _C.c_bool),
        ("more", _C.c_ubyte * 122),
    )


class _QuantizeParams(_C.Structure):
    _fields_ = (
        ("nthread", _C.c_int32),
        ("ftype", _C.c_int32),
        ("more", _C.c_ubyte * 248),
    )


class _Batch(_C.Structure):
    _fields_ = (
        ("n_tokens", _C.c_int32),
        ("token", _C.c_void_p),
        ("embd", _C.c_void_p),
        ("pos", _C.c_void_p),
        ("n_seq_id", _C.c_void_p),
        ("seq_id", _C.c_void_p),
        ("logits", _C.c_void_p),
    )


_POINTERS = (
    ("llama_model_load_from_file", (_C.c_char_p, _ModelParams)),
    ("llama_init_from_model", (_C.c_void_p, _ContextParams)),
    ("llama_model_get_vocab", (_C.c_void_p,)),
    ("llama_get_memory", (_C.c_void_p,)),
    ("llama_get_logits_ith", (_C.c_void_p, _C.c_int32)),
)
_OTHERS: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("llama_model_default_params", _ModelParams, ()),
    ("llama_context_default_params", _ContextParams, ()),
    ("llama_model_quantize_default_params", _QuantizeParams, ()),
    ("llama_model_quantize", _C.c_uint32, (_C.c_char_p, _C.c_char_p, _C.POINTER(_QuantizeParams))),
    ("llama_decode", _C.c_int32, (_C.c_void_p, _Batch)),
    ("llama_vocab_n_tokens", _C.c_int32, (_C.c_void_p,)),
    ("llama_vocab_is_eog", _C.c_bool, (_C.c_void_p, _C.c_int32)),
    (
        "llama_tokenize",
        _C.c_int32,
        (_C.c_void_p, _C.c_char_p, _C.c_int32, _C.c_void_p, _C.c_int32, _C.c_bool, _C.c_bool),
    ),
    (
        "llama_detokenize",
        _C.c_int32,
        (_C.c_void_p, _C.c_void_p, _C.c_int32, _C.c_char_p, _C.c_int32, _C.c_bool, _C.c_bool),
    ),
    ("llama_memory_clear", None, (_C.c_void_p, _C.c_bool)),
    ("llama_memory_seq_rm", _C.c_bool, (_C.c_void_p, _C.c_int32, _C.c_int32, _C.c_int32)),
    ("llama_memory_seq_cp", None, (_C.c_void_p, _C.c_int32, _C.c_int32, _C.c_int32, _C.c_int32)),
    ("llama_n_ctx", _C.c_uint32, (_C.c_void_p,)),
    ("llama_n_ctx_seq", _C.c_uint32, (_C.c_void_p,)),
    ("llama_n_batch", _C.c_uint32, (_C.c_void_p,)),
    ("llama_n_seq_max", _C.c_uint32, (_C.c_void_p,)),
    ("llama_n_threads", _C.c_int32, (_C.c_void_p,)),
    ("llama_n_threads_batch", _C.c_int32, (_C.c_void_p,)),
    ("llama_free", None, (_C.c_void_p,)),
    ("llama_model_free", None, (_C.c_void_p,)),
    ("llama_version", _C.c_char_p, ()),
    ("llama_print_system_info", _C.c_char_p, ()),
)


class LlamaCppError(Exception):
    """llama.cpp cannot be loaded or refuses a file; the message has the end of its log."""


class LlamaCpp:
    """The libraries of a folder.

    Args:
        folder: of `libllama` and `libggml`, as built with loadable backends.
    Raises:
        LlamaCppError: a library or a function of it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._log: list[bytes] = []
        try:
            for name in ("libggml-base*.so", "libggml.*so"):
                ggml = _C.CDLL(str(_first(folder, name)), mode=_C.RTLD_GLOBAL)
            self._llama = _C.CDLL(str(_first(folder, "libllama.*so")))
            for name, arguments in _POINTERS:
                self._declare(name, _C.c_void_p, arguments)
            for name, result, arguments in _OTHERS:
                self._declare(name, result, arguments)
        except (OSError, AttributeError) as error:
            raise LlamaCppError(f"{folder}: {error}") from error
        self._on_log = _C.CFUNCTYPE(None, _C.c_int, _C.c_char_p, _C.c_void_p)(self._listen)
        self._llama.llama_log_set(self._on_log, None)
        ggml.ggml_backend_load_all_from_path(str(folder).encode())

    def __getattr__(self, name: str) -> Any:
        """The function `llama_NAME`."""
        return getattr(self._llama, f"llama_{name}")

    @property
    def version_name(self) -> str:
        """The version of the libraries."""
        return str(self.version().decode())

    def error(self, what: str) -> LlamaCppError:
        """An error with the end of the log."""
        return LlamaCppError(f"{what}: {b''.join(self._log[-5:]).decode('utf-8', 'replace').strip()}")

    def quantize(self, source: Path, target: Path, kind: str, num_threads: int = 0) -> None:
        """Write a GGUF file of another kind.

        Args:
            kind: a key of FILE_TYPES.
            num_threads: 0 for one per core.
        Raises:
            LlamaCppError: it fails.
        """
        params = self.model_quantize_default_params()
        params.nthread, params.ftype = num_threads, FILE_TYPES[kind]
        if self.model_quantize(str(source).encode(), str(target).encode(), _C.byref(params)):
            raise self.error(f"{source} as {kind}")

    def _declare(self, name: str, result: Any, arguments: tuple[Any, ...]) -> None:
        function = getattr(self._llama, name)
        function.restype, function.argtypes = result, arguments

    def _listen(self, level: int, text: bytes, _: object) -> None:
        self._log.append(text)
        del self._log[:-100]


class Vocabulary:
    """The vocabulary of a GGUF file, loaded without its weights, or of a loaded model.

    Args:
        model: a loaded model; it is loaded here if none is given.
    Raises:
        LlamaCppError: llama.cpp refuses the file.
    """

    def __init__(self, library: LlamaCpp, path: Path, model: int | None = None) -> None:
        self._library = library
        if model is None:
            params = library.model_default_params()
            params.vocab_only = True
            model = library.model_load_from_file(str(path).encode(), params)
            if not model:
                raise library.error(str(path))
        self._vocab = library.model_get_vocab(model)
        self.size: int = library.vocab_n_tokens(self._vocab)

    def tokens(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The tokens of a text without a start token."""
        data = text.encode()
        found = (_C.c_int32 * (2 * len(data) + 16))()
        count = self._library.tokenize(self._vocab, data, len(data), found, len(found), False, parse_special)
        assert count >= 0, count
        return found[:count]

    def text(self, token_ids: Sequence[int]) -> str:
        """The text of tokens; control tokens have none."""
        ids = (_C.c_int32 * len(token_ids))(*token_ids)
        size = 16 * len(token_ids) + 64
        while True:
            data = _C.create_string_buffer(size)
            count = self._library.detokenize(self._vocab, ids, len(ids), data, size, False, False)
            if count >= 0:
                return data.raw[:count].decode("utf-8", "replace")
            size = -count

    def is_end(self, token_id: int) -> bool:
        """Whether a token ends a text."""
        return bool(self._library.vocab_is_eog(self._vocab, token_id))


class LlamaContext:
    """A loaded model, and a KV cache that `num_sequences` sequences share.

    Args:
        num_tokens: of the KV cache.
        all_logits: whether `step` may be asked for the logits of many tokens of one sequence.
    Raises:
        LlamaCppError: llama.cpp refuses the file or the settings, or is of a version whose structures differ.
    """

    def __init__(
        self,
        library: LlamaCpp,
        path: Path,
        *,
        num_tokens: int,
        num_sequences: int,
        num_threads: int,
        all_logits: bool = False,
    ) -> None:
        self._library = library
        self._model = library.model_load_from_file(str(path).encode(), library.model_default_params())
        if not self._model:
            raise library.error(str(path))
        params = library.context_default_params()
        params.n_ctx, params.n_seq_max, params.kv_unified = num_tokens, num_sequences, True
        params.n_batch, params.n_ubatch = MAX_BATCH_TOKENS, MAX_STEP_TOKENS
        params.n_threads = params.n_threads_batch = num_threads
        if all_logits:
            params.n_outputs_max_per_seq = MAX_BATCH_TOKENS
        self._context = library.init_from_model(self._model, params)
        if not self._context:
            raise library.error(str(path))
        self.vocabulary = Vocabulary(library, path, self._model)
        found = [getattr(library, name)(self._context) for name in ("n_seq_max", "n_threads", "n_threads_batch")]
        self.num_tokens: int = library.n_ctx(self._context)
        is_unified = library.n_ctx_seq(self._context) == self.num_tokens
        if found != [num_sequences, num_threads, num_threads] or self.num_tokens < num_tokens or not is_unified:
            raise LlamaCppError(f"llama.cpp {library.version_name} has other structures than this program knows")
        self._memory = library.get_memory(self._context)
        self._ids, self._positions, self._sequences, self._ones = (
            np.ones(MAX_BATCH_TOKENS, dtype=np.int32) for _ in range(4)
        )
        self._wanted = np.zeros(MAX_BATCH_TOKENS, dtype=np.int8)
        self._pointers = self._sequences.ctypes.data + 4 * np.arange(MAX_BATCH_TOKENS, dtype=np.uint64)
        self._batch = _Batch(
            0,
            self._ids.ctypes.data,
            None,
            self._positions.ctypes.data,
            self._ones.ctypes.data,
            self._pointers.ctypes.data,
            self._wanted.ctypes.data,
        )

    def close(self) -> None:
        """Free the context and the model."""
        self._library.free(self._context)
        self._library.model_free(self._model)

    def step(
        self, ids: Sequence[int], positions: Sequence[int], sequences: Sequence[int], wanted: Sequence[bool]
    ) -> bool:
        """Compute tokens; False if the cache has no room for them, and then nothing changes.

        Args:
            wanted: of which tokens the logits are needed.
        Raises:
            LlamaCppError: it fails.
        """
        count = self._batch.n_tokens = len(ids)
        self._ids[:count], self._positions[:count] = ids, positions
        self._sequences[:count], self._wanted[:count] = sequences, wanted
        code = self._library.decode(self._context, self._batch)
        if code not in (0, 1):
            raise self._library.error(f"llama_decode returned {code}")
        return bool(code == 0)

    def logits(self, index: int) -> NDArray[np.float32]:
        """The logits [V] of a token of the last step, as a view that the next one overwrites."""
        address = self._library.get_logits_ith(self._context, index)
        return np.ctypeslib.as_array(_C.cast(address, _C.POINTER(_C.c_float)), (self.vocabulary.size,))

    def best(self, index: int) -> int:
        """The most likely token after a token of the last step."""
        return int(self.logits(index).argmax())

    def copy_prefix(self, source: int, target: int, length: int) -> None:
        """Let a sequence, which is empty, begin with the first tokens of another."""
        self._library.memory_seq_cp(self._memory, source, target, 0, length)

    def cut(self, sequence: int, length: int) -> None:
        """Forget what a sequence has behind its first `length` tokens."""
        self._library.memory_seq_rm(self._memory, sequence, length, -1)

    def clear(self) -> None:
        """Forget all sequences."""
        self._library.memory_clear(self._memory, True)


def _first(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise LlamaCppError(f"{folder}: no {pattern} in this folder; expected the shared libraries of llama.cpp")
    return found[0]
