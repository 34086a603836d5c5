"""The command line: `rtlang run`, `serve`, `bench`, `check` and `grammar check`.

Flags for settings are made from config.py. Whatever goes wrong ends in one line on standard error and exit code 1; wrong flags end
with code 2, as the command-line library has it. What loads torch is imported when a command needs it, so that `--help` is quick.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import rtlang
from rtlang.bench.machine import DEVICE_PACKAGES, package_versions, this_machine
from rtlang.bench.workloads import MAKERS, USUAL
from rtlang.console.grammar import check_grammar as checked_grammar
from rtlang.console.loading import show_loading
from rtlang.console.options import with_settings
from rtlang.console.show import Labels, plain, run_and_show, to_json, usage_line, values_of
from rtlang.console.source import CommandError, describe, load_program, read_arguments
from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.contract.errors import RtlangError
from rtlang.contract.target import Target
from rtlang.lang.execution.result import Result
from rtlang.lang.program import Program
from rtlang.model import system_resources
from rtlang_grammars.spec import ConstraintKind, JsonStyle, PropertyOrder, Whitespace

PIPED_WIDTH = 100
CHECK_SCHEMA = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}, "mood": {"enum": ["calm", "merry", "curious"]}},
    "required": ["ready", "mood"],
    "additionalProperties": False,
}

app = typer.Typer(
    name="rtlang",
    help="Run programs that make many dependent calls to one language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

grammar = typer.Typer(help="Look at what holds text to a form.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(grammar, name="grammar")

RESUME_S = 30.0  # a program on a server goes on where it was, if the connection is there again by then


def main() -> None:
    """The entry point of the `rtlang` command."""
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rtlang {rtlang.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens to standard error.")] = False,
) -> None:
    del version  # handled by its callback
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


@app.command()
@with_settings(RuntimeConfig, "settings")
def run(
    program: Annotated[
        str, typer.Argument(metavar="FILE:PROGRAM", help="A program in a file (or package.module:PROGRAM).")
    ],
    settings: dict[str, Any],
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", "-a", metavar="NAME=VALUE", help="An argument of the program; @FILE reads a file."),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Run on the server at this ws:// address.")] = None,
    api_key: Annotated[str | None, typer.Option(help="Key of that server.", envvar="RTLANG_API_KEY")] = None,
    only_values: Annotated[bool, typer.Option("--json", help="Print the values as JSON and nothing else.")] = False,
) -> None:
    """Run a program, and show its texts as they are made, its values and what they cost."""
    console = Console(highlight=False, markup=False, emoji=False)
    with _one_line_errors():
        loaded = load_program(program)
        arguments = read_arguments(loaded, arg or [])
        if url is not None and settings:
            given = ", ".join("--" + name.replace("_", "-") for name in settings)
            raise CommandError(f"{given}: the server at {url} has its own settings")
        target = (
            rtlang.connect(url, api_key=api_key, resume_s=RESUME_S)
            if url is not None
            else _started(RuntimeConfig(**settings))
        )
        try:
            result, seconds = _stream(loaded, arguments, target, None if only_values else console)
        finally:
            target.close()
        values, problems = values_of(result)
        if only_values:
            typer.echo(to_json(values))
        else:
            console.print()
            console.print(to_json(values), soft_wrap=True)
            returned = None if result.error is not None else plain(result.value, "the returned value")
            if returned is not None and returned not in values.values():
                console.print(f"returned {to_json(returned, indent=None)}", soft_wrap=True)
            console.print(usage_line(result.usage, seconds), style="dim", soft_wrap=True)
        if result.error is not None:
            _raise(result.error, loaded)
        if problems:
            raise CommandError("; ".join(problems))


@app.command()
@with_settings(RuntimeConfig, "settings")
@with_settings(ServeConfig, "limits")
def serve(settings: dict[str, Any], limits: dict[str, Any]) -> None:
    """Serve a model: the WebSocket protocol and the HTTP routes on one port."""
    with _one_line_errors():
        config = ServeConfig(**limits)
        server_module, loader = import_module("rtlang.serve.server"), import_module("rtlang.model.loading.loader")
        config_module = import_module("rtlang.model.loading.model_config")
        with _started(RuntimeConfig(**settings)) as runtime:
            model_config = config_module.ModelConfig.from_pretrained(loader.model_directory(runtime.config.model))
            info = server_module.TokenizerInfo(
                model=runtime.config.model,
                vocab_size=model_config.vocab_size,
                max_model_len=runtime.config.max_model_len or model_config.max_position_embeddings,
            )
            server = server_module.Server(runtime, info, config, metrics=runtime.metrics)

            def announce() -> None:
                typer.echo(f"serving {runtime.config.model} at {server.url} (Ctrl-C ends)")
                sys.stdout.flush()

            asyncio.run(server.serve(handle_signals=True, on_listening=announce))


@app.command()
@with_settings(RuntimeConfig, "settings")
def bench(
    settings: dict[str, Any],
    workload: Annotated[
        str, typer.Option(help=f"Comma-separated, in this order; there are {', '.join(MAKERS)}.", metavar="NAMES")
    ] = ",".join(USUAL),
    quick: Annotated[bool, typer.Option(help="Fewer requests and runs: about three minutes on two cores.")] = False,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Pairs of runs of each workload; default: 3, or what fits with --quick.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of texts and lengths.")] = 0,
    batch_size: Annotated[int, typer.Option(min=1, help="Batch size of the baseline.")] = 8,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", help="Write all figures to this file; with --device cuda an object per line."),
    ] = None,
    markdown: Annotated[bool, typer.Option(help="Print the table as markdown.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --device cuda: also write what is printed to this file.")
    ] = None,
    budget_s: Annotated[
        float, typer.Option(min=1, help="With --device cuda: begin nothing new after so many seconds.")
    ] = 480.0,
) -> None:
    """Measure against static batching with transformers, on the same weights in the same process.

    With --device cuda: check the GPU's texts against the CPU's, then measure its kernels and the decoding of an 8B-shaped random model.
    """
    if settings.get("device", "cpu") != "cpu":
        _bench_device(settings, quick, json_file, out, budget_s)
        return
    console, progress = Console(highlight=False, markup=False), Console(stderr=True, highlight=False, markup=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    with _one_line_errors():
        if out is not None:
            raise CommandError(f"--out {out}: it needs --device cuda")
        if json_file is not None and not json_file.absolute().parent.is_dir():
            raise CommandError(f"--json {json_file}: there is no such folder")
        compare = import_module("rtlang.bench.compare")
        options = compare.BenchOptions(
            workloads=tuple(name.strip() for name in workload.split(",") if name.strip()),
            is_quick=quick,
            repeats=repeats,
            seed=seed,
            batch_size=batch_size,
        )
        config = RuntimeConfig(**settings)
        command = shlex.join(["rtlang", *sys.argv[1:]])
        with progress.status("starting") if progress.is_terminal else nullcontext() as status:

            def tell(line: str) -> None:
                if status is not None:
                    status.update(line)
                else:
                    progress.print(line, soft_wrap=True)

            report = compare.run_benchmark(config, options, command=command, tell=tell)
        if markdown:
            typer.echo(report.to_markdown())
        else:
            console.print(report.to_table())
            for line in report.facts():
                console.print(f"- {line}", soft_wrap=True)
        if json_file is not None:
            json_file.write_text(to_json(report.to_plain()) + "\n", encoding="utf-8")
        if not report.is_sound:
            raise CommandError("float32 greedy tokens differ between the sides: these figures compare different work")


def _bench_device(
    settings: dict[str, Any], quick: bool, json_file: Path | None, out: Path | None, budget_s: float
) -> None:
    with _one_line_errors():
        config = RuntimeConfig(**settings)
        if config.device != "cuda":
            raise CommandError("--device interpreter: figures of interpreted kernels would mean nothing")
        if not math.isfinite(budget_s):
            raise CommandError(f"--budget-s {budget_s}: a finite number of seconds is allowed")
        missing = [name for name, number in package_versions(DEVICE_PACKAGES).items() if number is None]
        if missing:
            raise CommandError(f"not installed, and needed for --device cuda: {', '.join(missing)}")
        device, written = import_module("rtlang.bench.device"), import_module("rtlang_kernels.bench_output")
        device.accelerator_for(config.device)  # before what an earlier run wrote is lost
        try:
            output = written.Output(out, json_file)
        except (OSError, ValueError) as error:
            raise CommandError(f"--out or --json: {error}") from error
        with output, written.watchdog(output, budget_s), output.part("run"):
            device.run(config, output, is_quick=quick, budget_s=budget_s)
        if output.num_failed:
            raise CommandError(f"{output.num_failed} parts failed; they are named above")


@app.command()
@with_settings(RuntimeConfig, "settings")
def check(settings: dict[str, Any]) -> None:
    """Say what is installed and found, and try one small constrained generation."""
    import jsonschema

    with _one_line_errors():
        typer.echo(f"rtlang      {rtlang.__version__}, Python {sys.version.split()[0]}")
        missing = []
        for name, number in package_versions().items():
            typer.echo(f"{name:<11} {number or 'missing'}")
            if number is None:
                missing.append(name)
        typer.echo(f"processor   {this_machine()}")
        if missing:
            raise CommandError(f"not installed: {', '.join(missing)}")
        config = RuntimeConfig(**settings)
        loader = import_module("rtlang.model.loading.loader")
        directory = loader.model_directory(config.model)
        typer.echo(f"model       {config.model} in {directory}")
        needed, free = loader.weight_bytes(config), system_resources.free_bytes()
        typer.echo(
            f"memory      weights need {system_resources.show_bytes(needed)}, {system_resources.show_bytes(free)} are free"
        )
        if config.grammar_backend == "rtlang":
            seconds = import_module("rtlang_grammars.warm_up").warm_up()
            typer.echo(f"grammars    own engine, code ready in {seconds:.1f} s (compiled once, then kept on disk)")
        with _started(config) as runtime:
            dtype = str(loader.pick_dtype(config.dtype, config.device)).removeprefix("torch.")
            threads = config.num_threads or this_machine().num_cores
            typer.echo(
                f"device      {config.device}, {dtype}, {threads} threads, {runtime.stats()['num_pages']} KV pages"
            )
            result = rtlang.program(_check_program).run(runtime=runtime)
            text = result.text("answer")
        try:
            value = json.loads(text)
            jsonschema.validate(value, CHECK_SCHEMA)
        except (ValueError, jsonschema.ValidationError) as error:
            raise CommandError(f"the constrained generation gave {text!r}, which does not fit its schema") from error
        typer.echo(f"generated   {json.dumps(value)}")
        typer.echo("all is well")


@grammar.command("check")
@with_settings(RuntimeConfig, "settings")
def check_grammar(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A schema, pattern or grammar.")],
    settings: dict[str, Any],
    kind: Annotated[
        ConstraintKind | None,
        typer.Option(help="What FILE holds; default: what its name says (.json, .lark, .gbnf...)."),
    ] = None,
    whitespace: Annotated[Whitespace, typer.Option(help="How values of schemas are spaced.")] = Whitespace.FREE,
    order: Annotated[PropertyOrder, typer.Option(help="In which order properties come.")] = PropertyOrder.ANY,
    samples: Annotated[int, typer.Option(min=0, max=1000, help="Texts to make.")] = 5,
    seed: Annotated[int, typer.Option(help="Of those texts.")] = 0,
    shows_all: Annotated[bool, typer.Option("--all", help="Show every keyword of the report.")] = False,
) -> None:
    """Compile a schema, pattern or grammar: what is enforced, texts it allows, and what its masks cost."""
    with _one_line_errors():
        config, style = RuntimeConfig(**settings), JsonStyle(whitespace, order)
        for line in checked_grammar(file, kind, style, config, num_samples=samples, seed=seed, shows_all=shows_all):
            typer.echo(line)


def _started(config: RuntimeConfig) -> rtlang.Runtime:
    """A runtime with its model loaded; a terminal sees how far loading is."""
    with show_loading(Console(stderr=True)), import_module("rtlang_grammars.process").loading():
        import_module("rtlang.runtime.precompile").begin(config)
        return rtlang.Runtime(config=config).start()


def _check_program(s: Any) -> None:
    s += rtlang.text("Are you ready? Answer in JSON: ")
    s += rtlang.gen("answer", schema=CHECK_SCHEMA, max_tokens=64)


def _stream(
    program: Program, arguments: dict[str, Any], target: Target, console: Console | None
) -> tuple[Result, float]:
    labels = Labels(target)
    with program.bind(**arguments).stream(runtime=labels, on_error="result") as stream:
        return run_and_show(stream, console, labels)


def _raise(error: BaseException, program: Program) -> None:
    """What ended a program, as one line: our errors by their message, those of its body with their place."""
    if isinstance(error, RtlangError):
        raise error
    function = getattr(program, "__wrapped__", None)
    code = getattr(function, "__code__", None)
    raise CommandError(describe(error, getattr(code, "co_filename", None))) from error


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """End the process with code 1 and one line for what a user can cause."""
    try:
        yield
    except (RtlangError, CommandError) as error:
        line = " ".join(str(error).split("\n"))
        typer.echo(f"error: {line}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("error: interrupted", err=True)
        raise typer.Exit(130) from None


if __name__ == "__main__":
    main()
