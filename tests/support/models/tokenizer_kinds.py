"""Tokenizers of every kind that causal models use, trained on the spot, and directories that hold them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = [
    "Once upon a time there was a little dog. The dog liked to play.",
    'Answer as JSON: {"name": "Ada", "age": 36, "tags": ["a", "b"]}',
    "def add(a, b):\n    return a + b\n\nprint(add(1, 2))\n",
    "Größe, naïve, café, 日本語のテキスト, 😀😀, Привет мир",
    "the quick brown fox jumps over the lazy dog 0123456789",
] * 4
SPECIAL = ["<unk>", "<s>", "</s>", "<|user|>"]
BYTE_PIECES = [f"<0x{byte:02X}>" for byte in range(256)]


def _byte_level(*, prefix_space: bool) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _bpe_with_byte_pieces() -> tokenizers.Tokenizer:
    """As converted SentencePiece BPE models are: normaliser puts the sign in front, unknown characters fall to bytes."""
    trained = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    sign = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.normalizer = sign
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=[*SPECIAL, *BYTE_PIECES], show_progress=False, limit_alphabet=60
    )
    trained.train_from_iterator(CORPUS, trainer)
    content = json.loads(trained.to_str())
    content["added_tokens"] = [entry for entry in content["added_tokens"] if entry["content"] in SPECIAL]
    content["model"] |= {"byte_fallback": True, "fuse_unk": True}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def _metaspace_bpe(scheme: str) -> tokenizers.Tokenizer:
    content = json.loads(_bpe_with_byte_pieces().to_str())
    content["normalizer"] = None
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme=scheme, split=False)
    return tokenizer


def _unigram() -> tokenizers.Tokenizer:
    """Special tokens are ordinary pieces with a good score as well, as in converted SentencePiece unigram models."""
    pieces = [(name, 0.0) for name in SPECIAL] + [(piece, -20.0) for piece in BYTE_PIECES]
    words = sorted({word for line in CORPUS for word in line.split()} | set("".join(CORPUS[:3])))
    pieces += [("▁", -3.0)] + [(f"▁{word}", -6.0 - index / 100) for index, word in enumerate(words) if word.isalpha()]
    pieces += [(letter, -9.0 - index / 100) for index, letter in enumerate(sorted(set("".join(CORPUS[:3])) - {" "}))]
    tokenizer = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace("▁", prepend_scheme="always")])
    return tokenizer


KINDS: dict[str, Callable[[], Any]] = {
    "byte_level": functools.partial(_byte_level, prefix_space=False),
    "byte_level_prefix_space": functools.partial(_byte_level, prefix_space=True),
    "bpe_byte_pieces": _bpe_with_byte_pieces,
    "metaspace_first": functools.partial(_metaspace_bpe, "first"),
    "metaspace_always": functools.partial(_metaspace_bpe, "always"),
    "unigram": _unigram,
}


@functools.cache
def tokenizer_json(kind: str, *, adds_bos: bool = True) -> str:
    """tokenizer.json of a kind; with `adds_bos` its post-processor puts `<s>` in front."""
    tokenizer = KINDS[kind]()
    if adds_bos:
        bos = tokenizer.token_to_id("<s>")
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", bos)])
    return str(tokenizer.to_str())


def write_tokenizer_kind(path: Path, kind: str, *, adds_bos: bool = True, **settings: Any) -> Path:
    """Put tokenizer.json, tokenizer_config.json (with `settings`) and nothing else into the directory `path`."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "tokenizer.json").write_text(tokenizer_json(kind, adds_bos=adds_bos), encoding="utf-8")
    names = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
    }
    (path / "tokenizer_config.json").write_text(json.dumps(names | settings), encoding="utf-8")
    return path
