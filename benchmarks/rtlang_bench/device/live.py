"""The command `python -m rtlang_bench.device.live`: which steps of a live load are replayed from graphs.

The device is pretended (`pretended.py`). Requests with prompts of their own and outputs of different lengths keep all rows busy: whenever
one ends, the prompt of the next is computed beside the rows that decode.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Annotated, Any
from unittest.mock import patch

import typer

from rtlang.bench.measure import run_on_target
from rtlang.bench.workloads.text import TextMaker
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.layers.attention import PagedKV
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.runtime import Runtime
from rtlang_bench.command import command, progress
from rtlang_bench.device.pretended import ENVIRONMENT, pretended_device, write_model

GOAL = 0.05
"""Maximum share of steps that are launched kernel by kernel."""
OUTPUT_TOKENS = (16, 128)
_PAGE_SIZE, _MAX_LEN = 16, 4096


@dataclass(frozen=True, slots=True)
class LiveLoad:
    """The steps of one load.

    Attributes:
        num_rows: maximum number of rows of a step.
        num_mixed: steps with prompts, which are parts of the other two numbers.
        decoding_ms, mixed_ms: thread CPU time to launch a replayed step without and with prompts, median, in milliseconds.
        largest: tokens of the largest step.
    """

    num_rows: int
    num_prompt_tokens: int
    num_replayed: int
    num_eager: int
    num_mixed: int
    decoding_ms: float
    mixed_ms: float
    largest: int

    @property
    def eager_share(self) -> float:
        """Share of steps that were launched kernel by kernel."""
        return self.num_eager / (self.num_replayed + self.num_eager)

    def __str__(self) -> str:
        steps = f"{self.num_replayed:>5} steps replayed, {self.num_eager:>4} not ({self.eager_share:.1%})"
        mixed = f"{self.num_mixed} with prompts, at most {self.largest} tokens"
        times = f"launched in {self.decoding_ms:.2f} ms, with prompts in {self.mixed_ms:.2f} ms"
        return f"{self.num_rows:>4} rows, prompts of {self.num_prompt_tokens:>4}: {steps}; {mixed}; {times}"


@dataclass(slots=True)
class _Steps:
    """The launched steps: (number of tokens, whether it has prompts, whether it was replayed, seconds)."""

    found: list[tuple[int, bool, bool, float]]

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the steps of all device runners until the exit. Pages are not copied: that is the device's work."""
        launch, found = DeviceRunner.launch, self.found

        def recorded(runner: Any, step: Any) -> Any:
            num_replayed, started = runner.num_replayed, thread_time()
            flight = launch(runner, step)
            seconds, counts = thread_time() - started, [len(row.token_ids) for row in step.rows]
            found.append((sum(counts), max(counts) > 1, runner.num_replayed > num_replayed, seconds))
            return flight

        with (
            patch.object(DeviceRunner, "launch", recorded),
            patch.object(PagedKV, "copy_pages", lambda kv, copies: None),
        ):
            yield


def measure(
    num_rows: int,
    prompts: tuple[int, ...],
    num_requests: int = 512,
    *,
    tell: Callable[[str], None] = lambda text: None,
    **settings: Any,
) -> list[LiveLoad]:
    """Run a load for each length of prompts.

    Args:
        num_rows: `max_rows`.
        prompts: numbers of tokens, about.
        tell: receives a line about the present work.
        settings: of `RuntimeConfig`.
    """
    results = []
    with TemporaryDirectory(prefix="rtlang-bench-") as folder, pretended_device() as script:
        script.set([[1234]])
        given = {"num_pages": 1 << 15, "page_size": _PAGE_SIZE, "max_model_len": _MAX_LEN, "num_threads": 1, **settings}
        config = RuntimeConfig(
            model=str(write_model(Path(folder))),
            device="interpreter",
            weights="dummy",
            dtype="bfloat16",
            max_rows=num_rows,
            **given,
        )
        steps = _Steps([])
        with steps.recorded(), Runtime(config=config) as runtime:
            for num_tokens in prompts:
                tell(f"{num_rows} rows, prompts of {num_tokens} tokens")
                graphs = live_graphs(runtime.tokenizer, num_requests, (num_tokens, num_tokens))
                steps.found.clear()
                run_on_target(runtime, graphs)
                results.append(_result(steps, num_rows, num_tokens))
    return results


def _result(steps: _Steps, num_rows: int, num_prompt_tokens: int) -> LiveLoad:
    times: dict[bool, list[float]] = {False: [], True: []}
    for _, is_mixed, is_replayed, seconds in steps.found:
        if is_replayed:
            times[is_mixed].append(1e3 * seconds)
    num_replayed = sum(map(len, times.values()))
    return LiveLoad(
        num_rows,
        num_prompt_tokens,
        num_replayed,
        num_eager=len(steps.found) - num_replayed,
        num_mixed=sum(is_mixed for _, is_mixed, *_ in steps.found),
        decoding_ms=statistics.median(times[False] or [0.0]),
        mixed_ms=statistics.median(times[True] or [0.0]),
        largest=max(num_tokens for num_tokens, *_ in steps.found),
    )


def live_graphs(
    tokenizer: Tokenizer,
    num_requests: int,
    prompts: tuple[int, int],
    outputs: tuple[int, int] = OUTPUT_TOKENS,
    constraint: Constraint | None = None,
) -> list[RequestGraph]:
    """Sampled requests with prompts of their own.

    Args:
        prompts, outputs: fewest and most tokens, of prompts about; each request has a random number between them.
        constraint: of all requests.
    """
    random, maker = Random(0), TextMaker(tokenizer, 0)
    return [
        RequestGraph(
            (
                Text(0, None, (maker.text(random.randint(*prompts), is_start=True),)),
                Generate(
                    1,
                    0,
                    "out",
                    SamplingParams(max_tokens=random.randint(*outputs), ignore_eos=True, temperature=0.8, seed=number),
                    constraint,
                ),
            )
        )
        for number in range(num_requests)
    ]


def bench_live(
    rows: Annotated[str, typer.Option(help="Comma-separated numbers of rows.")] = "64,256",
    prompts: Annotated[str, typer.Option(help="Comma-separated lengths of prompts in tokens.")] = "100,400",
    requests: Annotated[int, typer.Option(min=1, help="Requests of each load.")] = 512,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all figures to this file.")] = None,
) -> None:
    """Count the steps of a live load that leave the graphs, without a GPU."""
    os.environ.update(ENVIRONMENT)
    with one_line_errors():
        lengths = tuple(map(int, prompts.split(",")))
        with progress() as tell:
            found = [each for count in rows.split(",") for each in measure(int(count), lengths, requests, tell=tell)]
        for each in found:
            typer.echo(str(each))
        if json_file is not None:
            json_file.write_text("".join(json.dumps(asdict(each)) + "\n" for each in found))
        if max(each.eager_share for each in found) > GOAL:
            raise CommandError(f"expected at most {GOAL:.0%} of the steps not to be replayed")
        typer.echo(f"goal: at most {GOAL:.0%} of the steps not replayed")


app = command(bench_live)

if __name__ == "__main__":
    app()
