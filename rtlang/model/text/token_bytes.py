"""The bytes of each token of a tokenizer.

`tokenizers` describes decoding as a chain of steps over whole strings, which splits characters when applied token by token. This module
converts the chain into bytes per token once: byte-level tokens through GPT-2's alphabet of 256 characters, SentencePiece tokens with the
space marker replaced, and `<0xAB>` tokens as single bytes. A step that has no meaning per token is refused at load time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class UnsupportedDecoderError(ValueError):
    """The tokenizer's decoder cannot be expressed per token."""


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


def token_bytes_of(tokenizer: dict[str, Any], num_tokens: int) -> tuple[bytes, ...]:
    """The bytes of tokens 0 to num_tokens - 1.

    Args:
        tokenizer: the content of tokenizer.json.
        num_tokens: highest token id plus one; unused ids give b"".
    Raises:
        UnsupportedDecoderError: the decoder cannot be expressed per token.
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


def _pieces(model: dict[str, Any]) -> Iterator[tuple[str, int]]:
    vocab = model.get("vocab", {})
    if isinstance(vocab, dict):
        yield from vocab.items()
    else:  # unigram: a list of (piece, score)
        yield from ((entry[0], token_id) for token_id, entry in enumerate(vocab))


def _piece_converter(tokenizer: dict[str, Any]) -> Callable[[str], bytes]:
    steps = list(_flatten(tokenizer.get("decoder"), "decoders"))
    kinds = [step["type"] for step in steps]
    pre_kinds = [step["type"] for step in _flatten(tokenizer.get("pre_tokenizer"), "pretokenizers")]
    if "ByteLevel" in kinds or (not kinds and "ByteLevel" in pre_kinds):
        alphabet = byte_level_alphabet()

        def from_letters(piece: str) -> bytes:
            if all(letter in alphabet for letter in piece):
                return bytes(alphabet[letter] for letter in piece)
            return piece.encode()

        return from_letters

    replacements: list[tuple[str, str]] = []
    has_byte_pieces = bool(tokenizer["model"].get("byte_fallback"))
    for step in steps:
        kind = step["type"]
        if kind == "Replace" and "String" in step.get("pattern", {}):
            replacements.append((step["pattern"]["String"], step["content"]))
        elif kind == "Metaspace":
            replacements.append((step["replacement"], " "))
        elif kind == "BPEDecoder":
            replacements.append((step["suffix"], " "))
        elif kind == "ByteFallback":
            has_byte_pieces = True
        elif kind not in ("Fuse", "Strip"):
            # Strip only removes the dummy prefix space, which decoding handles separately.
            raise UnsupportedDecoderError(f"the decoder step {kind} is not supported")

    def from_piece(piece: str) -> bytes:
        match = _BYTE_PIECE.fullmatch(piece) if has_byte_pieces else None
        if match is not None:
            return bytes([int(match[1], 16)])
        for old, new in replacements:
            piece = piece.replace(old, new)
        return piece.encode()

    return from_piece


def _flatten(step: dict[str, Any] | None, key: str) -> Iterator[dict[str, Any]]:
    if step is None:
        return
    if step["type"] == "Sequence":
        for child in step[key]:
            yield from _flatten(child, key)
    else:
        yield step
