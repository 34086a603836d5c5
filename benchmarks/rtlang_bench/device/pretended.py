"""A pretended GPU: a runtime in which the device's work is replaced by nothing, so that the time that is left is the host's.

Kernels are not launched, the decoder returns zeros, and rows sample the tokens of a script. Planning, packing, small copies and
everything above them run as on a GPU of sm_90.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from rtlang.bench.checkpoint import write_config
from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.loader import model_directory
from rtlang_kernels.planning import tile_sizes

ENVIRONMENT = {"TRITON_INTERPRET": "1", "RTLANG_KERNELS": "triton"}
VOCAB_SIZE = 128_256
SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 8_192,
    "tie_word_embeddings": False,
}
MOST_TOKENS = 1 << 16
"""Maximum number of states of a step."""
_NUM_MULTIPROCESSORS, _L2_BYTES = 132, 50 << 20


class Script:
    """The tokens that rows sample. Each noise key, and so each request with a seed of its own, gets one of the texts, in turn."""

    def __init__(self) -> None:
        self.set([[0]])

    def set(self, texts: Sequence[Sequence[int]]) -> None:
        """Replace the texts, as token ids; after its end a text repeats its last token."""
        self._texts = np.empty((len(texts), max(map(len, texts))), dtype=np.int64)
        for line, text in zip(self._texts, texts, strict=True):
            line[: len(text)], line[len(text) :] = text, text[-1]
        self._text_of: dict[int, int] = {}  # by key
        self._last = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)  # keys of the last step, and their texts

    def sampled(self, keys: Tensor, steps: Tensor) -> Tensor:
        """The token of each row: int64 [num_rows].

        Args:
            keys, steps: int64 [num_rows], noise keys and numbers of output tokens.
        """
        if not np.array_equal(keys, self._last[0]):
            found = [self._text_of.setdefault(key, len(self._text_of)) for key in keys.tolist()]
            self._last = keys.numpy().copy(), np.array(found, dtype=np.int64) % len(self._texts)
        at = np.minimum(steps.numpy(), self._texts.shape[1] - 1)
        return torch.from_numpy(self._texts[self._last[1], at])


def write_model(folder: Path) -> Path:
    """Write the config.json of a small model with the vocabulary and heads of an 8B Llama to `folder`; returns it."""
    write_config(folder, model_directory(EMBEDDED_MODEL), "llama", SHAPE)
    return folder


@contextmanager
def pretended_device() -> Iterator[Script]:
    """Replace the work of device "interpreter" until the exit; yields the script of all rows.

    `ENVIRONMENT` must be set before triton is first imported.

    Raises:
        RuntimeError: triton was imported without it.
    """
    from triton import knobs
    from triton.runtime.interpreter import InterpretedFunction

    from rtlang_kernels.triton.sampling import sampler

    if not knobs.runtime.interpret or os.environ.get("RTLANG_KERNELS") != ENVIRONMENT["RTLANG_KERNELS"]:
        raise RuntimeError(f"expected the environment {ENVIRONMENT} before triton is imported")
    script = Script()
    states = torch.zeros(MOST_TOKENS, 1, dtype=torch.bfloat16)
    logits = torch.zeros(1, VOCAB_SIZE, dtype=torch.bfloat16)
    gpu = tile_sizes.GpuProperties("sm_90", _NUM_MULTIPROCESSORS, _L2_BYTES)

    def sample_staged(logits: Tensor, staged: sampler.StagedSettings) -> tuple[Tensor, Tensor]:
        keys, steps = (each.view(torch.int64).reshape(-1) for each in (staged.keys, staged.steps))
        return script.sampled(keys, steps), torch.ones(len(logits), dtype=torch.bool)

    with ExitStack() as stack:
        for target, name, new in (
            (tile_sizes, "gpu_properties", lambda device: gpu),
            (NativeDecoder, "forward", lambda self, attention: states[: len(attention.batch.logit_indices)]),
            (NativeDecoder, "project", lambda self, states: logits.expand(len(states), VOCAB_SIZE)),
            (InterpretedFunction, "run", lambda self, *args, **kwargs: None),
            (sampler, "sample_staged", sample_staged),
        ):
            stack.enter_context(patch.object(target, name, new))
        yield script
