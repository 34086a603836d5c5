"""What people have: the models of a model hub, tiny and random, in the form in which each is published.

A row is what a reader looks for ("Qwen3-VL"); its members are the forms that the row is published in: the class that config.json names,
nested configurations, number formats. A member says whether it is served, and by which decoder, or what its refusal says.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tests.support.models.families import FAMILIES, Family, make_config
from tests.support.models.quantized_checkpoints import Rounding, published_float8, published_int4, published_mxfp4
from tests.support.models.tiny_models import BOS_TOKEN_ID, EOS_TOKEN_ID, PAD_TOKEN_ID, VOCAB_SIZE

CONVERTED = "converted to BF16"
"""Format of a model that is published in another one."""
_SPARSE = "choose a model with full attention"
_TEXT: dict[str, Any] = {
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
}
_VISION: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}
_QWEN_VISION = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 16,
    "num_heads": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 16,
    "deepstack_visual_indexes": [0, 1],
}
_QWEN_IMAGES = {"image_token_id": 3, "video_token_id": 4, "vision_start_token_id": 5, "vision_end_token_id": 6}
_LINEAR = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
}
_AUDIO = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_mel_bins": 8,
}
_LOCAL_AND_GLOBAL = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 10}
_MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 2, 2]}}
_QWEN_35_ROPE = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.5}
_QWEN_35_TEXT = {**_TEXT, "head_dim": 16, **_LINEAR, "rope_parameters": _QWEN_35_ROPE}
_QWEN_35_VISION = {name: value for name, value in _QWEN_VISION.items() if name != "deepstack_visual_indexes"}
_DEEPSEEK = {
    **_TEXT,
    "num_key_value_heads": 4,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "decoder_sparse_step": 1}


@dataclass(frozen=True, slots=True)
class HubModel:
    """A form in which a model is published.

    Attributes:
        title: as people call it.
        published_class: that config.json names.
        family: of the configuration; its settings make it tiny, unless it is refused before weights are read.
        number_format: of the published weights, or `CONVERTED`.
        decoder: that computes it by default; None if it is refused.
        refusal: what the refusal says to do.
        entries: of config.json, over those that the configuration class writes; nested ones too.
        stock_class: of transformers, where it has another name than the published one.
        files: besides those of every model, by name.
        rounding: writes a weight as it is published, see `quantize_checkpoint`; None for floats.
    """

    title: str
    published_class: str
    family: Family
    number_format: str = "BF16"
    decoder: str | None = "transformers"
    refusal: str | None = None
    entries: dict[str, Any] = dataclasses.field(default_factory=dict)
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    stock_class: str | None = None
    rounding: Rounding | None = None

    @property
    def is_multimodal(self) -> bool:
        """Whether it takes more than text."""
        return "vision_config" in self.family.settings or "audio_config" in self.family.settings

    def config(self) -> Any:
        """The configuration of `transformers`."""
        return make_config(self.family)


@dataclass(frozen=True, slots=True)
class HubRow:
    """Models that a reader takes for one."""

    title: str
    models: tuple[HubModel, ...]

    @property
    def is_served(self) -> bool:
        """Whether a model of it is, as it is published."""
        return any(each.refusal is None and each.number_format != CONVERTED for each in self.models)


def _text(
    title: str, published_class: str, model_type: str, decoder: str = "transformers", **settings: Any
) -> HubModel:
    """A model of text, with the settings of its family."""
    (family,) = (each for each in FAMILIES if each.model_type == model_type)
    family = dataclasses.replace(family, settings={**family.settings, **settings})
    return HubModel(title, published_class, family, decoder=decoder)


def _nested(
    title: str, published_class: str, model_type: str, decoder: str = "transformers", **settings: Any
) -> HubModel:
    """A model of text and more."""
    return HubModel(title, published_class, Family(title, model_type, settings), decoder=decoder)


def _refused(
    title: str, published_class: str, model_type: str, refusal: str, number_format: str = "BF16", **settings: Any
) -> HubModel:
    """A model that is refused by its configuration."""
    family = Family(title, model_type, settings)
    return HubModel(title, published_class, family, number_format, decoder=None, refusal=refusal)


def _quantized(model: HubModel, number_format: str, method: dict[str, Any]) -> HubModel:
    rounding = {"FP8": published_float8, "MXFP4": published_mxfp4, "INT4": published_int4}[number_format]
    entries = {**model.entries, "quantization_config": method}
    return dataclasses.replace(model, number_format=number_format, rounding=rounding, entries=entries)


_FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}
_INT4_GROUPS = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32}
_INT4 = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": _INT4_GROUPS}},
    "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"],
}
_MXFP4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router"]}
_DEEPSEEK_V3 = _text("DeepSeek-V3, R1", "DeepseekV3ForCausalLM", "deepseek_v3")
_REMOTE = {"AutoConfig": "configuration_deepseek.DeepseekV3Config"}
_SENTENCES = {
    "modules.json": '[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]'
}

_MINISTRAL = _nested(
    "Ministral 3 Base, Reasoning, Instruct-BF16",
    "Mistral3ForConditionalGeneration",
    "mistral3",
    text_config={**_TEXT, "model_type": "ministral3", "head_dim": 32},
    vision_config={**_VISION, "model_type": "pixtral", "head_dim": 8},
    image_token_index=3,
    tie_word_embeddings=True,
)
_KIMI_K2_5 = dataclasses.replace(
    _nested(
        "Kimi K2.5, K2 Thinking",
        "KimiK25ForConditionalGeneration",
        "kimi_k25",
        text_config={**_DEEPSEEK, "model_type": "deepseek_v3"},
        vision_config={name: value for name, value in _VISION.items() if name != "image_size"},
        projection_hidden_size=16,
        tie_word_embeddings=False,
        **_QWEN_IMAGES,
    ),
    stock_class="Kimi_K25ForConditionalGeneration",
    entries={"auto_map": _REMOTE, "text_config": {"model_type": "kimi_k2", "auto_map": _REMOTE}},
)

HUB_ROWS: tuple[HubRow, ...] = (
    HubRow("Llama 3.x", (_text("Llama 3.1, 3.2 (text), 3.3", "LlamaForCausalLM", "llama", "native"),)),
    HubRow(
        "Qwen2.5 and Coder",
        (_text("Qwen2.5, Qwen2.5-Coder", "Qwen2ForCausalLM", "qwen2", "native", tie_word_embeddings=True),),
    ),
    HubRow(
        "Qwen3 dense", (_text("Qwen3 0.6B to 32B", "Qwen3ForCausalLM", "qwen3", "native", tie_word_embeddings=True),)
    ),
    HubRow(
        "DeepSeek-R1 distills",
        (
            _text("DeepSeek-R1-Distill-Qwen", "Qwen2ForCausalLM", "qwen2", "native"),
            _text("DeepSeek-R1-Distill-Llama", "LlamaForCausalLM", "llama", "native"),
        ),
    ),
    HubRow(
        "Mistral 7B and Nemo",
        (
            _text("Mistral 7B", "MistralForCausalLM", "mistral", "native", sliding_window=None),
            _text("Mistral Nemo", "MistralForCausalLM", "mistral", "native", sliding_window=None, head_dim=32),
        ),
    ),
    HubRow(
        "SmolLM2, TinyLlama, Falcon 3",
        (
            _text("SmolLM2", "LlamaForCausalLM", "llama", "native", tie_word_embeddings=True),
            _text("TinyLlama", "LlamaForCausalLM", "llama", "native"),
            _text("Falcon 3", "LlamaForCausalLM", "llama", "native", head_dim=32),
        ),
    ),
    HubRow("Qwen3-MoE", (_text("Qwen3-30B-A3B, 235B-A22B", "Qwen3MoeForCausalLM", "qwen3_moe", "native"),)),
    HubRow(
        "Phi-4",
        (
            _text("Phi-4", "Phi3ForCausalLM", "phi3", "native"),
            _text("Phi-4-mini", "Phi3ForCausalLM", "phi3", "native", partial_rotary_factor=0.75),
        ),
    ),
    HubRow(
        "Gemma 2 and 3 (text)",
        (
            _text("Gemma 2", "Gemma2ForCausalLM", "gemma2", "native"),
            _text("Gemma 3 270M, 1B", "Gemma3ForCausalLM", "gemma3_text", "native"),
        ),
    ),
    HubRow(
        "GLM-4.x",
        (
            _text("GLM-4 9B, 32B", "Glm4ForCausalLM", "glm4"),
            _text("GLM-4.5, 4.6, 4.7", "Glm4MoeForCausalLM", "glm4_moe"),
            _text("GLM-4.7-Flash", "Glm4MoeLiteForCausalLM", "glm4_moe_lite"),
        ),
    ),
    HubRow(
        "OLMo 2 and 3",
        (
            _text("OLMo 2", "Olmo2ForCausalLM", "olmo2", "native"),
            _text("OLMo 3", "Olmo3ForCausalLM", "olmo3", "native"),
        ),
    ),
    HubRow("SmolLM3", (_text("SmolLM3", "SmolLM3ForCausalLM", "smollm3", "native"),)),
    HubRow(
        "Granite 3 and 4 dense",
        (
            _text("Granite 3", "GraniteForCausalLM", "granite", "native"),
            HubModel(
                "Granite 4 (dense)",
                "GraniteMoeHybridForCausalLM",
                Family(
                    "Granite 4 (dense)",
                    "granitemoehybrid",
                    {
                        "layer_types": ["attention", "attention"],
                        "num_local_experts": 0,
                        "num_experts_per_tok": 0,
                        "shared_intermediate_size": 96,
                        "position_embedding_type": "rope",
                        "attention_multiplier": 0.2,
                        "mamba_n_heads": 4,
                        "mamba_d_head": 32,
                        "mamba_d_state": 8,
                    },
                ),
            ),
        ),
    ),
    HubRow(
        "Command R, A",
        (
            _text("Command R, R+", "CohereForCausalLM", "cohere", tie_word_embeddings=True),
            _text("Command R7B, A", "Cohere2ForCausalLM", "cohere2", tie_word_embeddings=True),
        ),
    ),
    HubRow("EXAONE 4", (_text("EXAONE 4", "Exaone4ForCausalLM", "exaone4"),)),
    HubRow(
        "ERNIE 4.5",
        (
            _text("ERNIE 4.5 0.3B", "Ernie4_5ForCausalLM", "ernie4_5", tie_word_embeddings=True),
            _text("ERNIE 4.5 21B-A3B", "Ernie4_5_MoeForCausalLM", "ernie4_5_moe"),
        ),
    ),
    HubRow(
        "Hunyuan",
        (
            _text("Hunyuan 0.5B to 7B", "HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense"),
            _text("Hunyuan-A13B", "HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe"),
        ),
    ),
    HubRow(
        "Seed-OSS, Apertus",
        (_text("Seed-OSS", "SeedOssForCausalLM", "seed_oss"), _text("Apertus", "ApertusForCausalLM", "apertus")),
    ),
    HubRow(
        "Gemma 3 4B to 27B",
        (
            _nested(
                "Gemma 3 4B, 12B, 27B",
                "Gemma3ForConditionalGeneration",
                "gemma3",
                "native",
                text_config={**_TEXT, "head_dim": 32, **_LOCAL_AND_GLOBAL},
                vision_config=_VISION,
                image_token_index=3,
                boi_token_index=4,
                eoi_token_index=5,
            ),
        ),
    ),
    HubRow(
        "Phi-4-multimodal",
        (
            _nested(
                "Phi-4-multimodal",
                "Phi4MultimodalForCausalLM",
                "phi4_multimodal",
                vision_config={**_VISION, "crop_size": 28, "image_token_id": 3},
                audio_config={
                    "hidden_size": 16,
                    "intermediate_size": 16,
                    "num_blocks": 1,
                    "num_attention_heads": 2,
                    "ext_pw_out_channel": 16,
                    "depthwise_separable_out_channel": 16,
                    "nemo_conv_channels": 16,
                    "audio_token_id": 4,
                },
            ),
        ),
    ),
    HubRow(
        "Gemma 4",
        (
            _nested(
                "Gemma 4 E2B, E4B",
                "Gemma4ForConditionalGeneration",
                "gemma4",
                text_config={
                    **_TEXT,
                    "num_hidden_layers": 4,
                    "head_dim": 16,
                    "global_head_dim": 32,
                    "hidden_size_per_layer_input": 8,
                    "vocab_size_per_layer_input": VOCAB_SIZE,
                    "num_kv_shared_layers": 2,
                    "layer_types": ["sliding_attention", "full_attention"] * 2,
                    "sliding_window": 10,
                },
                vision_config={**_VISION, "head_dim": 8, "num_key_value_heads": 2, "position_embedding_size": 64},
                audio_config={
                    "hidden_size": 16,
                    "num_hidden_layers": 1,
                    "num_attention_heads": 2,
                    "output_proj_dims": 16,
                },
                image_token_id=3,
                video_token_id=4,
                audio_token_id=5,
                boi_token_id=6,
                eoi_token_id=7,
            ),
            _nested(
                "Gemma 4 26B-A4B, 31B",
                "Gemma4ForConditionalGeneration",
                "gemma4",
                text_config={
                    **_TEXT,
                    "head_dim": 16,
                    "global_head_dim": 32,
                    "num_global_key_value_heads": 1,
                    "hidden_size_per_layer_input": 0,
                    "num_kv_shared_layers": 0,
                    "enable_moe_block": True,
                    "num_experts": 4,
                    "top_k_experts": 2,
                    "moe_intermediate_size": 32,
                    **_LOCAL_AND_GLOBAL,
                },
                vision_config={**_VISION, "head_dim": 8, "num_key_value_heads": 2, "position_embedding_size": 64},
                audio_config=None,
                image_token_id=3,
                video_token_id=4,
                audio_token_id=5,
                boi_token_id=6,
                eoi_token_id=7,
            ),
        ),
    ),
    HubRow(
        "Qwen3-VL and MoE",
        (
            _nested(
                "Qwen3-VL 2B to 32B",
                "Qwen3VLForConditionalGeneration",
                "qwen3_vl",
                "native",
                text_config={**_TEXT, "head_dim": 16, **_MROPE},
                vision_config=_QWEN_VISION,
                tie_word_embeddings=True,
                **_QWEN_IMAGES,
            ),
            _nested(
                "Qwen3-VL 30B-A3B, 235B-A22B",
                "Qwen3VLMoeForConditionalGeneration",
                "qwen3_vl_moe",
                text_config={**_TEXT, "head_dim": 16, **_EXPERTS, **_MROPE},
                vision_config=_QWEN_VISION,
                **_QWEN_IMAGES,
            ),
        ),
    ),
    HubRow(
        "Qwen2.5-VL",
        (
            _nested(
                "Qwen2.5-VL",
                "Qwen2_5_VLForConditionalGeneration",
                "qwen2_5_vl",
                "native",
                text_config={**_TEXT, **_MROPE},
                vision_config={
                    **{name: _QWEN_VISION[name] for name in ("depth", "hidden_size", "intermediate_size", "num_heads")},
                    "out_hidden_size": 64,
                },
                **_QWEN_IMAGES,
            ),
        ),
    ),
    HubRow(
        "Mistral Small 3, Magistral, Devstral",
        (
            _nested(
                "Mistral Small 3.1, 3.2, Magistral",
                "Mistral3ForConditionalGeneration",
                "mistral3",
                "native",
                text_config={**_TEXT, "model_type": "mistral", "head_dim": 32, "sliding_window": None},
                vision_config={**_VISION, "model_type": "pixtral", "head_dim": 8},
                image_token_index=3,
                tie_word_embeddings=False,
            ),
            _text(
                "Mistral Small 3, Devstral Small",
                "MistralForCausalLM",
                "mistral",
                "native",
                sliding_window=None,
                head_dim=32,
            ),
        ),
    ),
    HubRow(
        "Ministral 3",
        (
            _MINISTRAL,
            _quantized(dataclasses.replace(_MINISTRAL, title="Ministral 3 Instruct"), "FP8", _FP8),
        ),
    ),
    HubRow(
        "Kimi K2.5",
        (
            dataclasses.replace(_KIMI_K2_5, title="Kimi K2.5 (converted)", number_format=CONVERTED),
            dataclasses.replace(
                _quantized(_KIMI_K2_5, "INT4", _INT4),
                entries={"auto_map": _REMOTE, "text_config": {"model_type": "kimi_k2", "quantization_config": _INT4}},
            ),
        ),
    ),
    HubRow(
        "InternVL, SmolVLM, LLaVA",
        (
            _nested(
                "InternVL 3 and 3.5",
                "InternVLForConditionalGeneration",
                "internvl",
                "native",
                text_config={**_TEXT, "model_type": "qwen2"},
                vision_config={**_VISION, "image_size": [28, 28], "patch_size": [14, 14]},
                image_token_id=3,
                tie_word_embeddings=False,
            ),
            _nested(
                "SmolVLM, SmolVLM2",
                "SmolVLMForConditionalGeneration",
                "smolvlm",
                "native",
                text_config={**_TEXT, "model_type": "llama"},
                vision_config=_VISION,
                image_token_id=3,
            ),
            _nested(
                "LLaVA 1.5",
                "LlavaForConditionalGeneration",
                "llava",
                "native",
                text_config={**_TEXT, "model_type": "llama"},
                vision_config={**_VISION, "model_type": "clip_vision_model"},
                image_token_index=3,
            ),
            _nested(
                "LLaVA-OneVision",
                "LlavaOnevisionForConditionalGeneration",
                "llava_onevision",
                "native",
                text_config={**_TEXT, "model_type": "qwen2"},
                vision_config={**_VISION, "model_type": "siglip_vision_model"},
                image_token_index=3,
                video_token_index=4,
            ),
        ),
    ),
    HubRow(
        "Command A Vision",
        (
            _nested(
                "Command A Vision, Aya Vision",
                "Cohere2VisionForConditionalGeneration",
                "cohere2_vision",
                text_config={**_TEXT, "model_type": "cohere2", **_LOCAL_AND_GLOBAL},
                vision_config={**_VISION, "model_type": "siglip_vision_model"},
                image_token_id=3,
                alignment_intermediate_size=32,
            ),
        ),
    ),
    HubRow(
        "Voxtral",
        (
            _nested(
                "Voxtral Mini, Small",
                "VoxtralForConditionalGeneration",
                "voxtral",
                "native",
                text_config={**_TEXT, "model_type": "llama", "head_dim": 32},
                audio_config=_AUDIO,
                audio_token_id=3,
            ),
        ),
    ),
    HubRow(
        "GPT-OSS", (_quantized(_text("GPT-OSS 20B, 120B", "GptOssForCausalLM", "gpt_oss", "native"), "MXFP4", _MXFP4),)
    ),
    HubRow("DeepSeek V3, R1", (_quantized(_DEEPSEEK_V3, "FP8", _FP8),)),
    HubRow("MiniMax M2", (_quantized(_text("MiniMax M2", "MiniMaxM2ForCausalLM", "minimax_m2"), "FP8", _FP8),)),
    HubRow(
        "Kimi K2",
        (
            dataclasses.replace(
                _quantized(_DEEPSEEK_V3, "FP8", _FP8),
                title="Kimi K2",
                entries={
                    "quantization_config": _FP8,
                    "model_type": "kimi_k2",
                    "auto_map": _REMOTE,
                },
            ),
        ),
    ),
    HubRow(
        "Qwen3.5 and later",
        (
            _nested(
                "Qwen3.5, 3.6 dense",
                "Qwen3_5ForConditionalGeneration",
                "qwen3_5",
                "native",
                text_config=_QWEN_35_TEXT,
                vision_config=_QWEN_35_VISION,
                **_QWEN_IMAGES,
            ),
            _nested(
                "Qwen3.5, 3.6 MoE",
                "Qwen3_5MoeForConditionalGeneration",
                "qwen3_5_moe",
                "native",
                text_config={**_QWEN_35_TEXT, **_EXPERTS, "shared_expert_intermediate_size": 32},
                vision_config=_QWEN_35_VISION,
                **_QWEN_IMAGES,
            ),
        ),
    ),
    HubRow(
        "Qwen3-Next, Coder-Next", (_text("Qwen3-Next, Coder-Next", "Qwen3NextForCausalLM", "qwen3_next", "native"),)
    ),
    HubRow("Nemotron 3", (_text("Nemotron 3", "NemotronHForCausalLM", "nemotron_h"),)),
    HubRow(
        "Granite 4 H",
        (_text("Granite 4 H", "GraniteMoeHybridForCausalLM", "granitemoehybrid"),),
    ),
    HubRow(
        "LFM2, LFM2.5",
        (_text("LFM2, LFM2.5", "Lfm2ForCausalLM", "lfm2"),),
    ),
    HubRow(
        "Falcon-H1, Jamba, OLMo hybrid",
        (
            _text("Falcon-H1", "FalconH1ForCausalLM", "falcon_h1"),
            _text("Jamba", "JambaForCausalLM", "jamba"),
            _text("OLMo hybrid", "OlmoHybridForCausalLM", "olmo_hybrid"),
        ),
    ),
    HubRow("Llama 4", (_refused("Llama 4", "Llama4ForConditionalGeneration", "llama4", "choose Llama 3.x"),)),
    HubRow(
        "Llama 3.2 Vision",
        (_refused("Llama 3.2 Vision", "MllamaForConditionalGeneration", "mllama", "choose the text model"),),
    ),
    HubRow(
        "Qwen-Omni",
        (
            _refused("Qwen2.5-Omni", "Qwen2_5OmniModel", "qwen2_5_omni", "choose a model of text and images"),
            _refused(
                "Qwen3-Omni",
                "Qwen3OmniMoeForConditionalGeneration",
                "qwen3_omni_moe",
                "choose a model of text and images",
            ),
        ),
    ),
    HubRow(
        "Sparse attention: DeepSeek V3.2, V4, GLM-5, MiniMax M3, Mistral Large 4",
        (
            _refused("DeepSeek V3.2", "DeepseekV32ForCausalLM", "deepseek_v32", _SPARSE, "FP8"),
            _refused("DeepSeek V4", "DeepseekV4ForCausalLM", "deepseek_v4", _SPARSE, "FP8"),
            _refused("GLM-5", "GlmMoeDsaForCausalLM", "glm_moe_dsa", _SPARSE),
            _refused("GLM-5.3 Flash", "Glm5NextForConditionalGeneration", "glm5_next", _SPARSE),
            _refused("MiniMax M3", "MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl", _SPARSE, "FP8"),
            _refused("Mistral Large 4", "MistralLarge4ForConditionalGeneration", "mistral_large4", _SPARSE, "FP8"),
        ),
    ),
    HubRow(
        "Embedding and reranker models",
        (
            dataclasses.replace(
                _refused("Qwen3-Embedding", "Qwen3ForCausalLM", "qwen3", "choose a chat model"), files=_SENTENCES
            ),
            _refused("BGE, E5 and other encoders", "BertModel", "bert", "does not generate text"),
            _refused("BGE rerankers", "XLMRobertaForSequenceClassification", "xlm-roberta", "does not generate text"),
            _refused("Reward models (Llama)", "LlamaForSequenceClassification", "llama", "does not generate text"),
        ),
    ),
)
