"""The command line: `rtlang run`, `chat`, `explain`, `graph`, `diff`, `serve`, `fleet`, `top`, `questions`, `mcp`, `bench`, `check`,
`doctor` and others.

Options for settings are generated from config.py. An error a user can cause prints one line to standard error and exits with code 1;
invalid options exit with code 2. Modules that load torch are imported inside the commands that need them, so that `--help` is fast.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from pathlib import Path
from typing import Annotated, Any, Never

import typer
from rich.console import Console

import rtlang
from rtlang.bench.machine import package_versions, this_machine
from rtlang.console.batch.command import batch
from rtlang.console.bench.commands import bench
from rtlang.console.chat import chat
from rtlang.console.checkpoints.quantize_command import quantize
from rtlang.console.doctor import doctor
from rtlang.console.fleet_commands import fleet
from rtlang.console.key_command import make_key
from rtlang.console.loading import OnChange, connected, journaled, saved_rows, started
from rtlang.console.mcp.commands import mcp
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.questions.commands import answer, questions
from rtlang.console.questions.prompt import terminal_handler
from rtlang.console.show import Labels, plain, run_and_show, to_json, usage_line, values_of
from rtlang.console.source import (
    CommandError,
    describe,
    load_program,
    missing_arguments,
    read_arguments,
    read_rows,
)
from rtlang.console.top import top
from rtlang.contract.config import SCRIPT_SCHEME, RuntimeConfig, ServeConfig
from rtlang.contract.errors import RtlangError
from rtlang.contract.process.call_context import Handler
from rtlang.contract.process.logs import LogFormat, configure_logs
from rtlang.contract.process.terminal_text import terminal_text
from rtlang.contract.service.fleet_report import DEFAULT_FLEET
from rtlang.contract.service.target import Target
from rtlang.lang.diff import diff_rows, saved_runs
from rtlang.lang.execution.result import Result
from rtlang.lang.program import Program
from rtlang.model import system_resources
from rtlang_grammars import ConstraintKind, JsonStyle, Numbers, PropertyOrder, Whitespace
from rtlang_grammars.schema.value_checks import value_check

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

grammar = typer.Typer(
    help="Inspect a constraint: schema, regex or grammar.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(grammar, name="grammar")
app.add_typer(fleet, name="fleet")
app.add_typer(bench, name="bench")

app.command("keys")(make_key)
app.command("batch")(batch)
app.command()(chat)
app.command()(top)
app.command()(doctor)
app.command()(quantize)
app.command()(questions)
app.command()(answer)
app.command()(mcp)


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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log to standard error.")] = False,
    log_format: Annotated[LogFormat, typer.Option(help="Form of log lines.")] = LogFormat.TEXT,
) -> None:
    del version  # handled by its callback
    configure_logs(logging.INFO if verbose else logging.WARNING, is_json=log_format is LogFormat.JSON)


@app.command()
@with_settings(RuntimeConfig, "settings")
def run(
    program: Annotated[
        str, typer.Argument(metavar="FILE:PROGRAM", help="Program to run: FILE:PROGRAM or package.module:PROGRAM.")
    ],
    settings: dict[str, Any],
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg", "-a", metavar="NAME=VALUE", help="Argument of the program; @FILE reads the value from a file."
        ),
    ] = None,
    args: Annotated[
        str | None, typer.Option(metavar="JSON", help="Arguments of the program, as a JSON object.")
    ] = None,
    url: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Run on the server at this ws:// URL; repeat to name fallback servers."),
    ] = None,
    api_key: Annotated[str | None, typer.Option(help="API key for that server.", envvar="RTLANG_API_KEY")] = None,
    only_values: Annotated[bool, typer.Option("--json", help="Print only the values, as JSON.")] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="OUT", help="Write a page about the run to this file: graph, timeline, texts."),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Keep what the run receives in this file, and go on from what is there after a crash."
        ),
    ] = None,
    on_change: Annotated[
        OnChange,
        typer.Option(help="With --journal, if the program has changed: end with an error, or compute what differs."),
    ] = OnChange.ERROR,
    wait_s: Annotated[
        float | None,
        typer.Option(
            min=0, help="With --journal, seconds that a question is waited for; default: 0, in a terminal any time."
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write the texts of the run to this file, for `rtlang diff`."),
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option(
            metavar="IN", help="Run once per line of this file, a JSON object of arguments; - for standard input."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT", help="With --batch: write a JSON line for each row; go on from the lines that are there."
        ),
    ] = None,
) -> None:
    """Run a program: stream its generated text, then print its values and token usage. With --batch, run it over a file.

    Questions of the program (rt.ask) are asked in the terminal. Without one, or with `rtlang answer`, they are answered beside the journal.
    The exit code is 75 if the run ends with an open question or a call whose outcome is unknown: answer, and run it again.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    with one_line_errors():
        _check_folder(html)
        _check_folder(save, "--save")
        _check_batch(batch, out, {"--html": html, "--journal": journal, "--json": only_values or None})
        loaded = load_program(program)
        arguments = read_arguments(loaded, arg or [], as_json=args, is_complete=batch is None)
        if journal is None and (wait_s is not None or on_change is not OnChange.ERROR):
            raise CommandError("--wait-s and --on-change need --journal")
        ask = terminal_handler()
        if wait_s is None and ask is None:
            wait_s = 0.0
        if url and settings:
            given = ", ".join("--" + name.replace("_", "-") for name in settings)
            raise CommandError(
                f"{given}: runtime options cannot be combined with --url; the server at {url[0]} has its own"
            )
        with contextlib.ExitStack() as exits:

            def open_target() -> Target:
                opened: Target = connected(url, api_key) if url else started(RuntimeConfig(**settings))
                exits.callback(opened.close)
                return opened

            if batch is not None and out is not None:
                _run_rows(loaded.bind(**arguments), batch, out, open_target(), shows_bar=console.is_terminal)
                return

            target: Target = (
                open_target()
                if journal is None
                else exits.enter_context(journaled(journal, open_target, program, arguments, on_change.value, wait_s))
            )
            result, seconds = _stream(loaded, arguments, target, None if only_values else console, ask)
        if html is not None:
            _write(html, result.to_html(loaded.name))
        if save is not None:
            _write(save, saved_runs([result]), "--save")
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
def explain(
    program: Annotated[
        str, typer.Argument(metavar="FILE:PROGRAM", help="Program to explain: FILE:PROGRAM or package.module:PROGRAM.")
    ],
    settings: dict[str, Any],
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", "-a", metavar="NAME=VALUE", help="Argument of the program, as for `rtlang run`."),
    ] = None,
    args: Annotated[
        str | None, typer.Option(metavar="JSON", help="Arguments of the program, as a JSON object.")
    ] = None,
    passes: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated passes of the compiler; -NAME leaves one out. Default: all.", metavar="NAMES"
        ),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Run on the server at this ws:// URL.")] = None,
    api_key: Annotated[str | None, typer.Option(help="API key for that server.", envvar="RTLANG_API_KEY")] = None,
) -> None:
    """Explain a program: its graph breaks with file and line, and what each pass of the compiler saves.

    A program with graph breaks is run, because the code after a break depends on a value; others are only recorded.
    """
    with one_line_errors():
        loaded = load_program(program)
        values = read_arguments(loaded, arg or [], as_json=args)
        if url is not None and settings:
            raise CommandError(f"runtime options cannot be combined with --url; the server at {url} has its own")
        # A runtime loads its model when the first break needs it.
        target = (
            rtlang.connect(url, api_key=api_key)
            if url is not None
            else rtlang.Runtime(config=RuntimeConfig(**settings))
        )
        try:
            explanation = rtlang.explain(loaded.bind(**values), runtime=target, passes=_passes(passes))
        except Exception as error:
            _raise(error, loaded)
        finally:
            target.close()
        typer.echo(str(explanation))
        if explanation.error is not None:
            _raise(explanation.error, loaded)


