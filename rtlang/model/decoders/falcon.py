"""Paged attention for Falcon, whose `transformers` code bypasses the library's attention interface.

The forward method of each attention module is replaced by one that reuses the module's projections, heads and rotation and passes the
attention itself to a function with the interface's signature. The self-check of the transformers decoder compares the result with the
stock model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

Attend = Callable[..., tuple[Tensor, None]]
"""Signature of the attention interface: module, query [1, Hq, T, D], key and value [1, Hk, T, D], mask, scaling=... -> [1, T, Hq, D]."""


def replace_attention(model: Any, attend: Attend) -> str | None:
    """Make every attention module of a Falcon model call `attend`.

    Returns:
        The reason if the model is not supported, else None.
    """
    if model.config.alibi:
        return "its ALiBi position biases are not supported"
    for block in model.transformer.h:
        block.self_attention.forward = _forward_of(block.self_attention, attend)
    return None


def _forward_of(module: Any, attend: Attend) -> Callable[..., tuple[Tensor, None]]:
    from transformers.models.falcon.modeling_falcon import apply_rotary_pos_emb

    # The new architecture repeats keys and values for each query head of a group; keep one per group.
    group = module.num_heads // module.num_kv_heads if module.new_decoder_architecture else 1

    def forward(hidden_states: Tensor, *_: Any, position_embeddings: tuple[Tensor, Tensor], **__: Any) -> Any:
        query, key, value = module._split_heads(module.query_key_value(hidden_states))  # [1, T, H, D]
        query, key, value = (x.transpose(1, 2) for x in (query, key[:, :, ::group], value[:, :, ::group]))
        query, key = apply_rotary_pos_emb(query, key, *position_embeddings)
        out, _weights = attend(module, query, key, value, None, scaling=module.inv_norm_factor)
        return module.dense(out.flatten(2)), None

    return forward
