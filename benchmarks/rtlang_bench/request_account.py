"""The processor time of the account of a request: its record at the door, its counters by principal, and its line in the log.

python -m rtlang_bench.request_account

Runs the whole of it on one thread, without a server, with the account of a completion; the line goes to a file in memory. Beside it, as a
unit that machines can be compared by, the time in which the standard library writes and reads such a line as JSON.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import statistics
import time
from dataclasses import dataclass
from typing import Annotated

import typer

from rtlang.contract.accounts.request_account import RequestAccount, Tokens, Wait, WorkKind
from rtlang.contract.accounts.request_context import RequestContext
from rtlang.contract.events import GraphFinished
from rtlang.contract.params import Usage
from rtlang.contract.process.logs import REQUEST_LOGGER, JsonFormatter, LogFormat, TextFormatter
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS
from rtlang.contract.service.metrics import Metrics
from rtlang.serve.records.request_record import RequestRecords
from rtlang_bench.command import command

_ROUND = 200
_PRINCIPALS = ("ana", "ben", "cleo", "dan")
_LINE = {
    "time": "2026-01-31T12:00:00.000+00:00",
    "level": "INFO",
    "logger": REQUEST_LOGGER,
    "message": "request",
    "request_id": "0c4e8b6a9d3f4e72b1a05c68d7f29e13",
    "principal": "ana",
    "door": "POST /v1/completions",
    "model": "model",
    "status": 200,
    "duration_s": 0.412345,
    "first_token_s": 0.041234,
    "tokens": {"prompt": 400, "cached": 320, "output": 64},
    "waits_s": {"row": 0.02, "thread": 0.001},
    "work_s": {"steps": 0.3, "parse": 0.001, "read": 0.001, "submit": 0.001, "reply": 0.001},
    "finish_reasons": {"length": 1},
}


@dataclass(frozen=True, slots=True)
class Row:
    """The time of one form of the log.

    Attributes:
        log: `json`, `text` or `none`.
        request_us: processor time of a request, the median of rounds.
        spread: of the rounds, the middle half relative to the median.
        json_us: writing and reading one line as JSON, measured in the same rounds.
    """

    log: str
    request_us: float
    spread: float
    json_us: float

    def __str__(self) -> str:
        ratio = self.request_us / self.json_us
        return (
            f"log {self.log:4}: {self.request_us:5.1f} us a request (+-{self.spread:.0%}), "
            f"{ratio:.1f} x the JSON of a line ({self.json_us:.1f} us)"
        )


def measure(log: LogFormat | None, num_rounds: int) -> Row:
    """The time of the account of one request, with a log of this form; None for no lines."""
    file = io.StringIO()
    logger, handler = logging.getLogger(REQUEST_LOGGER), logging.StreamHandler(file)
    handler.setFormatter(TextFormatter() if log is LogFormat.TEXT else JsonFormatter())
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        return asyncio.run(_measure(log, num_rounds, file))
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before


async def _measure(log: LogFormat | None, num_rounds: int, file: io.StringIO) -> Row:
    records = RequestRecords(asyncio.get_running_loop(), Metrics(), writes=log is not None, model="model")
    rounds, units = list[float](), list[float]()
    for _ in range(num_rounds):
        file.seek(0)
        file.truncate()
        started = time.thread_time()
        for number in range(_ROUND):
            _serve(records, _PRINCIPALS[number % len(_PRINCIPALS)])
        await asyncio.sleep(0)  # the loop takes in the ends of the graphs
        rounds.append((time.thread_time() - started) / _ROUND * 1e6)
        units.append(_unit_us())
    quarters = statistics.quantiles(rounds, n=4)
    return Row(
        "none" if log is None else str(log),
        quarters[1],
        (quarters[2] - quarters[0]) / 2 / quarters[1],
        statistics.median(units),
    )


def _serve(records: RequestRecords, principal: str) -> None:
    """The account of one completion."""
    record = records.begin(RequestContext.of(None, "POST"), lambda: "POST /v1/completions")
    record.identify(principal)
    for kind in (WorkKind.PARSE, WorkKind.READ, WorkKind.SUBMIT, WorkKind.REPLY):
        record.work.add(kind, 0.0005, 0.0001)
    options, listen = record.of_run(DEFAULT_OPTIONS, lambda event: None)
    account = RequestAccount(options.context)
    for tokens, number in ((Tokens.PROMPT, 400), (Tokens.CACHED, 320), (Tokens.OUTPUT, 64)):
        account.add_tokens(tokens, number)
    account.add_wait(Wait.ROW, 0.02)
    account.add_work(WorkKind.STEPS, 0.3)
    account.note_completion("length")
    account.note_first_token(0.04)
    listen(GraphFinished(1, {}, Usage(400, 320, 64), account=account))
    record.release()


def _unit_us() -> float:
    """The time in which the standard library writes and reads such a line as JSON, in microseconds."""
    started = time.thread_time()
    for _ in range(_ROUND):
        json.loads(json.dumps(_LINE))
    return (time.thread_time() - started) / _ROUND * 1e6


def request_account(
    rounds: Annotated[int, typer.Option(min=4, help="Rounds of 200 requests for each form of the log.")] = 40,
) -> None:
    """Measure the processor time of the account of a request with each form of the log."""
    for log in (None, LogFormat.TEXT, LogFormat.JSON):
        typer.echo(str(measure(log, rounds)))


app = command(request_account)

if __name__ == "__main__":
    app()
