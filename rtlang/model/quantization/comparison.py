"""Compares what two checkpoints predict after each token of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.model.batch import Batch
from rtlang.model.layers.attention import PagedKV, StepAttention
from rtlang.model.layers.states import StateMemory, StepStates
from rtlang.model.loader import load_model

_PAGE_SIZE = 16


@dataclass(frozen=True, slots=True)
class Difference:
    """How a model's predictions differ from those of another one.

    Attributes:
        divergence: mean KL divergence from the other model's distribution of the next token, in nats.
        agreement: share of the tokens after which both prefer the same next token, 0 to 1.
        perplexity, other_perplexity: of the text, by the model and by the other one.
        num_tokens: of the text.
    """

    divergence: float
    agreement: float
    perplexity: float
    other_perplexity: float
    num_tokens: int


def difference(model: str, other: str, token_ids: Sequence[int], *, dtype: str = "auto") -> Difference:
    """Compare a model with another one over a text; both are loaded, one after the other.

    Raises:
        ModelLoadError: one of them cannot be loaded.
    """
    ours, theirs = (functional.log_softmax(text_logits(each, token_ids, dtype=dtype), -1) for each in (model, other))
    return compared(ours, theirs, token_ids)


def compared(ours: Tensor, theirs: Tensor, token_ids: Sequence[int]) -> Difference:
    """The difference of log-probabilities [num_tokens, vocab_size] of two models after each token of a text."""
    divergence = (theirs.exp() * (theirs - ours)).nan_to_num(0.0).sum(-1)
    following = torch.tensor(token_ids[1:])[:, None]
    perplexities = [float(each[:-1].gather(1, following).mean().neg().exp()) for each in (ours, theirs)]
    agreement = (ours.argmax(-1) == theirs.argmax(-1)).float().mean()
    return Difference(float(divergence.mean()), float(agreement), perplexities[0], perplexities[1], len(token_ids))


def compared_logits(ours: Tensor, theirs: NDArray[np.float32], token_ids: Sequence[int]) -> Difference:
    """As `compared`, for logits [num_tokens, vocab_size] of ours and of another program; one may be padded to a larger vocabulary."""
    size = min(ours.shape[1], theirs.shape[1])
    first, second = (functional.log_softmax(each[:, :size], -1) for each in (ours, torch.from_numpy(theirs)))
    return compared(first, second, token_ids)


def text_logits(model: str, token_ids: Sequence[int], *, dtype: str = "auto") -> Tensor:
    """Logits of a model after each token of a text: float32 [num_tokens, vocab_size].

    Raises:
        ModelLoadError: it cannot be loaded.
    """
    decoder = load_model(RuntimeConfig(model=model, dtype=dtype, max_model_len=max(16, len(token_ids))))[0]
    num_pages = -(-len(token_ids) // _PAGE_SIZE)
    kv = PagedKV(decoder.geometries, num_pages, _PAGE_SIZE, decoder.dtype)
    tokens = tuple(token_ids)
    row = Row(0, tokens, 0, tuple(range(num_pages)), 0, False, SamplingParams(), score_token_ids=tokens)
    memory = StateMemory(decoder.state_shapes, 1) if decoder.state_shapes else None
    if memory is not None:
        row = row._replace(states=RowStates(None, ((len(tokens), 0),)))
    batch = Batch.from_step(Step(0, (row,)), _PAGE_SIZE)
    step_states = None if memory is None or batch.states is None else StepStates(memory, batch.states)
    with torch.inference_mode():
        states = decoder.forward(StepAttention(batch, kv, states=step_states))
        return decoder.project(states).float()
