"""The architectures of GGUF files that are served: their model types in transformers, and what their tensors are called there.

A tensor of a layer has a stem for its part: `blk.3.attn_q.weight` is `model.layers.3.self_attn.q_proj.weight`. Some architectures store
weights in another order or with 1 added, as the code of llama.cpp computes with them (its convert_hf_to_gguf.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TOKEN_EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"
MIXTRAL, OLMO3, DEEPSEEK3 = "llama with experts", "olmo2 with sliding windows", "deepseek2 with sigmoid gates"
_ATTENTION = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
_QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_MLP = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_NORM = {"attn_norm": "input_layernorm"}
_NORMS = {**_NORM, "ffn_norm": "post_attention_layernorm"}
_POST_NORMS = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
_FOUR_NORMS = {**_NORM, **_POST_NORMS, "ffn_norm": "pre_feedforward_layernorm"}
_LLAMA = {**_ATTENTION, **_MLP, **_NORMS}
_UNGATED = {**_ATTENTION, **_NORMS, "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_EXPERTS = {
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.@.gate_proj",
    "ffn_up_exps": "mlp.experts.@.up_proj",
    "ffn_down_exps": "mlp.experts.@.down_proj",
}
_SHARED_EXPERTS = {
    "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
    "ffn_up_shexp": "mlp.shared_experts.up_proj",
    "ffn_down_shexp": "mlp.shared_experts.down_proj",
}
_QWEN2_SHARED_EXPERT = {
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
}
_MIXTRAL_EXPERTS = {
    "ffn_gate_inp": "block_sparse_moe.gate",
    "ffn_gate_exps": "block_sparse_moe.experts.@.w1",
    "ffn_up_exps": "block_sparse_moe.experts.@.w3",
    "ffn_down_exps": "block_sparse_moe.experts.@.w2",
}
_LATENT_ATTENTION = {
    "attn_q_a": "self_attn.q_a_proj",
    "attn_q_a_norm": "self_attn.q_a_layernorm",
    "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
    "attn_kv_a_norm": "self_attn.kv_a_layernorm",
    "attn_kv_b": "self_attn.kv_b_proj",
}
_ROUTER_BIAS = {"exp_probs_b.bias": "mlp.gate.e_score_correction_bias"}


@dataclass(frozen=True, slots=True)
class Architecture:
    """How the tensors of one architecture are stored.

    Attributes:
        model_type, class_name: in transformers.
        stems: the part of a layer in transformers by its stem, or by its stem and suffix, in the file. `@` stands for the number of a part
            of a stack: an expert or a head.
        outer: stems of tensors outside layers.
        has_interleaved_heads: whether the two halves of each head of q and k, which turn together, alternate row by row in the file.
        has_norms_plus_one: whether weights of norms have 1 added.
    """

    model_type: str
    class_name: str
    stems: Mapping[str, str]
    outer: Mapping[str, str] = field(
        default_factory=lambda: {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    )
    has_interleaved_heads: bool = False
    has_norms_plus_one: bool = False


_QWEN3 = {**_LLAMA, **_QK_NORMS}
_DEEPSEEK = {**_LLAMA, **_LATENT_ATTENTION, **_EXPERTS, **_SHARED_EXPERTS, **_ROUTER_BIAS}
_PHI_OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.final_layernorm", "output": "lm_head"}

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture("llama", "LlamaForCausalLM", _LLAMA, has_interleaved_heads=True),
    MIXTRAL: Architecture(
        "mixtral", "MixtralForCausalLM", {**_ATTENTION, **_NORMS, **_MIXTRAL_EXPERTS}, has_interleaved_heads=True
    ),
    "qwen2": Architecture("qwen2", "Qwen2ForCausalLM", _LLAMA),
    "qwen2vl": Architecture("qwen2", "Qwen2ForCausalLM", _LLAMA),
    "qwen3": Architecture("qwen3", "Qwen3ForCausalLM", _QWEN3),
    "qwen3vl": Architecture("qwen3", "Qwen3ForCausalLM", _QWEN3),
    "qwen2moe": Architecture(
        "qwen2_moe", "Qwen2MoeForCausalLM", {**_ATTENTION, **_NORMS, **_EXPERTS, **_QWEN2_SHARED_EXPERT}
    ),
    "qwen3moe": Architecture("qwen3_moe", "Qwen3MoeForCausalLM", {**_ATTENTION, **_NORMS, **_QK_NORMS, **_EXPERTS}),
    "gemma": Architecture("gemma", "GemmaForCausalLM", _LLAMA, has_norms_plus_one=True),
    "gemma2": Architecture(
        "gemma2", "Gemma2ForCausalLM", {**_ATTENTION, **_MLP, **_FOUR_NORMS}, has_norms_plus_one=True
    ),
    "gemma3": Architecture(
        "gemma3_text",
        "Gemma3ForCausalLM",
        {**_ATTENTION, **_MLP, **_FOUR_NORMS, **_QK_NORMS},
        has_norms_plus_one=True,
    ),
    "phi2": Architecture(
        "phi",
        "PhiForCausalLM",
        {
            **_ATTENTION,
            "attn_output": "self_attn.dense",
            "attn_norm": "input_layernorm",
            "ffn_up": "mlp.fc1",
            "ffn_down": "mlp.fc2",
        },
        _PHI_OUTER,
    ),
    "phi3": Architecture(
        "phi3",
        "Phi3ForCausalLM",
        {
            **_NORMS,
            "attn_qkv": "self_attn.qkv_proj",
            "attn_output": "self_attn.o_proj",
            "ffn_up": "mlp.gate_up_proj",
            "ffn_down": "mlp.down_proj",
        },
    ),
    "smollm3": Architecture("smollm3", "SmolLM3ForCausalLM", _LLAMA, has_interleaved_heads=True),
    "olmo": Architecture("olmo", "OlmoForCausalLM", {**_ATTENTION, **_MLP}, has_interleaved_heads=True),
    "olmo2": Architecture("olmo2", "Olmo2ForCausalLM", {**_ATTENTION, **_MLP, **_POST_NORMS, **_QK_NORMS}),
    OLMO3: Architecture("olmo3", "Olmo3ForCausalLM", {**_ATTENTION, **_MLP, **_POST_NORMS, **_QK_NORMS}),
    "olmoe": Architecture("olmoe", "OlmoeForCausalLM", {**_ATTENTION, **_NORMS, **_QK_NORMS, **_EXPERTS}),
    "granite": Architecture("granite", "GraniteForCausalLM", _LLAMA, has_interleaved_heads=True),
    "minicpm": Architecture("granite", "GraniteForCausalLM", _LLAMA, has_interleaved_heads=True),
    "starcoder2": Architecture(
        "starcoder2",
        "Starcoder2ForCausalLM",
        {**_ATTENTION, **_NORMS, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
    ),
    "stablelm": Architecture(
        "stablelm",
        "StableLmForCausalLM",
        {**_LLAMA, "attn_q_norm": "self_attn.q_layernorm.norms.@", "attn_k_norm": "self_attn.k_layernorm.norms.@"},
    ),
    "command-r": Architecture("cohere", "CohereForCausalLM", {**_ATTENTION, **_MLP, **_NORM, **_QK_NORMS}),
    "cohere2": Architecture("cohere2", "Cohere2ForCausalLM", {**_ATTENTION, **_MLP, **_NORM}),
    "deepseek2": Architecture("deepseek_v2", "DeepseekV2ForCausalLM", _DEEPSEEK),
    DEEPSEEK3: Architecture("deepseek_v3", "DeepseekV3ForCausalLM", _DEEPSEEK),
    "glm4": Architecture(
        "glm4",
        "Glm4ForCausalLM",
        {
            **_ATTENTION,
            **_NORMS,
            "post_attention_norm": "post_self_attn_layernorm",
            "post_ffw_norm": "post_mlp_layernorm",
            "ffn_up": "mlp.gate_up_proj",
            "ffn_down": "mlp.down_proj",
        },
    ),
    "glm4moe": Architecture(
        "glm4_moe",
        "Glm4MoeForCausalLM",
        {
            **_ATTENTION,
            **_QK_NORMS,
            **_MLP,
            **_EXPERTS,
            **_SHARED_EXPERTS,
            **_ROUTER_BIAS,
            "attn_norm": "input_layernorm",
            "post_attention_norm": "post_attention_layernorm",
        },
    ),
    "exaone": Architecture("llama", "LlamaForCausalLM", _LLAMA),
    "exaone4": Architecture("exaone4", "Exaone4ForCausalLM", {**_ATTENTION, **_MLP, **_POST_NORMS, **_QK_NORMS}),
    "ernie4_5": Architecture("ernie4_5", "Ernie4_5ForCausalLM", _LLAMA),
    "hunyuan-dense": Architecture(
        "hunyuan_v1_dense",
        "HunYuanDenseV1ForCausalLM",
        {**_LLAMA, "attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"},
    ),
    "seed_oss": Architecture(
        "seed_oss",
        "SeedOssForCausalLM",
        {
            **_ATTENTION,
            **_MLP,
            "attn_norm": "input_layernorm",
            "post_attention_norm": "post_attention_layernorm",
        },
    ),
    "arcee": Architecture("arcee", "ArceeForCausalLM", _UNGATED, has_interleaved_heads=True),
    "nemotron": Architecture("nemotron", "NemotronForCausalLM", _UNGATED, has_norms_plus_one=True),
    "gpt-oss": Architecture(
        "gpt_oss",
        "GptOssForCausalLM",
        {
            **_ATTENTION,
            "attn_norm": "input_layernorm",
            "post_attention_norm": "post_attention_layernorm",
            "attn_sinks.weight": "self_attn.sinks",
            **_EXPERTS,
            "ffn_gate_inp": "mlp.router",
        },
    ),
}
"""By `general.architecture`, and by names of our own where one of these stands for two model types."""
