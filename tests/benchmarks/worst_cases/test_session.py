"""A server of two keys with canaries and an attacker."""

from __future__ import annotations

import tomllib
from pathlib import Path

from rtlang.contract.config import EMBEDDED_MODEL, ServeConfig
from rtlang.serve.network.key_table import KeyTable
from rtlang_bench.worst_cases.cases import kind_and_name, numbers
from rtlang_bench.worst_cases.session import LIMIT_BYTES, Observed, attacker_limits, keys_file, limit_bytes, session

QUICK = [
    number for number in numbers(100) if kind_and_name(number)[1] in ("ping", "attach", "parse_bool", "operations")
][:6]


def test_two_keys_of_which_the_attacker_has_limits(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    attacker, bystander = keys_file(path)
    table = KeyTable(ServeConfig(keys_file=str(path)))
    found = table.principal_of(attacker), table.principal_of(bystander)
    assert [each.name for each in found if each is not None] == ["attacker", "bystander"]
    assert found[0] is not None
    assert found[0].limits == attacker_limits()
    assert "limits" not in tomllib.loads(path.read_text())["keys"][1]
    assert limit_bytes() % LIMIT_BYTES == 0
    assert limit_bytes() >= LIMIT_BYTES


def test_cases_are_sent_beside_canaries_and_memory_is_watched() -> None:
    observed = Observed()
    with session(EMBEDDED_MODEL, observed, calibrates_s=0.5) as found:
        found.attack(1, 2, QUICK, lambda text: None)
        engines = found.engine_pids()
    assert sorted(observed.records) == sorted(QUICK)
    assert all(each.ended > each.begun and each.ends for each in observed.records.values())
    assert len(engines) == 1
    assert observed.restarts == 0
    assert observed.samples
    assert all(each.frontend > 10 << 20 and each.engine > 50 << 20 for each in observed.samples[-3:-1])
    assert not [each.error for each in observed.measurements if each.error]
