"""Tiny random checkpoints with a real tokenizer, made on the spot for tests.

`make_checkpoint` writes what a published model directory holds: config.json, model.safetensors, tokenizer.json and
tokenizer_config.json. Weights are seeded and large enough that greedy text varies; the tokenizer is byte-level, so
that every string can be encoded and every token is a single byte or a special token.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

NUM_SPECIAL_TOKENS = 3
VOCAB_SIZE = 256 + NUM_SPECIAL_TOKENS
BOS_TOKEN, EOS_TOKEN, PAD_TOKEN = "<s>", "</s>", "<pad>"
BOS_TOKEN_ID, EOS_TOKEN_ID, PAD_TOKEN_ID = 256, 257, 258

_BASE: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": BOS_TOKEN_ID,
    "eos_token_id": EOS_TOKEN_ID,
    "pad_token_id": PAD_TOKEN_ID,
    "tie_word_embeddings": False,
}

# What each family needs besides _BASE to be small and to show what is its own (bias, qk-norm, window, soft cap, sinks).
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", {}),
    "mistral": ("MistralConfig", {"sliding_window": 24}),
    "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", {"head_dim": 32}),
    "gemma": ("GemmaConfig", {"head_dim": 32}),
    "gemma2": ("Gemma2Config", {"head_dim": 32, "sliding_window": 24, "query_pre_attn_scalar": 24}),
    "gemma3": ("Gemma3TextConfig", {"head_dim": 32, "sliding_window": 24, "num_hidden_layers": 6}),
    "gpt2": (
        "GPT2Config",
        {
            "vocab_size": VOCAB_SIZE,
            "n_embd": 64,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 512,
            "bos_token_id": BOS_TOKEN_ID,
            "eos_token_id": EOS_TOKEN_ID,
        },
    ),
    "gpt_oss": (
        "GptOssConfig",
        {"head_dim": 32, "sliding_window": 24, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "phi3": ("Phi3Config", {}),
    "olmo2": ("Olmo2Config", {}),
    "granite": ("GraniteConfig", {"attention_multiplier": 0.2, "residual_multiplier": 0.5, "logits_scaling": 2.0}),
    "cohere2": ("Cohere2Config", {"sliding_window": 24}),
    "starcoder2": ("Starcoder2Config", {}),
    "gpt_neox": ("GPTNeoXConfig", {}),
    "opt": ("OPTConfig", {"ffn_dim": 96, "word_embed_proj_dim": 64}),
    "deepseek_v3": (
        "DeepseekV3Config",
        {
            "num_key_value_heads": 4,
            "q_lora_rank": 32,
            "kv_lora_rank": 16,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 12,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "moe_intermediate_size": 32,
            "first_k_dense_replace": 1,
        },
    ),
    "falcon": ("FalconConfig", {}),
    "mamba": (
        "MambaConfig",
        {"vocab_size": VOCAB_SIZE, "hidden_size": 64, "num_hidden_layers": 2, "state_size": 8},
    ),
}


def make_model(family: str = "llama", *, seed: int = 0, **overrides: Any) -> Any:
    """A random `transformers` causal model in float32, eval mode, of a `FAMILIES` name; overrides go to its config."""
    import transformers

    class_name, own = FAMILIES[family]
    settings = {**own, **overrides} if family in ("gpt2", "mamba") else {**_BASE, **own, **overrides}
    return random_model(getattr(transformers, class_name)(**settings), seed=seed)


def random_model(config: Any, *, seed: int = 0, class_name: str | None = None) -> Any:
    """A random model of a `transformers` config, in float32, eval mode; of the named class, or else the causal one of the config."""
    import transformers

    torch.manual_seed(seed)
    if class_name is None:
        model = transformers.AutoModelForCausalLM.from_config(config)
    else:
        model = getattr(transformers, class_name)(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                parameter.normal_(0.0, 0.15, generator=generator)
            else:  # norms and biases: near what the model starts from, but never all equal
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return model.float().eval()


def plant_outliers(model: Any, factor: float = 30.0) -> None:
    """Give a random model what trained ones have: channels whose norm gains, and the rows that write them, are `factor` times as large."""
    hidden = int(model.config.get_text_config(decoder=True).hidden_size)
    channels = torch.tensor([hidden // 5, hidden // 2])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_row = parameter.ndim == 2 and name.endswith(("o_proj.weight", "down_proj.weight", "c_proj.weight"))
            if parameter.shape[0] == hidden and ((parameter.ndim == 1 and "norm" in name) or is_row):
                parameter[channels] *= factor


def make_tokenizer_json() -> dict[str, Any]:
    """A byte-level tokenizer.json: token id = byte value, then bos, eos and pad; bos is put before every text."""
    byte_of = _byte_characters()
    specials = [(BOS_TOKEN_ID, BOS_TOKEN), (EOS_TOKEN_ID, EOS_TOKEN), (PAD_TOKEN_ID, PAD_TOKEN)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token_id,
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token_id, content in specials
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": BOS_TOKEN, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [
                {"SpecialToken": {"id": BOS_TOKEN, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 0}},
            ],
            "special_tokens": {BOS_TOKEN: {"id": BOS_TOKEN, "ids": [BOS_TOKEN_ID], "tokens": [BOS_TOKEN]}},
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {
                **{character: byte for byte, character in byte_of.items()},
                **{content: token_id for token_id, content in specials},
            },
            "merges": [],
        },
    }


def write_tokenizer(path: Path) -> None:
    """Put tokenizer.json and tokenizer_config.json into the directory `path`."""
    (path / "tokenizer.json").write_text(json.dumps(make_tokenizer_json(), ensure_ascii=False), encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS_TOKEN,
        "eos_token": EOS_TOKEN,
        "pad_token": PAD_TOKEN,
        "add_bos_token": True,
        "model_max_length": 512,
        "clean_up_tokenization_spaces": False,
    }
    (path / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")


def make_checkpoint(path: Path, family: str = "llama", *, seed: int = 0, **overrides: Any) -> Path:
    """Write a tiny random checkpoint of `family` (a key of `FAMILIES`) into the directory `path`, and return it.

    Args:
        path: made if missing.
        seed: of the weights.
        overrides: fields of the model's config, for example num_hidden_layers=4 or tie_word_embeddings=True.
    """
    return save_checkpoint(make_model(family, seed=seed, **overrides), path)


def save_checkpoint(model: Any, path: Path) -> Path:
    """Write a model and the tokenizer into the directory `path`, made if missing, and return it."""
    path.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(path)
    write_tokenizer(path)
    return path


def _byte_characters() -> dict[int, str]:
    """The printable stand-in of every byte in byte-level tokenizers."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}