@app.command()
def graph(
    program: Annotated[
        str, typer.Argument(metavar="FILE:PROGRAM", help="Program to draw: FILE:PROGRAM or package.module:PROGRAM.")
    ],
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg", "-a", metavar="NAME=VALUE", help="Argument of the program; the others become inputs of the graph."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="OUT", help="Write a self-contained HTML page to this file.")
    ] = None,
    is_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart; the default.")] = False,
    passes: Annotated[
        str | None,
        typer.Option(help="Comma-separated passes of the compiler, as for `rtlang explain`.", metavar="NAMES"),
    ] = None,
) -> None:
    """Draw the request graph of a program without running it: as a Mermaid flowchart or an HTML page."""
    with one_line_errors():
        if html is not None and is_mermaid:
            raise CommandError("--html cannot be combined with --mermaid")
        _check_folder(html)
        loaded = load_program(program)
        values = read_arguments(loaded, arg or [], is_complete=False)
        values |= {name: rtlang.arg(name) for name in missing_arguments(loaded, values)}
        try:
            found = loaded.bind(**values).graph(passes=_passes(passes))
        except rtlang.TraceError as error:
            raise CommandError(f"{error}; `rtlang run {program} --html OUT` draws a run of it") from error
        except Exception as error:
            _raise(error, loaded)
        if html is None:
            typer.echo(found.to_mermaid(), nl=False)
        else:
            _write(html, found.to_html(loaded.name))


