"""Tokenizers written as the metadata of GGUF files, as converters write them, and files that have only that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtlang.model.loading.gguf_tokenizer.token_list import TokenType


def gguf_metadata(
    content: Mapping[str, Any], settings: Mapping[str, Any] | None = None, pre: str = "default"
) -> dict[str, Any]:
    """What a converter writes of tokenizer.json and tokenizer_config.json: BPE of both kinds, unigram and WordPiece."""
    model = content["model"]
    is_unigram, is_word_piece = model["type"] == "Unigram", model["type"] == "WordPiece"
    ids = {name: index for index, (name, _) in enumerate(model["vocab"])} if is_unigram else dict(model["vocab"])
    added = {entry["content"]: entry for entry in content["added_tokens"]}
    ids |= {name: entry["id"] for name, entry in added.items()}
    names = {index: name for name, index in ids.items()}
    tokens = [names.get(index, f"[PAD{index}]") for index in range(max(names) + 1)]
    is_byte_level = "ByteLevel" in json.dumps(content["pre_tokenizer"])
    unknown = model["unk_id"] if is_unigram else ids.get(model.get("unk_token") or "")

    def kind(index: int, name: str) -> TokenType:
        if index not in names:
            return TokenType.UNUSED
        if index == unknown and not is_byte_level:
            return TokenType.UNKNOWN
        if name in added:
            return TokenType.CONTROL if added[name]["special"] else TokenType.USER_DEFINED
        is_byte = name.startswith("<0x") and name.endswith(">") and len(name) == 6 and not is_byte_level
        return TokenType.BYTE if is_byte else TokenType.NORMAL

    types = [int(kind(index, name)) for index, name in enumerate(tokens)]
    metadata: dict[str, Any] = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
    if is_byte_level:
        merges = [each if isinstance(each, str) else " ".join(each) for each in model["merges"]]
        metadata |= {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.merges": merges}
    elif is_word_piece:
        metadata["tokenizer.ggml.model"] = "bert"
        metadata["tokenizer.ggml.tokens"] = [
            name if kind != TokenType.NORMAL else name[2:] if name.startswith("##") else f"\u2581{name}"
            for name, kind in zip(tokens, types, strict=True)
        ]
        metadata["tokenizer.ggml.normalizer.lowercase"] = content["normalizer"]["lowercase"]
    else:
        metadata["tokenizer.ggml.model"] = "t5" if is_unigram else "llama"
        scores = [float(score) for _, score in model["vocab"]] if is_unigram else _merge_scores(model, tokens)
        metadata["tokenizer.ggml.scores"] = scores
        steps = json.dumps([content["normalizer"], content["pre_tokenizer"]])
        metadata["tokenizer.ggml.add_space_prefix"] = "Prepend" in steps or "always" in steps or "first" in steps
    named = {"bos": "bos", "eos": "eos", "unknown": "unk", "padding": "pad", "seperator": "sep", "cls": "cls"}
    for key, role in named.items():
        if (settings or {}).get(f"{role}_token") in ids:
            metadata[f"tokenizer.ggml.{key}_token_id"] = ids[(settings or {})[f"{role}_token"]]
    if unknown is not None:
        metadata["tokenizer.ggml.unknown_token_id"] = unknown
    return metadata


def sentencepiece_metadata(model: bytes) -> dict[str, Any]:
    """What a converter writes of a SentencePiece model. A user-defined token has spaces for its marks."""
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    trained, normalizer = proto.trainer_spec, proto.normalizer_spec
    is_unigram = trained.model_type == 1
    metadata: dict[str, Any] = {
        "tokenizer.ggml.model": "t5" if is_unigram else "llama",
        "tokenizer.ggml.tokens": [
            piece.piece.replace("\u2581", " ") if piece.type == TokenType.USER_DEFINED else piece.piece
            for piece in proto.pieces
        ],
        "tokenizer.ggml.token_type": [int(piece.type) for piece in proto.pieces],
        "tokenizer.ggml.scores": [float(piece.score) for piece in proto.pieces],
        "tokenizer.ggml.add_space_prefix": bool(normalizer.add_dummy_prefix),
        "tokenizer.ggml.remove_extra_whitespaces": bool(normalizer.remove_extra_whitespaces),
    }
    if is_unigram and normalizer.precompiled_charsmap:
        metadata["tokenizer.ggml.precompiled_charsmap"] = list(normalizer.precompiled_charsmap)
    for key, token_id in (("bos", trained.bos_id), ("eos", trained.eos_id), ("unknown", trained.unk_id)):
        if token_id >= 0:
            metadata[f"tokenizer.ggml.{key}_token_id"] = token_id
    return metadata


def _merge_scores(model: Mapping[str, Any], tokens: list[str]) -> list[float]:
    """Scores that give the order of the merges, as SentencePiece writes them."""
    ranks: dict[str, int] = {}
    for merge in model["merges"]:
        ranks.setdefault("".join(merge.split(" ") if isinstance(merge, str) else merge), len(ranks))
    return [-float(ranks.get(name, len(ranks))) for name in tokens]


def write_vocabulary(path: Path, metadata: Mapping[str, Any]) -> None:
    """Write a GGUF file that has only a vocabulary."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    for key, value in metadata.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, bytes(value) if key.endswith("charsmap") else value)
    writer.add_uint32("llama.context_length", 64)
    writer.add_uint32("llama.embedding_length", 64)
    writer.add_uint32("llama.block_count", 1)
    writer.add_uint32("llama.attention.head_count", 1)
    writer.add_uint32("llama.feed_forward_length", 64)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def read_metadata(path: str) -> dict[str, Any]:
    """The metadata of a GGUF file, by the `gguf` package."""
    import gguf

    reader = gguf.GGUFReader(path)
    return {key: field.contents() for key, field in reader.fields.items() if key.startswith(("tokenizer.", "general."))}
