"""The order of a benchmark run, and its continuation after failures, without a clock or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest
import torch

pytest.importorskip("triton")  # not available on every platform

from rtlang_kernels_bench import device_cases, device_run
from rtlang_kernels_bench.device_run import Task
from rtlang_kernels_bench.output import Output
from rtlang_kernels_bench.table import Line
from tests.support.kernels.gpu import DEVICE
from tests.support.kernels.pretended_clock import CEILINGS, pretended

LINE = Line("decode", "one", 2.0, 0.1, 3.0, 1.0, {}, 1e-3)


def test_a_single_group_can_be_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    monkeypatch.setitem(device_cases.SHAPES, "trees", [device_cases.tree("1,2_16,4")])
    monkeypatch.setattr(device_cases, "HEADS", ((4, 2, 16),))
    monkeypatch.setattr(device_cases, "LATENT", (((4, 1, 24), 16),))
    tasks = list(device_run.tasks("trees", True, DEVICE, CEILINGS, pretended))
    assert [task.name.split()[1] for task in tasks] == ["bfloat16", "bfloat16", "float32", "float16"]
    (latent,), (line,) = (list(tasks[index].lines()) for index in (1, 2))
    assert latent.label == "bfloat16 4/1x24 1,2_16,4"
    assert line.label == "float32 4/2x16 1,2_16,4"
    assert line.error < 1e-5


def test_the_most_important_lines_come_first() -> None:
    names = [task.name for task in device_run.tasks(None, False, DEVICE, CEILINGS, pretended)]
    decode = [index for index, name in enumerate(names) if name.startswith("decode bfloat16 32/8x128")]
    trees = [index for index, name in enumerate(names) if name.startswith("trees bfloat16 32/8x128")]
    sampling = [index for index, name in enumerate(names) if name.startswith("sampling")]
    assert decode + trees + sampling == list(range(len(decode) + len(trees) + len(sampling)))
    assert len(sampling) == 9 * 6
    kinds = {tuple(name.split()[:3]) for name in names if not name.startswith("sampling")}
    assert {("decode", "bfloat16", "128/1x576"), ("trees", "bfloat16", "16/1x576")} <= kinds
    for heads in ("32/8x128", "14/2x64", "32/32x128"):
        assert {(kind, "bfloat16", heads) for kind in ("decode", "trees", "extend")} <= kinds
    assert len(names) == len(set(names))


def test_a_failed_task_is_reported_and_the_next_one_runs() -> None:
    def broken() -> Iterator[Line]:
        yield LINE
        raise RuntimeError("out of memory")

    given_back: list[int] = []
    said: list[str] = []
    with Output(echo=said.append) as output:
        tasks = iter([Task("a", broken), Task("b", lambda: iter([LINE, LINE])), Task("c", broken)])
        late = iter([False, False, True])
        found = device_run.run_tasks(tasks, output, lambda: next(late), lambda: given_back.append(1))
    assert found == [LINE] * 3
    assert said[1] == "FAILED a: RuntimeError: out of memory"
    assert len(said) == 4
    assert given_back == [1]
    assert [task.name for task in tasks] == ["c"], "a task that there was no time for is not lost"


def test_a_lost_device_ends_the_run() -> None:
    def broken() -> Iterator[Line]:
        raise RuntimeError("an illegal memory access")
        yield LINE

    def no_answer() -> None:
        raise RuntimeError("the device is lost")

    with Output(echo=lambda line: None) as output, pytest.raises(RuntimeError, match="is lost"):
        device_run.run_tasks(iter([Task("a", broken), Task("b", broken)]), output, lambda: False, no_answer)
    assert output.num_failed == 1


class Clock:
    """Events and streams of a GPU whose replays take 24 ms, except the first three, which take longer."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.num_replays = self.num_launched = 0

    def replay(self) -> None:
        self.num_replays += 1
        self.now_ms += 24.0 if self.num_replays > device_run.WARM_REPLAYS else 24.0 + self.num_replays

    def launch(self) -> None:
        self.num_launched += 1

    def wait_stream(self, other: object) -> None:
        assert other is self

    def event(self, *, enable_timing: bool) -> Event:
        assert enable_timing
        return Event(self)


class Event:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def record(self) -> None:
        self.at_ms = self.clock.now_ms

    def synchronize(self) -> None:
        """It has happened."""

    def elapsed_time(self, later: Event) -> float:
        return later.at_ms - self.at_ms


def test_slow_calls_are_replayed_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()

    def captured(function: Callable[[], None]) -> tuple[Clock, None]:
        before = clock.num_launched
        function()
        assert clock.num_launched - before == device_cases.CALLS_PER_GRAPH
        return clock, None

    monkeypatch.setattr(device_run, "captured", captured)
    monkeypatch.setattr(device_run, "_side_stream", lambda: clock)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: clock)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "Event", clock.event)
    assert device_run.measure_on_device([clock.launch, clock.launch]) == (2000.0, 0.0)
    assert clock.num_launched == 2 + device_cases.CALLS_PER_GRAPH
    assert clock.num_replays == device_run.WARM_REPLAYS + 300 // 27


def test_ceilings_are_measured_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Properties:
        L2_cache_size = 50 << 20

    times = iter([10.0, 30.0, 2.0, 11.0, 27.0, 3.0])
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    monkeypatch.setattr(torch, "randn", lambda *shape, device: torch.empty(shape, device="meta"))
    found = device_run.measure_ceilings(torch.device("cpu"), lambda functions: (next(times), 0.0))
    assert (found.bytes_per_s, found.flops_per_s) == ((1 << 31) * 1e5, 2 * 8192**3 / 27.0 * 1e6)
    assert (found.launch_us, found.l2_bytes) == (2.0, 50 << 20)
    assert found.noise == pytest.approx(3 / 27)
    assert str(found).endswith("empty launch 2.0 us, L2 50 MiB, noise 11.1%")


def test_a_cpu_run_reports_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
    monkeypatch.setattr(torch, "set_float32_matmul_precision", told.append)
    assert device_run.environment(DEVICE).startswith(f"a GPU, torch {torch.__version__}")
    assert told == ["highest"]
    device_run.release_memory()
