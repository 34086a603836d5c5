"""The keywords of `rt.Runtime` are the settings, with their types and help."""

from __future__ import annotations

import ast
import inspect
import typing
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import pytest

import rtlang as rt
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.runtime_settings import RuntimeSettings, StrPath, runtime_config

HINTS: dict[str, Any] = typing.get_type_hints(RuntimeSettings)
FIELDS = {item.name: item for item in fields(RuntimeConfig) if item.name != "model"}


def documented() -> dict[str, str]:
    """The docstring of each keyword, in order."""
    tree = ast.parse(inspect.getsource(RuntimeSettings))
    (definition,) = tree.body
    assert isinstance(definition, ast.ClassDef)
    body = definition.body[1:]
    found = {}
    for keyword, text in zip(body[::2], body[1::2], strict=True):
        assert isinstance(keyword, ast.AnnAssign)
        assert isinstance(keyword.target, ast.Name)
        assert isinstance(text, ast.Expr)
        assert isinstance(text.value, ast.Constant)
        found[keyword.target.id] = " ".join(str(text.value.value).split())
    return found


def test_the_keywords_are_the_fields_with_their_help() -> None:
    assert documented() == {name: " ".join(item.metadata["help"].split()) for name, item in FIELDS.items()}
    assert list(HINTS) == list(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_the_type_of_a_keyword_is_that_of_the_field(name: str) -> None:
    given, field = HINTS[name], str(FIELDS[name].type)
    if typing.get_origin(given) is Literal:
        assert field == "str"
        return
    shown = {str: "str", int: "int", float: "float", bool: "bool", type(None): "None"}
    parts = typing.get_args(given) or (given,)
    if set(typing.get_args(StrPath)) <= set(parts):  # the configuration makes a text of a path
        parts = tuple(each for each in parts if each not in typing.get_args(StrPath)[1:])
    assert " | ".join(shown[each] for each in parts) == field


@pytest.mark.parametrize("name", [name for name in FIELDS if typing.get_origin(HINTS[name]) is Literal])
def test_the_listed_values_are_those_that_the_configuration_allows(name: str) -> None:
    listed = typing.get_args(HINTS[name])
    with pytest.raises(ConfigError) as caught:
        RuntimeConfig(**{name: "nothing"})
    assert tuple(str(caught.value).rpartition("one of ")[2].split(", ")) == listed
    for each in listed:
        device = "cuda" if name in ("dtype", "kv_dtype", "linear_inputs") and each in ("float16", "float8") else "cpu"
        assert getattr(RuntimeConfig(**{"device": device, name: each}), name) == each


def test_a_runtime_shows_its_settings() -> None:
    shown = inspect.signature(rt.Runtime).parameters
    assert list(shown) == ["model", "config", *FIELDS]
    assert {name: shown[name].default for name in FIELDS} == {name: item.default for name, item in FIELDS.items()}
    assert shown["device"].kind is inspect.Parameter.KEYWORD_ONLY


def test_settings_override_a_configuration(tmp_path: Path) -> None:
    base = RuntimeConfig(page_size=8, num_threads=3)
    made = runtime_config(base, tmp_path, {"num_threads": 2, "cache_dir": tmp_path / "pages"})
    assert (made.model, made.page_size, made.num_threads) == (str(tmp_path), 8, 2)
    assert made.cache_dir == str(tmp_path / "pages")
    assert runtime_config(None, None, {}) == RuntimeConfig()
    with pytest.raises(ConfigError, match="num_thread"):
        rt.Runtime(num_thread=3)  # type: ignore[call-arg]
