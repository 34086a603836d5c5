"""Encoding in parts and decoding in steps, over tokenizers of every kind, with `tokenizers` itself as oracle."""

from __future__ import annotations

import json
import os
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang.contract.errors import ModelLoadError
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_grammars.spec.token_bytes import byte_level_alphabet
from tests.support.long_tests import sized
from tests.support.models.tokenizer_kinds import KINDS, tokenizer_json, write_tokenizer_kind


def _trained(kind: str) -> Tokenizer:
    with tempfile.TemporaryDirectory() as path:
        return Tokenizer.from_pretrained(write_tokenizer_kind(Path(path), kind))


def byte_ids(tokenizer: Tokenizer, data: bytes) -> list[int]:
    """Data byte by byte, each as the token that is this byte: a letter of a byte-level alphabet, or a byte piece."""
    letter_of = {byte: letter for letter, byte in byte_level_alphabet().items()}
    pieces = "<0x00>" in {tokenizer.token_name(token_id) for token_id in range(tokenizer.vocab_size)}
    encoder = tokenizer._encoder(True, False)
    ids = [encoder.token_to_id(f"<0x{byte:02X}>" if pieces else letter_of[byte]) for byte in data]
    assert None not in ids
    return ids


TRAINED = {kind: _trained(kind) for kind in KINDS}
BYTE_LEVEL = TRAINED["byte_level"]
SHARED = Path(__file__).parents[3] / "shared"
TEXTS = [
    "Once upon a time",
    " leading and  double   spaces ",
    "\n\nnew\tlines\r\n",
    '{"name": "Ada", "tags": ["x", 1.5e-3]}',
    "naïve café 日本語 😀👩‍👩‍👧 Привет",
    "<s>not special</s> <unk> <|user|>",
    "▁",
    "a",
    " ",
    "\x00\x7f\u200b\ufeff\uffff",
]


