"""Tokens with scores: merging against the rule written out and against SentencePiece, unigram against SentencePiece."""

from __future__ import annotations

import functools
import io
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf_tokenizer.token_list import TokenType
from rtlang.model.loading.gguf_tokenizer.tokenizer_json import tokenizer_parts
from tests.support.gguf.token_comparison import encoding, random_texts
from tests.support.gguf.vocabularies import sentencepiece_metadata
from tests.support.long_tests import sized

ROOT = Path(__file__).parents[4]
SPECIAL = {"<unk>": TokenType.UNKNOWN, "<s>": TokenType.CONTROL, "</s>": TokenType.CONTROL}
BYTES = {f"<0x{byte:02X}>": TokenType.BYTE for byte in range(256)}


def random_vocabulary(seed: int) -> dict[str, Any]:
    """Tokens of three letters whose scores have no order, so that merging depends on every one of them."""
    dice = random.Random(seed)
    words = {"".join(dice.choices("ab\u2581", k=dice.randint(2, 6))) for _ in range(60)} | {"</s>b", "<s", "0x"}
    tokens = {**SPECIAL, **BYTES, **dict.fromkeys([*"ab</s>x0", "\u2581", *sorted(words)], TokenType.NORMAL)}
    scores = list(range(-len(tokens), 0))
    dice.shuffle(scores)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": list(tokens),
        "tokenizer.ggml.token_type": [int(kind) for kind in tokens.values()],
        "tokenizer.ggml.scores": [float(score) for score in scores],
        "tokenizer.ggml.add_space_prefix": dice.random() < 0.5,
    }


def merged(metadata: dict[str, Any], text: str) -> list[int]:
    """The rule: the neighbors that make the token with the best score merge first, at equal scores those on the left."""
    names = metadata["tokenizer.ggml.tokens"]
    scores = dict(zip(names, metadata["tokenizer.ggml.scores"], strict=True))
    types = dict(zip(names, metadata["tokenizer.ggml.token_type"], strict=True))
    # Only what can be made of characters counts, since merges of other tokens are not found either.
    made = {name for name in names if len(name) == 1}
    while more := {
        name
        for name in set(names) - made
        if types[name] == TokenType.NORMAL
        and any(name[:at] in made and name[at:] in made for at in range(1, len(name)))
    }:
        made |= more
    parts = list((" " if metadata["tokenizer.ggml.add_space_prefix"] else "") + text)
    parts = ["\u2581" if part == " " else part for part in parts]
    while found := [(-scores[a + b], at) for at, (a, b) in enumerate(itertools.pairwise(parts)) if a + b in made]:
        at = min(found)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [
        token
        for part in parts
        for token in ([names.index(part)] if part in names else [names.index(f"<0x{b:02X}>") for b in part.encode()])
    ]


def test_merging_follows_the_scores() -> None:
    for seed in range(sized(200, usual=12)):
        metadata = random_vocabulary(seed)
        encode = encoding(tokenizer_parts(metadata, "x"))
        dice = random.Random(seed)
        for _ in range(25):
            text = "".join(
                dice.choices(["a", "b", " ", "</s>", "<s", "<0x0A>", "é"], [9, 9, 5, 1, 1, 1, 1], k=dice.randint(1, 30))
            )
            assert encode(text, False) == merged(metadata, text), (seed, text)


@functools.cache
def trained(kind: str, **settings: Any) -> Any:
    """A SentencePiece model trained on the documentation."""
    sentencepiece = pytest.importorskip("sentencepiece")
    lines = [line for path in sorted((ROOT / "docs").rglob("*.md")) for line in path.read_text().splitlines() if line]
    lines = [*lines[:1500], *["Größe, naïve, café, 日本語のテキスト, 😀😀, Привет мир"] * 20]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=kind,
        vocab_size=1200,
        num_threads=1,
        minloglevel=2,
        hard_vocab_limit=False,
        **settings,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


PLAIN = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("bpe", {**PLAIN, "byte_fallback": True}),
        ("bpe", {**PLAIN, "byte_fallback": True, "add_dummy_prefix": False}),
        ("unigram", PLAIN),
        ("unigram", {**PLAIN, "byte_fallback": True}),
        ("unigram", {}),  # characters are mapped, and spaces merged
    ],
)
def test_tokens_are_those_of_sentencepiece(kind: str, settings: dict[str, Any]) -> None:
    processor = trained(kind, **settings)
    parts = tokenizer_parts(sentencepiece_metadata(processor.serialized_model_proto()), "x")
    encode = encoding(parts)
    num_equal = 0
    texts = list(random_texts(sized(10_000, usual=300), 6, []))
    for text in texts:
        expected, found = processor.encode(text), encode(text, False)
        num_equal += found == expected
        if settings:
            assert found == expected, text
    # The library maps whole grapheme clusters, SentencePiece the longest known prefix: they differ on rare characters.
    assert num_equal >= 0.9 * len(texts)


def test_control_tokens_and_bytes_are_only_named_by_text() -> None:
    for kind in ("bpe", "unigram"):
        processor = trained(kind, **PLAIN, byte_fallback=True)
        parts = tokenizer_parts(sentencepiece_metadata(processor.serialized_model_proto()), "x")
        encode = encoding(parts)
        ids = encode("a</s><s><unk>b<0x41>", False)
        assert {processor.bos_id(), processor.eos_id(), processor.piece_to_id("<0x41>")}.isdisjoint(ids)
        assert processor.eos_id() in encode("a</s>b", True)


def test_a_vocabulary_of_long_tokens_is_refused() -> None:
    metadata = random_vocabulary(0)
    metadata["tokenizer.ggml.tokens"][300:310] = ["a" * (9_000 + index) for index in range(10)]
    with pytest.raises(
        ModelLoadError, match=r"tokenizer\.ggml\.tokens has too many long tokens, of up to 9,009 characters"
    ):
        tokenizer_parts(metadata, "x")


@pytest.mark.parametrize("values", [[1, 2], [255] * 40, [8, 0, 0, 0, *[0] * 8], [0, 0, 0, 0, 65], [300], ["a"]])
def test_a_damaged_map_of_characters_is_refused(values: list[Any]) -> None:
    processor = trained("unigram", **PLAIN)
    metadata = sentencepiece_metadata(processor.serialized_model_proto())
    metadata["tokenizer.ggml.precompiled_charsmap"] = values
    with pytest.raises(ModelLoadError, match=r"tokenizer\.ggml\.precompiled_charsmap"):
        tokenizer_parts(metadata, "x")


def test_merges_that_would_be_read_as_a_comment_stay_merges() -> None:
    metadata = random_vocabulary(0)
    made = ["#version"[:length] for length in range(1, 9)] + ["#versiona"]
    names = [name for name in dict.fromkeys([*"#version", *made]) if name not in metadata["tokenizer.ggml.tokens"]]
    metadata["tokenizer.ggml.tokens"] += names
    metadata["tokenizer.ggml.token_type"] += [1] * len(names)
    metadata["tokenizer.ggml.scores"] += [-1e6 - index for index in range(len(names))]
    metadata["tokenizer.ggml.add_space_prefix"] = False
    encode = encoding(tokenizer_parts(metadata, "x"))
    assert encode("#versiona", False) == [metadata["tokenizer.ggml.tokens"].index("#versiona")]
