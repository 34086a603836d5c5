"""Small random models as other libraries load them: a directory of `transformers`, a GGUF file of llama.cpp.

Each writer imports nothing of this project, so that it also runs where only the other library is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

TOKENIZER = Path(__file__).parents[3] / "rtlang" / "tiny" / "tokenizer.json"
_HIDDEN, _HEADS, _LAYERS, _WIDE = 64, 2, 1, 64


def write_transformers_model(path: Path) -> Path:
    """A Llama with random weights and the tokenizer of rtlang:tiny, padded by 8 logits."""
    import torch
    import transformers

    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(TOKENIZER), eos_token="<|end|>", pad_token="<|pad|>", padding_side="left"
    )
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer) + 8,
        hidden_size=_HIDDEN,
        intermediate_size=_WIDE,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        num_key_value_heads=_HEADS,
        max_position_embeddings=512,
        initializer_range=0.3,  # wide enough that texts differ
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def gguf_pieces() -> list[tuple[str, int]]:
    """A SentencePiece vocabulary with byte pieces, as pieces and llama.cpp's types of token."""
    pieces = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("<tool>", 4), *((f"<0x{byte:02X}>", 6) for byte in range(256))]
    words = [
        "▁",
        "▁▁",
        "▁▁▁▁",
        "▁the",
        "▁a",
        "er",
        "in",
        '"',
        '":',
        '▁"',
        '",',
        "{",
        '{"',
        "}",
        "[",
        "]",
        "true",
        "name",
        "é",
    ]
    letters = [chr(code) for code in range(0x21, 0x7F) if chr(code) not in words]
    return [*pieces, *((piece, 1) for piece in (*words, *letters, "日本", "ing", "▁x", "\n"))]


def write_gguf_model(path: Path) -> Path:
    """A llama with random weights and the vocabulary of `gguf_pieces`."""
    import gguf
    import numpy as np

    draw = np.random.default_rng(0)
    pieces = gguf_pieces()
    writer: Any = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(_HIDDEN)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_WIDE)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_rope_dimension_count(_HIDDEN // _HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([piece.encode() for piece, _ in pieces])
    writer.add_token_scores([-float(index) for index in range(len(pieces))])
    writer.add_token_types([kind for _, kind in pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def add(name: str, *shape: int) -> None:
        is_norm = len(shape) == 1
        values = np.ones(shape) if is_norm else draw.normal(0, 0.3, shape)
        writer.add_tensor(name, values.astype(np.float32))

    add("token_embd.weight", len(pieces), _HIDDEN)
    for layer in range(_LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{name}.weight", _HIDDEN, _HIDDEN)
        for name in ("ffn_gate", "ffn_up"):
            add(f"blk.{layer}.{name}.weight", _WIDE, _HIDDEN)
        add(f"blk.{layer}.ffn_down.weight", _HIDDEN, _WIDE)
        add(f"blk.{layer}.attn_norm.weight", _HIDDEN)
        add(f"blk.{layer}.ffn_norm.weight", _HIDDEN)
    add("output_norm.weight", _HIDDEN)
    add("output.weight", len(pieces), _HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_onnx_model(path: Path) -> Path:
    """A directory of onnxruntime-genai: a decoder whose logits depend on the last token, with the tokenizer of rtlang:tiny."""
    import json

    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    path.mkdir(parents=True, exist_ok=True)
    tokenizer = json.loads(TOKENIZER.read_text(encoding="utf-8"))
    ids = {**tokenizer["model"]["vocab"], **{each["content"]: each["id"] for each in tokenizer["added_tokens"]}}
    vocab_size, draw = max(ids.values()) + 1, np.random.default_rng(0)
    weights = {
        "embeddings": draw.normal(0, 1, (vocab_size, _HIDDEN)).astype(np.float32),
        "head": draw.normal(0, 0.3, (_HIDDEN, vocab_size)).astype(np.float32),
        "pieces": np.array([_HEADS, _HIDDEN // _HEADS], dtype=np.int64),
    }
    kv = ["batch", _HEADS, "past", _HIDDEN // _HEADS]
    node = helper.make_node
    nodes = [
        node("Gather", ["embeddings", "input_ids"], ["hidden"]),
        node("MatMul", ["hidden", "head"], ["logits"]),
        node("Shape", ["input_ids"], ["shape"]),
        node("Concat", ["shape", "pieces"], ["split"], axis=0),
        node("Reshape", ["hidden", "split"], ["heads"]),
        node("Transpose", ["heads"], ["new"], perm=[0, 2, 1, 3]),
        node("Concat", ["past_key_values.0.key", "new"], ["present.0.key"], axis=2),
        node("Concat", ["past_key_values.0.value", "new"], ["present.0.value"], axis=2),
    ]
    value, rows = helper.make_tensor_value_info, ["batch", "length"]
    inputs = [value(name, TensorProto.INT64, rows) for name in ("input_ids", "attention_mask")]
    inputs += [value(f"past_key_values.0.{name}", TensorProto.FLOAT, kv) for name in ("key", "value")]
    outputs = [value("logits", TensorProto.FLOAT, [*rows, vocab_size])]
    outputs += [value(f"present.0.{name}", TensorProto.FLOAT, [*kv[:2], "all", kv[3]]) for name in ("key", "value")]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path / "model.onnx")
    decoder = {
        "filename": "model.onnx",
        "head_size": _HIDDEN // _HEADS,
        "hidden_size": _HIDDEN,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _HEADS,
        "num_hidden_layers": 1,
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
    }
    model = {
        "type": "llama",
        "context_length": 512,
        "vocab_size": vocab_size,
        "eos_token_id": ids["<|end|>"],
        "bos_token_id": ids["<|end|>"],
        "pad_token_id": ids["<|pad|>"],
        "decoder": decoder,
    }
    search = {"max_length": 512, "past_present_share_buffer": False}
    (path / "genai_config.json").write_text(json.dumps({"model": model, "search": search}))
    (path / "tokenizer.json").write_text(TOKENIZER.read_text(encoding="utf-8"), encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "pad_token": "<|pad|>"}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path
