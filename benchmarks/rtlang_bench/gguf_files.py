"""Writes GGUF files of random models, to compare speed with llama.cpp.

python -m rtlang_bench.gguf_files OUT --shape qwen2-0.5b --kind q4_k_m --llama-cpp FOLDER

A file in float16 is written tensor by tensor, and llama.cpp's own libraries make the other kinds of it. Weights are seeded noise, so only
speed and memory mean anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import gguf
import numpy as np
import typer
from numpy.typing import NDArray

from rtlang.bench.baselines.llama_cpp_library import FILE_TYPES, LlamaCpp, LlamaCppError
from rtlang.bench.checkpoint import HALF_BILLION
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.loader import model_directory
from rtlang_bench.command import command, progress

SHAPES: dict[str, Mapping[str, int]] = {
    "qwen2-0.5b": HALF_BILLION,
    "qwen2-1.5b": HALF_BILLION
    | {"hidden_size": 1_536, "intermediate_size": 8_960, "num_hidden_layers": 28, "num_attention_heads": 12},
}
"""Qwen2 models with a tied output layer, as Hugging Face names their dimensions."""
_SCALE = 0.02
_NORMAL, _CONTROL, _UNUSED = 1, 3, 5  # kinds of tokens


def tensors(shape: Mapping[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names and shapes [out, in] of the tensors of a file."""
    hidden, inner = shape["hidden_size"], shape["intermediate_size"]
    kv = hidden // shape["num_attention_heads"] * shape["num_key_value_heads"]
    yield "token_embd.weight", (shape["vocab_size"], hidden)
    yield "output_norm.weight", (hidden,)
    for layer in range(shape["num_hidden_layers"]):
        block = f"blk.{layer}."
        for name, size in (("attn_q", hidden), ("attn_k", kv), ("attn_v", kv)):
            yield f"{block}{name}.weight", (size, hidden)
            yield f"{block}{name}.bias", (size,)
        yield f"{block}attn_output.weight", (hidden, hidden)
        for name in ("ffn_gate", "ffn_up"):
            yield f"{block}{name}.weight", (inner, hidden)
        yield f"{block}ffn_down.weight", (hidden, inner)
        for name in ("attn_norm", "ffn_norm"):
            yield f"{block}{name}.weight", (hidden,)


def token_metadata(directory: Path, vocab_size: int) -> dict[str, Any]:
    """The tokenizer of a directory, which has to be byte-level BPE, with unused tokens up to `vocab_size`.

    Raises:
        ValueError: it is of another kind, or has more tokens.
    """
    content = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    settings = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
    if content["model"]["type"] != "BPE" or "ByteLevel" not in json.dumps(content["pre_tokenizer"]):
        raise ValueError(f"{directory}: expected a tokenizer of byte-level BPE")
    added = {entry["content"]: entry["id"] for entry in content["added_tokens"]}
    ids = content["model"]["vocab"] | added
    names = {index: name for name, index in ids.items()}
    if max(names) >= vocab_size:
        raise ValueError(f"{directory}: {max(names) + 1} tokens, more than the {vocab_size} of the shape")

    def kind(index: int) -> int:
        if index not in names:
            return _UNUSED
        return _CONTROL if names[index] in added else _NORMAL

    found: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2" if "NFC" in json.dumps(content["normalizer"]) else "default",
        "tokenizer.ggml.tokens": [names.get(index, f"[PAD{index}]") for index in range(vocab_size)],
        "tokenizer.ggml.token_type": list(map(kind, range(vocab_size))),
        "tokenizer.ggml.merges": [
            each if isinstance(each, str) else " ".join(each) for each in content["model"]["merges"]
        ],
        "tokenizer.ggml.add_bos_token": False,
    }
    end = settings.get("eos_token")
    end = end.get("content") if isinstance(end, dict) else end
    if end in ids:
        found["tokenizer.ggml.eos_token_id"] = ids[end]
    return found


def write_float16(path: Path, shape: Mapping[str, int], tokenizer: Path, seed: int = 0) -> None:
    """Write a random model in float16; vectors are in float32, as converters write them.

    Raises:
        ValueError: as `token_metadata`.
    """
    writer = gguf.GGUFWriter(path, "qwen2")
    for key, value in token_metadata(tokenizer, shape["vocab_size"]).items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)
    writer.add_file_type(FILE_TYPES["f16"])
    writer.add_context_length(shape["max_position_embeddings"])
    writer.add_embedding_length(shape["hidden_size"])
    writer.add_block_count(shape["num_hidden_layers"])
    writer.add_feed_forward_length(shape["intermediate_size"])
    writer.add_head_count(shape["num_attention_heads"])
    writer.add_head_count_kv(shape["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    listed = list(tensors(shape))
    for name, dims in listed:
        dtype = np.dtype(np.float16 if len(dims) > 1 else np.float32)
        writer.add_tensor_info(name, dims, dtype, int(np.prod(dims)) * dtype.itemsize)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    dice = np.random.default_rng(seed)
    for name, dims in listed:
        writer.write_tensor_data(_values(name, dims, dice))
    writer.close()


def _values(name: str, dims: tuple[int, ...], dice: np.random.Generator) -> NDArray[Any]:
    if name.endswith("norm.weight"):
        return np.ones(dims, dtype=np.float32)
    found = dice.standard_normal(dims, dtype=np.float32)
    found *= _SCALE
    return found.astype(np.float16) if len(dims) > 1 else found


def gguf_files(
    out: Annotated[Path, typer.Argument(help="The folder for the files.")],
    llama_cpp: Annotated[Path, typer.Option(help="The folder of llama.cpp's shared libraries.", metavar="FOLDER")],
    shape: Annotated[str, typer.Option(help=f"One of {', '.join(SHAPES)}.")] = "qwen2-0.5b",
    kind: Annotated[str, typer.Option(help=f"Kinds, comma-separated: {', '.join(FILE_TYPES)}.")] = "q4_0,q4_k_m,q8_0",
    tokenizer: Annotated[
        Path | None, typer.Option(help="A directory with tokenizer.json; default: that of rtlang:tiny.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the weights.")] = 0,
) -> None:
    """Write GGUF files of a random model."""
    with one_line_errors(), progress() as tell:
        if shape not in SHAPES:
            raise CommandError(f"--shape {shape}: expected one of {', '.join(SHAPES)}")
        kinds = kind.split(",")
        if unknown := [each for each in kinds if each not in FILE_TYPES]:
            raise CommandError(f"--kind {unknown[0]}: expected one of {', '.join(FILE_TYPES)}")
        out.mkdir(parents=True, exist_ok=True)
        source = out / f"{shape}-f16.gguf"
        try:
            library = LlamaCpp(llama_cpp)
            tell(f"writing {source.name}")
            write_float16(source, SHAPES[shape], tokenizer or model_directory(EMBEDDED_MODEL), seed)
            for each in kinds:
                target = out / f"{shape}-{each}.gguf"
                if target != source:
                    tell(f"writing {target.name}")
                    library.quantize(source, target, each)
                typer.echo(f"{target}: {target.stat().st_size / 1e6:.0f} MB")
        except (LlamaCppError, ValueError) as error:
            raise CommandError(str(error)) from error
        finally:
            if "f16" not in kinds:
                source.unlink(missing_ok=True)


app = command(gguf_files)

if __name__ == "__main__":
    app()
