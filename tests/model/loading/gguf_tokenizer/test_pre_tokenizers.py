"""How texts are cut into words before merging, against the published patterns in other libraries and engines."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import tokenizers
from tokenizers import Regex, pre_tokenizers

from rtlang.model.loading.gguf_tokenizer.pre_tokenizers import PRE_TOKENIZERS
from tests.support.gguf.token_comparison import random_texts
from tests.support.long_tests import sized

Cut = Callable[[str], list[str]]


def texts(count: int, seed: int) -> list[str]:
    return list(random_texts(count, seed, []))


def cut_by(step: Any) -> Cut:
    """The words that a pre-tokenizer of the library makes."""
    return lambda text: [text[slice(*place)] for _, place in step.pre_tokenize_str(text)]


def our_cut(name: str) -> Cut:
    model = {"type": "BPE", "vocab": {}, "merges": []}
    content = {"version": "1.0", "added_tokens": [], "model": model, **PRE_TOKENIZERS[name].steps()}
    return cut_by(tokenizers.Tokenizer.from_str(json.dumps(content)).pre_tokenizer)


def library_cut(name: str) -> Cut:
    """The published pre-tokenizer of a family of models, of parts that the library has."""
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    steps = {
        "gpt-2": [words],
        "smollm": [pre_tokenizers.Digits(individual_digits=True), words],
        "command-r": [pre_tokenizers.Digits(individual_digits=True), words],
        "falcon": [
            pre_tokenizers.Punctuation("contiguous"),
            words,
            pre_tokenizers.Split(Regex("[0-9]{3}"), "isolated"),
        ],
    }[name]
    return cut_by(pre_tokenizers.Sequence(steps))


@pytest.mark.parametrize("name", ["gpt-2", "smollm", "command-r", "falcon"])
def test_words_are_those_of_the_librarys_own_steps(name: str) -> None:
    ours, library = our_cut(name), library_cut(name)
    for text in texts(sized(10_000, usual=300), 1):
        assert ours(text) == library(text)


@pytest.mark.parametrize(("name", "module"), [("qwen2", "qwen2"), ("qwen35", "qwen3_5")])
def test_words_are_those_of_the_patterns_in_transformers(name: str, module: str) -> None:
    regex = pytest.importorskip("regex")
    published = importlib.import_module(f"transformers.models.{module}.tokenization_{module}").PRETOKENIZE_REGEX
    ours = our_cut(name)
    for text in texts(sized(10_000, usual=300), 2):
        assert ours(text) == regex.findall(published, text)


@pytest.mark.parametrize(("name", "published"), [("gpt-4o", "o200k_base"), ("llama4", "o200k_base")])
def test_words_are_those_of_tiktokens_patterns(name: str, published: str, monkeypatch: pytest.MonkeyPatch) -> None:
    regex, source = pytest.importorskip("regex"), pytest.importorskip("tiktoken_ext.openai_public")
    monkeypatch.setattr(source, "load_tiktoken_bpe", lambda *_, **__: {})  # only the pattern is needed
    pattern = getattr(source, published)()["pat_str"]
    ours = our_cut(name)
    for text in texts(sized(10_000, usual=300), 3):
        assert ours(text) == regex.findall(pattern, text)


def test_every_pre_tokenizer_keeps_the_text() -> None:
    for name in {step: name for name, step in PRE_TOKENIZERS.items()}.values():
        ours = our_cut(name)
        for text in texts(20, 4):
            assert "".join(ours(text)) == text, name


@pytest.mark.parametrize("name", ["afmoe", "superbpe"])
def test_digits_are_grouped_by_three_from_the_right(name: str) -> None:
    for length in range(1, 12):
        digits = "".join(str(index % 10) for index in range(length))
        first = length % 3 or 3
        groups = [digits[:first], *(digits[start : start + 3] for start in range(first, length, 3))]
        assert our_cut(name)(digits) == groups


def test_chinese_words_have_no_other_letters_in_kimi() -> None:
    assert our_cut("kimi-k2")("abc漢字def漢 1234's") == ["abc", "漢字", "def", "漢", " ", "123", "4", "'s"]
    for text in texts(100, 5):
        for word in our_cut("kimi-k2")(text):
            chinese = re.findall("[\u4e00-\u9fff]", word)
            assert not chinese or len(chinese) == len(word)


def test_a_whole_word_is_taken_where_the_family_says_so() -> None:
    whole = {name for name, step in PRE_TOKENIZERS.items() if step.ignores_merges}
    assert {"llama-bpe", "tekken", "pixtral", "youtu"} <= whole
    assert whole.isdisjoint({"gpt-2", "qwen2", "gpt-4o", "dbrx", "default"})
