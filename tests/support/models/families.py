"""Every family of causal models that is tested: its tiny configurations, and whether it is served or refused.

A case is a configuration of `transformers`, named as its class would be in a checkpoint (`model_type`), small enough to be made on the
spot. Sizes that most configurations share come from `_SIZES`, of which each takes the ones that it knows.
"""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from typing import Any

from tests.support.models.tiny_models import BOS_TOKEN_ID, EOS_TOKEN_ID, PAD_TOKEN_ID, VOCAB_SIZE

MAX_LEN = 64
"""Longest sequence of a case in tokens."""

_SIZES: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "sliding_window": 10,
    "bos_token_id": BOS_TOKEN_ID,
    "eos_token_id": EOS_TOKEN_ID,
    "pad_token_id": PAD_TOKEN_ID,
    "tie_word_embeddings": False,
    # mixtures of experts
    "num_local_experts": 4,
    "num_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "moe_shared_expert_intermediate_size": 32,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    # latent attention
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    # older names
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 512,
    "ffn_dim": 96,
    "word_embed_proj_dim": 64,
}
_ALL_HEADS = {"num_key_value_heads": 4}
_LOCAL_AND_GLOBAL = {"layer_types": ["sliding_attention", "full_attention"]}
_TEXT = {name: _SIZES[name] for name in [*list(_SIZES)[:8], "bos_token_id", "eos_token_id", "pad_token_id"]}
_VISION = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}
_LINEAR = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
}
_MAMBA2 = {"mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 8}
_DELTA_AND_FULL = {"layer_types": ["linear_attention", "full_attention"]}
_SHORT = {"long_factor": [1.5] * 8, "short_factor": [1.1] * 8, "original_max_position_embeddings": MAX_LEN}


def _rope(kind: str, **entries: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 1e4, **entries}}


_ROPES: dict[str, dict[str, Any]] = {
    "linear rope": _rope("linear", factor=2.0),
    "llama3 rope": _rope(
        "llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32
    ),
    "yarn rope": _rope("yarn", factor=4.0, original_max_position_embeddings=32),
    "dynamic rope up to its original length": _rope("dynamic", factor=2.0, original_max_position_embeddings=MAX_LEN),
    "longrope up to its original length": _rope("longrope", factor=8.0, **_SHORT),
}


_YARN_BY_TYPE = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    "full_attention": _ROPES["yarn rope"]["rope_parameters"],
}
_LEAN_ROPES = ("linear rope", "llama3 rope")  # that the native decoder computes for Llama


DIVIDED, ATTENTION_WHOLE, NOT_DIVIDED = "yes", "yes, attention whole", "no"
# by the plans of the installed transformers
_UNDIVIDED = frozenset(
    (
        *("gpt_bigcode", "gpt2", "falcon", "gpt_oss", "hunyuan_v1_dense", "jetmoe", "opt", "persimmon"),
        *("stablelm", "biogpt", "bitnet", "modernbert-decoder", "ctrl"),
    )
)
_WITH_WHOLE_ATTENTION = frozenset(
    (
        *("phi3", "olmo2", "olmo3", "olmoe", "flex_olmo", "granitemoe", "granitemoeshared", "deepseek_v3"),
        *("hunyuan_v1_moe", "afmoe", "minimax_m2", "youtu", "sarvam_mla", "axk1"),
    )
)
WRONGLY_DIVIDED = frozenset(("gemma3n_text",))
"""Families whose plan gives other logits, so that they are refused when they are loaded."""


@dataclass(frozen=True, slots=True)
class Family:
    """One row of the table: models that share their code.

    Attributes:
        title: as people call it.
        model_type: as config.json does.
        settings: of its tiny configuration, over `_SIZES`.
        variants: more configurations, by name; each is tested like the plain one.
        is_native: whether the native decoder computes it too (all but some rope kinds).
        without_graphs: variants (None: the plain one) whose code reads values back from the device in every step, so that on a GPU no
            graph of it can be replayed.
        has_states: whether some layers are recurrent: it is served on a CPU, and its layers are not divided.
        refusal: what the refusal at load says, None where the family is served.
    """

    title: str
    model_type: str
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    variants: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    is_native: bool = False
    without_graphs: tuple[str | None, ...] = ()
    has_states: bool = False
    refusal: str | None = None

    @property
    def division(self) -> str:
        """What the ranks of tensor parallelism divide."""
        if self.has_states or self.model_type in _UNDIVIDED or self.model_type in WRONGLY_DIVIDED:
            return NOT_DIVIDED
        return ATTENTION_WHOLE if self.model_type in _WITH_WHOLE_ATTENTION else DIVIDED


