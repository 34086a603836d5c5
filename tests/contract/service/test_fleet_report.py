"""A report of a fleet survives JSON; what is missing or of another type is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rtlang.contract.service.fleet_report import FleetReport, ReplicaReport, plain_fleet_report, read_fleet_report

REPLICA = ReplicaReport("a", "ready", "any", 3, 500, 2, 70, 100, 1000, 900, 1, 4)


def test_a_report_survives_json() -> None:
    report = FleetReport("rtlang:tiny", 4, 1, (REPLICA, ReplicaReport("b", "dead", "any", *([0] * 9), 0.5)))
    assert read_fleet_report(json.loads(json.dumps(plain_fleet_report(report)))) == report
    assert REPLICA.hit_rate == 0.9
    assert report.replicas[1].hit_rate == 0.0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"name": 3}, "name = 3: expected str"),
        ({"num_pages": None}, "num_pages = None"),
        ({"report_age_s": "1"}, "report_age_s"),
    ],
)
def test_a_field_of_another_type_is_named(change: dict[str, Any], named: str) -> None:
    plain = plain_fleet_report(FleetReport("m", 0, 0, (REPLICA,)))
    plain["replicas"][0] |= change
    with pytest.raises(ValueError, match=named):
        read_fleet_report(plain)
    with pytest.raises(ValueError, match="replicas = 7: expected an array"):
        read_fleet_report(plain | {"replicas": 7})