@pytest.fixture(scope="module", params=[*KINDS, "stories260k", "qwen2"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    if request.param in KINDS:
        return Tokenizer.from_pretrained(write_tokenizer_kind(tmp_path_factory.mktemp("tokenizer"), request.param))
    path = SHARED / ("models" if request.param == "stories260k" else "tokenizers") / request.param
    if not path.is_dir():
        pytest.skip(f"{request.param} is not at hand")
    return Tokenizer.from_pretrained(path)


def as_bytes(tokenizer: Tokenizer, ids: list[int]) -> bytes:
    return b"".join(map(tokenizer.token_bytes, ids))


def is_plain(tokenizer: Tokenizer, text: str) -> bool:
    """Whether the tokenizer's own normalisation leaves the text alone (NFC, and the space sign as text)."""
    normalizer = tokenizer._encoder(False, False).normalizer
    if normalizer is not None and normalizer.normalize_str(text).replace("▁", " ") != text:
        return False
    return "▁" not in text or not tokenizer.has_dummy_space


def test_a_continuation_is_exactly_its_own_bytes(tokenizer: Tokenizer) -> None:
    for first in TEXTS:
        for second in TEXTS:
            if not (is_plain(tokenizer, first) and is_plain(tokenizer, second)):
                continue
            ids = tokenizer.encode(first, is_start=True) + tokenizer.encode(second, is_start=False)
            dummy = " " if tokenizer.has_dummy_space else ""
            got = as_bytes(tokenizer, ids).decode()
            assert got in ((dummy + first + second), first + second)  # some put no second space before a first one
            assert as_bytes(tokenizer, tokenizer.encode(second, is_start=False)).decode() == second


def test_the_start_of_a_sequence_is_encoded_as_the_library_does(tokenizer: Tokenizer) -> None:
    library = tokenizers.Tokenizer.from_str(tokenizer._start_json)
    library.encode_special_tokens = True
    for text in ("Once upon a time", "a\nb", "naïve"):
        whole = tokenizer.start_ids() + tokenizer.encode(text, is_start=True)
        assert whole == library.encode(text, add_special_tokens=True).ids


def test_text_never_becomes_a_special_token_unless_allowed(tokenizer: Tokenizer) -> None:
    for special in tokenizer.special_token_ids:
        name = tokenizer.token_name(special)
        if name == "<unk>":
            continue
        for text in (name, f"a{name}b {name}{name}"):
            for is_start in (True, False):
                ids = tokenizer.encode(text, is_start=is_start)
                assert not (set(ids) & tokenizer.special_token_ids), text
                assert as_bytes(tokenizer, ids).decode().strip() == text
                assert tokenizer.encode(text, is_start=is_start, allow_special=True).count(special) == text.count(name)


def test_decoding_in_steps_equals_decoding_at_once(tokenizer: Tokenizer) -> None:
    rng = random.Random(1)
    for _ in range(60):
        ids = [rng.randrange(tokenizer.vocab_size + 3) for _ in range(rng.randint(0, 40))]
        decoder = tokenizer.decoder()
        pieces = []
        at = 0
        while at < len(ids):
            size = rng.randint(0, 3)
            pieces.append(decoder.push(ids[at : at + size]))
            at += size
        assert "".join(pieces) + decoder.flush() == tokenizer.decode(ids)
        assert decoder.push([]) == decoder.flush() == ""


def test_every_text_survives_encoding_and_stepwise_decoding(tokenizer: Tokenizer) -> None:
    for text in TEXTS:
        if not is_plain(tokenizer, text):
            continue
        ids = tokenizer.encode(text, is_start=False)
        assert tokenizer.decode(ids) == text
        decoder = tokenizer.decoder()
        shown = [decoder.push([token]) for token in ids]
        assert "\ufffd" not in "".join(shown)
        assert "".join(shown) + decoder.flush() == text


def test_decoding_agrees_with_the_library(tokenizer: Tokenizer) -> None:
    library = tokenizers.Tokenizer.from_str(tokenizer._start_json)
    for text in TEXTS:
        ids = tokenizer.encode(text, is_start=True)
        got = tokenizer.decode(ids)
        assert library.decode(ids, skip_special_tokens=True) in (got, got[1:] if got.startswith(" ") else got)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=sized(80), deadline=None, derandomize=True, database=None)
@given(parts=st.lists(st.binary(max_size=8) | st.text(max_size=6), max_size=6), size=st.integers(1, 5))
def test_random_bytes_are_shown_as_python_decodes_them(kind: str, parts: list[bytes | str], size: int) -> None:
    """Any bytes, as byte tokens, between texts: whole characters as soon as they are there, and in the end every byte."""
    tokenizer = TRAINED[kind]
    ids: list[int] = []
    for part in parts:
        ids += byte_ids(tokenizer, part) if isinstance(part, bytes) else tokenizer.encode(part, is_start=False)
    data = as_bytes(tokenizer, ids)
    assert len(data) >= sum(len(part) for part in parts if isinstance(part, bytes))
    decoder = tokenizer.decoder()
    shown = ""
    for at in range(0, len(ids), size):
        shown += decoder.push(ids[at : at + size])
        so_far = as_bytes(tokenizer, ids[: at + size])
        # what is held back is the beginning of one character, which is at most three bytes long
        assert any(so_far[: len(so_far) - held].decode("utf-8", "replace") == shown for held in range(4))
    assert shown + decoder.flush() == data.decode("utf-8", "replace") == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=sized(60), deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_random_tokens_lose_no_byte(kind: str, data: st.DataObject) -> None:
    tokenizer = TRAINED[kind]
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=24))
    decoder = tokenizer.decoder()
    shown = "".join(decoder.push([token_id]) for token_id in ids) + decoder.flush()
    assert shown == as_bytes(tokenizer, ids).decode("utf-8", "replace")
    if "\ufffd" not in shown:
        assert shown.encode() == as_bytes(tokenizer, ids)
        library = tokenizers.Tokenizer.from_str(tokenizer_json(kind, adds_bos=True))
        plain = [token_id for token_id in ids if token_id not in tokenizer.special_token_ids]
        assert library.decode(plain, skip_special_tokens=False) in (shown, shown.removeprefix(" "))


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_has_a_token_and_the_grammars_see_it(kind: str) -> None:
    tokenizer = TRAINED[kind]
    table = tokenizer.vocabulary().token_bytes
    for byte in range(256):
        (token_id,) = byte_ids(tokenizer, bytes([byte]))
        assert table[token_id] == bytes([byte])


