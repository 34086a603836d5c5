"""The command `rtlang bench`: a comparison with another engine, and `rtlang bench language`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rtlang.bench.checkpoint import SHAPES
from rtlang.bench.workloads.catalogue import ALONE, NAMES, SPECULATE, USUAL
from rtlang.console.bench.progress import told
from rtlang.console.bench.report_output import check_json_path, show_report
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig

_MOVED = ("arrivals", "fleet", "fleet-soak", "memory", "pages", "programs", "restart", "serve", "tiers")
"""Benchmarks of developers, which are commands of a checkout."""

bench = typer.Typer(
    help="Compare throughput with transformers, vLLM, llama.cpp or another server; or measure the language.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@bench.callback()
@with_settings(RuntimeConfig, "settings")
def bench_throughput(
    context: typer.Context,
    settings: dict[str, Any],
    workload: Annotated[
        str,
        typer.Option(
            help=f"Workloads, comma-separated: {', '.join(NAMES)}; or one of {', '.join(ALONE)}.", metavar="NAMES"
        ),
    ] = ",".join(USUAL),
    quick: Annotated[bool, typer.Option(help="Fewer requests and repeats: about three minutes on two cores.")] = False,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Paired runs of each workload; default: 3, or as many as fit with --quick."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the generated prompts and lengths.")] = 0,
    batch_size: Annotated[int, typer.Option(min=1, help="Batch size of the baseline transformers.")] = 8,
    shape: Annotated[
        str | None,
        typer.Option(
            help=f"The random model, without --model: {' or '.join(SHAPES)}. With --workload {SPECULATE}: added to the cost of a step."
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(
            help="The baseline: transformers, vllm, llama.cpp, or the URL (to /v1) of a server of OpenAI's completions that serves --model."
        ),
    ] = "transformers",
    vllm_python: Annotated[
        str | None, typer.Option(help="Python of an environment with vLLM; default: the one that runs this.")
    ] = None,
    llama_cpp: Annotated[
        Path | None,
        typer.Option(
            help="Folder of llama.cpp's shared libraries, for that baseline; --model is then a GGUF file.",
            metavar="DIR",
        ),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", help="Write all figures to this file as JSON."),
    ] = None,
    markdown: Annotated[bool, typer.Option(help="Print the table as markdown.")] = False,
    profile: Annotated[
        bool, typer.Option(help="Run each workload once more with timers, and tell where its time goes.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Write a picture of the results to this file: .svg or .html.", metavar="FILE")
    ] = None,
) -> None:
    """Compare throughput with static batching in transformers, with vLLM, llama.cpp or another server."""
    if context.invoked_subcommand is not None:
        return
    from rtlang.bench.comparison.options import BenchOptions
    from rtlang.bench.comparison.picture import check_picture_path, write_picture
    from rtlang.bench.comparison.report import Report
    from rtlang.bench.comparison.run import run_benchmark

    progress = Console(stderr=True, highlight=False, markup=False)
    with one_line_errors():
        if (device := settings.get("device", "cpu")) != "cpu":
            raise CommandError(f"--device {device}: a GPU is measured by {_checkout('device')}")
        check_json_path(json_file)
        if picture is not None:
            check_picture_path(picture)
        options = BenchOptions(
            workloads=tuple(name.strip() for name in workload.split(",") if name.strip()),
            is_quick=quick,
            repeats=repeats,
            seed=seed,
            batch_size=batch_size,
            baseline=baseline,
            shape=shape or next(iter(SHAPES)),
            cost_shape=shape,
            vllm_python=vllm_python or sys.executable,
            llama_cpp=llama_cpp,
            profiles=profile,
        )
        if options.workloads[0] in ALONE and (picture is not None or profile):
            raise CommandError(f"--workload {options.workloads[0]}: has neither --picture nor --profile")
        config = RuntimeConfig(**settings)
        command = shlex.join(["rtlang", *sys.argv[1:]])
        with told(progress) as tell:
            report = run_benchmark(config, options, command=command, tell=tell)
        show_report(report, markdown=markdown, json_file=json_file)
        if picture is not None:
            assert isinstance(report, Report)  # the other kind was refused above
            write_picture(report, picture)
        if not report.is_sound:
            raise CommandError("float32 tokens differ between the two sides: the figures compare different work")


@bench.command("language")
def bench_language(
    programs: Annotated[
        int | None,
        typer.Option(min=1, max=100_000, help="Measure the memory of this many waiting async programs instead."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each case; the median counts.")] = 7,
) -> None:
    """Measure what the language costs: processor time per generation call, or memory per waiting program.

    The target answers at once and computes nothing. Exits with code 1 if a limit is exceeded.
    """
    from rtlang.bench import language

    with one_line_errors():
        found = language.measure_calls(repeats=repeats) if programs is None else [language.measure_memory(programs)]
        for each in found:
            typer.echo(str(each))
        if not all(each.is_met for each in found):
            raise CommandError("the language exceeds a limit")


@bench.command("agents")
def bench_agents(
    tasks: Annotated[int, typer.Option(min=1, max=10_000, help="Conversations, without sub-agents.")] = 30,
    sessions: Annotated[int, typer.Option(min=1, max=256, help="Conversations at the same time.")] = 20,
    turns: Annotated[int, typer.Option(min=2, max=10_000, help="Mean turns of a conversation.")] = 43,
    scale: Annotated[float, typer.Option(min=0.001, max=1.0, help="Factor of all texts.")] = 0.025,
    speed: Annotated[float, typer.Option(min=0.1, help="Divides the time that tools take.")] = 10.0,
    pools: Annotated[
        str, typer.Option(help="Tokens of all sessions at their largest, relative to the KV pool.", metavar="LIST")
    ] = "1,3,10",
    doors: Annotated[
        str | None, typer.Option(help="Doors that the conversations use in turns; default: all.", metavar="NAMES")
    ] = None,
    side: Annotated[str | None, typer.Option(help="lru or sessions; default: both.", metavar="NAME")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the traces.")] = 0,
    quick: Annotated[bool, typer.Option(help="A third of the turns, and as many tasks as sessions.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as JSON.")] = None,
    markdown: Annotated[bool, typer.Option(help="Print the tables as markdown.")] = False,
) -> None:
    """Replay traces of agents against a server and measure the cached share between turns and the time to the first token.

    Each trace runs with a KV pool for all conversations, and for a third and a tenth of them, with inferred sessions and without.
    """
    from rtlang.bench.agents.catalogue import DOORS
    from rtlang.bench.agents.report import INFERRED, LRU
    from rtlang.bench.agents.run import AgentsOptions, run_agents
    from rtlang.bench.agents.traces import TraceOptions

    progress = Console(stderr=True, highlight=False, markup=False)
    with one_line_errors():
        check_json_path(json_file)
        sides = {None: (LRU, INFERRED), "lru": (LRU,), "sessions": (INFERRED,)}
        if side not in sides:
            raise CommandError(f"--side {side}: expected lru or sessions")
        if quick:
            turns, tasks = max(2, turns // 3), sessions
        options = AgentsOptions(
            TraceOptions(tasks, turns, scale, seed),
            sessions,
            _factors(pools),
            sides[side],
            _named("--doors", doors, tuple(DOORS)),
            speed,
        )
        command = shlex.join(["rtlang", *sys.argv[1:]])
        with told(progress) as tell:
            report = run_agents(options, command=command, tell=tell)
        show_report(report, markdown=markdown, json_file=json_file)


def _factors(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(each) for each in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < each <= 1000 for each in found):
        raise CommandError(f"--pools {text}: expected numbers above 0 and at most 1000, comma-separated")
    return found


def _named(option: str, text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    found = known if text is None else tuple(name.strip() for name in text.split(","))
    if not set(found) <= set(known):
        raise CommandError(f"{option} {text}: expected names among {', '.join(known)}")
    return found


def _moved(name: str) -> None:
    """Tell where a benchmark of developers is, whatever its options."""

    def refuse() -> None:
        with one_line_errors():
            raise CommandError(f"rtlang bench {name} is now {_checkout(name.replace('-', '_'))}")

    bench.command(
        name,
        hidden=True,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )(refuse)


def _checkout(name: str) -> str:
    return f"`python -m rtlang_bench.{name}` in a checkout of the repository (benchmarks/README.md)"


for _name in _MOVED:
    _moved(_name)