@app.command()
@with_settings(RuntimeConfig, "settings")
@with_settings(ServeConfig, "limits")
def serve(
    settings: dict[str, Any],
    limits: dict[str, Any],
    script: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Serve a scripted model: its replies come from this YAML or JSON file."),
    ] = None,
    in_process: Annotated[
        bool,
        typer.Option(
            "--in-process", help="Run the engine in the process of the server, without the protection of its own."
        ),
    ] = False,
    stall_timeout_s: Annotated[
        float,
        typer.Option(min=1, help="Seconds without a sign of life after which the engine's process is replaced."),
    ] = 120.0,
    replicas: Annotated[
        int | None, typer.Option(min=1, help="Number of engines; with bounds, their number at first.")
    ] = None,
    min_replicas: Annotated[
        int | None, typer.Option(min=1, help="Engines at least; their number follows the queue.")
    ] = None,
    max_replicas: Annotated[int | None, typer.Option(min=1, help="Engines at most.")] = None,
    prefill_replicas: Annotated[
        int, typer.Option(min=0, help="Engines of them that only compute long prompts, which others continue.")
    ] = 0,
    spare_replicas: Annotated[
        int, typer.Option(min=0, help="Additional loaded engines, each of which takes the place of one that ends.")
    ] = 0,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Run the engines on this Ray cluster; local starts one on this machine."
        ),
    ] = None,
    fleet_name: Annotated[
        str, typer.Option("--fleet", metavar="NAME", help="Name of the fleet on the Ray cluster.")
    ] = DEFAULT_FLEET,
) -> None:
    """Serve a model over WebSocket and HTTP on one port.

    The exit code is 0 after a shutdown, also by `rtlang fleet stop`, 1 or 2 if a setting is wrong, 70 if the engine has failed for good.

    Clients need a key if one is set: a single key in RTLANG_API_KEY, or hashed ones in --keys-file or RTLANG_KEYS.
    """
    from rtlang.console.serving import ENGINE_FAILED, FleetChoice, serve_engine

    with one_line_errors():
        config = ServeConfig(**limits)
        if script is not None:
            if "model" in settings:
                raise CommandError(f"--script {script}: expected no --model with it")
            settings["model"] = f"{SCRIPT_SCHEME}{script}"
        choice = FleetChoice(replicas, min_replicas, max_replicas, ray, fleet_name, prefill_replicas, spare_replicas)
        if in_process and choice.is_fleet:
            raise CommandError("--in-process cannot be combined with fleet options")
        works = serve_engine(
            RuntimeConfig(**settings), config, in_process=in_process, stall_timeout_s=stall_timeout_s, choice=choice
        )
        if not works:
            typer.echo("error: the engine has failed for good", err=True)
            raise typer.Exit(ENGINE_FAILED)


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="A file of `rtlang run --save`, or a journal.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The file to compare with it.")],
    only_json: Annotated[bool, typer.Option("--json", help="Print the nodes as JSON.")] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="OUT", help="Write a page to this file.")] = None,
) -> None:
    """Show what differs between two runs, by the paths of their nodes. The exit code is 1 if something does."""
    with one_line_errors():
        _check_folder(html)
        found = diff_rows(saved_rows(before), saved_rows(after))
        if html is not None:
            _write(html, found.to_html(f"{before.name} → {after.name}"))
        typer.echo(to_json(found.to_plain()) if only_json else terminal_text(str(found)))
    if not found.is_same:
        raise typer.Exit(1)


@app.command()
@with_settings(RuntimeConfig, "settings")
def check(settings: dict[str, Any]) -> None:
    """Check the installation: versions, model, memory, compiled code, and one constrained generation."""
    from rtlang.model import loader
    from rtlang.model.kernel_choices import kernel_lines
    from rtlang_grammars.api.precompile import precompile

    with one_line_errors():
        typer.echo(f"rtlang      {rtlang.__version__}, Python {sys.version.split()[0]}")
        missing = []
        for name, number in package_versions().items():
            typer.echo(f"{name:<11} {number or 'missing'}")
            if number is None:
                missing.append(name)
        typer.echo(f"processor   {this_machine()}")
        if missing:
            raise CommandError(f"required packages are not installed: {', '.join(missing)}")
        config = RuntimeConfig(**settings)
        directory = loader.model_directory(config.model)
        typer.echo(f"model       {config.model} in {directory}")
        needed, free = loader.weight_bytes(config), system_resources.free_bytes()
        typer.echo(
            f"memory      weights need {system_resources.show_bytes(needed)}, {system_resources.show_bytes(free)} available"
        )
        seconds = precompile()
        typer.echo(f"grammars    native code compiled in {seconds:.1f} s (cached on disk)")
        with started(config) as runtime:
            dtype = str(loader.pick_dtype(config.dtype, config.device)).removeprefix("torch.")
            threads = config.num_threads or this_machine().num_cores
            pages = runtime.stats()
            held = f"{pages['num_pages']} KV pages of {config.page_size} tokens"
            if config.kv_dtype != "auto":
                held += f" in {config.kv_dtype}"
            typer.echo(f"device      {config.device}, {dtype}, {threads} threads, {held}")
            if config.linear_inputs == "float8":
                typer.echo(f"inputs      {loader.float8_share(config)}")
            if pages["num_draft_model_pages"]:
                typer.echo(f"drafts      {config.draft_model}, {pages['num_draft_model_pages']} KV pages")
            result = rtlang.program(_check_program).run(runtime=runtime)
            text = result.text("answer")
            if config.device == "cpu":
                for line in kernel_lines():
                    typer.echo(f"kernels     {line}")
        if value_check(CHECK_SCHEMA).error_in(text) is not None:
            raise CommandError(f"the constrained generation returned {text!r}, which does not match its schema")
        typer.echo(f"generated   {json.dumps(json.loads(text))}")
        typer.echo("all checks passed")