@settings(max_examples=sized(60), deadline=None, derandomize=True, database=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_random_texts_continue_each_other(first: str, second: str) -> None:
    ids = BYTE_LEVEL.encode(first, is_start=True) + BYTE_LEVEL.encode(second, is_start=False)
    assert BYTE_LEVEL.decode(ids) == first + second


def test_many_names_of_special_tokens_in_a_text_stay_text() -> None:
    tokenizer = TRAINED["unigram"]
    for text in ("<s>" * 3000, "a</s>b " * 2000 + "<|user|>", "<<s>s></s<s>>"):
        ids = tokenizer.encode(text, is_start=False)
        assert not (set(ids) & tokenizer.special_token_ids)
        assert tokenizer.decode(ids) == text


def test_lone_surrogates_do_not_break_encoding() -> None:
    assert BYTE_LEVEL.decode(BYTE_LEVEL.encode("a\ud800b", is_start=False)) == "a?b"


def test_empty_text_has_no_tokens(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("", is_start=True) == tokenizer.encode("", is_start=False) == []


def test_special_and_end_tokens_have_no_text_but_a_name_in_the_vocabulary(tokenizer: Tokenizer) -> None:
    vocabulary = tokenizer.vocabulary(tokenizer.vocab_size + 100)
    assert vocabulary.vocab_size == tokenizer.vocab_size + 100
    assert vocabulary.eos_token_ids == tokenizer.eos_token_ids
    for special in tokenizer.special_token_ids | tokenizer.eos_token_ids:
        assert tokenizer.token_bytes(special) == vocabulary.text_of([special]) == b""
        assert vocabulary.token_bytes[special].decode() == tokenizer.token_name(special)
        assert tokenizer.decoder(shows_special=True).push([special]) == tokenizer.token_name(special)
        assert tokenizer.decoder().push([special]) == ""
    assert tokenizer.token_bytes(tokenizer.vocab_size + 5) == tokenizer.token_bytes(-1) == b""
    narrow = tokenizer.vocabulary(10)
    assert len(narrow.token_bytes) == narrow.vocab_size == 10


def test_one_tokenizer_serves_many_threads() -> None:
    text = "<s>Once upon a time</s> naïve"

    def run(index: int) -> list[int]:
        return BYTE_LEVEL.encode(text, is_start=bool(index & 1), allow_special=bool(index & 2))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, range(200)))
    assert results == [run(index) for index in range(200)]
    assert results[0] != results[2]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, {"</s>"}),
        ({"config.json": {"eos_token_id": 3}}, {"</s>", "<|user|>"}),
        ({"generation_config.json": {"eos_token_id": [1, 3]}}, {"<s>", "</s>", "<|user|>"}),
        ({"config.json": {"text_config": {"eos_token_id": [3, 10**6]}}}, {"</s>", "<|user|>"}),
        ({"config.json": {"eos_token_id": None}, "tokenizer_config.json": {"eos_token": None}}, set()),
        ({"tokenizer_config.json": {"eos_token": {"content": "<|user|>"}}}, {"<|user|>"}),
    ],
)
def test_end_tokens_come_from_all_files(tmp_path: Path, files: dict[str, object], expected: set[str]) -> None:
    write_tokenizer_kind(tmp_path, "byte_level")
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert {tokenizer.token_name(i) for i in tokenizer.eos_token_ids} == expected


