"""`rtlang batch`: runs a file of requests with a model in this process, or against a server."""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from rtlang.console.loading import started
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.server_requests import ServerAddress
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.contract.runs.principal import LOCAL

if TYPE_CHECKING:
    from rtlang.serve.batch.batch_file import Progress
    from rtlang.serve.batch.batch_lines import BatchLine, LineResult

MAX_LINE_BYTES = 4 << 20
_TIMEOUT_S = 3600.0


@with_settings(RuntimeConfig, "settings")
def batch(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File of requests, a JSON object per line.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="File of results; a run goes on from the lines there.")],
    settings: dict[str, Any],
    errors: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="File of requests that failed; default: OUT with .errors.jsonl after it."),
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Run on the server at this URL, without a model here.")
    ] = None,
    api_key: Annotated[str | None, typer.Option(help="API key for that server.", envvar="RTLANG_API_KEY")] = None,
    max_requests: Annotated[int, typer.Option(min=1, max=1024, help="Requests that run at once.")] = 64,
) -> None:
    """Run a file of requests, in the form of the OpenAI Batch API, and write a line for each result.

    A run that was ended goes on where it was: requests with a line in OUT are not run again. The exit code is 1 if a request failed; the
    same command runs these again.
    """
    with one_line_errors():
        if url is not None and settings:
            raise CommandError(f"runtime options cannot be combined with --url; the server at {url} has its own")
        errors = errors or output.with_name(output.name + ".errors.jsonl")
        if len({path.absolute() for path in (source, output, errors)}) < 3:
            raise CommandError("IN, OUT and --errors: expected three different files")
        run = _run_local(settings, max_requests) if url is None else _run_remote(url, api_key, max_requests)
        found = run(source, output, errors)
        typer.echo(
            f"{found.total} requests: {found.num_done} done before, {found.completed} completed, {found.failed} failed"
        )
        if found.failed:
            raise CommandError(f"{found.failed} requests failed, see {errors}; the same command runs them again")


Run = Callable[[Path, Path, Path], "Progress"]


def _run_local(settings: dict[str, Any], max_requests: int) -> Run:
    def run(source: Path, output: Path, errors: Path) -> Progress:
        from rtlang.serve.batch.batch_lines import ENDPOINTS
        from rtlang.serve.server import Server, TokenizerInfo

        if not source.is_file():
            raise CommandError(f"{source}: no such file")
        config = RuntimeConfig(**settings)

        async def work(runtime: Any) -> Progress:
            text = runtime.text_service.info
            info = TokenizerInfo(
                config.model_name, text.vocab_size, text.max_model_len, runtime.tool_format, runtime.model_identity
            )
            server = Server(runtime, info, ServeConfig(port=0, request_log=False), metrics=runtime.metrics)
            with server.inner_requests(asyncio.get_running_loop()) as inner:

                async def ask(line: BatchLine) -> LineResult:
                    return await inner.post(LOCAL, line.url, line.body, f"batch_req_{line.key.hex()}")

                urls = tuple(path for path in ENDPOINTS if inner.has(path))
                return await _shown(source, output, errors, ask, urls, max_requests)

        with started(config) as runtime:
            return asyncio.run(work(runtime))

    return run


def _run_remote(url: str, api_key: str | None, max_requests: int) -> Run:
    def run(source: Path, output: Path, errors: Path) -> Progress:
        from rtlang.serve.batch.batch_lines import ENDPOINTS

        address = ServerAddress(url, api_key)

        async def work() -> Progress:
            loop = asyncio.get_running_loop()
            with ExitStack() as stack:
                threads = stack.enter_context(ThreadPoolExecutor(max_requests))
                stack.callback(threads.shutdown, wait=False, cancel_futures=True)

                async def ask(line: BatchLine) -> LineResult:
                    return await loop.run_in_executor(threads, partial(_posted, address, api_key, line))

                return await _shown(source, output, errors, ask, ENDPOINTS, max_requests)

        return asyncio.run(work())

    return run


def _posted(address: ServerAddress, api_key: str | None, line: BatchLine) -> LineResult:
    """The response of a server.

    Raises:
        CommandError: the server is not reachable.
    """
    from rtlang.serve.batch.batch_lines import LineResult
    from rtlang.serve.json_parts import json_bytes

    headers = {"content-type": "application/json"} | ({} if api_key is None else {"authorization": f"Bearer {api_key}"})
    request = urllib.request.Request(address.url + line.url, line.body, headers, method="POST")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        try:
            response = opener.open(request, timeout=_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            data, status, found = response.read(), response.status, response.headers
    except (OSError, http.client.HTTPException) as error:
        raise CommandError(f"{address.url}: not reachable: {error}; the same command goes on") from None
    try:
        body = json_bytes(json.loads(data))  # on one line, even if the server indents it
    except (ValueError, RecursionError):
        body = json_bytes({"error": {"message": data[:1000].decode(errors="replace")}})
        status = status if status >= 400 else 502
    after = found.get("retry-after", "")
    return LineResult(status, found.get("x-request-id", ""), body, float(after) if after.isdecimal() else None)


async def _shown(
    source: Path, output: Path, errors: Path, ask: Any, urls: tuple[str, ...], max_requests: int
) -> Progress:
    """Run a file with a bar on the terminal."""
    from rtlang.serve.batch.batch_file import BadFileError, FileInUseError, run_file

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ExitStack() as stack:
        show: Callable[[Progress], None] = _show_nothing
        if console.is_terminal:
            bar = stack.enter_context(Bar(*columns, console=console))
            show = partial(_show, bar, bar.add_task("requests", total=None))
        try:
            return await run_file(
                source,
                output,
                errors,
                ask,
                urls,
                max_running=max_requests,
                max_line_bytes=MAX_LINE_BYTES,
                on_progress=show,
            )
        except BadFileError as error:
            raise CommandError(f"{source}: {error}") from None
        except FileInUseError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{error.filename or output}: {error.strerror or error}") from None


def _show(bar: Bar, task: TaskID, progress: Progress) -> None:
    ended = progress.num_done + progress.completed + progress.failed
    bar.update(task, total=progress.total, completed=ended)


def _show_nothing(progress: Progress) -> None:
    """No terminal shows a bar."""
