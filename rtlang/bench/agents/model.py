"""The model of `rtlang bench agents`: random weights, calls in a form that has one spelling, and no special tokens by chance.

What such a model writes is known to come back as the same text, so that only the tokens of it can differ. Its layers are few and wide:
prompts weigh as much beside the steps of a processor as those of large models do on a GPU.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.loader import model_directory
from rtlang.model.text.tokenizer import Tokenizer

BEFORE, AFTER = "<|assistant|>", "<|end|>"
"""The special tokens around an answer."""
SHAPE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 2_048,
    "hidden_size": 512,
    "intermediate_size": 2_048,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 16_384,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "eos_token_id": 1,
    "bos_token_id": None,
}
_SPREAD = 0.05
_CONSTANT = 2.0
_CHAT_TEMPLATE = """
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {{- '<|system|>' + message.content }}
        {%- for tool in tools or [] %}{{ '\\n' }}{{ tool | tojson }}{% endfor %}
        {%- if tools %}{{ '\\nCall: <tool_call><function=NAME><parameter=NAME>VALUE</parameter></function></tool_call>' }}{% endif %}
    {%- elif message.role == 'assistant' %}
        {{- '<|assistant|>' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {{- '<tool_call>\\n<function=' + call.function.name + '>\\n' }}
            {%- for name, value in call.function.arguments | items %}
                {{- '<parameter=' + name + '>\\n' + value + '\\n</parameter>\\n' }}
            {%- endfor %}
            {{- '</function>\\n</tool_call>' }}
        {%- endfor %}
    {%- elif message.role == 'tool' %}
        {{- '<|user|><tool_response>\\n' + message.content + '\\n</tool_response>' }}
    {%- else %}
        {{- '<|user|>' + message.content }}
    {%- endif %}
    {{- '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"""
"""With calls in the form of Qwen3-Coder, which leaves no choice of blanks."""


def write_model(directory: Path, *, seed: int = 0, **overrides: Any) -> Path:
    """Write the model to a directory, which is returned; created if missing.

    Args:
        overrides: fields that override SHAPE.
    """
    directory.mkdir(parents=True, exist_ok=True)
    config = SHAPE | overrides
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    source = model_directory(EMBEDDED_MODEL)
    shutil.copyfile(source / "tokenizer.json", directory / "tokenizer.json")
    settings: dict[str, Any] = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings |= {"chat_template": _CHAT_TEMPLATE, "model_max_length": config["max_position_embeddings"]}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    tokenizer = Tokenizer.from_pretrained(directory)
    unlikely = [
        token_id
        for token_id in range(tokenizer.vocab_size)
        if token_id in tokenizer.special_token_ids or tokenizer.token_bytes(token_id)[:1].isspace()
    ]
    save_file(_weights(config, unlikely, seed), directory / "model.safetensors", metadata={"format": "pt"})
    return directory


def _weights(config: dict[str, Any], unlikely: list[int], seed: int) -> dict[str, Any]:
    """Random weights. The first channel is the same for every token, and makes some of them unlikely."""
    rng = np.random.default_rng(seed)
    hidden, heads = config["hidden_size"], config["num_attention_heads"] * config["head_dim"]
    kv, inner = config["num_key_value_heads"] * config["head_dim"], config["intermediate_size"]

    def random(*shape: int) -> Any:
        return (rng.standard_normal(shape) * _SPREAD).astype(np.float32)

    def without_first_row(*shape: int) -> Any:
        found = random(*shape)
        found[0] = 0.0
        return found

    weights = {
        "model.embed_tokens.weight": random(config["vocab_size"], hidden),
        "model.norm.weight": np.ones(hidden, np.float32),
        "lm_head.weight": random(config["vocab_size"], hidden),
    }
    weights["model.embed_tokens.weight"][:, 0] = _CONSTANT
    weights["lm_head.weight"][:, 0] = 0.0
    weights["lm_head.weight"][unlikely, 0] = -100.0
    for index in range(config["num_hidden_layers"]):
        name = f"model.layers.{index}"
        weights |= {
            f"{name}.input_layernorm.weight": np.ones(hidden, np.float32),
            f"{name}.post_attention_layernorm.weight": np.ones(hidden, np.float32),
            f"{name}.self_attn.q_proj.weight": random(heads, hidden),
            f"{name}.self_attn.k_proj.weight": random(kv, hidden),
            f"{name}.self_attn.v_proj.weight": random(kv, hidden),
            f"{name}.self_attn.o_proj.weight": without_first_row(hidden, heads),
            f"{name}.mlp.gate_proj.weight": random(inner, hidden),
            f"{name}.mlp.up_proj.weight": random(inner, hidden),
            f"{name}.mlp.down_proj.weight": without_first_row(hidden, inner),
        }
    return weights
