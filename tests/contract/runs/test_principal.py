"""Principals: what is refused, and the way through plain data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang.contract.errors import ConfigError, ParameterError
from rtlang.contract.runs.principal import LOCAL, Principal, PrincipalLimits, check_cache_salt


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a\nb"),
        ("name", "x" * 65),
        ("name", 3),
        ("namespace", "\x00"),
        ("client", None),
        ("weight", 0),
        ("weight", -1.0),
        ("weight", float("nan")),
        ("weight", float("inf")),
        ("weight", True),
        ("min_priority", 1.5),
        ("max_priority", 1 << 40),
    ],
)
def test_invalid_fields_are_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=field):
        Principal(**{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_places", 0),
        ("max_rows", -1),
        ("max_rows", 2.0),
        ("max_prompt_bytes", True),
        ("max_detached", -1),
        ("tokens_per_minute", 1 << 60),
        ("compile_seconds_per_minute", 0),
        ("compile_seconds_per_minute", "1"),
    ],
)
def test_invalid_limits_are_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=field):
        PrincipalLimits(**{field: value})


def test_a_priority_outside_the_range_becomes_the_nearest_inside() -> None:
    principal = Principal("a", min_priority=-2, max_priority=5)
    assert [principal.priority_of(each) for each in (-9, -2, 0, 5, 6)] == [-2, -2, 0, 5, 5]
    with pytest.raises(ConfigError, match="min_priority"):
        Principal("a", min_priority=3, max_priority=2)


@pytest.mark.parametrize(
    "principal",
    [
        LOCAL,
        Principal("a"),
        Principal("b", 2.5, "b", PrincipalLimits(max_rows=3, compile_seconds_per_minute=0.5), -1, 7, "connection 3"),
    ],
)
def test_a_principal_passes_through_plain_data(principal: Principal) -> None:
    assert Principal.from_plain(json.loads(json.dumps(principal.to_plain()))) == principal


def test_unknown_fields_of_a_map_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"principal\.wieght"):
        Principal.from_plain({"wieght": 1})
    with pytest.raises(ConfigError, match=r"limits\.max_row"):
        Principal.from_plain({"limits": {"max_row": 1}})
    with pytest.raises(ConfigError, match="limits"):
        Principal.from_plain({"limits": 3})


def test_a_salt_gives_a_namespace_of_its_own_within_the_namespace() -> None:
    ana, bob = Principal("ana", namespace="ana"), Principal("bob", namespace="bob")
    salted = [each.salted(salt) for each in (ana, bob, LOCAL) for salt in ("s", "t", "日本")]
    assert len({each.namespace for each in (*salted, ana, bob, LOCAL)}) == len(salted) + 3
    assert ana.salted("s") == Principal("ana", namespace=ana.salted("s").namespace)
    assert "s3cret" not in ana.salted("s3cret").namespace
    assert Principal.from_plain(ana.salted("x" * 256).to_plain()) == ana.salted("x" * 256)


@pytest.mark.parametrize("salt", ["", "x" * 257, "a\nb", "\x00", "\ud800", 3, None, ["a"]])
def test_a_malformed_salt_is_refused(salt: Any) -> None:
    with pytest.raises(ParameterError, match="cache_salt"):
        check_cache_salt(salt)
