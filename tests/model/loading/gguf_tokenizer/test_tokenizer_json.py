"""Tokenizers from the metadata of GGUF files, against the tokenizers that it was written from."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.container import GgufFile
from rtlang.model.loading.gguf_tokenizer.tokenizer_json import tokenizer_parts
from rtlang.model.text.tokenizer import Tokenizer
from tests.support.gguf.token_comparison import encoding, main, random_texts
from tests.support.gguf.vocabularies import gguf_metadata, read_metadata, write_vocabulary
from tests.support.grammars.texts import SHARED
from tests.support.long_tests import sized
from tests.support.models.real_weights import real_gguf, real_model
from tests.support.models.tokenizer_kinds import CORPUS, tokenizer_json, write_tokenizer_kind

NAMES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def kind_metadata(kind: str, **changes: Any) -> dict[str, Any]:
    """The metadata of a kind of tokenizer; a key that changes to None is left out."""
    metadata = gguf_metadata(json.loads(tokenizer_json(kind, adds_bos=True)), NAMES, pre="gpt-2")
    metadata |= {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    return {key: value for key, value in metadata.items() if value is not None}


def made(metadata: dict[str, Any], **options: Any) -> Tokenizer:
    parts = tokenizer_parts(metadata, "model.gguf")
    return Tokenizer.from_parts(
        parts.content, parts.settings, source="model.gguf", eos_token_ids=parts.eos_token_ids, **options
    )


def assert_same(metadata: dict[str, Any], library: Any, count: int, names: list[str]) -> None:
    """Equal tokens, with names of control tokens in the text and with these as text."""
    encode = encoding(tokenizer_parts(metadata, "model.gguf"))
    for text in random_texts(sized(10_000, usual=count), 7, names):
        for special in (False, True):
            library.encode_special_tokens = not special
            assert encode(text, special) == library.encode(text, add_special_tokens=False).ids, text


@pytest.mark.parametrize("kind", ["byte_level", "byte_level_prefix_space", "bpe_byte_pieces"])
def test_a_tokenizer_written_as_metadata_gives_the_same_tokens(kind: str, tmp_path: Path) -> None:
    content = json.loads(tokenizer_json(kind, adds_bos=True))
    if kind == "byte_level_prefix_space":  # files do not say it
        content["pre_tokenizer"]["add_prefix_space"] = False
    write_vocabulary(tmp_path / "x.gguf", gguf_metadata(content, NAMES, pre="gpt-2"))
    library = tokenizers.Tokenizer.from_str(json.dumps(content))
    assert_same(read_metadata(str(tmp_path / "x.gguf")), library, 300, [*NAMES.values(), "<|user|>"])


def test_qwen2_gives_the_same_tokens() -> None:
    path = SHARED / "tokenizers" / "qwen2"
    if not path.is_dir():
        pytest.skip("no ../shared/tokenizers/qwen2")
    content, settings = (json.loads((path / name).read_text()) for name in ("tokenizer.json", "tokenizer_config.json"))
    metadata = gguf_metadata(content, settings, pre="qwen2")
    assert_same(
        metadata, tokenizers.Tokenizer.from_file(str(path / "tokenizer.json")), 300, ["<|im_end|>", "<|endoftext|>"]
    )
    assert tokenizer_parts(metadata, "x").eos_token_ids == {151643, 151645}


def test_published_files_give_the_published_tokens_and_texts() -> None:
    path, file = real_model("smollm2"), real_gguf("smollm2")
    metadata = GgufFile.open(file).metadata
    library = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    words = pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=True
    )  # as published; this file lost the first step
    library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])
    assert_same(metadata, library, 300, ["<|im_start|>", "<|im_end|>", "<file_sep>"])
    found, expected = made(metadata), Tokenizer.from_pretrained(path)
    assert found.chat.template == (path / "chat_template.jinja").read_text()
    assert (found.start_ids(), found.bos_name) == (expected.start_ids(), expected.bos_name)
    assert found.eos_token_ids == {0, 2}
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <|im_end|>"}
    for messages in ([user], [system, user]):
        texts = [each.chat.render(messages, adds_prompt=True) for each in (found, expected)]
        assert texts[0] == texts[1]
        assert "Hi <|im_end|>" in texts[0]


def test_a_vocabulary_of_gemma_gives_the_texts_back() -> None:
    parts = tokenizer_parts(GgufFile.open(real_gguf("gemma3")).metadata, "model.gguf")
    assert parts.settings["add_bos_token"]
    assert parts.eos_token_ids == {1, 106}
    tokenizer = Tokenizer.from_parts(
        parts.content, parts.settings, source="model.gguf", eos_token_ids=parts.eos_token_ids
    )
    assert tokenizer.start_ids() == [2]
    for text in random_texts(300, 8, ["<bos>", "</s>", "<table>", "<end_of_turn>"]):
        ids = tokenizer.encode(text, is_start=True)
        assert tokenizer.decode(ids) == text
        assert tokenizer.special_token_ids.isdisjoint(ids)


def test_pieces_of_words_are_those_of_the_library() -> None:
    library = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    library.normalizer, library.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    library.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    )
    names = {"bos_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    metadata = gguf_metadata(json.loads(library.to_str()), names)
    assert any(name.startswith("\u2581") for name in metadata["tokenizer.ggml.tokens"])
    assert_same(metadata, library, 300, special)
    with pytest.raises(ModelLoadError, match="WordPiece is not supported"):
        made(metadata)


def test_merging_goes_on_where_words_of_the_family_are_not_whole() -> None:
    metadata = kind_metadata("byte_level")
    metadata["tokenizer.ggml.tokens"].append("zqx")
    metadata["tokenizer.ggml.token_type"].append(1)
    whole = len(metadata["tokenizer.ggml.tokens"]) - 1
    for pre, is_whole in (("llama-bpe", True), ("gpt-2", False)):
        metadata["tokenizer.ggml.pre"] = pre
        assert (made(metadata).encode("zqx", is_start=True) == [whole]) == is_whole


def test_a_file_that_names_no_pre_tokenizer_is_read_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    unnamed = tokenizer_parts(kind_metadata("byte_level", pre=None), "model.gguf").content
    assert "model.gguf: tokenizer.ggml.pre is missing" in caplog.text
    caplog.clear()
    assert tokenizer_parts(kind_metadata("byte_level", pre="default"), "model.gguf").content == unnamed
    assert not caplog.text


def test_the_parts_make_the_tokenizer_that_a_directory_makes(tmp_path: Path) -> None:
    template = "{{ bos_token }}" + CHATML
    directory = write_tokenizer_kind(tmp_path, "bpe_byte_pieces", chat_template=template, add_bos_token=True)
    expected = Tokenizer.from_pretrained(directory)
    metadata = kind_metadata("bpe_byte_pieces") | {"tokenizer.chat_template": template}
    found = made(metadata, num_logits=expected.vocab_size + 8)
    assert found.difference(expected) is None
    assert (found.start_ids(), found.bos_name, found.eos_token_ids) == (
        expected.start_ids(),
        "<s>",
        expected.eos_token_ids,
    )
    assert found.special_token_ids == expected.special_token_ids
    assert found.num_ids == expected.vocab_size + 8
    assert found.has_dummy_space == expected.has_dummy_space is True
    messages = [{"role": "user", "content": "Hi </s>"}, {"role": "assistant", "content": "Hello"}]
    assert found.chat.template == template
    assert found.chat.render(messages, adds_prompt=True) == expected.chat.render(messages, adds_prompt=True)


def test_of_several_templates_the_default_one_is_used() -> None:
    metadata = kind_metadata("byte_level") | {
        "tokenizer.chat_template.tool_use": "x",
        "tokenizer.chat_template": CHATML,
    }
    assert made(metadata).chat.template == CHATML
    assert tokenizer_parts(metadata, "x").settings["chat_template"] == [
        {"name": "tool_use", "template": "x"},
        {"name": "default", "template": CHATML},
    ]
    assert made(kind_metadata("byte_level")).chat.template is None


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("byte_level", {}, False),
        ("byte_level", {"pre": "llama-bpe"}, True),
        ("byte_level", {"pre": "llama-bpe", "add_bos_token": False}, False),
        ("byte_level", {"add_bos_token": True}, True),
        ("bpe_byte_pieces", {}, True),
        ("bpe_byte_pieces", {"add_bos_token": False}, False),
        ("unigram", {}, False),
    ],
)
def test_sequences_start_with_the_start_token_where_the_file_or_its_kind_says_so(
    kind: str, changes: dict[str, Any], expected: bool
) -> None:
    assert made(kind_metadata(kind, **changes)).start_ids() == ([1] if expected else [])


def ending(names: list[str], **changes: Any) -> set[str]:
    """The names of tokens that end a text, of a vocabulary that has these control tokens."""
    metadata = kind_metadata("byte_level", **changes)
    tokens, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"] = (
        [*tokens, *names],
        [*types, *[3] * len(names)],
    )
    parts = tokenizer_parts(metadata, "x")
    special = {entry["id"] for entry in parts.content["added_tokens"] if entry["special"]}
    assert parts.eos_token_ids <= special
    return {metadata["tokenizer.ggml.tokens"][index] for index in parts.eos_token_ids}


def test_tokens_end_a_text_by_id_and_by_name() -> None:
    assert ending([]) == {"</s>"}
    assert ending(["<|im_end|>", "<|eot_id|>", "<|tool|>"]) == {"</s>", "<|im_end|>", "<|eot_id|>"}
    assert ending([], eot_token_id=3, eom_token_id=300) == {
        "</s>",
        "<|user|>",
        kind_metadata("byte_level")["tokenizer.ggml.tokens"][300],
    }
    assert ending(["<|fim_pad|>", "<|file_sep|>", "<reponame>"]) == {"</s>"}


def test_the_end_of_a_message_is_no_end_where_others_follow() -> None:
    assert ending(["<|end|>", "<|return|>"]) == {"</s>", "<|end|>", "<|return|>"}
    assert ending(["<|end|>", "<|return|>", "<|call|>"]) == {"</s>", "<|return|>", "<|call|>"}
    assert ending(["<|end|>", "<|flush|>", "<|calls|>"]) == {"</s>", "<|flush|>", "<|calls|>"}


def test_a_tag_that_is_called_like_an_end_token_stays_text() -> None:
    metadata = kind_metadata("byte_level", eos_token_id=1)
    metadata["tokenizer.ggml.token_type"][2] = 4  # </s>
    tokenizer = made(metadata)
    assert tokenizer.eos_token_ids == {1}
    assert 2 in tokenizer.encode("a</s>b", is_start=True)


def test_tokens_of_phi_3_take_the_whitespace_after_them() -> None:
    metadata = kind_metadata("bpe_byte_pieces") | {"general.name": "Phi-3 mini"}
    stripped = {entry["content"] for entry in tokenizer_parts(metadata, "x").content["added_tokens"] if entry["rstrip"]}
    assert stripped == {"</s>", "<|user|>"}


@pytest.mark.parametrize(
    ("kind", "changes", "problem"),
    [
        ("byte_level", {"model": None}, "model is missing: expected gpt2, llama, t5, bert"),
        ("byte_level", {"model": "rwkv"}, "model = 'rwkv' is not supported: expected gpt2, llama, t5, bert"),
        ("byte_level", {"model": "gemma4"}, "model = 'gemma4' is not supported"),
        ("byte_level", {"pre": "gpt-7"}, "pre = 'gpt-7' is not supported: expected a.x-4.0, afmoe, "),
        ("byte_level", {"merges": None}, "merges is missing: expected a list of strings"),
        ("byte_level", {"merges": ["a b", 5]}, "merges has elements of type int"),
        ("byte_level", {"merges": ["a"]}, "merges has 'a' at 0: expected two tokens that make a third"),
        ("byte_level", {"merges": ["h e", "q zzz"]}, "merges has 'q zzz' at 1"),
        ("byte_level", {"merges": ["q z"]}, "merges has 'q z' at 0"),
        ("byte_level", {"merges": [b"\xff a"]}, "merges has"),
        ("byte_level", {"tokens": ["a"] * 1_000_000}, "tokens has 1,000,000 elements"),
        (
            "byte_level",
            {"bos_token_id": None, "add_bos_token": True},
            "bos_token_id is missing: .*add_bos_token is true",
        ),
        ("byte_level", {"eot_token_id": 10**9}, "eot_token_id = 1000000000: expected the id of a token"),
        ("bpe_byte_pieces", {"scores": None}, "scores is missing"),
        ("bpe_byte_pieces", {"unknown_token_id": -1}, "unknown_token_id = -1"),
        ("bpe_byte_pieces", {"add_space_prefix": 0}, "add_space_prefix = 0: expected true or false"),
        ("unigram", {"scores": [0.0]}, "scores has 1 elements"),
        (
            "unigram",
            {
                "unknown_token_id": None,
                "tokens": ["a", "b"],
                "token_type": [1, 1],
                "scores": [-1.0, -2.0],
                "eos_token_id": 1,
            },
            "unknown_token_id is missing",
        ),
    ],
)
def test_hostile_metadata_is_refused_by_its_key(kind: str, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ModelLoadError, match=rf"'model\.gguf': tokenizer\.ggml\.{problem}"):
        tokenizer_parts(kind_metadata(kind, **changes), "model.gguf")


def test_a_tokenizer_that_cannot_be_used_is_refused_in_words_of_the_file() -> None:
    metadata = kind_metadata("byte_level", tokens=["a", "b"], token_type=[1, 1], merges=[])
    for name in ("bos", "eos", "unknown"):
        metadata.pop(f"tokenizer.ggml.{name}_token_id", None)
    with pytest.raises(ModelLoadError, match=r"'model\.gguf': tokenizer\.ggml: the tokenizer silently drops"):
        made(metadata, part="tokenizer.ggml")


def test_the_comparison_needs_the_libraries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--libraries", str(tmp_path / "none"), "x.gguf"]) == 0
    assert "nothing compared" in capsys.readouterr().out


def test_mutated_metadata_is_read_or_refused() -> None:
    dice = random.Random(0)
    junk: list[Any] = [
        None,
        0,
        -1,
        1 << 40,
        0.5,
        float("nan"),
        True,
        "",
        "a",
        b"\xff",
        [],
        [1],
        ["a"],
        [None],
        [[1]],
        "\ud800",
    ]
    num_refused = 0
    for _ in range(sized(5_000, usual=80)):
        metadata = kind_metadata(dice.choice(["byte_level", "bpe_byte_pieces", "unigram"]))
        for _ in range(dice.randint(1, 3)):
            key = dice.choice(list(metadata))
            value = metadata[key]
            if isinstance(value, list) and value and dice.random() < 0.7:
                value = list(value)
                at = dice.randrange(len(value))
                value[at : at + dice.randint(0, 3)] = [
                    dice.choice([*junk, dice.choice(value)]) for _ in range(dice.randint(0, 3))
                ]
                metadata[key] = value
            else:
                metadata[key] = dice.choice(junk)
        try:
            made(metadata).encode("Once upon a time 😀 </s>", is_start=True)
        except ModelLoadError:
            num_refused += 1
    assert num_refused > 25
