"""Bytes of tokens, against the decoders of `tokenizers`."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tokenizers
from tokenizers import pre_tokenizers

from rtlang_grammars.spec.errors import UnsupportedTokenizerError
from rtlang_grammars.spec.token_bytes import byte_level_alphabet, token_bytes_of
from tests.support.models.tokenizer_kinds import KINDS, SPECIAL, tokenizer_json


def test_the_byte_alphabet_is_that_of_the_library() -> None:
    alphabet = byte_level_alphabet()
    assert sorted(alphabet) == sorted(pre_tokenizers.ByteLevel.alphabet())
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in map(chr, [*range(0x250), 0x65E5, 0x1F600]):
        ((letters, _),) = splitter.pre_tokenize_str(text)
        assert bytes(alphabet[letter] for letter in letters) == text.encode()


@pytest.mark.parametrize("kind", KINDS)
def test_each_token_alone_decodes_to_its_bytes(kind: str) -> None:
    content = tokenizer_json(kind)
    library = tokenizers.Tokenizer.from_str(content)
    table = token_bytes_of(json.loads(content), library.get_vocab_size())
    anchor = library.encode("e", add_special_tokens=False).ids[-1]  # keeps the decoder from stripping a first space
    for token_id, text in enumerate(table):
        if library.id_to_token(token_id) in SPECIAL:
            continue
        alone = library.decode([anchor, token_id], skip_special_tokens=False)
        assert text.decode("utf-8", "replace") == alone.removeprefix(library.decode([anchor])), library.id_to_token(
            token_id
        )


def test_added_tokens_are_their_own_text_and_gaps_are_empty() -> None:
    content = {
        "model": {"type": "BPE", "vocab": {"a": 0}},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": 2, "content": "  é"}],
    }
    assert token_bytes_of(content, 4) == (b"a", b"", "  é".encode(), b"")


@pytest.mark.parametrize(
    ("decoder", "pieces"),
    [
        ({"type": "BPEDecoder", "suffix": "</w>"}, {"ab</w>": b"ab ", "a": b"a"}),
        ({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"}, {"_ab": b" ab"}),
        (None, {"é": "é".encode(), "<0x41>": b"<0x41>"}),
        (
            {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
            {"<0xe6>": b"\xe6", "<0xGG>": b"<0xGG>"},
        ),
    ],
)
def test_other_decoders_are_read(decoder: dict[str, Any] | None, pieces: dict[str, bytes]) -> None:
    vocab = {piece: index for index, piece in enumerate(pieces)}
    content = {"model": {"type": "BPE", "vocab": vocab}, "decoder": decoder}
    assert token_bytes_of(content, len(pieces)) == tuple(pieces.values())


@pytest.mark.parametrize("kind", ["WordPiece", "CTC"])
def test_decoders_over_whole_texts_are_refused(kind: str) -> None:
    with pytest.raises(UnsupportedTokenizerError, match=kind):
        token_bytes_of({"model": {"type": "BPE", "vocab": {}}, "decoder": {"type": kind}}, 0)