@pytest.mark.parametrize(
    ("adds_bos", "extra", "expected"),
    [
        (True, {}, [1]),
        (False, {}, []),
        (False, {"add_bos_token": True}, [1]),
        (True, {"add_bos_token": False}, []),
    ],
)
def test_start_tokens_follow_the_post_processor_and_the_setting(
    tmp_path: Path, adds_bos: bool, extra: dict[str, object], expected: list[int]
) -> None:
    tokenizer = Tokenizer.from_pretrained(write_tokenizer_kind(tmp_path, "byte_level", adds_bos=adds_bos, **extra))
    assert tokenizer.start_ids() == expected
    assert tokenizer.bos_token_id == 1


def test_ids_go_as_far_as_the_logits_of_the_model(tmp_path: Path) -> None:
    directory = write_tokenizer_kind(tmp_path, "byte_level")
    tokenizer = Tokenizer.from_pretrained(directory)
    assert tokenizer.num_ids == tokenizer.vocab_size
    for config in ({"vocab_size": 5000}, {"text_config": {"vocab_size": 5000}}):
        (tmp_path / "config.json").write_text(json.dumps(config))
        wide = Tokenizer.from_pretrained(directory)
        assert (wide.num_ids, wide.vocab_size) == (5000, tokenizer.vocab_size)
        assert wide.decode([4999]) == ""


def test_special_tokens_that_only_the_settings_list_are_added(tmp_path: Path) -> None:
    size = tokenizers.Tokenizer.from_str(tokenizer_json("byte_level")).get_vocab_size()
    added = {str(size): {"content": "<|extra|>", "special": True}}
    tokenizer = Tokenizer.from_pretrained(write_tokenizer_kind(tmp_path, "byte_level", added_tokens_decoder=added))
    assert tokenizer.encode("a<|extra|>", is_start=False, allow_special=True)[-1] == size
    assert size not in tokenizer.encode("a<|extra|>", is_start=False)
    assert size in tokenizer.special_token_ids


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("tokenizer.json", None, "missing"),
        ("tokenizer.json", "{", "cannot be read"),
        ("tokenizer.json", "[]", "object"),
        ("tokenizer.json", "{}", "no model"),
        ("tokenizer.json", '{"model": {"type": "BPE"}}', "cannot be used"),
        ("tokenizer_config.json", "nope", "cannot be read"),
        ("config.json", "{", "cannot be read"),
        ("tokenizer.json", '{"model": {}, "added_tokens": "x"}', "cannot be used"),
        ("tokenizer.json", '{"model": {}, "added_tokens": [{"content": "a"}]}', "cannot be used"),
    ],
)
def test_a_damaged_directory_is_refused_with_the_file_named(
    tmp_path: Path, name: str, content: str | None, reason: str
) -> None:
    write_tokenizer_kind(tmp_path, "byte_level")
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(ModelLoadError, match=reason) as caught:
        Tokenizer.from_pretrained(tmp_path)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"added_tokens_decoder": "x"},
        {"added_tokens_decoder": {"x": {"content": "y"}}},
        {"chat_template": [{"name": ["x"], "template": "y"}]},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    write_tokenizer_kind(tmp_path, "byte_level", **settings)
    with pytest.raises(ModelLoadError, match="cannot be used"):
        Tokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(name: str, tmp_path: Path) -> None:
    write_tokenizer_kind(tmp_path, "byte_level")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    if name == "chat_template.jinja":
        assert Tokenizer.from_pretrained(tmp_path).chat.template is None
    else:
        with pytest.raises(ModelLoadError, match=f"{name} is not a regular file"):
            Tokenizer.from_pretrained(tmp_path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_older_format_is_converted(tmp_path: Path) -> None:
    expected = Tokenizer.from_pretrained(write_tokenizer_kind(tmp_path, "byte_level", tokenizer_class="GPT2Tokenizer"))
    model = json.loads((tmp_path / "tokenizer.json").read_text())["model"]
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    (tmp_path / "merges.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(
        ModelLoadError, match=r"tokenizer\.json is missing, and transformers cannot convert vocab\.json"
    ):
        Tokenizer.from_pretrained(tmp_path)
    merges = [" ".join(pair) if isinstance(pair, list) else pair for pair in model["merges"]]
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]))
    converted = Tokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        assert converted.encode(text, is_start=False) == expected.encode(text, is_start=False)
    assert converted.eos_token_ids == expected.eos_token_ids


