"""A long prompt beside decoding streams, and a request of high priority one step behind it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from rtlang.bench.measure import percentile
from rtlang.bench.workloads.arriving import NUM_STREAMS
from rtlang.bench.workloads.load import Call, ProgramLoad
from rtlang_bench.arrivals.figures import PlainSteps, gaps_of, steady_gaps_of
from rtlang_bench.arrivals.timed_engine import Gap, TimedEngine

URGENT_PRIORITY = -100
_PROMPT = 32
_STEPS_BEFORE = 16
_OUTPUT = 16


@dataclass(frozen=True, slots=True)
class LongPrompt:
    """A finished run.

    Attributes:
        run: of the streams, then the long prompt, then the urgent request.
        gaps: of the streams, from the arrival of the long prompt to its first token.
        urgent_steps: steps from the arrival of the urgent request until one computed something for it.
    """

    run: TimedEngine
    gaps: list[Gap]
    urgent_steps: int

    @property
    def num_tokens(self) -> int:
        """Prompt and output tokens; the same whatever the setting."""
        return sum(record.load.num_tokens for record in self.run.records)


def run_long_prompt(run: TimedEngine, num_tokens: int, num_streamed: int) -> LongPrompt:
    """Run it to its end on a fresh engine.

    Args:
        num_tokens: length of the long prompt.
        num_streamed: output tokens of each stream.
    """
    streams = [run.add(ProgramLoad(0.0, [Call(_PROMPT, num_streamed)])) for _ in range(NUM_STREAMS)]
    while run.engine.has_work and not (all(record.gaps for record in streams) and len(run.steps) >= _STEPS_BEFORE):
        run.step()
    nums_before = [len(record.gaps) for record in streams]
    long = run.add(ProgramLoad(run.now, [Call(num_tokens, _OUTPUT)]))
    run.step()
    urgent = run.add(ProgramLoad(run.now, [Call(_PROMPT, _OUTPUT)], priority=URGENT_PRIORITY))
    while not long.first_token_s:
        run.step()
    gaps = [gap for record, num_before in zip(streams, nums_before, strict=True) for gap in record.gaps[num_before:]]
    while run.engine.has_work:
        run.step()
    assert urgent.first_step is not None
    return LongPrompt(run, gaps, urgent.first_step - urgent.start_step + 1)


@dataclass(frozen=True, slots=True)
class LongPromptFigures:
    """The figures of one setting over its runs.

    Attributes:
        gap: p50, p99 and maximum of the streams' gaps, in targets.
        wall_gap, steady_gap: p99 in time that passed, and without the noise of the machine, in targets.
        gap_in_steps: p50, p99 and maximum in plain steps of as many rows.
        urgent_steps: the most of all runs.
        tokens_per_s, steady_tokens_per_s: prompt and output tokens, median of the runs; and without the noise of the machine.
    """

    setting: str
    gap: tuple[float, float, float]
    wall_gap: float
    steady_gap: float
    gap_in_steps: tuple[float, float, float]
    urgent_steps: int
    tokens_per_s: float
    steady_tokens_per_s: float

    HEAD = (
        "| setting | gap p50 / p99 / max in targets | wall p99 | steady p99 | in plain steps "
        "| tok/s | steady tok/s | steps until urgent |\n"
        "|---|---|---|---|---|---|---|---|"
    )

    def __str__(self) -> str:
        in_targets, in_steps = (" / ".join(f"{each:.2f}" for each in row) for row in (self.gap, self.gap_in_steps))
        return (
            f"| {self.setting} | {in_targets} | {self.wall_gap:.2f} | {self.steady_gap:.2f} | {in_steps} "
            f"| {self.tokens_per_s:.0f} | {self.steady_tokens_per_s:.0f} | {self.urgent_steps} |"
        )


def long_prompt_figures(setting: str, found: list[LongPrompt], plain: PlainSteps) -> LongPromptFigures:
    """The figures of all runs of a setting."""
    targets = [each for one in found for each in gaps_of(one.run, plain, one.gaps)]
    step_s = plain.seconds(NUM_STREAMS)
    steps = [gap.seconds / step_s for one in found for gap in one.gaps]
    return LongPromptFigures(
        setting,
        (percentile(targets, 0.5), percentile(targets, 0.99), max(targets)),
        percentile([each for one in found for each in gaps_of(one.run, plain, one.gaps, wall=True)], 0.99),
        percentile([each for one in found for each in steady_gaps_of(one.run, plain, one.gaps)], 0.99),
        (percentile(steps, 0.5), percentile(steps, 0.99), max(steps)),
        max(one.urgent_steps for one in found),
        median(one.num_tokens / one.run.busy_s for one in found),
        median(one.num_tokens / sum(plain.times.seconds(step.size) for step in one.run.steps) for one in found),
    )
