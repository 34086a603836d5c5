"""Keys: which principal each has, what a bad file does, and how a changed one takes effect."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.serve.network.key_table import KeyTable, entry_of, new_key


def sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


ENTRIES = f"""
[[keys]]
name = "ana"
sha256 = "{sha256("key of ana")}"
weight = 2.5
min_priority = -3
limits = {{ max_places = 7, compile_seconds_per_minute = 1.5 }}

[[keys]]
name = "bo"
sha256 = "{sha256("key of bo")}"
namespace = "shared"
"""


def table(**settings: str) -> KeyTable:
    return KeyTable(ServeConfig(**settings))  # type: ignore[arg-type]


def test_without_keys_everybody_is_local() -> None:
    found = table()
    assert found.is_open
    for key in (None, "", "anything"):
        assert found.principal_of(key, "c") == Principal("local", client="c")


def test_a_key_has_its_principal_and_no_other_opens() -> None:
    found = table(keys=ENTRIES)
    ana = Principal(
        "ana",
        2.5,
        "ana",
        PrincipalLimits(max_places=7, compile_seconds_per_minute=1.5),
        min_priority=-3,
        client="connection 4",
    )
    assert found.principal_of("key of ana", "connection 4") == ana
    assert found.principal_of("key of bo") == Principal("bo", namespace="shared")
    for key in (None, "", "key of an", "key of ana ", sha256("key of ana"), "schlüssel", "\udc80"):
        assert found.principal_of(key) is None
    assert not found.is_open


def test_a_single_key_and_a_file_add_up(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [{"name": "c", "sha256": sha256("key of c")}]}))
    found = table(keys=ENTRIES, keys_file=str(path), api_key="secret")
    names = [found.principal_of(key) for key in ("key of ana", "key of c", "secret")]
    assert [principal and principal.name for principal in names] == ["ana", "c", "default"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[keys", "TOML"),
        ('{"keys": ', "JSON"),
        ("[" * 5000, "TOML"),
        ("", "non-empty"),
        ("other = 1", "under 'keys'"),
        ("keys = []", "1 to"),
        ("keys = [3]", "entry 1"),
        ('[[keys]]\nname = "a"', "sha256"),
        ('[[keys]]\nname = "a"\nsha256 = "secret"', "entry 1, sha256"),
        (f'[[keys]]\nsha256 = "{"0" * 64}"', "entry 1, name"),
        (ENTRIES + f'[[keys]]\nname = "ana"\nsha256 = "{"0" * 64}"', "entry 3, name"),
        (ENTRIES + f'[[keys]]\nname = "c"\nsha256 = "{sha256("key of bo")}"', "entry 3, sha256"),
        (ENTRIES + f'[[keys]]\nname = "c"\nsha256 = "{"0" * 64}"\nwheight = 1', "entry 3, .*wheight"),
        (ENTRIES + f'[[keys]]\nname = "c"\nsha256 = "{"0" * 64}"\nweight = -1', "entry 3, weight"),
        (ENTRIES + f'[[keys]]\nname = "c"\nsha256 = "{"0" * 64}"\nclient = "x"', "entry 3, client"),
    ],
)
def test_bad_entries_are_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        table(keys=text)


def test_a_missing_file_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="keys_file"):
        table(keys_file=str(tmp_path / "none"))


def test_a_changed_file_takes_effect_and_a_bad_one_does_not(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(ENTRIES)
    found = table(keys_file=str(path))
    ana, bo = found.principal_of("key of ana", "x"), found.principal_of("key of bo")
    assert ana is not None
    assert bo is not None
    assert not found.reload(), "nothing has changed"

    path.write_text(ENTRIES[: ENTRIES.index('[[keys]]\nname = "bo"')].replace("2.5", "4.0"))
    os.utime(path, ns=(1, 1))
    assert found.reload()
    assert found.principal_of("key of bo") is None
    assert found.current(bo) is None
    now = found.current(ana)
    assert now is not None
    assert (now.weight, now.client) == (4.0, "x")

    path.write_text("[[keys")
    os.utime(path, ns=(2, 2))
    assert not found.reload()
    assert found.principal_of("key of ana") is not None
    path.unlink()
    assert not found.reload()
    assert found.principal_of("key of ana") is not None


def test_a_new_key_and_its_entry_fit(tmp_path: Path) -> None:
    first, second = new_key(), new_key()
    assert first != second
    path = tmp_path / "keys.toml"
    path.write_text(entry_of('a "quoted" name', first) + "\n" + entry_of("b", second))
    assert first not in path.read_text()
    found = table(keys_file=str(path))
    principals = [found.principal_of(each) for each in (first, second)]
    assert [each and each.name for each in principals] == ['a "quoted" name', "b"]
    with pytest.raises(ConfigError, match="name"):
        entry_of("", first)


def test_secrets_are_not_shown() -> None:
    config = ServeConfig(api_key="my secret", keys=ENTRIES)
    assert "secret" not in repr(config)
    assert sha256("key of bo") not in repr(config)
