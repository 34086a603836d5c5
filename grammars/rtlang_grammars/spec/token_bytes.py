"""The bytes of each token of a `tokenizer.json`.

`tokenizers` describes decoding as a chain of steps over whole strings, which splits characters when applied token by token. This module
applies the chain to each token once, as bytes: byte-level tokens through GPT-2's alphabet of 256 characters, SentencePiece tokens with the
space marker replaced, and `<0xAB>` tokens as single bytes. A step that has no meaning per token is refused by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from rtlang_grammars.spec.errors import UnsupportedTokenizerError

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_REMOVING = ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "CharDelimiterSplit")
"""Pre-tokenizers that remove characters."""

_Step: TypeAlias = Callable[[str], str]


def byte_level_alphabet() -> dict[str, int]:
    """The characters that byte-level tokenizers use for the 256 bytes.

    Printable bytes map to themselves; the others map, in order, to the code points from 256 on.
    Source: Radford et al. 2019 (GPT-2), byte-level BPE.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    alphabet: dict[str, int] = {}
    moved = 0
    for byte in range(256):
        if byte in printable:
            alphabet[chr(byte)] = byte
        else:
            alphabet[chr(256 + moved)] = byte
            moved += 1
    return alphabet


def bytes_of_piece(piece: str) -> bytes:
    """The bytes of a SentencePiece piece: U+2581 stands for a blank, `<0xAB>` for one byte."""
    match = _BYTE_PIECE.fullmatch(piece)
    return bytes([int(match[1], 16)]) if match else piece.replace("\u2581", " ").encode()


def token_bytes_of(tokenizer: dict[str, Any], num_tokens: int) -> tuple[bytes, ...]:
    """The bytes of tokens 0 to num_tokens - 1.

    Args:
        tokenizer: the content of tokenizer.json.
        num_tokens: highest token id plus one; unused ids give b"".
    Raises:
        UnsupportedTokenizerError: the tokens do not spell texts byte for byte; names the part.
    """
    convert = _piece_converter(tokenizer)
    result = [b""] * num_tokens
    for piece, token_id in _pieces(tokenizer["model"]):
        if 0 <= token_id < num_tokens:
            result[token_id] = convert(piece)
    for added in tokenizer.get("added_tokens") or ():
        # An added token is matched literally, so its content is its text.
        if 0 <= added["id"] < num_tokens:
            result[added["id"]] = added["content"].encode()
    return tuple(result)


def without_dummy_space(tokenizer: dict[str, Any]) -> dict[str, Any]:
    """The content of tokenizer.json without the steps that put a blank before the first word, so that it continues a text."""
    return {
        **tokenizer,
        "normalizer": _strip_step(tokenizer.get("normalizer"), "normalizers"),
        "pre_tokenizer": _strip_step(tokenizer.get("pre_tokenizer"), "pretokenizers"),
    }


def _strip_step(step: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    if step is None or step["type"] == "Prepend":
        return None
    if step["type"] == "Sequence":
        children = [kept for child in step[key] if (kept := _strip_step(child, key)) is not None]
        return {**step, key: children} if children else None
    if step["type"] == "Metaspace":
        return {**{k: v for k, v in step.items() if k != "add_prefix_space"}, "prepend_scheme": "never"}
    if step["type"] == "ByteLevel":
        return {**step, "add_prefix_space": False}
    return step


def _pieces(model: dict[str, Any]) -> Iterator[tuple[str, int]]:
    vocab = model.get("vocab", {})
    if isinstance(vocab, dict):
        yield from vocab.items()
    else:  # unigram: a list of (piece, score)
        yield from ((entry[0], token_id) for token_id, entry in enumerate(vocab))


def _piece_converter(tokenizer: dict[str, Any]) -> Callable[[str], bytes]:
    """The steps of the decoder as a function of one token."""
    decoders = list(_flatten(tokenizer.get("decoder"), "decoders"))
    pre_tokenizers = list(_flatten(tokenizer.get("pre_tokenizer"), "pretokenizers"))
    kinds = [step["type"] for step in decoders]
    _refuse_lossy(tokenizer["model"], kinds, pre_tokenizers)
    is_byte_level = "ByteLevel" in kinds or (not kinds and any(step["type"] == "ByteLevel" for step in pre_tokenizers))
    has_byte_pieces = bool(tokenizer["model"].get("byte_fallback")) or "ByteFallback" in kinds
    steps: list[_Step] = []
    is_fused = False
    for step in decoders:
        kind = step["type"]
        is_fused |= kind == "Fuse"
        if kind not in ("ByteLevel", "ByteFallback", "Fuse"):
            steps += _text_step(step, is_fused)
    alphabet = byte_level_alphabet()

    def convert(piece: str) -> bytes:
        if has_byte_pieces and piece.startswith("<0x") and (match := _BYTE_PIECE.fullmatch(piece)) is not None:
            return bytes([int(match[1], 16)])
        for step in steps:
            piece = step(piece)
        if is_byte_level and all(letter in alphabet for letter in piece):
            return bytes(alphabet[letter] for letter in piece)
        return piece.encode()

    return convert


def _refuse_lossy(model: dict[str, Any], kinds: list[str], pre_tokenizers: list[dict[str, Any]]) -> None:
    """Refuse a tokenizer whose tokens, put together, are not the text."""
    if model.get("type") == "WordPiece" and model.get("continuing_subword_prefix"):
        prefix = model["continuing_subword_prefix"]
        raise UnsupportedTokenizerError(
            f"WordPiece is not supported: its tokens do not encode whitespace, and {prefix!r} is not part of the text"
        )
    for step in pre_tokenizers:
        removes = step["type"] in _REMOVING or (step["type"] == "Split" and step.get("behavior") == "Removed")
        if removes and "BPEDecoder" not in kinds:
            raise UnsupportedTokenizerError(
                f"the pre-tokenizer {step['type']} is not supported: it removes whitespace that no token encodes"
            )


def _text_step(step: dict[str, Any], is_fused: bool) -> list[_Step]:
    """A step of the decoder as a function of one token; `is_fused`: it runs over the whole text.

    Raises:
        UnsupportedTokenizerError: the step has no meaning per token.
    """
    kind = step["type"]
    if kind == "Replace" and "String" in step.get("pattern", {}):
        old, new = step["pattern"]["String"], step["content"]
        if not is_fused or len(old) == 1:
            return [lambda piece: piece.replace(old, new)]
    elif kind == "Metaspace":
        marker = step["replacement"]
        return [lambda piece: piece.replace(marker, " ")]
    elif kind == "BPEDecoder":
        suffix = step["suffix"]
        return [lambda piece: piece.replace(suffix, " ")]
    elif kind == "Strip" and is_fused and not step.get("stop"):
        return []  # removes the dummy blank of a whole text, which continued text has not
    elif kind == "Strip" and not is_fused:
        return [lambda piece: _stripped(piece, step["content"], step["start"], step["stop"])]
    raise UnsupportedTokenizerError(f"the decoder step {kind} is not supported")


def _stripped(piece: str, content: str, start: int, stop: int) -> str:
    """A piece without up to `start` and `stop` times the content at its ends."""
    for _ in range(start):
        piece = piece.removeprefix(content)
    for _ in range(stop):
        piece = piece.removesuffix(content)
    return piece


def _flatten(step: dict[str, Any] | None, key: str) -> Iterator[dict[str, Any]]:
    if step is None:
        return
    if step["type"] == "Sequence":
        for child in step[key]:
            yield from _flatten(child, key)
    else:
        yield step