_RELATIVE: dict[str, Any] = {
    "head_dim": 16,
    "swa_head_dim": 16,
    "swa_num_attention_heads": 4,
    "swa_num_key_value_heads": 2,
    "d_rel": 8,
    "rel_extent": 16,
    "sliding_window_size": 10,
    "layer_types": ["hybrid", "hybrid_sliding"],
}
_SELECTED = {
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 16,
    "indexer_budget": 64,
    "indexer_compress_ratio": 4,
    "hc_count": 2,
    "hc_lowrank": 8,
}

_OWN_ATTENTION = "its attention cannot be replaced"
_STATES_INSIDE = "its layers keep their states inside of their modules"
_OTHER_INPUTS = "keeps inputs for something else than a short convolution"
_NO_POSITIONS = "its forward method must accept both position_ids and logits_to_keep"

FAMILIES: tuple[Family, ...] = (
    Family(
        "Llama 2, Llama 3",
        "llama",
        variants={
            **_ROPES,
            "biases": {"attention_bias": True, "mlp_bias": True},
            "one KV head": {"num_key_value_heads": 1},
            "tied embeddings": {"tie_word_embeddings": True},
        },
        is_native=True,
        without_graphs=("dynamic rope up to its original length",),
    ),
    Family("Mistral", "mistral", variants={"full attention": {"sliding_window": None}}, is_native=True),
    Family("Ministral", "ministral", {"head_dim": 16, **_LOCAL_AND_GLOBAL}),
    Family("Ministral 3", "ministral3"),
    Family(
        "Qwen2, Qwen2.5",
        "qwen2",
        variants={"sliding window": {"use_sliding_window": True, "max_window_layers": 1}},
        is_native=True,
    ),
    Family("Qwen3", "qwen3", {"head_dim": 32}, is_native=True),
    Family("Gemma", "gemma", {"head_dim": 32}, is_native=True),
    Family(
        "Gemma 2",
        "gemma2",
        {"head_dim": 32, "query_pre_attn_scalar": 24, "attn_logit_softcapping": 2.0, **_LOCAL_AND_GLOBAL},
        is_native=True,
    ),
    Family("Gemma 3 (text)", "gemma3_text", {"head_dim": 32, **_LOCAL_AND_GLOBAL}, is_native=True),
    Family(
        "Gemma 3 (of text and images; text is served)",
        "gemma3",
        {
            "text_config": {**_TEXT, "head_dim": 32, **_LOCAL_AND_GLOBAL},
            "vision_config": _VISION,
            "image_token_index": 3,
            "boi_token_index": 4,
            "eoi_token_index": 5,
        },
        is_native=True,
    ),
    Family(
        "Gemma 3n (text)",
        "gemma3n_text",
        {
            "head_dim": 16,
            "num_hidden_layers": 4,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": VOCAB_SIZE,
            "num_kv_shared_layers": 2,
            "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0],
            "laurel_rank": 8,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
        },
        without_graphs=(None,),
    ),
    Family(
        "Gemma 4 (text)",
        "gemma4_text",
        {
            "head_dim": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": VOCAB_SIZE,
            "num_kv_shared_layers": 0,
            **_LOCAL_AND_GLOBAL,
        },
        variants={
            "experts": {"enable_moe_block": True, "top_k_experts": 2, "moe_intermediate_size": 32},
            "shared KV layers": {
                "num_hidden_layers": 4,
                "layer_types": ["sliding_attention", "full_attention"] * 2,
                "num_kv_shared_layers": 2,
            },
        },
    ),
    Family("VaultGemma", "vaultgemma", {"head_dim": 32, **_LOCAL_AND_GLOBAL}),
    Family("Phi-1, Phi-1.5, Phi-2", "phi"),
    Family(
        "Phi-3, Phi-4",
        "phi3",
        variants={
            "longrope up to its original length": {
                "original_max_position_embeddings": MAX_LEN,
                **_rope("longrope", **_SHORT),
            },
            "partial rotary": {"partial_rotary_factor": 0.5},
        },
        is_native=True,
    ),
    Family("SmolLM3", "smollm3", {"no_rope_layers": [1, 0]}, is_native=True),
    Family("OLMo", "olmo", variants={"clipped": {"clip_qkv": 0.5}}),
    Family("OLMo 2", "olmo2", is_native=True),
    Family(
        "OLMo 3",
        "olmo3",
        _LOCAL_AND_GLOBAL,
        variants={"yarn rope of full attention": {"rope_parameters": _YARN_BY_TYPE}},
        is_native=True,
    ),
    Family("OLMoE", "olmoe"),
    Family("FlexOlmo", "flex_olmo"),
    Family(
        "Granite",
        "granite",
        {"attention_multiplier": 0.2, "residual_multiplier": 0.5, "embedding_multiplier": 2.0, "logits_scaling": 2.0},
        is_native=True,
    ),
    Family("Granite MoE", "granitemoe", {"attention_multiplier": 0.2}),
    Family("Granite MoE, shared experts", "granitemoeshared", {"attention_multiplier": 0.2}),
    Family("Granite with sliding windows", "granite_swa"),
    Family("Granite MoE with sliding windows", "granitemoe_swa"),
    Family("StarCoder2", "starcoder2", {"use_bias": True}),
    Family("StarCoder (GPT-BigCode)", "gpt_bigcode", variants={"all KV heads": {"multi_query": False}}),
    Family("GPT-2", "gpt2", variants={"scaled by layer": {"scale_attn_by_inverse_layer_idx": True}}),
    Family("GPT-NeoX, Pythia", "gpt_neox", variants={"sequential residual": {"use_parallel_residual": False}}),
    Family("GPT-NeoX Japanese", "gpt_neox_japanese", refusal=_OWN_ATTENTION),
    Family(
        "Falcon",
        "falcon",
        {"alibi": False},
        variants={
            "new decoder architecture": {"new_decoder_architecture": True, "num_kv_heads": 2},
            "all KV heads": {"multi_query": False, "parallel_attn": False, "bias": True},
        },
    ),
    Family(
        "Mixtral",
        "mixtral",
        {"sliding_window": None},
        variants={"sliding window": {"sliding_window": 10}},
        is_native=True,
    ),
    Family(
        "Qwen2-MoE",
        "qwen2_moe",
        {"decoder_sparse_step": 1},
        variants={"weights divided by their sum": {"norm_topk_prob": True}},
        is_native=True,
    ),
    Family(
        "Qwen3-MoE",
        "qwen3_moe",
        {"head_dim": 32, "decoder_sparse_step": 1},
        variants={
            "weights divided by their sum": {"norm_topk_prob": True},
            "some layers dense": {"num_hidden_layers": 4, "decoder_sparse_step": 2, "mlp_only_layers": [3]},
        },
        is_native=True,
    ),
    Family("GPT-OSS", "gpt_oss", {"head_dim": 32, **_LOCAL_AND_GLOBAL}, is_native=True),
    Family("DeepSeek-V2", "deepseek_v2", {**_ALL_HEADS, "n_shared_experts": 1}),
    Family("DeepSeek-V3, R1", "deepseek_v3", {**_ALL_HEADS, "n_shared_experts": 1}),
    Family("Sarvam (latent attention)", "sarvam_mla", {**_ALL_HEADS, "n_shared_experts": 1}),
    Family("A.X K1", "axk1", {**_ALL_HEADS, "n_shared_experts": 1}),
    Family("Command R (Cohere)", "cohere", variants={"norms of q and k": {"use_qk_norm": True}}),
    Family("Command R7B, A (Cohere 2)", "cohere2", _LOCAL_AND_GLOBAL),
    Family("Cohere 2 MoE", "cohere2_moe", _LOCAL_AND_GLOBAL),
    Family("GLM", "glm", {"head_dim": 16}),
    Family("GLM-4", "glm4", {"head_dim": 16}),
    Family("GLM-4.5 (MoE)", "glm4_moe", {"head_dim": 16}),
    Family("GLM-4.7 Flash", "glm4_moe_lite", {**_ALL_HEADS}),
    Family("EXAONE 4", "exaone4", {"layer_types": ["sliding_attention", "full_attention"]}),
    Family("EXAONE MoE", "exaone_moe", _LOCAL_AND_GLOBAL),
    Family("ERNIE 4.5", "ernie4_5", {"head_dim": 16}),
    Family("ERNIE 4.5 MoE", "ernie4_5_moe", {"moe_num_experts": 4, "moe_k": 2}),
    Family("Hunyuan", "hunyuan_v1_dense", {"head_dim": 16}),
    Family("Hunyuan MoE", "hunyuan_v1_moe", {"head_dim": 16, "moe_topk": 2}),
    Family("HyperCLOVA X", "hyperclovax", {"head_dim": 16}),
    Family("Seed-OSS", "seed_oss", {"head_dim": 32}),
    Family("Apertus", "apertus"),
    Family("Arcee (AFM)", "arcee", {"head_dim": 16}),
    Family("Trinity (AFMoE)", "afmoe", {"head_dim": 16, **_LOCAL_AND_GLOBAL}),
    Family("Helium", "helium", {"head_dim": 16}),
    Family("nanochat", "nanochat"),
    Family("InternLM3", "internlm3", {"head_dim": 16}),
    Family("MiniCPM3", "minicpm3", _ALL_HEADS),
    Family("MiniMax-M2", "minimax_m2", {"head_dim": 16}),
    Family("MiMo-V2 Flash", "mimo_v2_flash"),
    Family("JetMoE", "jetmoe", {"kv_channels": 16}),
    Family("Nemotron, Minitron", "nemotron"),
    Family("OPT", "opt"),
    Family("Persimmon", "persimmon"),
    Family("StableLM", "stablelm", variants={"parallel residual": {"use_parallel_residual": True}}),
    Family("Aria (text)", "aria_text", {"moe_num_experts": 4, "moe_topk": 2}),
    Family("Mellum", "mellum", {"head_dim": 16}),
    Family("BioGPT", "biogpt"),
    Family("BitNet", "bitnet"),
    Family("CWM", "cwm", {"head_dim": 16, **_LOCAL_AND_GLOBAL}),
    Family("Doge", "doge", refusal="its code fails on a flattened batch"),
    Family("dots.llm1", "dots1", {"n_shared_experts": 1, **_LOCAL_AND_GLOBAL}),
    Family("Jais 2", "jais2", {"head_dim": 16}),
    Family("IQuest-Coder", "iquestcoder", {"head_dim": 16}),
    Family("Laguna", "laguna", {"head_dim": 16}),
    Family("ModernBERT decoder", "modernbert-decoder", _LOCAL_AND_GLOBAL),
    Family("Solar Open", "solar_open", {"head_dim": 16}),
    Family("CTRL", "ctrl", {"dff": 96}),
    Family("Youtu", "youtu", _ALL_HEADS),
    Family("Hy3", "hy_v3", {"head_dim": 16}),
    Family(
        "DiffLlama", "diffllama", {"head_dim": 16}, refusal="2 of its 2 layers use the attention interface, in 4 calls"
    ),
    Family("GPT-J", "gptj", {"rotary_dim": 8}),
    Family(
        "GPT-Neo",
        "gpt_neo",
        {"num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 10, "num_heads": 4},
        refusal=_OWN_ATTENTION,
    ),
    Family("CodeGen", "codegen", {"rotary_dim": 8}),
    Family("BLOOM", "bloom", refusal=_NO_POSITIONS),
    Family("MPT", "mpt", {"d_model": 64, "n_heads": 4, "n_layers": 2}, refusal=_NO_POSITIONS),
    Family("GPT", "openai-gpt", refusal=_OWN_ATTENTION),
    Family("XGLM", "xglm", {"d_model": 64, "num_layers": 2, "attention_heads": 4}, refusal=_OWN_ATTENTION),
    Family("Phi-3.5-MoE", "phimoe", refusal="its rotary embedding depends on the longest sequence of the batch"),
    Family("BERT and other encoders", "bert", refusal="with paged attention its logits differ from the stock model's"),
    Family("RWKV", "rwkv", refusal=_STATES_INSIDE),
    Family("xLSTM", "xlstm", refusal=_STATES_INSIDE),
    Family(
        "Llama 4 (text)",
        "llama4_text",
        {"head_dim": 16},
        refusal="its chunked attention numbers positions differently",
    ),
    Family(
        "RecurrentGemma",
        "recurrent_gemma",
        {"attention_window_size": 10, "num_hidden_layers": 3},
        refusal=_STATES_INSIDE,
    ),
    Family("Zaya", "zaya", {"num_experts_per_tok": 1}, refusal=_OTHER_INPUTS),
    Family(
        "Inkling (text)",
        "inkling_text",
        _RELATIVE,
        refusal="its attention takes 'position_bias' of each query and head",
    ),
    Family(
        "Inkling 2 (text)", "inkling2_text", {**_RELATIVE, "unpadded_vocab_size": VOCAB_SIZE}, refusal=_OTHER_INPUTS
    ),
    Family(
        "Inkling 2, looped (text)",
        "inkling2_loop_text",
        {
            **_RELATIVE,
            "unpadded_vocab_size": VOCAB_SIZE,
            "num_hidden_layers": 4,
            "layer_types": _RELATIVE["layer_types"] * 2,
            "loop_layer_index_start": 1,
            "loop_layer_index_end": 3,
            "n_layers_per_attn_res_block": 1,
        },
        refusal=_OTHER_INPUTS,
    ),
    Family(
        "Qwen4-Exp (text)",
        "qwen4_exp_text",
        {"head_dim": 16, **_LINEAR, **_SELECTED, "layer_types": ["linear_attention", "indexed_attention"]},
        refusal="it selects the keys that a token attends to",
    ),
    Family("Qwen3-Next", "qwen3_next", {"head_dim": 16, **_LINEAR}, is_native=True, has_states=True),
    Family("Qwen3.5 (text)", "qwen3_5_text", {"head_dim": 16, **_LINEAR}, is_native=True, has_states=True),
    Family("Qwen3.5 MoE (text)", "qwen3_5_moe_text", {"head_dim": 16, **_LINEAR}, is_native=True, has_states=True),
    Family("OLMo hybrid", "olmo_hybrid", _LINEAR, has_states=True),
    Family(
        "Lara mini", "lara_mini", {**_LINEAR, "layer_types": ["linear_attention", "sliding_attention"]}, has_states=True
    ),
    Family(
        "Kimi Linear",
        "kimi_linear",
        {**_DELTA_AND_FULL, **_ALL_HEADS, "linear_num_heads": 2, "linear_head_dim": 16},
        has_states=True,
    ),
    Family("Ling 2.5", "bailing_hybrid", {**_DELTA_AND_FULL, **_ALL_HEADS, "head_dim": 16}, has_states=True),
    Family("MiniMax", "minimax", _DELTA_AND_FULL, has_states=True),
    Family("Bamba", "bamba", {"attn_layer_indices": [1], **_MAMBA2}, has_states=True),
    Family("Falcon H1", "falcon_h1", {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_state": 8}, has_states=True),
    Family(
        "Granite 4 (hybrid)", "granitemoehybrid", {"layer_types": ["mamba", "attention"], **_MAMBA2}, has_states=True
    ),
    Family(
        "Nemotron-H",
        "nemotron_h",
        {
            "layers_block_type": ["mamba", "attention", "moe"],
            "num_hidden_layers": 3,
            "mamba_num_heads": 4,
            "mamba_head_dim": 32,
            "ssm_state_size": 8,
            "n_groups": 2,
        },
        has_states=True,
    ),
    Family(
        "Zamba2",
        "zamba2",
        {
            "num_hidden_layers": 4,
            "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
            "mamba_d_state": 8,
            "num_mem_blocks": 1,
            "mamba_headdim": 32,
            "n_mamba_heads": 4,
            "mamba_ngroups": 1,
            "use_mem_rope": True,
        },
        has_states=True,
    ),
    Family("Zamba", "zamba", {"num_hidden_layers": 4, "mamba_d_state": 8}, has_states=True),
    Family("Jamba", "jamba", {"mamba_d_state": 8, "attn_layer_period": 2, "attn_layer_offset": 1}, has_states=True),
    Family("Mamba", "mamba", {"state_size": 8}, has_states=True),
    Family("Mamba-2", "mamba2", {"num_heads": 4, "head_dim": 32, "state_size": 8, "n_groups": 2}, has_states=True),
    Family("Falcon Mamba", "falcon_mamba", {"state_size": 8}, has_states=True),
    Family("LFM2", "lfm2", {"layer_types": ["conv", "full_attention"]}, has_states=True),
    Family("LFM2 MoE", "lfm2_moe", {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1}, has_states=True),
    Family("LFM3", "lfm3", {"layer_types": ["conv", "full_attention"]}, has_states=True),
)


def served() -> tuple[tuple[Family, str | None, str], ...]:
    """Every configuration that is served: family, variant (None: the plain one), decoder."""
    cases = [
        (family, variant, "transformers")
        for family in FAMILIES
        if not family.refusal
        for variant in (None, *family.variants)
    ]
    return (*((family, variant, "native") for family, variant, _ in cases if is_native(family, variant)), *cases)


def is_native(family: Family, variant: str | None) -> bool:
    """Whether the native decoder computes this configuration."""
    return family.is_native and (family.model_type != "llama" or variant not in _ROPES or variant in _LEAN_ROPES)


def make_config(family: Family, variant: str | None = None) -> Any:
    """The configuration of a family in `transformers`, plain or a variant of it."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[family.model_type]
    if dataclasses.is_dataclass(kind):
        known = {item.name for item in dataclasses.fields(kind)}
    else:
        known = set(inspect.signature(kind).parameters)
    sizes = {name: value for name, value in _SIZES.items() if name in known}
    return kind(**{**sizes, **family.settings, **(family.variants[variant] if variant is not None else {})})
