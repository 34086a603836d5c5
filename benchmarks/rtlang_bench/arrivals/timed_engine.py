"""Runs programs on an engine in the time that its work takes: the clock moves by the time of each step, and over idle time at once.

The time of a step is that of the engine thread, which does its share of the forward pass, so other processes of the machine do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter, thread_time

from rtlang.bench.workloads.load import ProgramLoad
from rtlang.contract.params import SamplingParams
from rtlang.contract.runs.principal import Principal
from rtlang.contract.step import Step
from rtlang.engine.engine import Engine
from rtlang.engine.planning.step_cost import StepSize, size_of
from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.requests.request import Request, RequestOutput, RequestSpec

NOTHING = StepSize(0)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step.

    Attributes:
        end_s: when it ended, on the clock of the run.
        seconds, predicted_s: its time, and the time that the cost model expected; 0 without a prediction.
        num_tokens: computed tokens.
        num_decodes: rows of one token whose request has generated tokens before.
        num_rows: all rows.
        size, plain: the amount of its work, and that of a step that has its decoding rows only.
    """

    end_s: float
    seconds: float
    predicted_s: float
    num_tokens: int
    num_decodes: int
    num_rows: int
    size: StepSize = NOTHING
    plain: StepSize = NOTHING

    @property
    def is_plain(self) -> bool:
        """Whether it only decodes."""
        return self.num_decodes == self.num_rows == self.num_tokens


@dataclass(frozen=True, slots=True)
class Gap:
    """Time between two outputs of a request; the second came with step number `step` of the run.

    Attributes:
        wall_s: time that passed, in which other processes ran as well.
        num_steps: of the run, from the one behind the first output to `step`.
    """

    seconds: float
    step: int
    wall_s: float = 0.0
    num_steps: int = 1


@dataclass(slots=True)
class ProgramRecord:
    """One program of a run; times on the clock of the run.

    Attributes:
        first_token_s: first tokens of its calls, in seconds since each call was made.
        first_step: number of the run's step that computed something for it first; None before.
        gaps: between the outputs of its calls.
        end_s: None until its last call has ended.
    """

    load: ProgramLoad
    start_step: int
    first_token_s: list[float] = field(default_factory=list)
    first_step: int | None = None
    gaps: list[Gap] = field(default_factory=list)
    end_s: float | None = None
    num_generated: int = 0

    @property
    def latency_s(self) -> float:
        assert self.end_s is not None
        return self.end_s - self.load.arrival_s


class TimedEngine:
    """Feeds an engine and records its outputs.

    Args:
        clock: measures work, in seconds.
        wall_clock: measures the time that passes.
        token_id: the n-th new prompt token of the run.
    Attributes:
        now: time of the run, in seconds; idle time passes at once.
        busy_s, wall_s: time spent on work, and the time that passed meanwhile.
    """

    def __init__(
        self,
        engine: Engine,
        token_id: Callable[[int], int],
        *,
        clock: Callable[[], float] = thread_time,
        wall_clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.engine = engine
        self.now = self.busy_s = self.wall_s = 0.0
        self.steps: list[StepRecord] = []
        self.records: list[ProgramRecord] = []
        self._token_id, self._clock, self._wall_clock = token_id, clock, wall_clock
        self._num_tokens = 0
        self._unstarted: list[tuple[ProgramRecord, Request]] = []

    def run(self, programs: Iterable[ProgramLoad]) -> None:
        """Run programs to their ends."""
        waiting = sorted(programs, key=lambda each: each.arrival_s, reverse=True)
        while waiting or self.engine.has_work:
            if not self.engine.has_work:
                self.now = max(self.now, waiting[-1].arrival_s)
            while waiting and waiting[-1].arrival_s <= self.now:
                self.add(waiting.pop())
            self.step()

    def add(self, load: ProgramLoad) -> ProgramRecord:
        """Start a program now."""
        record = ProgramRecord(load, len(self.steps))
        self.records.append(record)
        self._call(record, ProgramAccount(load.arrival_s), [], 0)
        return record

    def step(self) -> None:
        """Compute one step and record its outputs at the time of its end."""
        started, wall_started = self._clock(), self._wall_clock()
        outputs = self.engine.step(self.now)
        seconds = self._clock() - started
        self.wall_s += self._wall_clock() - wall_started
        step, cost = self.engine.last_step, self.engine.step_cost
        predicted_s = cost.predict(size_of(step)) if step is not None and cost.is_settled else 0.0
        self.engine.note_time(seconds)
        self.now += seconds
        self.busy_s += seconds
        if step is not None:
            self._record(step, seconds, predicted_s)
        for output in outputs:
            output.request.spec.listener(output)

    def _record(self, step: Step, seconds: float, predicted_s: float) -> None:
        num_tokens = sum(len(row.token_ids) - row.num_draft_tokens for row in step.rows)
        plain = NOTHING
        for row in step.rows:
            if len(row.token_ids) - row.num_draft_tokens == 1 and row.num_output_tokens > 0:
                plain = plain.with_row(1, row.num_computed_tokens, 1)
        num_decodes, num_rows = plain.num_tokens, len(step.rows)
        self.steps.append(
            StepRecord(self.now, seconds, predicted_s, num_tokens, num_decodes, num_rows, size_of(step), plain)
        )
        for record, request in self._unstarted:
            if request.stats.first_step_time is not None:
                record.first_step = len(self.steps) - 1
        self._unstarted = [each for each in self._unstarted if each[0].first_step is None]

    def _call(self, record: ProgramRecord, program: ProgramAccount, text: list[int], index: int) -> None:
        call, made_s = record.load.calls[index], self.now
        text += [self._token_id(self._num_tokens + each) for each in range(call.num_prompt)]
        self._num_tokens += call.num_prompt
        last_s: float | None = None
        last_wall_s, last_step = 0.0, 0

        def listen(output: RequestOutput) -> None:
            nonlocal last_s, last_wall_s, last_step
            if output.error is not None:
                raise output.error
            if output.token_ids:
                if last_s is None:
                    record.first_token_s.append(self.now - made_s)
                else:
                    step = len(self.steps) - 1
                    record.gaps.append(Gap(self.now - last_s, step, self.wall_s - last_wall_s, step - last_step))
                last_s, last_wall_s, last_step = self.now, self.wall_s, len(self.steps) - 1
                record.num_generated += len(output.token_ids)
                text.extend(output.token_ids)
            if not output.is_last:
                return
            if index + 1 < len(record.load.calls):
                self._call(record, program, text, index + 1)
            else:
                record.end_s = self.now

        params = SamplingParams(
            max_tokens=call.num_output, min_tokens=call.num_output, ignore_eos=True, temperature=1.0
        )
        behind = record.load.calls[index + 1 :]
        started = self._clock()
        spec = RequestSpec(
            prompt_ids=text,
            params=params,
            listener=listen,
            program=program,
            seed=len(self.records),
            priority=record.load.priority,
            principal=Principal(f"client {record.load.client}"),
            remaining_tokens=sum(each.num_prompt + each.num_output for each in behind),
        )
        request = self.engine.add(spec, self.now)
        seconds = self._clock() - started
        self.now += seconds
        self.busy_s += seconds
        if index == 0:
            self._unstarted.append((record, request))
