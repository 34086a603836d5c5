"""The embedded model's network, as small torch code for training.

A Llama decoder with grouped-query attention and tied embeddings. The weights of all layers lie in one tensor per kind,
[num_layers, out, in], so that the optimizer works on few tensors; `state_dict_for_llama` writes them under the names of
`transformers`' Llama, which is also the oracle that this forward pass is tested against.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from rtlang.model.loading.quantized.int8_rows import SCALE_SUFFIX, int8_config, quantized


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of the network."""

    vocab_size: int = 2048
    hidden_size: int = 256
    num_layers: int = 8
    num_q_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 64
    intermediate_size: int = 1152
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5
    max_positions: int = 1024


# The names of the stacked weights here and of a layer's weight in a Llama checkpoint.
MATRICES = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
NORMS = {"attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"}


class Network(nn.Module):
    """Token ids to hidden states; `logits` turns chosen hidden states into logits."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        generator = torch.Generator().manual_seed(seed)
        layers, hidden, q_size, kv_size = (
            shape.num_layers,
            shape.hidden_size,
            shape.num_q_heads * shape.head_dim,
            shape.num_kv_heads * shape.head_dim,
        )

        def normal(*size: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(size, generator=generator) * size[-1] ** -0.5)

        self.embedding = nn.Parameter(torch.randn(shape.vocab_size, hidden, generator=generator) * 0.03)
        self.q, self.k, self.v = (
            normal(layers, q_size, hidden),
            normal(layers, kv_size, hidden),
            normal(layers, kv_size, hidden),
        )
        self.o = nn.Parameter(torch.zeros(layers, hidden, q_size))
        self.gate, self.up = (
            normal(layers, shape.intermediate_size, hidden),
            normal(layers, shape.intermediate_size, hidden),
        )
        self.down = nn.Parameter(torch.zeros(layers, hidden, shape.intermediate_size))
        self.attention_norm, self.mlp_norm = (
            nn.Parameter(torch.ones(layers, hidden)),
            nn.Parameter(torch.ones(layers, hidden)),
        )
        self.final_norm = nn.Parameter(torch.ones(hidden))

    def forward(self, token_ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Hidden states [B, L, hidden] after the final norm, for token ids [B, L]; causal, positions count from 0.

        `mask` is `causal_mask(L)`: a compiled network adds it faster than it works it out for every score.
        """
        # Weights are used as `x @ weight.T`: the gradient of a weight is then a faster product than `linear`'s on a CPU.
        shape = self.shape
        batch, length = token_ids.shape
        cos, sin = rope_table(shape, length, self.q.dtype)
        mask = causal_mask(length, self.q.dtype) if mask is None else mask
        scaled_cos, scaled_sin = cos * shape.head_dim**-0.5, sin * shape.head_dim**-0.5
        q_w, k_w, v_w, o_w = self.q.unbind(), self.k.unbind(), self.v.unbind(), self.o.unbind()
        gate_w, up_w, down_w = self.gate.unbind(), self.up.unbind(), self.down.unbind()
        norms, mlp_norms = self.attention_norm.unbind(), self.mlp_norm.unbind()
        x = functional.embedding(token_ids, self.embedding)
        for layer in range(shape.num_layers):
            h = functional.rms_norm(x, (shape.hidden_size,), norms[layer], shape.norm_eps)
            q = rotate(in_heads(h @ q_w[layer].T, shape.head_dim), scaled_cos, scaled_sin)
            k = rotate(in_heads(h @ k_w[layer].T, shape.head_dim), cos, sin)
            v = in_heads(h @ v_w[layer].T, shape.head_dim)
            q = q.reshape(batch, shape.num_kv_heads, -1, shape.head_dim)  # [B, Hk, group*L, D]
            # Written out: the fused CPU attention spent 40 % of a training step in its backward pass on these short sequences.
            scores = (q @ k.mT).view(batch, shape.num_q_heads, length, length) + mask
            attended = scores.softmax(-1).view(batch, shape.num_kv_heads, -1, length) @ v
            attended = attended.view(batch, shape.num_q_heads, length, shape.head_dim)
            x = x + attended.transpose(1, 2).reshape(batch, length, -1) @ o_w[layer].T
            h = functional.rms_norm(x, (shape.hidden_size,), mlp_norms[layer], shape.norm_eps)
            x = x + (functional.silu(h @ gate_w[layer].T) * (h @ up_w[layer].T)) @ down_w[layer].T
        return functional.rms_norm(x, (shape.hidden_size,), self.final_norm, shape.norm_eps)

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., hidden] to [..., vocab_size]."""
        return functional.linear(hidden, self.embedding)


def causal_mask(length: int, dtype: torch.dtype) -> Tensor:
    """[length, length] of what to add to the scores: 0 for a key at or before the query, else minus infinity."""
    return torch.full((length, length), float("-inf"), dtype=dtype).triu(1)


def rope_table(shape: Shape, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines [length, head_dim] of the rotary embedding, both halves alike."""
    frequencies = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies).repeat(1, 2)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def in_heads(x: Tensor, head_dim: int) -> Tensor:
    """[B, L, H * D] as [B, H, L, D]."""
    return x.view(*x.shape[:-1], -1, head_dim).transpose(1, 2)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply the rotary embedding to [B, H, L, D]."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def llama_views(network: Network) -> dict[str, Tensor]:
    """The weights under the names of a `transformers` Llama checkpoint, as views of the network's; the head is tied and not there."""
    weights: dict[str, Tensor] = {
        "model.embed_tokens.weight": network.embedding,
        "model.norm.weight": network.final_norm,
    }
    for layer in range(network.shape.num_layers):
        for own, name in (MATRICES | NORMS).items():
            weights[f"model.layers.{layer}.{name}.weight"] = getattr(network, own)[layer]
    return {name: weight.detach() for name, weight in weights.items()}


