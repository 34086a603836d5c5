"""The load of each principal between two readings of a server's `/metrics`: who made it busy, and who waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

_TOKENS = "rtlang_engine_principal_tokens_total"
_WORK = ("rtlang_engine_principal_work_seconds_total", "rtlang_server_principal_work_seconds_total")
_WAITS = ("rtlang_engine_principal_wait_seconds_total", "rtlang_server_principal_wait_seconds_total")
_OPEN = "rtlang_principal_open_requests"


@dataclass(slots=True)
class PrincipalLoad:
    """The sums of one principal: since the start of a server, or between two readings.

    Attributes:
        tokens: by kind: prompt, cached, output, drafted, accepted.
        work_s: seconds of threads and of steps of the model, by kind.
        waits_s: seconds of waiting, by cause.
        num_open: requests that have not ended.
    """

    tokens: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    work_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    waits_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    num_open: int = 0

    @property
    def busy_s(self) -> float:
        """Seconds of all work."""
        return sum(self.work_s.values())

    def to_plain(self) -> dict[str, Any]:
        """The load as a map of plain values."""
        sums = {"tokens": self.tokens, "work_s": self.work_s, "waits_s": self.waits_s}
        return {name: dict(value) for name, value in sums.items()} | {"open": self.num_open}

    def since(self, before: PrincipalLoad) -> PrincipalLoad:
        """What was added after a reading; nothing is negative, as after a restart of an engine."""
        return PrincipalLoad(
            _added(self.tokens, before.tokens),
            _added(self.work_s, before.work_s),
            _added(self.waits_s, before.waits_s),
            self.num_open,
        )


def read_loads(rendered: str) -> dict[str, PrincipalLoad]:
    """The sums of each principal in metrics of the text format, over all replicas."""
    loads: dict[str, PrincipalLoad] = defaultdict(PrincipalLoad)
    for family in text_string_to_metric_families(rendered):
        for sample in family.samples:
            name, labels, value = sample.name, sample.labels, sample.value
            if name == _TOKENS:
                loads[labels["principal"]].tokens[labels["kind"]] += value
            elif name in _WORK:
                loads[labels["principal"]].work_s[labels["kind"]] += value
            elif name in _WAITS:
                loads[labels["principal"]].waits_s[labels["cause"]] += value
            elif name == _OPEN:
                loads[labels["principal"]].num_open += int(value)
    return dict(loads)


def loads_between(before: Mapping[str, PrincipalLoad], now: Mapping[str, PrincipalLoad]) -> dict[str, PrincipalLoad]:
    """What each principal has added between two readings."""
    return {name: load.since(before.get(name, PrincipalLoad())) for name, load in now.items()}


def busiest(loads: Mapping[str, PrincipalLoad]) -> tuple[str, str] | None:
    """The principal with the most work, and its largest kind of work; None if nobody did any."""
    name = max(loads, key=lambda each: loads[each].busy_s, default=None)
    if name is None or not loads[name].busy_s:
        return None
    return name, largest(loads[name].work_s)


def largest(seconds: Mapping[str, float]) -> str:
    """The name with the largest value; empty if there is none."""
    return max(seconds, key=lambda each: seconds[each], default="")


def _added(now: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    added = {name: value - before.get(name, 0.0) for name, value in now.items()}
    return defaultdict(float, {name: value for name, value in added.items() if value > 0})
