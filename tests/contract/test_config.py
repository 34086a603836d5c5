"""Settings: defaults that hold, help for each, and refusals that name the field."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig, ServeConfig, setting_help
from rtlang.contract.errors import ConfigError


@pytest.mark.parametrize("config", [RuntimeConfig, ServeConfig])
def test_defaults_are_accepted_and_every_field_has_help(config: type) -> None:
    made = config()
    helps = setting_help(config)
    assert list(helps) == [field.name for field in fields(made)]
    assert all(helps.values())


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        (RuntimeConfig, "dtype", "float8"),
        (RuntimeConfig, "model", 3),
        (RuntimeConfig, "model", None),
        (RuntimeConfig, "public_prompts", ("a",)),
        (RuntimeConfig, "prefix_sharing", 1),
        (ServeConfig, "host", b"localhost"),
        (ServeConfig, "allow_public", "no"),
        (RuntimeConfig, "decoder", "fast"),
        (RuntimeConfig, "weights", "none"),
        (RuntimeConfig, "policy", "random"),
        (RuntimeConfig, "retention_share", -0.1),
        (RuntimeConfig, "retention_share", 1.5),
        (RuntimeConfig, "retention_share", "half"),
        (RuntimeConfig, "retention_share", True),
        (RuntimeConfig, "retention_share", float("nan")),
        (RuntimeConfig, "num_threads", 0),
        (RuntimeConfig, "tensor_parallel", 0),
        (RuntimeConfig, "tensor_parallel", True),
        (RuntimeConfig, "page_size", 0),
        (RuntimeConfig, "page_size", 16.0),
        (RuntimeConfig, "max_rows", True),
        (RuntimeConfig, "max_step_tokens", -5),
        (RuntimeConfig, "num_pages", 1),
        (RuntimeConfig, "max_model_len", 1),
        (RuntimeConfig, "cache_bytes", 0),
        (RuntimeConfig, "grammar_timeout_s", 0),
        (RuntimeConfig, "grammar_timeout_s", "10"),
        (RuntimeConfig, "grammar_timeout_s", True),
        (RuntimeConfig, "grammar_timeout_s", float("inf")),
        (RuntimeConfig, "grammar_timeout_s", float("nan")),
        (RuntimeConfig, "grammar_cache_dir", ""),
        (RuntimeConfig, "grammar_cache_dir", 5),
        (RuntimeConfig, "grammar_cache_dir_bytes", 0),
        (ServeConfig, "port", -1),
        (ServeConfig, "port", 65_536),
        (ServeConfig, "max_connections", 0),
        (ServeConfig, "max_frame_bytes", "1M"),
        (ServeConfig, "hello_timeout_s", 0),
        (ServeConfig, "slow_timeout_s", 1e300),
        (ServeConfig, "drain_timeout_s", -1),
        (ServeConfig, "host", "0.0.0.0"),
    ],
)
def test_a_wrong_value_is_refused_by_name(config: type, name: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**{name: value})
    assert caught.value.field == name


@pytest.mark.parametrize(
    ("name", "value"), [("cache_host_bytes", 1 << 20), ("cache_dir", "pages"), ("cache_peers", "127.0.0.1:1")]
)
def test_tiers_of_pages_are_refused_where_each_process_has_a_part_of_a_page(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{name} = .*: requires tensor_parallel 1") as caught:
        RuntimeConfig(**{name: value, "tensor_parallel": 2})
    assert caught.value.field == name


@pytest.mark.parametrize(
    ("device", "value", "text"),
    [
        ("cpu", "float8", "requires device cuda or interpreter; device cpu has auto and int8"),
        ("cuda", "int8", "requires device cpu; device cuda has auto and float8"),
        ("interpreter", "int8", "requires device cpu; device interpreter has auto and float8"),
        ("cpu", "int4", "expected one of auto, int8, float8"),
    ],
)
def test_a_kv_type_that_the_device_lacks_is_refused(device: str, value: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"kv_dtype = '{value}': {text}") as caught:
        RuntimeConfig(device=device, kv_dtype=value)
    assert caught.value.field == "kv_dtype"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "requires device cuda or interpreter; device cpu has int8 and float"),
        ({"device": "cuda", "dtype": "float16"}, "requires dtype bfloat16, .* not float16"),
        ({"device": "interpreter", "deterministic": True}, "requires deterministic=False: the bits of a row depend"),
    ],
)
def test_float8_inputs_need_a_device_and_exclude_one_text(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=f"linear_inputs = 'float8': {text}") as caught:
        RuntimeConfig(linear_inputs="float8", **given)
    assert caught.value.field == "linear_inputs"
    assert RuntimeConfig(linear_inputs="float8", device="cuda", dtype="bfloat16").linear_inputs == "float8"


def test_listening_beyond_loopback_needs_a_key_or_consent() -> None:
    assert ServeConfig(host="0.0.0.0", api_key="secret").host == "0.0.0.0"
    assert ServeConfig(host="0.0.0.0", allow_public=True).host == "0.0.0.0"
    assert ServeConfig(host="::1").api_key is None


@pytest.mark.parametrize("key", ["", " "])
def test_an_empty_key_is_no_key(key: str) -> None:
    for host in ("127.0.0.1", "0.0.0.0"):
        with pytest.raises(ConfigError, match="api_key"):
            ServeConfig(host=host, api_key=key)


def test_a_path_is_taken_as_text() -> None:
    config = RuntimeConfig(model=Path("models") / "a", cache_dir=Path("c"))  # type: ignore[arg-type]
    assert (config.model, config.cache_dir) == (str(Path("models") / "a"), "c")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("rtlang:tiny", "rtlang:tiny"),
        ("owner/name", "owner/name"),
        ("owner/name@refs/pr/1", "owner/name"),
        ("/data/models/my-model", "my-model"),
        ("/data/models/my-model/", "my-model"),
        ("~/my-model", "my-model"),
        ("./my-model", "my-model"),
        ("/cache/models--owner--my--model/snapshots/0123abc", "owner/my--model"),
        ("/", "model"),
        ("script:tests/agent.yaml", "agent"),
    ],
)
def test_the_name_of_a_model_is_no_path(model: str, name: str) -> None:
    assert RuntimeConfig(model=model).model_name == name


def test_a_folder_that_looks_like_a_hub_name_has_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "small").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert RuntimeConfig(model="models/small").model_name == "small"


@pytest.mark.parametrize("names", [("",), (" ",), ("a", "a"), ("a\nb",), ("x" * 201,), (3,), ["a"], "a"])
def test_wrong_names_of_a_served_model_are_refused(names: Any) -> None:
    with pytest.raises(ConfigError, match="served_model_name"):
        ServeConfig(served_model_name=names)


def test_speculation_may_be_a_switch() -> None:
    assert RuntimeConfig(speculation=True).speculation == "on"  # type: ignore[arg-type]
    assert RuntimeConfig(speculation=False).speculation == "off"  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="speculation"):
        RuntimeConfig(speculation=1)  # type: ignore[arg-type]
