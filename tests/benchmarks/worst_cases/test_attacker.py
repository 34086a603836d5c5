"""The attacker's lines."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang_bench.worst_cases import attacker
from rtlang_bench.worst_cases.attacker import Attack
from rtlang_bench.worst_cases.sender import Ending


def test_each_case_is_told_at_its_beginning_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        attacker, "send_case", lambda url, key, case: [Ending("value"), Ending("value"), Ending("hang", True)]
    )
    told: list[dict[str, Any]] = []
    Attack("ws://x", "key", 1, range(7, 19), told.append).run(3)
    assert sorted(each["case"] for each in told if "begun" in each) == list(range(7, 19))
    ended = {each["case"]: each for each in told if "ended" in each}
    assert sorted(ended) == list(range(7, 19))
    assert ended[9]["ends"] == ["hang", "value"]
    assert ended[9]["wrong"] == ["hang"]
    Attack("ws://x", "key", 1, range(7, 19), told.clear() or told.append).run(3, until=0.0)
    assert told == [], "no case begins later"