def test_a_decoder_without_meaning_per_token_is_refused(tmp_path: Path) -> None:
    write_tokenizer_kind(tmp_path, "byte_level")
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["decoder"] = {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelLoadError, match="CTC"):
        Tokenizer.from_pretrained(tmp_path)


def test_a_prefix_that_cannot_be_switched_off_is_refused(tmp_path: Path) -> None:
    write_tokenizer_kind(tmp_path, "byte_level")
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["normalizer"] = {"type": "Replace", "pattern": {"Regex": "^a"}, "content": " a"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelLoadError, match="to every string"):
        Tokenizer.from_pretrained(tmp_path)


def test_a_tokenizer_that_leaves_out_letters_is_refused(tmp_path: Path) -> None:
    write_tokenizer_kind(tmp_path, "byte_level")
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["merges"] = []
    content["model"]["vocab"] = {t: i for t, i in content["model"]["vocab"].items() if t not in "7x"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelLoadError, match=r"tokenizer.json: the tokenizer silently drops 'x'"):
        Tokenizer.from_pretrained(tmp_path)


def test_a_long_text_has_the_tokens_that_its_encoder_gives(tokenizer: Tokenizer) -> None:
    text = "naïve café, 日本語 and words. " * 300
    for is_start in (True, False):
        encoder = tokenizer._encoder(is_start, False)
        assert tokenizer.encode(text, is_start=is_start) == encoder.encode(text, add_special_tokens=False).ids


def test_other_threads_run_while_a_long_text_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Encoder:
        def encode(self, text: str, **_: object) -> None:
            calls.append("one")  # holds the interpreter lock for as long as it takes

        def encode_batch_fast(self, texts: list[str], **options: object) -> list[object]:
            calls.append("batch")
            return list(real.encode_batch_fast(texts, **options))

    real = BYTE_LEVEL._encoder(True, False)
    monkeypatch.setattr(BYTE_LEVEL, "_encoder", lambda *_: Encoder())
    assert BYTE_LEVEL.decode(BYTE_LEVEL.encode("word " * 1000, is_start=True)) == "word " * 1000
    assert calls == ["batch"]


def test_a_tokenizer_is_made_of_its_parts(tmp_path: Path) -> None:
    expected = Tokenizer.from_pretrained(
        write_tokenizer_kind(tmp_path, "metaspace_always", chat_template="{{ messages }}")
    )
    content, settings = (
        json.loads((tmp_path / name).read_text()) for name in ("tokenizer.json", "tokenizer_config.json")
    )
    found = Tokenizer.from_parts(content, settings, source="x", eos_token_ids=[3], num_logits=expected.vocab_size + 5)
    assert found.difference(expected) is None
    assert found.eos_token_ids == expected.eos_token_ids | {3}
    assert found.num_ids == expected.num_ids + 5 == expected.vocab_size + 5
    assert found.has_dummy_space is True
    assert found.chat.template == expected.chat.template == "{{ messages }}"


@pytest.mark.parametrize(
    ("content", "problem"),
    [({}, "keys has no model entry"), ({"model": {"type": "BPE", "vocab": 5}}, "keys cannot be used")],
)
def test_damaged_parts_are_named(content: dict[str, Any], problem: str) -> None:
    with pytest.raises(ModelLoadError, match=f"'x.bin': {problem}"):
        Tokenizer.from_parts(content, {}, source="x.bin", part="keys")
