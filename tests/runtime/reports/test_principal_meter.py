"""The engine's part of the account: by request when it ends, and by principal while it runs."""

from __future__ import annotations

from rtlang.contract.accounts.request_account import RequestAccount
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.metrics import Metrics
from rtlang.runtime.reports.principal_meter import INTERVAL_S, PrincipalMeter
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_runner import FakeRunner

ONE, OTHER = Principal("one"), Principal("other")


def counted(metrics: Metrics, name: str, kind: str) -> float:
    return metrics.snapshot().get(f"rtlang_engine_principal_{name}_total{{{kind}}}", 0.0)


class Steps:
    """Steps of an engine that each take half a second, and the meter that watches them."""

    def __init__(self) -> None:
        self.driver = EngineDriver(FakeRunner(64, 4, eos_every=10**9), RuntimeConfig(page_size=4, num_pages=64))
        self.metrics = Metrics()
        self.meter = PrincipalMeter(self.metrics.principals)
        self.num = 0

    def step(self, step_s: float = 0.5) -> None:
        driver = self.driver
        started = driver.now = driver.now + INTERVAL_S / 4
        outputs = driver.engine.step(started)
        self.meter.after_step(driver.engine, outputs, started, started + step_s)
        self.num += driver.engine.last_step is not None
        for output in outputs:
            output.request.spec.listener(output)

    def finish(self) -> None:
        while self.driver.engine.has_work:
            self.step()


def test_the_account_of_a_request_holds_its_tokens_and_its_part_of_the_steps() -> None:
    steps = Steps()
    long, short = (
        steps.driver.add([1, *range(50, 59)], 12, principal=ONE),
        steps.driver.add([1, 60], 3, principal=OTHER),
    )
    steps.finish()
    accounts = [request.program.account for request in (long, short)]
    assert accounts[0].tokens == {"prompt": 10, "output": 12}
    assert accounts[1].tokens == {"prompt": 2, "output": 3}
    total = sum(account.work["steps"] for account in accounts)
    assert abs(total - 0.5 * steps.num) < 1e-9, "all time of the steps belongs to someone"
    assert accounts[0].work["steps"] > accounts[1].work["steps"]
    for request, principal in ((long, "one"), (short, "other")):
        for kind, number in request.program.account.tokens.items():
            assert counted(steps.metrics, "tokens", f"{principal},{kind}") == number
        assert abs(counted(steps.metrics, "work_seconds", f"{principal},steps") - request.stats.step_s) < 1e-9


def test_a_long_request_counts_while_it_runs_and_once() -> None:
    steps = Steps()
    request = steps.driver.add([1, 2, 3], 40, principal=ONE)
    seen = []
    while steps.driver.engine.has_work:
        steps.step()
        seen.append(counted(steps.metrics, "tokens", "one,output"))
    assert 0 < seen[len(seen) // 2] < 40
    assert seen == sorted(seen)
    assert seen[-1] == request.num_output_tokens == 40
    assert not steps.meter._counted, "nothing is kept of an ended request"


def test_an_aborted_request_counts_for_what_was_computed() -> None:
    steps = Steps()
    request = steps.driver.add([1, 2, 3], 40, principal=ONE)
    never = steps.driver.add([1, 2, 3], 40, principal=OTHER)
    steps.driver.engine.abort(never)
    steps.step()
    steps.step()
    steps.driver.engine.abort(request)
    steps.finish()
    assert request.program.account.tokens == {"prompt": 3, "output": 2}
    assert counted(steps.metrics, "tokens", "one,output") == 2
    assert never.program.account == RequestAccount(waits=never.stats.waits)
    assert counted(steps.metrics, "tokens", "other,prompt") == 0
