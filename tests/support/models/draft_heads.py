"""Random draft heads in the layouts of published checkpoints, and what they predict, computed with layers of `transformers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

EAGLE, EAGLE_3, SPECULATORS = "eagle", "eagle3", "speculators"
NUM_DRAFTED = 200  # tokens that a head of EAGLE-3 predicts


def write_head(
    path: Path,
    layout: str,
    target: Any,
    *,
    seed: int = 0,
    norm_before_residual: bool = False,
    tapped: list[int] | None = None,
) -> Path:
    """Write a head for a random Llama or Qwen model.

    Args:
        layout: that of the authors of EAGLE and EAGLE-3, or of the package `speculators` (EAGLE-3).
        target: the model of `transformers`.
        tapped: layers whose inputs a head of EAGLE-3 takes; default: those of its authors.
    """
    path.mkdir(parents=True, exist_ok=True)
    config, generator = target.config, torch.Generator().manual_seed(seed)
    hidden, inner, size = config.hidden_size, config.intermediate_size, config.hidden_size // config.num_attention_heads
    q_size, kv_size = config.num_attention_heads * size, config.num_key_value_heads * size

    def random(*shape: int) -> Tensor:
        noise = torch.randn(shape, generator=generator)
        return 1 + 0.1 * noise if len(shape) == 1 else 0.15 * noise

    is_third = layout != EAGLE
    width = 2 * hidden if is_third else hidden
    prefix = "midlayer." if layout == EAGLE_3 else "layers.0."
    tensors = {
        f"{prefix}self_attn.q_proj.weight": random(q_size, width),
        f"{prefix}self_attn.k_proj.weight": random(kv_size, width),
        f"{prefix}self_attn.v_proj.weight": random(kv_size, width),
        f"{prefix}self_attn.o_proj.weight": random(hidden, q_size),
        f"{prefix}mlp.gate_proj.weight": random(inner, hidden),
        f"{prefix}mlp.up_proj.weight": random(inner, hidden),
        f"{prefix}mlp.down_proj.weight": random(hidden, inner),
        f"{prefix}post_attention_layernorm.weight": random(hidden),
        "fc.weight": random(hidden, (3 if is_third else 2) * hidden),
        "embed_tokens.weight": target.get_input_embeddings().weight.detach().clone(),
    }
    entries = {
        "architectures": ["LlamaForCausalLMEagle3" if is_third else "LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "max_position_embeddings": 2048,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "vocab_size": config.vocab_size,
    }
    if is_third:
        token_ids = torch.randperm(config.vocab_size, generator=generator)[:NUM_DRAFTED].sort().values
        is_drafted = torch.zeros(config.vocab_size, dtype=torch.bool)
        is_drafted[token_ids] = True
        tensors |= {
            f"{prefix}hidden_norm.weight": random(hidden),
            f"{prefix}input_layernorm.weight": random(hidden),
            "norm.weight": random(hidden),
            "lm_head.weight": random(NUM_DRAFTED, hidden),
            "d2t": token_ids - torch.arange(NUM_DRAFTED),
            "t2d": is_drafted,
        }
        entries["draft_vocab_size"] = NUM_DRAFTED
        if tapped is not None:
            entries["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": tapped}
    if layout == SPECULATORS:
        names = ("architectures", "draft_vocab_size")
        layer = {name: value for name, value in entries.items() if name not in names}
        entries = {
            "architectures": ["Eagle3Speculator"],
            "speculators_model_type": "eagle3",
            "draft_vocab_size": NUM_DRAFTED,
            "norm_before_residual": norm_before_residual,
            "transformer_layer_config": layer,
        }
    save_file(tensors, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    return path


def predicted(path: Path, target: Any, token_ids: list[int], num_drafts: int = 0) -> Tensor:
    """Logits [num_tokens - 1 + num_drafts, vocab_size] of a head in float64: after each token but the first, and after the likeliest next
    tokens, for which the head takes its own states.

    Args:
        path: of the head, in any layout of `write_head`.
        target: the model of `transformers`.
    """
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama

    entries = json.loads((path / "config.json").read_text())
    is_third = "layer_config" in str(entries) or "Eagle3" in entries["architectures"][0]
    config = LlamaConfig(**entries.get("transformer_layer_config", entries), attn_implementation="eager")
    tensors = {name: tensor.double() for name, tensor in _load(path).items()}
    layer = modeling_llama.LlamaDecoderLayer(config, 0).double()
    if is_third:
        for name in ("q_proj", "k_proj", "v_proj"):
            linear = getattr(layer.self_attn, name)
            setattr(layer.self_attn, name, nn.Linear(2 * config.hidden_size, linear.out_features, bias=False).double())
        layer.hidden_norm = modeling_llama.LlamaRMSNorm(config.hidden_size, config.rms_norm_eps).double()
    else:
        layer.input_layernorm = nn.Identity()
    prefix = "midlayer." if "midlayer.mlp.up_proj.weight" in tensors else "layers.0."
    layer.load_state_dict(
        {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
    )
    rotary = modeling_llama.LlamaRotaryEmbedding(config)
    norm = modeling_llama.LlamaRMSNorm(config.hidden_size, config.rms_norm_eps).double()
    with torch.no_grad():
        states = _taken(target, token_ids, is_third=is_third)
        if is_third:
            states = states @ tensors["fc.weight"].T
            norm.weight.copy_(tensors["norm.weight"])
        ids = list(token_ids[1:])
        found: list[Tensor] = []
        for draft in range(num_drafts + 1):
            embeddings = target.get_input_embeddings().weight.double()[torch.tensor(ids)][None]
            count = len(ids)
            cos_sin = tuple(each.double() for each in rotary(states, torch.arange(count)[None]))
            mask = torch.full((count, count), float("-inf"), dtype=torch.float64).triu(1)[None, None]
            options = {"attention_mask": mask, "position_embeddings": cos_sin}
            if is_third:
                normed = layer.hidden_norm(states)
                residual = normed if entries.get("norm_before_residual") else states
                joined = torch.cat((layer.input_layernorm(embeddings), normed), -1)
                x = residual + layer.self_attn(joined, **options)[0]
                out = x + layer.mlp(layer.post_attention_layernorm(x))
                drafted = norm(out) @ tensors["lm_head.weight"].T
                logits = torch.full((count, config.vocab_size), float("-inf"), dtype=torch.float64)
                logits[:, torch.arange(NUM_DRAFTED) + tensors["d2t"].long()] = drafted[0]
            else:
                out = layer(torch.cat((embeddings, states), -1) @ tensors["fc.weight"].T, **options)
                out = out[0] if isinstance(out, tuple) else out
                logits = (out @ target.get_output_embeddings().weight.double().T)[0]
            found += [logits] if not draft else [logits[-1:]]
            ids.append(int(logits[-1].argmax()))
            states = torch.cat((states, out[:, -1:]), 1)
    return torch.cat(found)


def _taken(target: Any, token_ids: list[int], *, is_third: bool) -> Tensor:
    """The states of all tokens but the last, as a head takes them from the model: [1, num_tokens - 1, width]."""
    out = target.double().model(torch.tensor([token_ids]), output_hidden_states=True)
    if not is_third:
        return out.last_hidden_state[:, :-1]
    num_layers = target.config.num_hidden_layers
    return torch.cat([out.hidden_states[layer] for layer in (2, num_layers // 2, num_layers - 3)], -1)[:, :-1]


def _load(path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    return load_file(path / "model.safetensors")


def write_mtp(path: Path, target: Any, *, seed: int = 0) -> Any:
    """Add a multi-token prediction layer to the checkpoint of a Qwen3-Next or Qwen3.5 model in `path`; returns a function.

    Args:
        target: the model of `transformers`.
    Returns:
        Takes token ids and gives logits [num_tokens - 1, vocab_size] after each token but the first, in float32.
    """
    config = target.config
    index = config.layer_types.index("full_attention")
    like = target.model.layers[index]
    layer, norms = (
        type(like)(config, index),
        {name: type(like.input_layernorm)(config.hidden_size, config.rms_norm_eps) for name in _MTP_NORMS},
    )
    join = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
    generator = torch.Generator().manual_seed(seed)
    parts = nn.ModuleDict({"layers": nn.ModuleList([layer]), "fc": join, **norms})
    with torch.no_grad():
        for parameter in parts.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.15)
    tensors = _load(path) | {f"mtp.{name}": each.contiguous() for name, each in parts.state_dict().items()}
    save_file(tensors, path / "model.safetensors")
    parts.eval()

    def predict(token_ids: list[int]) -> Tensor:
        with torch.no_grad():
            states = target.model(torch.tensor([token_ids])).last_hidden_state[:, :-1]
            embeddings = target.get_input_embeddings().weight[torch.tensor(token_ids[1:])][None]
            count = len(token_ids) - 1
            joined = torch.cat((norms["pre_fc_norm_embedding"](embeddings), norms["pre_fc_norm_hidden"](states)), -1)
            places = target.model.rotary_emb(states, torch.arange(count)[None])
            mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
            out = layer(join(joined), position_embeddings=places, attention_mask=mask)
            found: Tensor = target.lm_head(norms["norm"](out[0] if isinstance(out, tuple) else out))[0]
            return found

    return predict


_MTP_NORMS = ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")
