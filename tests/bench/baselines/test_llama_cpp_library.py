"""What is handed to llama.cpp's functions, and which folders and versions are refused."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtlang.bench.baselines.llama_cpp_library import (
    LlamaContext,
    LlamaCpp,
    LlamaCppError,
    _Batch,
    _ContextParams,
    _ModelParams,
)

VOCABULARY = 8


class Library(SimpleNamespace):
    """Functions with the effects of llama.cpp's: they note what they get, and the logits are the ids of the tokens."""

    def __init__(self, **changed: Any) -> None:
        self.params = _ContextParams()
        self.batches: list[list[tuple[int, int, int, bool]]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.table = np.zeros((16, VOCABULARY), dtype=np.float32)
        self.changed = changed

    version_name = "9"

    def error(self, what: str) -> LlamaCppError:
        return LlamaCppError(what)

    def model_default_params(self) -> _ModelParams:
        return _ModelParams()

    def context_default_params(self) -> _ContextParams:
        return _ContextParams()

    def model_load_from_file(self, path: bytes, params: Any) -> int:
        return 0 if b"broken" in path else 1

    def init_from_model(self, model: int, params: _ContextParams) -> int:
        self.params = params
        return 2

    def model_get_vocab(self, model: int) -> int:
        return 3

    def vocab_n_tokens(self, vocab: int) -> int:
        return VOCABULARY

    def get_memory(self, context: int) -> int:
        return 4

    def __getattr__(self, name: str) -> Any:
        if name.startswith("n_"):
            field = "n_ctx" if name == "n_ctx_seq" else name
            return lambda context: self.changed.get(name, getattr(self.params, field))
        if name.startswith("memory_"):
            return lambda *arguments: self.calls.append((name, *arguments))
        raise AttributeError(name)

    def decode(self, context: int, batch: _Batch) -> int:
        def read(address: int, kind: Any) -> list[int]:
            return list(ctypes.cast(address, ctypes.POINTER(kind))[: batch.n_tokens])

        ids, positions = read(batch.token, ctypes.c_int32), read(batch.pos, ctypes.c_int32)
        assert read(batch.n_seq_id, ctypes.c_int32) == [1] * batch.n_tokens
        assert batch.embd is None
        sequences = [
            ctypes.cast(address, ctypes.POINTER(ctypes.c_int32))[0] for address in read(batch.seq_id, ctypes.c_uint64)
        ]
        wanted = map(bool, read(batch.logits, ctypes.c_int8))
        self.batches.append(list(zip(ids, positions, sequences, wanted, strict=True)))
        for row, token in enumerate(ids):
            self.table[row] = 0
            self.table[row, token] = 1
        return self.changed.get("code", 0)

    def get_logits_ith(self, context: int, index: int) -> int:
        return self.table.ctypes.data + 4 * VOCABULARY * index


def context(path: str = "model.gguf", **changed: Any) -> tuple[LlamaContext, Library]:
    library: Any = Library(**changed)
    made = LlamaContext(library, Path(path), num_tokens=64, num_sequences=4, num_threads=2)
    return made, library


def test_a_batch_has_the_tokens_of_all_sequences() -> None:
    made, library = context()
    params = library.params
    assert (params.n_ctx, params.n_seq_max, params.n_threads, params.n_threads_batch) == (64, 4, 2, 2)
    assert params.kv_unified
    assert made.step([5, 6], [0, 3], [1, 2], [False, True])
    assert made.step([7], [4], [2], [True])
    assert library.batches == [[(5, 0, 1, False), (6, 3, 2, True)], [(7, 4, 2, True)]]
    assert made.best(0) == 7
    assert made.logits(0).tolist() == [0, 0, 0, 0, 0, 0, 0, 1]
    made.copy_prefix(1, 3, 9)
    made.cut(3, 2)
    made.clear()
    assert library.calls == [
        ("memory_seq_cp", 4, 1, 3, 0, 9),
        ("memory_seq_rm", 4, 3, 2, -1),
        ("memory_clear", 4, True),
    ]


def test_a_full_cache_is_told_and_a_failure_raised() -> None:
    assert not context(code=1)[0].step([1], [0], [0], [True])
    with pytest.raises(LlamaCppError, match="returned -3"):
        context(code=-3)[0].step([1], [0], [0], [True])


@pytest.mark.parametrize("name", ["n_seq_max", "n_threads", "n_threads_batch", "n_ctx_seq", "n_ctx"])
def test_a_version_with_other_structures_is_refused(name: str) -> None:
    with pytest.raises(LlamaCppError, match=r"llama\.cpp 9 has other structures"):
        context(**{name: 1})


def test_a_file_that_llama_cpp_refuses_is_named() -> None:
    with pytest.raises(LlamaCppError, match=r"broken\.gguf"):
        context("broken.gguf")


def test_a_folder_without_libraries_is_named(tmp_path: Path) -> None:
    with pytest.raises(LlamaCppError, match=r"no libggml-base\*\.so"):
        LlamaCpp(tmp_path)
    for name in ("libggml-base.so", "libggml.so", "libllama.so"):
        (tmp_path / name).write_bytes(b"no library")
    with pytest.raises(LlamaCppError, match=str(tmp_path)):
        LlamaCpp(tmp_path)