@grammar.command("check")
@with_settings(RuntimeConfig, "settings")
def check_grammar(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A schema, regex or grammar.")],
    settings: dict[str, Any],
    kind: Annotated[
        ConstraintKind | None,
        typer.Option(help="Kind of constraint in FILE; default: by its extension (.json, .lark, .gbnf...)."),
    ] = None,
    whitespace: Annotated[Whitespace, typer.Option(help="Whitespace in JSON values.")] = Whitespace.FREE,
    order: Annotated[
        PropertyOrder, typer.Option(help="Order of object properties.")
    ] = PropertyOrder.DECLARED_THEN_OTHERS,
    numbers: Annotated[Numbers, typer.Option(help="Spellings of numbers.")] = Numbers.PLAIN,
    samples: Annotated[int, typer.Option(min=0, max=1000, help="Number of samples.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed for the samples.")] = 0,
    shows_all: Annotated[bool, typer.Option("--all", help="Show the report for every keyword.")] = False,
) -> None:
    """Compile a schema, regex or grammar; show what is enforced, samples, sizes and mask costs."""
    from rtlang.console.grammar_report import check_grammar as checked_grammar

    with one_line_errors():
        config, style = RuntimeConfig(**settings), JsonStyle(whitespace, order, numbers=numbers)
        for line in checked_grammar(file, kind, style, config, num_samples=samples, seed=seed, shows_all=shows_all):
            typer.echo(line)


def _check_program(s: Any) -> None:
    s += rtlang.text("Are you ready? Answer in JSON: ")
    s += rtlang.gen("answer", schema=CHECK_SCHEMA, max_tokens=64)


def _stream(
    program: Program, arguments: dict[str, Any], target: Target, console: Console | None, ask: Handler | None
) -> tuple[Result, float]:
    labels = Labels(target)
    with program.bind(**arguments).stream(runtime=labels, on_error="result", ask=ask) as stream:
        labels.follow(lambda: stream.recorded_nodes)
        return run_and_show(stream, console, labels)


def _run_rows(program: Program, batch: Path, out: Path, target: Target, *, shows_bar: bool) -> None:
    try:
        summary = program.run_to_jsonl(read_rows(program, batch), out, runtime=target, progress=shows_bar)
    except OSError as error:
        raise CommandError(f"--out {out}: {error.strerror or error}") from None
    typer.echo(str(summary))
    if summary.num_failed:
        raise CommandError(f"{summary.num_failed} rows failed; the same command runs them again")


def _check_batch(batch: Path | None, out: Path | None, others: dict[str, object]) -> None:
    if (batch is None) != (out is None):
        given, missing = ("--batch", "--out") if out is None else ("--out", "--batch")
        raise CommandError(f"{given} requires {missing}: --batch IN --out OUT")
    for name, value in others.items():
        if batch is not None and value is not None:
            raise CommandError(f"{name} cannot be combined with --batch")


def _check_folder(path: Path | None, option: str = "--html") -> None:
    if path is not None and not path.absolute().parent.is_dir():
        raise CommandError(f"{option} {path}: the parent folder does not exist")


def _write(path: Path, text: str, option: str = "--html") -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror}") from None


def _passes(names: str | None) -> bool | list[str]:
    return True if names is None else [name.strip() for name in names.split(",") if name.strip()]


def _raise(error: BaseException, program: Program) -> Never:
    """Re-raise the error of a program; errors from its body become one line with their location."""
    if isinstance(error, RtlangError):
        raise error
    function = getattr(program, "__wrapped__", None)
    code = getattr(function, "__code__", None)
    raise CommandError(describe(error, getattr(code, "co_filename", None))) from error


if __name__ == "__main__":
    main()
