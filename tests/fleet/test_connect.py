"""`rtlang.connect`: servers by their addresses, and fleets on Ray by their scheme."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from rtlang.client import connect as client
from rtlang.contract.errors import ConfigError
from rtlang.fleet.connect import connect


@pytest.mark.parametrize("url", ["ws://a:1", ["ws://a:1", "ws://b:1"]])
def test_addresses_of_servers_go_to_the_client(url: str | list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(client, "connect", lambda *args, **options: given.append((args, options)))
    connect(url, api_key="k", timeout_s=3.0, resume_s=5.0)
    assert given == [((url,), {"api_key": "k", "timeout_s": 3.0, "resume_s": 5.0})]


def test_one_address_in_a_list_is_that_address(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(client, "connect", lambda url, **options: given.append(url))
    connect(["ws://a:1"])
    assert given == ["ws://a:1"]


@pytest.mark.parametrize("option", ["api_key", "resume_s"])
def test_options_of_servers_are_refused_for_a_fleet_on_ray(option: str) -> None:
    with pytest.raises(ConfigError, match=option):
        connect("ray://demo", **{option: "5"})  # type: ignore[arg-type]


def test_a_missing_ray_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rtlang.fleet.ray.frontend", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match="requires Ray"):
        connect("ray://demo")
