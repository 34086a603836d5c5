"""Reads tokenizers of other libraries as plain data: the bytes of every token, and which tokens are not text.

Supported are `tokenizers`, `transformers`, `tiktoken`, `sentencepiece` and `mistral-common`. None of them is imported: an object is
recognised by the methods that its library documents. Bytes are those that a token adds to a text that already began, so a dummy blank in
front of a text's first word is not part of any token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rtlang_grammars.spec.errors import UnsupportedTokenizerError
from rtlang_grammars.spec.token_bytes import byte_level_alphabet, bytes_of_piece, token_bytes_of, without_dummy_space


@dataclass(frozen=True, slots=True)
class TokenizerContent:
    """What a tokenizer says about its tokens.

    Attributes:
        token_bytes: bytes by token id; for a special token its name, b"" for an unused id.
        special_ids: tokens that are not text.
        end_ids: tokens that end a text; None if the tokenizer does not know.
        json: the tokenizer in the format of the `tokenizers` library, without a dummy blank; None for others.
    """

    token_bytes: tuple[bytes, ...]
    special_ids: frozenset[int]
    end_ids: frozenset[int] | None
    json: str | None = None


def read_tokenizer(tokenizer: Any) -> TokenizerContent:
    """Read a tokenizer object of any supported library.

    Raises:
        UnsupportedTokenizerError: the kind of tokenizer is unknown, or its tokens do not spell texts byte for byte.
    """
    # mistral-common, and what vllm and transformers wrap around it; processors for several media
    within = tokenizer
    while (inner := getattr(within, "instruct_tokenizer", getattr(within, "tokenizer", None))) is not None:
        within = inner
    for method, read in _READERS.items():
        if hasattr(within, method):
            return read(within)
    kind = f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__}"
    raise UnsupportedTokenizerError(
        f"tokenizer = {kind}: expected a tokenizer of tokenizers, transformers, tiktoken, sentencepiece or mistral-common"
    )


def _read_tokenizers(tokenizer: Any) -> TokenizerContent:
    """`tokenizers.Tokenizer`."""
    content = {**json.loads(tokenizer.to_str()), "truncation": None, "padding": None}
    num_tokens = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    token_bytes = list(token_bytes_of(content, num_tokens))
    special = {entry["id"] for entry in content.get("added_tokens") or () if entry["special"]}
    unknown = tokenizer.token_to_id(_unknown_name(content["model"]) or "")
    special |= set() if unknown is None else {unknown}
    text = json.dumps(without_dummy_space(content), ensure_ascii=False)
    return TokenizerContent(tuple(token_bytes), frozenset(special), None, text)


def _unknown_name(model: dict[str, Any]) -> str | None:
    """The name of the token that stands for characters without a token."""
    if isinstance(model.get("unk_id"), int):  # unigram
        name: str = model["vocab"][model["unk_id"]][0]
        return name
    return model.get("unk_token")


def _read_fast(tokenizer: Any) -> TokenizerContent:
    """A tokenizer of `transformers` that is built on `tokenizers`."""
    content = _read_tokenizers(tokenizer.backend_tokenizer)
    special = content.special_ids | frozenset(tokenizer.all_special_ids)
    return TokenizerContent(content.token_bytes, special, _ids(tokenizer.eos_token_id), content.json)


def _read_slow(tokenizer: Any) -> TokenizerContent:
    """A tokenizer of `transformers` written in Python: byte-level or over SentencePiece."""
    added = tokenizer.added_tokens_decoder
    num_tokens = max([len(tokenizer) - 1, *added, *tokenizer.all_special_ids]) + 1
    special = {i for i, token in added.items() if token.special} | set(tokenizer.all_special_ids)
    alphabet = byte_level_alphabet() if hasattr(tokenizer, "byte_decoder") else None
    if alphabet is None and not hasattr(tokenizer, "sp_model"):
        raise UnsupportedTokenizerError(
            f"tokenizer = {type(tokenizer).__qualname__}: expected one that is byte-level or built on SentencePiece"
        )
    token_bytes = []
    for token_id in range(num_tokens):
        piece = str(added[token_id]) if token_id in added else tokenizer.convert_ids_to_tokens(token_id)
        if token_id in added or token_id in special:
            token_bytes.append((piece or "").encode())
        elif alphabet is not None:
            token_bytes.append(bytes(alphabet[letter] for letter in piece or ""))
        else:
            token_bytes.append(bytes_of_piece(piece or ""))
    return TokenizerContent(tuple(token_bytes), frozenset(special), _ids(tokenizer.eos_token_id))


def _read_tiktoken(encoding: Any) -> TokenizerContent:
    """`tiktoken.Encoding`."""
    names = {encoding.encode_single_token(name): name for name in encoding.special_tokens_set}
    token_bytes = [b""] * encoding.n_vocab
    for token_id in range(encoding.n_vocab):
        try:
            token_bytes[token_id] = encoding.decode_single_token_bytes(token_id)
        except KeyError:  # a gap
            continue
    ends = {token_id for token_id, name in names.items() if name in ("<|endoftext|>", "<|return|>", "<|call|>")}
    return TokenizerContent(tuple(token_bytes), frozenset(names), frozenset(ends) or None)


def _read_sentencepiece(processor: Any) -> TokenizerContent:
    """`sentencepiece.SentencePieceProcessor`."""
    num_tokens = processor.get_piece_size()
    pieces = [processor.id_to_piece(token_id) for token_id in range(num_tokens)]
    special = {i for i in range(num_tokens) if processor.is_control(i) or processor.is_unknown(i)}
    token_bytes = [
        piece.encode() if i in special else b"" if processor.is_unused(i) else _sentencepiece_bytes(processor, i, piece)
        for i, piece in enumerate(pieces)
    ]
    end = processor.eos_id()
    return TokenizerContent(tuple(token_bytes), frozenset(special), _ids(end if end >= 0 else None))


def _sentencepiece_bytes(processor: Any, token_id: int, piece: str) -> bytes:
    # A piece of text may look like a byte's.
    return bytes_of_piece(piece) if processor.is_byte(token_id) else piece.replace("\u2581", " ").encode()


def _read_mistral(tokenizer: Any) -> TokenizerContent:
    """`mistral_common`'s Tekkenizer, with special tokens before a byte-level vocabulary, or its SentencePieceTokenizer."""
    ids = range(tokenizer.n_words)
    special = {token_id for token_id in ids if tokenizer.is_special(token_id)}
    to_bytes = getattr(tokenizer, "id_to_byte_piece", lambda token_id: bytes_of_piece(tokenizer.id_to_piece(token_id)))
    token_bytes = [tokenizer.id_to_piece(i).encode() if i in special else to_bytes(i) for i in ids]
    return TokenizerContent(tuple(token_bytes), frozenset(special), _ids(tokenizer.eos_id))


def _ids(token_id: int | list[int] | None) -> frozenset[int] | None:
    if token_id is None:
        return None
    return frozenset(token_id if isinstance(token_id, list) else (token_id,))


_READERS = {
    "backend_tokenizer": _read_fast,
    "convert_ids_to_tokens": _read_slow,
    "to_str": _read_tokenizers,
    "decode_single_token_bytes": _read_tiktoken,
    "is_unused": _read_sentencepiece,
    "n_words": _read_mistral,
}
"""The reader for each kind of tokenizer, by a method that only this kind has; the first that is there decides."""