def state_dict_for_llama(network: Network, dtype: torch.dtype = torch.bfloat16) -> dict[str, Tensor]:
    """A copy of the weights under the names of a `transformers` Llama checkpoint."""
    return {name: weight.to(dtype, copy=True) for name, weight in llama_views(network).items()}


def load_llama(network: Network, state: Mapping[str, Tensor]) -> None:
    """Take over the weights of a Llama checkpoint, the inverse of `state_dict_for_llama`.

    Raises:
        ValueError: a tensor is missing, of another shape or unknown; names it. The network is as it was.
    """
    views = llama_views(network)
    for name, view in views.items():
        if name not in state or state[name].shape != view.shape:
            found = f"has shape {list(state[name].shape)}" if name in state else "is missing"
            raise ValueError(f"tensor {name} {found}; {list(view.shape)} is needed")
    if unknown := sorted(state.keys() - views.keys()):
        raise ValueError(f"tensor {unknown[0]} is unknown")
    for name, view in views.items():
        view.copy_(state[name])


def deepened(state: Mapping[str, Tensor], found: int, wanted: int) -> dict[str, Tensor]:
    """The weights of a Llama checkpoint of `found` layers as those of one of `wanted`, which says the same.

    A new layer follows the middle one and is its copy, but adds nothing until trained: its matrices `o` and `down` are zero.
    """
    weights = dict(state)
    for count in range(found, wanted):
        middle = (count - 1) // 2
        for layer in range(count - 1, middle - 1, -1):  # of the middle one, a copy
            old, new = f"model.layers.{layer}.", f"model.layers.{layer + 1}."
            weights |= {new + name.removeprefix(old): weights[name] for name in list(weights) if name.startswith(old)}
        for own in ("o", "down"):
            name = f"model.layers.{middle + 1}.{MATRICES[own]}.weight"
            if name in weights:
                weights[name] = torch.zeros_like(weights[name])
    return weights


def int8_state_dict_for_llama(network: Network) -> dict[str, Tensor]:
    """`state_dict_for_llama`, but the layers' matrices are int8 and stand beside their float32 scales [out, 1]."""
    weights = state_dict_for_llama(network)
    for layer in range(network.shape.num_layers):
        for own, name in MATRICES.items():
            full = f"model.layers.{layer}.{name}.weight"
            weights[full], weights[full + SCALE_SUFFIX] = quantized(getattr(network, own)[layer].detach())
    return weights


def llama_config(shape: Shape, eos_token_id: int, pad_token_id: int) -> dict[str, object]:
    """The `config.json` of the checkpoint that holds `int8_state_dict_for_llama`."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "eos_token_id": eos_token_id,
        "pad_token_id": pad_token_id,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": shape.intermediate_size,
        "max_position_embeddings": shape.max_positions,
        "mlp_bias": False,
        "num_attention_heads": shape.num_q_heads,
        "num_hidden_layers": shape.num_layers,
        "num_key_value_heads": shape.num_kv_heads,
        "rms_norm_eps": shape.norm_eps,
        "rope_theta": shape.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_theta},
        "tie_word_embeddings": True,
        "quantization_config": int8_config(),
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": shape.vocab_size,
    }
