"""The keys of a file's tokenizer: typed access, and every damage named."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf_tokenizer.token_list import TokenizerKeys, TokenList, TokenType

TOKENS, TYPES, SCORES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.scores"
ID = "tokenizer.ggml.eos_token_id"


def keys(**values: Any) -> TokenizerKeys:
    found = {TOKENS: ["a", "b", "<c>"], TYPES: [1, 1, 3], SCORES: [0.0, -1, -2.5], ID: 2}
    return TokenizerKeys(found | {f"tokenizer.ggml.{key}": value for key, value in values.items()}, "model.gguf")


def read_all(read: TokenizerKeys) -> None:
    tokens = TokenList.read(read)
    read.scores(len(tokens.names))
    read.token_id(ID, len(tokens.names))
    read.flag("tokenizer.ggml.add_bos_token", True)
    read.text("tokenizer.ggml.model")


def test_names_are_strings_or_bytes_and_those_that_no_text_has_are_replaced() -> None:
    names = keys(tokens=["a", b"b", "é".encode(), "", b"\xff", "\udcfe"]).names()
    assert names == ["a", "b", "é", "[TOKEN_3]", "[TOKEN_4]", "[TOKEN_5]"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"tokens": None}, r"tokens is missing: expected a list of strings"),
        ({"tokens": "abc"}, r"tokens is of type str: expected a list of strings"),
        ({"tokens": []}, r"tokens has 0 elements: expected 1 to 524,288"),
        ({"tokens": ["a"] * 1_000_000}, r"tokens has 1,000,000 elements: expected 1 to 524,288"),
        ({"tokens": ["a", 5, "b"]}, r"tokens has elements of type int: expected strings"),
        ({"tokens": ["a", "b", "a"]}, r"tokens has 'a' twice, as 0 and 2"),
        ({"tokens": ["", "[TOKEN_0]", "a"]}, r"tokens has '\[TOKEN_0\]' twice"),
        ({"token_type": [1, 1]}, r"token_type has 2 elements: expected 3, as tokenizer\.ggml\.tokens has"),
        ({"token_type": [1, 1, 9]}, r"token_type has 9: expected 0 to 6"),
        ({"token_type": [1, 1, 1.5]}, r"token_type has elements of type float: expected integers"),
        ({"scores": None}, r"scores is missing: expected a list of numbers"),
        ({"scores": [0.0, 1.0]}, r"scores has 2 elements: expected 3"),
        ({"scores": [0.0, float("nan"), 1.0]}, r"scores has nan for token 1: expected finite numbers"),
        ({"scores": [0.0, 1.0, float("-inf")]}, r"scores has -inf for token 2"),
        ({"scores": [0.0, True, 1.0]}, r"scores has elements of type bool"),
        ({"eos_token_id": 3}, r"eos_token_id = 3: expected the id of a token, 0 to 2"),
        ({"eos_token_id": -1}, r"eos_token_id = -1"),
        ({"eos_token_id": True}, r"eos_token_id = True"),
        ({"eos_token_id": "</s>"}, r"eos_token_id = '</s>'"),
        ({"add_bos_token": 1}, r"add_bos_token = 1: expected true or false"),
        ({"model": 5}, r"model = 5: expected a string"),
        ({"model": b"\xff"}, r"model is not UTF-8"),
    ],
)
def test_damage_is_named(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ModelLoadError, match=rf"'model\.gguf': tokenizer\.ggml\.{problem}"):
        read_all(keys(**values))


def test_what_the_file_does_not_say_has_a_default() -> None:
    read = keys(token_type=None, eos_token_id=None)
    assert TokenList.read(read).types == [TokenType.NORMAL] * 3
    assert (read.token_id(ID, 3), read.token_id(ID, 3, 1), read.token_id(ID, 3, 3)) == (None, 1, None)
    assert read.flag("tokenizer.ggml.add_bos_token", True)
    assert read.text("tokenizer.ggml.pre", "default") == "default"


def test_templates_have_names() -> None:
    found = {
        "tokenizer.chat_template": "main",
        "tokenizer.chat_template.tool_use": b"tools",
        "tokenizer.chat_templates": ["x"],
    }
    assert TokenizerKeys(found, "x").templates() == {"default": "main", "tool_use": "tools"}
    with pytest.raises(ModelLoadError, match=r"tokenizer\.chat_template = 5: expected a string"):
        TokenizerKeys({"tokenizer.chat_template": 5}, "x").templates()


def test_added_tokens_are_the_special_and_the_users() -> None:
    types = [
        TokenType.NORMAL,
        TokenType.UNKNOWN,
        TokenType.CONTROL,
        TokenType.USER_DEFINED,
        TokenType.UNUSED,
        TokenType.BYTE,
    ]
    tokens = TokenList([*"abcdef"], [int(kind) for kind in types])
    added = {entry["id"]: entry for entry in tokens.added(frozenset((4,)), frozenset((3,)))}
    assert {index: entry["special"] for index, entry in added.items()} == {1: True, 2: True, 3: False, 4: True}
    assert [index for index, entry in added.items() if entry["rstrip"]] == [3]
    assert all(entry["content"] == tokens.names[index] and not entry["normalized"] for index, entry in added.items())
