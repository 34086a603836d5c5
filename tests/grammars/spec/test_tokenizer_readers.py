"""`Vocabulary.from_tokenizer` against what the tokenizers themselves encode and decode."""

from __future__ import annotations

import functools
import io
import json
import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from rtlang_grammars import Constraint, ConstraintKind, Vocabulary
from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.spec.errors import UnsupportedTokenizerError
from tests.support.grammars.texts import SHARED
from tests.support.models.tokenizer_kinds import CORPUS, KINDS, SPECIAL, tokenizer_json

ROOT = Path(__file__).parents[3]
_LETTERS = 'ab zX09 {}[]":,.\\/\n\t\r-_<>é日😀ñ▁\u200d\u00a0'


def random_texts(seed: int, num_texts: int = 200) -> list[str]:
    """Words of the corpus, blanks in runs, single letters of several scripts. No first blank: it may be the dummy one."""
    draw = random.Random(seed)
    words = " ".join(CORPUS).split()
    texts = []
    for _ in range(num_texts):
        parts = [
            draw.choice((draw.choice(words), draw.choice(_LETTERS), " " * draw.randrange(1, 9))) for _ in range(12)
        ]
        texts.append("x" + "".join(parts))
    return texts


def spelled(vocabulary: Vocabulary, token_ids: list[int]) -> bytes:
    return b"".join(vocabulary.token_bytes[token_id] for token_id in token_ids)


def marked(text: str) -> str:
    """The text as SentencePiece sees it: U+2581 is its sign for a blank."""
    return text.replace("▁", " ")


def check_tokenizers(tokenizer: Any, vocabulary: Vocabulary, reads: Callable[[str], str]) -> None:
    """The tokens of each text spell it: as the tokenizer encodes a whole text, and as it continues one."""
    assert vocabulary.tokenizer_json is not None
    continuing = tokenizers.Tokenizer.from_str(vocabulary.tokenizer_json)
    for text in random_texts(0):
        whole = spelled(vocabulary, tokenizer.encode(text, add_special_tokens=False).ids).decode()
        assert whole.removeprefix(" ") == reads(text)
        assert spelled(vocabulary, continuing.encode(text, add_special_tokens=False).ids).decode() == reads(text)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_of_a_text_spell_it(kind: str) -> None:
    tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json(kind))
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[2], vocab_size=1000)
    assert vocabulary.vocab_size == 1000
    assert {vocabulary.token_bytes[i] for i in vocabulary.special_token_ids} == {name.encode() for name in SPECIAL}
    check_tokenizers(tokenizer, vocabulary, str if kind.startswith("byte") else marked)


@pytest.mark.parametrize(
    "path",
    [
        ROOT / "rtlang/tiny/tokenizer.json",
        SHARED / "tokenizers/qwen2/tokenizer.json",
        SHARED / "models/stories260k/tokenizer.json",
    ],
    ids=lambda path: path.parent.name,
)
def test_tokens_of_real_models_spell_their_texts(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"{path} is not here")
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[])
    reads = marked if "stories" in str(path) else functools.partial(unicodedata.normalize, "NFC")
    check_tokenizers(tokenizer, vocabulary, reads)


def test_transformers_names_end_tokens_and_special_ones(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    plain = tokenizers.Tokenizer.from_str(tokenizer_json("byte_level"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="</s>", unk_token="<unk>")
    tokenizer.add_tokens(["<tool>", "Ġ x"])
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.eos_token_ids == {tokenizer.eos_token_id}
    assert set(tokenizer.all_special_ids) <= vocabulary.special_token_ids
    assert vocabulary.token_bytes[-2:] == (b"<tool>", "Ġ x".encode())
    assert not {tokenizer.convert_tokens_to_ids("<tool>")} & vocabulary.silent_ids  # an added token that is text
    for text in random_texts(1, 50):
        assert (
            spelled(vocabulary, tokenizer(text + "<tool>", add_special_tokens=False).input_ids)
            == f"{text}<tool>".encode()
        )


@functools.cache
def trained_sentencepiece(kind: str) -> Any:
    """A SentencePiece model trained on the repository's own texts."""
    sentencepiece = pytest.importorskip("sentencepiece")
    lines = [line for path in (ROOT / "grammars").rglob("*.py") for line in path.read_text().splitlines() if line][
        :6000
    ]
    model = io.BytesIO()
    settings: dict[str, Any] = {"byte_fallback": True, "user_defined_symbols": ["<tool>", "▁▁", "▁▁▁▁"], "unk_id": 0}
    if kind == "lossless":
        settings |= {
            "add_dummy_prefix": False,
            "remove_extra_whitespaces": False,
            "normalization_rule_name": "identity",
        }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=1500, num_threads=1, minloglevel=2,
        model_type="unigram" if kind == "unigram" else "bpe", hard_vocab_limit=False, **settings,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def check_sentencepiece(processor: Any, vocabulary: Vocabulary) -> None:
    """Concatenated bytes are what the processor decodes, up to the dummy blank that it takes away; and the text, where it keeps it."""
    for text in random_texts(2):
        ids = processor.encode(text)
        decoded = processor.decode(ids)
        assert spelled(vocabulary, ids).decode().removeprefix(" ") == decoded.removeprefix(" ")
        if processor.decode(processor.encode(" a  b ")) == " a  b ":  # no normalisation
            assert spelled(vocabulary, ids).decode().removeprefix(" ") == marked(text)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "lossless"])
