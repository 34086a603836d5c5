"""The command `rtlang bench` itself: a comparison with another engine."""

from __future__ import annotations

import math
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rtlang.bench.checkpoint import SHAPES
from rtlang.bench.machine import DEVICE_PACKAGES, package_versions
from rtlang.bench.workloads.catalogue import NAMES, SPECULATE, USUAL
from rtlang.console.bench.report_output import check_json_path, show_report
from rtlang.console.errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.progress import told
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig


@with_settings(RuntimeConfig, "settings")
def bench_throughput(
    context: typer.Context,
    settings: dict[str, Any],
    workload: Annotated[
        str,
        typer.Option(help=f"Workloads, comma-separated: {', '.join(NAMES)}; or {SPECULATE}.", metavar="NAMES"),
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
            help="The baseline: transformers, vllm, or the URL (to /v1) of a server with OpenAI's completions that serves --model."
        ),
    ] = "transformers",
    vllm_python: Annotated[
        str | None, typer.Option(help="Python of an environment with vLLM; default: the one that runs this.")
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", help="Write all figures to this file as JSON; with --device cuda, one object per line."),
    ] = None,
    markdown: Annotated[bool, typer.Option(help="Print the table as markdown.")] = False,
    profile: Annotated[
        bool, typer.Option(help="Run each workload once more with timers, and tell where its time goes.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Write a picture of the results to this file: .svg or .html.", metavar="FILE")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="With --device cuda: also write the printed output to this file.")
    ] = None,
    budget_s: Annotated[
        float, typer.Option(min=1, help="With --device cuda: start no new measurement after this many seconds.")
    ] = 480.0,
) -> None:
    """Compare throughput with static batching in transformers, with vLLM or with another server; or run another benchmark.

    With --device cuda: check the GPU's output against the CPU's, then measure its kernels and the decoding of a random model with the
    shape of an 8B Llama.
    """
    if context.invoked_subcommand is not None:
        return
    if settings.get("device", "cpu") != "cpu":
        _bench_device(settings, quick, json_file, out, budget_s)
        return
    progress = Console(stderr=True, highlight=False, markup=False)
    with one_line_errors():
        if out is not None:
            raise CommandError(f"--out {out}: requires --device cuda")
        check_json_path(json_file)
        pictures = import_module("rtlang.bench.comparison.picture")
        if picture is not None:
            pictures.check_picture_path(picture)
        options = import_module("rtlang.bench.comparison.options").BenchOptions(
            workloads=tuple(name.strip() for name in workload.split(",") if name.strip()),
            is_quick=quick,
            repeats=repeats,
            seed=seed,
            batch_size=batch_size,
            baseline=baseline,
            shape=shape or next(iter(SHAPES)),
            cost_shape=shape,
            vllm_python=vllm_python or sys.executable,
            profiles=profile,
        )
        if options.workloads == (SPECULATE,) and (picture is not None or profile):
            raise CommandError(f"--workload {SPECULATE}: has neither --picture nor --profile")
        config = RuntimeConfig(**settings)
        command = shlex.join(["rtlang", *sys.argv[1:]])
        with told(progress) as tell:
            report = import_module("rtlang.bench.comparison.run").run_benchmark(
                config, options, command=command, tell=tell
            )
        show_report(report, markdown=markdown, json_file=json_file)
        if picture is not None:
            pictures.write_picture(report, picture)
        if not report.is_sound:
            raise CommandError("float32 tokens differ between the two sides: the figures compare different work")


def _bench_device(
    settings: dict[str, Any], quick: bool, json_file: Path | None, out: Path | None, budget_s: float
) -> None:
    with one_line_errors():
        config = RuntimeConfig(**settings)
        if config.device != "cuda":
            raise CommandError("--device interpreter: interpreted kernels cannot be benchmarked; expected cuda")
        if not math.isfinite(budget_s):
            raise CommandError(f"--budget-s {budget_s}: expected a finite number")
        missing = [name for name, number in package_versions(DEVICE_PACKAGES).items() if number is None]
        if missing:
            raise CommandError(f"--device cuda requires packages that are not installed: {', '.join(missing)}")
        device, written = import_module("rtlang.bench.device"), import_module("rtlang_kernels_bench.output")
        device.accelerator_for(config.device)  # fails before the output of an earlier run is overwritten
        try:
            output = written.Output(out, json_file)
        except (OSError, ValueError) as error:
            raise CommandError(f"--out or --json: {error}") from error
        with output, written.watchdog(output, budget_s), output.part("run"):
            device.run(config, output, is_quick=quick, budget_s=budget_s)
        if output.num_failed:
            raise CommandError(f"{output.num_failed} parts failed, listed above")
