"""Loads of principals from readings of `/metrics`: sums over replicas, differences, and the busiest one."""

from __future__ import annotations

from rtlang.contract.service.metrics import Metrics
from rtlang.contract.service.principal_loads import busiest, largest, loads_between, read_loads

WORK = "rtlang_engine_principal_work_seconds_total"


def test_the_sums_of_real_counters_are_read() -> None:
    metrics = Metrics()
    for name, steps, parse in (("ana", 2.0, 0.5), ("ben", 1.0, 3.0)):
        metrics.principals.begin(name)
        metrics.principals.engine_work.add(name, "steps", steps)
        metrics.principals.server_work.add(name, "parse", parse)
        metrics.principals.count_server_wait(name, "thread", 0.25)
    loads = read_loads(metrics.render().decode())
    assert loads.keys() == {"ana", "ben"}
    ana = loads["ana"]
    assert (ana.busy_s, ana.num_open, dict(ana.waits_s)) == (2.5, 1, {"thread": 0.25})
    assert ana.to_plain()["work_s"] == {"steps": 2.0, "parse": 0.5}
    assert busiest(loads) == ("ben", "parse")


def test_replicas_of_one_fleet_are_added_up() -> None:
    text = "".join(
        f'{WORK}{{replica="r{number}",kind="steps",principal="{name}"}} {value}\n'
        for number, name, value in ((1, "ana", 2), (2, "ana", 3), (1, "ben", 4))
    )
    assert {name: load.busy_s for name, load in read_loads(text).items()} == {"ana": 5, "ben": 4}


def test_only_growth_counts_between_two_readings() -> None:
    def reading(ana: float, ben: float) -> str:
        return f'{WORK}{{kind="steps",principal="ana"}} {ana}\n{WORK}{{kind="value",principal="ben"}} {ben}\n'

    between = loads_between(read_loads(reading(100, 1)), read_loads(reading(90, 3)))
    assert (between["ana"].busy_s, between["ben"].busy_s) == (0, 2), "nothing is negative"
    assert busiest(between) == ("ben", "value")
    assert loads_between({}, read_loads(reading(1, 0)))["ana"].busy_s == 1, "a principal that is new"


def test_nobody_is_busy_without_work() -> None:
    assert busiest({}) is None
    assert busiest(read_loads(f'{WORK}{{kind="steps",principal="ana"}} 0\n')) is None
    assert largest({}) == ""