def test_tokens_of_sentencepiece_spell_what_it_decodes(kind: str) -> None:
    processor = trained_sentencepiece(kind)
    vocabulary = Vocabulary.from_tokenizer(processor)
    assert vocabulary.eos_token_ids == {processor.eos_id()}
    assert vocabulary.special_token_ids == {processor.unk_id(), processor.bos_id(), processor.eos_id()}
    assert {bytes([byte]) for byte in range(256)} <= set(vocabulary.token_bytes)
    assert vocabulary.token_bytes[processor.piece_to_id("▁▁▁▁")] == b"    "
    check_sentencepiece(processor, vocabulary)


def test_a_tokenizer_of_transformers_over_sentencepiece_is_read(tmp_path: Path) -> None:
    transformers, processor = pytest.importorskip("transformers"), trained_sentencepiece("bpe")
    (tmp_path / "tokenizer.model").write_bytes(processor.serialized_model_proto())
    names = {"eos_token": "</s>", "bos_token": "<s>", "unk_token": "<unk>"}
    slow = transformers.SentencePieceBackend(vocab_file=str(tmp_path / "tokenizer.model"), **names)
    slow.add_tokens(["<call>"])
    vocabulary, plain = Vocabulary.from_tokenizer(slow), Vocabulary.from_tokenizer(processor)
    assert vocabulary.eos_token_ids == {processor.eos_id()}
    assert vocabulary.special_token_ids == plain.special_token_ids
    assert vocabulary.token_bytes == (*plain.token_bytes, b"<call>")


@pytest.mark.parametrize("name", ["tokenizer.model.v1", "mistral_instruct_tokenizer_241114.model.v7"])
def test_tokens_of_mistrals_sentencepiece_spell_what_it_decodes(name: str) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = Path(pytest.importorskip("mistral_common").__file__).parent / "data" / name
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    vocabulary = Vocabulary.from_tokenizer(processor)
    assert len(vocabulary.token_bytes) in (32000, 32768)
    check_sentencepiece(processor, vocabulary)


def test_tokens_of_mistrals_tekken_spell_their_texts() -> None:
    path = Path(pytest.importorskip("mistral_common").__file__).parent / "data" / "tekken_240911.json"
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = Tekkenizer.from_file(path)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert len(vocabulary.token_bytes) == 131072
    for text in random_texts(3):
        assert spelled(vocabulary, tokenizer.encode(text, bos=False, eos=False)) == text.encode()


def test_mistrals_tokenizers_are_read_through_their_wrappers() -> None:
    mistral_common = pytest.importorskip("mistral_common")
    sentencepiece = pytest.importorskip("sentencepiece")
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    path = Path(mistral_common.__file__).parent / "data" / "mistral_instruct_tokenizer_240216.model.v2"
    wrapper = SimpleNamespace(tokenizer=MistralTokenizer.from_file(path))  # as in transformers' MistralCommonBackend
    vocabulary = Vocabulary.from_tokenizer(wrapper)
    plain = Vocabulary.from_tokenizer(sentencepiece.SentencePieceProcessor(model_file=str(path)))
    assert vocabulary.eos_token_ids == plain.eos_token_ids
    texts = zip(vocabulary.token_bytes, plain.token_bytes, strict=True)
    assert [i for i, (own, other) in enumerate(texts) if own != other and i not in vocabulary.special_token_ids] == []


