"""Principals: what is refused, and the way through plain data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang.contract.errors import ConfigError
from rtlang.contract.runs.principal import LOCAL, Principal, PrincipalLimits


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