def test_tokens_of_tiktoken_spell_their_texts() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    tiny = Vocabulary.from_tokenizer(
        tokenizers.Tokenizer.from_file(str(ROOT / "rtlang/tiny/tokenizer.json")), eos_token_ids=[1]
    )
    plain = [text for i, text in enumerate(tiny.token_bytes) if i not in tiny.silent_ids]
    ranks = {text: rank for rank, text in enumerate(sorted(plain, key=len))}
    special = {"<|endoftext|>": len(ranks) + 2, "<|fim|>": len(ranks)}  # with a gap between them
    encoding = tiktoken.Encoding("own", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens=special)
    vocabulary = Vocabulary.from_tokenizer(encoding)
    assert vocabulary.eos_token_ids == {encoding.eot_token}
    assert vocabulary.special_token_ids == set(special.values())
    assert vocabulary.token_bytes[-2] == b""
    for text in random_texts(4):
        assert spelled(vocabulary, encoding.encode(text, disallowed_special=())) == text.encode()


def gemma_like_tokenizer() -> tokenizers.Tokenizer:
    """262,144 tokens in the order of Gemma 3: control, runs of line breaks, tabs and blanks, tags, bytes, text, 6,242 unused."""
    draw = random.Random(5)
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    pieces = [
        *names,
        *("\n" * n for n in range(1, 32)),
        *("\t" * n for n in range(1, 32)),
        *("▁" * n for n in range(2, 32)),
    ]
    pieces += [f"<{slash}h{n}>" for slash in ("", "/") for n in range(1, 7)] + [
        f"<0x{byte:02X}>" for byte in range(256)
    ]
    pieces += [
        "▁",
        *map(chr, [*range(0x21, 0x7F), *range(0xA1, 0x250), *range(0x4E00, 0x5E00), *range(0x1F300, 0x1F600)]),
    ]
    parts = [
        "a",
        "e",
        "in",
        "st",
        "tion",
        "ро",
        "日",
        "er",
        "on",
        "é",
        "1",
        "0",
        '"',
        "{",
        "th",
        "ing",
        "S",
        "re",
        ":",
        "ment",
    ]
    known = dict.fromkeys(pieces)
    while len(known) < 262144 - 6242:
        known["▁" * draw.randrange(2) + "".join(draw.choices(parts, k=draw.randrange(2, 7)))] = None
    vocab = [*known, *(f"<unused{n}>" for n in range(6242))]
    content = {
        "model": {"type": "BPE", "vocab": {piece: i for i, piece in enumerate(vocab)}, "merges": [], "byte_fallback": True},
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        ]},
    }  # fmt: skip
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
    tokenizer.add_special_tokens([*names, *vocab[-6242:]])
    return tokenizer


@pytest.mark.slow
def test_a_vocabulary_of_262144_tokens_masks_as_it_accepts(tmp_path: Path) -> None:
    tokenizer = gemma_like_tokenizer()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[1])
    assert vocabulary.vocab_size == 262144
    assert len(vocabulary.special_token_ids) == 6247
    grammar = RtlangBackend.create(vocabulary, tmp_path).compile(
        Constraint(ConstraintKind.JSON_SCHEMA, '{"properties": {"日ро": {"type": "string"}}, "required": ["日ро"]}')
    )
    matcher, row, draw = grammar.matcher(), np.empty(vocabulary.num_mask_words, dtype=np.int32), random.Random(6)
    for _ in range(40):
        matcher.fill_bitmask(row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        probed = {*draw.choices(range(262144), k=300), *draw.choices(allowed.tolist(), k=20)}
        for token_id in probed:
            is_accepted = matcher.accept_token(token_id)
            assert is_accepted == (token_id in allowed), vocabulary.token_bytes[token_id]
            if is_accepted:
                matcher.rollback(1)
        token_id = draw.choice([int(i) for i in allowed if i not in vocabulary.eos_token_ids] or [1])
        if not matcher.accept_token(token_id) or token_id == 1:
            break


def test_what_does_not_spell_texts_is_refused_by_name() -> None:
    word_piece = tokenizers.Tokenizer(models.WordPiece({"a": 0, "##b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    with pytest.raises(UnsupportedTokenizerError, match="WordPiece"):
        Vocabulary.from_tokenizer(word_piece, eos_token_ids=[])
    words = tokenizers.Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    with pytest.raises(UnsupportedTokenizerError, match="Whitespace"):
        Vocabulary.from_tokenizer(words, eos_token_ids=[])
    letters = tokenizers.Tokenizer(models.BPE({"a": 0}, []))
    letters.decoder = decoders.CTC()
    with pytest.raises(UnsupportedTokenizerError, match="CTC"):
        Vocabulary.from_tokenizer(letters, eos_token_ids=[])
    with pytest.raises(UnsupportedTokenizerError, match=r"builtins\.dict"):
        Vocabulary.from_tokenizer({})


def test_end_tokens_that_nobody_names_must_be_given() -> None:
    with pytest.raises(ValueError, match="eos_token_ids"):
        Vocabulary.from_tokenizer(tokenizers.Tokenizer(models.BPE({"a": 0}, [])))
