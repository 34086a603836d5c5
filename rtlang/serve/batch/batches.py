"""The batches of a server: each runs beside live requests at the lowest priority, and goes on after a restart.

A batch is checked whole before its first request runs. The lines of its output and error files are written as requests end; they are the
journal from which a later process finds the requests that are left. A request that was running when the server stopped has no line and runs
again.

Requests of a batch are background work: a client of its own of the principal sends them, with a share below 1 and the principal's lowest
priority. The engine gives them what live requests leave of its steps; the limits of the principal hold for both together.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import OverloadError, ParameterError
from rtlang.contract.runs.principal import Principal
from rtlang.serve.batch.batch_lines import (
    BatchLine,
    FileCheck,
    LineError,
    LineReader,
    LineResult,
    UnrunCode,
    key_of,
    result_line,
    results_in,
    unrun_line,
)
from rtlang.serve.batch.batch_record import Batch, BatchStatus
from rtlang.serve.batch.batch_usage import BatchUsage
from rtlang.serve.batch.file_store import FileQuotaError, FileStore, FileWriter
from rtlang.serve.batch.line_runner import MAX_RUNNING, LineRunner, Window
from rtlang.work.prices import READ_S_PER_BYTE

logger = logging.getLogger(__name__)

MAX_BATCHES = 1000
"""Maximum number of batches of one principal; the oldest finished ones are forgotten for new ones."""
MAX_UNFINISHED = 64
SHARE = 0.01
"""Share of the requests of batches, relative to a client of the principal whose requests are live."""
CLIENT = "batch"
"""The client of the principal that the requests of batches belong to."""
DISK_S = 0.01
"""Price of a job that waits for the disk."""
_SLICE_BYTES = 256 << 10
_KEY_WAIT_S = 5.0
_PLACES_SHARE = 4  # batches have at most a quarter of the unfinished requests of a principal

Lines = list[BatchLine | LineError]
_T = TypeVar("_T")


class Host(Protocol):
    """The server, as far as batches use it."""

    def run(
        self,
        principal: Principal | None,
        price: float,
        fn: Callable[[], _T],
        *,
        kind: WorkKind,
        may_wait: bool = False,
        is_bounded: bool = True,
    ) -> Awaitable[_T]:
        """Run work on a thread; see `StreamService.run`."""

    def principal_named(self, owner: str) -> Principal | None:
        """The principal of a name; None if it has no key now."""


class Ask(Protocol):
    """Answers requests as the routes of the server do."""

    def __call__(self, principal: Principal, url: str, body: bytes, request_id: str) -> Awaitable[LineResult]:
        """The response to a POST request."""


class Batches:
    """The batches of all principals. Owned by the server's event loop; a `ServiceClient` of it.

    Args:
        ask: answers the requests.
        endpoints: the routes that batches may name.
        max_line_bytes: bound of a line.
        now: seconds since 1970.
    """

    def __init__(
        self,
        host: Host,
        store: FileStore,
        ask: Ask,
        endpoints: tuple[str, ...],
        max_line_bytes: int,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.endpoints = endpoints
        self.principal: Principal | None = None  # of no principal: it is a client of the service for all
        self._host, self._store, self._ask, self._max_line_bytes, self._now = host, store, ask, max_line_bytes, now
        self._found: dict[str, dict[str, Batch]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}  # the requests of batches, within their tasks
        self._windows: dict[str, Window] = {}
        self._is_stopping = False

    @property
    def num_running(self) -> int:
        """0: a server that shuts down does not wait for batches, which go on later."""
        return 0

    def drain(self, deadline_s: float) -> None:
        """Begin no more requests. Running ones are dropped, and run again after the next start."""
        self._stop()

    def end(self, code: int, reason: str) -> None:
        """The server stops."""
        self._stop()

    def resume(self) -> None:
        """Go on with the batches that an earlier process has left."""
        for owner in self._store.owners():
            for plain in self._store.records(owner):
                try:
                    batch = Batch.from_plain(plain)
                except (TypeError, ValueError, KeyError):
                    logger.warning("a record of a batch of %s cannot be read", owner)
                    continue
                self._found.setdefault(owner, {})[batch.batch_id] = batch
        for batches in self._found.values():
            ordered = sorted(batches.values(), key=lambda each: (each.created_at, each.batch_id))
            batches.clear()
            for batch in ordered:
                batches[batch.batch_id] = batch
                if not batch.status.is_final:
                    self._begin(batch)

    async def create(self, principal: Principal, batch: Batch) -> Batch:
        """Accept a batch, and begin to run it.

        Raises:
            ParameterError: the input file is unknown, or was not uploaded for batches.
            OverloadError: the principal has too many batches that have not ended.
        """
        found = self._found.setdefault(principal.name, {})
        if sum(not each.status.is_final for each in found.values()) >= MAX_UNFINISHED:
            raise OverloadError(f"{MAX_UNFINISHED} batches of {principal.name} have not ended; wait for one", 60.0)
        stored = await self._on_disk(principal, partial(self._store.get, principal.name, batch.input_file_id))
        if stored is None or stored.purpose != "batch":
            raise ParameterError(
                "input_file_id", batch.input_file_id[:80], "expected a file uploaded with purpose batch"
            )
        for old in [each for each in found.values() if each.status.is_final][: max(0, len(found) + 1 - MAX_BATCHES)]:
            del found[old.batch_id]
            await self._on_disk(principal, partial(self._store.drop_record, principal.name, old.batch_id))
        await self._on_disk(
            principal, partial(self._store.put_record, principal.name, batch.batch_id, batch.to_plain())
        )
        found[batch.batch_id] = batch
        self._begin(batch)
        return batch

    def get(self, owner: str, batch_id: str) -> Batch | None:
        """A batch; None if it is unknown or belongs to another principal."""
        return self._found.get(owner, {}).get(batch_id)

    def batches_of(self, owner: str) -> list[Batch]:
        """The batches of a principal, newest first."""
        return list(reversed(self._found.get(owner, {}).values()))

    async def cancel(self, batch: Batch) -> None:
        """Begin to cancel a batch; requests that have ended keep their results.

        Raises:
            ParameterError: it has ended.
        """
        if batch.status.is_final or batch.status is BatchStatus.FINALIZING:
            raise ParameterError("batch_id", batch.batch_id, f"cannot cancel a batch that is {batch.status.value}")
        if batch.status is not BatchStatus.CANCELLING:
            batch.enter(BatchStatus.CANCELLING, self._now())
            if batch.batch_id in self._running:
                self._running[batch.batch_id].cancel()
            await self._save(batch)

    def _stop(self) -> None:
        self._is_stopping = True
        for task in self._tasks.values():
            task.cancel()

    def _begin(self, batch: Batch) -> None:
        if not self._is_stopping:
            task = self._tasks[batch.batch_id] = asyncio.get_running_loop().create_task(self._work(batch))
            task.add_done_callback(partial(self._ended, batch))

    def _ended(self, batch: Batch, task: asyncio.Task[None]) -> None:
        del self._tasks[batch.batch_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("batch %s stopped", batch.batch_id, exc_info=error)

    async def _work(self, batch: Batch) -> None:
        """Run a batch to its end, or until the server stops."""
        results = _Results(batch)
        try:
            if batch.status is not BatchStatus.CANCELLING:
                await self._unless_cancelled(batch, results)
            if batch.status is not BatchStatus.FAILED:
                await self._finalize(batch, results)
            elif results.is_open:
                await self._on_disk(Principal(batch.owner), partial(results.publish, self._store))
                await self._save(batch)
        finally:
            results.release()

    async def _unless_cancelled(self, batch: Batch, results: _Results) -> None:
        """Run the requests of a batch in a task of their own, which `cancel` ends."""
        running = self._running[batch.batch_id] = asyncio.create_task(self._run(batch, results))
        try:
            await asyncio.wait((running,))
        finally:
            del self._running[batch.batch_id]
            if not running.done():  # the server stops
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running
        if not running.cancelled():
            running.result()

    async def _run(self, batch: Batch, results: _Results) -> None:
        """Check a batch and run its requests; it is failed after that if the file is bad, or a result cannot be kept."""
        left_s = batch.expires_at - self._now()
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                if batch.status is BatchStatus.VALIDATING and not await self._check(batch):
                    return
                await self._open(batch, results)
                principal = await self._principal(batch.owner)
                runner = LineRunner(partial(self._answer, batch), results.taker(self._keep), self._window(principal))
                with await self._input(batch) as reader:
                    await runner.run(partial(self._next_lines, batch, reader, results))
        except TimeoutError:
            if self._now() < batch.expires_at:
                raise
            batch.times[BatchStatus.EXPIRED.value] = int(self._now())
        except _InputMissing:
            await self._fail(batch, "input_file_missing", "the input file was deleted or has expired")
        except FileQuotaError as error:
            await self._fail(batch, "file_quota_exceeded", error.message)
        except OSError as error:
            logger.error("the results of batch %s cannot be kept: %s", batch.batch_id, error)
            await self._fail(batch, "storage_error", "the server cannot keep the results on its disk")

    async def _check(self, batch: Batch) -> bool:
        """Check the input file; whether it is good."""
        check = FileCheck()

        def add(lines: Lines) -> bool:
            for line in lines:
                if isinstance(line, BatchLine) and line.url != batch.endpoint:
                    message = f"url: expected {batch.endpoint}, the endpoint of the batch"
                    line = LineError(line.number, "mismatched_endpoint", message, "url")
                check.add([line])
            return not check.is_over

        with await self._input(batch) as reader:
            while await self._slice(batch, reader, add):
                pass
        if not check.total and not check.errors:
            check.errors.append(LineError(1, "empty_file", "the file has no requests"))
        batch.total = check.total
        if check.errors:
            batch.errors = [each.to_plain() for each in check.errors]
            await self._enter(batch, BatchStatus.FAILED)
            return False
        await self._enter(batch, BatchStatus.IN_PROGRESS)
        return True

    async def _open(self, batch: Batch, results: _Results) -> None:
        """Open the outputs, and find the requests that have a result."""
        principal = Principal(batch.owner)
        await self._on_disk(principal, partial(results.open, self._store))

    async def _principal(self, owner: str) -> Principal:
        """The principal of a batch; waits while it has no key."""
        while (found := self._host.principal_named(owner)) is None:
            await asyncio.sleep(_KEY_WAIT_S)
        return batch_principal(found)

    def _window(self, principal: Principal) -> Window:
        if principal.name not in self._windows:
            limits = principal.limits
            bounds = [limit // _PLACES_SHARE for limit in (limits.max_places, limits.max_streams) if limit is not None]
            self._windows[principal.name] = Window(max(1, min([MAX_RUNNING, *bounds])))
        return self._windows[principal.name]

    async def _answer(self, batch: Batch, line: BatchLine) -> LineResult:
        principal = await self._principal(batch.owner)
        return await self._ask(principal, line.url, line.body, line_id(batch, line))

    async def _keep(self, owner: str, fn: Callable[[], None]) -> None:
        await self._on_disk(Principal(owner), fn)

    async def _input(self, batch: Batch) -> _Input:
        file = await self._on_disk(Principal(batch.owner), partial(self._store.read, batch.owner, batch.input_file_id))
        if file is None:
            raise _InputMissing
        return _Input(LineReader(file, self.endpoints, self._max_line_bytes), file.close)

    async def _slice(self, batch: Batch, reader: LineReader, fn: Callable[[Lines], _T]) -> _T | None:
        """What `fn` makes of the next lines, on a thread; None at the end."""
        price = _SLICE_BYTES * READ_S_PER_BYTE

        def read() -> _T | None:
            lines = reader.slice(_SLICE_BYTES)
            return fn(lines) if lines else None

        owner = Principal(batch.owner)
        return await self._host.run(owner, price, read, kind=WorkKind.PARSE, may_wait=True, is_bounded=False)

    async def _next_lines(self, batch: Batch, reader: LineReader, results: _Results) -> list[BatchLine]:
        """The next requests that have no result; none at the end."""

        def without_result(lines: Lines) -> list[BatchLine]:
            return [each for each in lines if isinstance(each, BatchLine) and each.key not in results.done]

        while (found := await self._slice(batch, reader, without_result)) is not None:
            if found:
                return found
        return []

    async def _finalize(self, batch: Batch, results: _Results) -> None:
        was_cancelled, has_expired = batch.status is BatchStatus.CANCELLING, BatchStatus.EXPIRED.value in batch.times
        if not results.is_open and not was_cancelled:
            with contextlib.suppress(FileQuotaError, OSError):
                await self._open(batch, results)
        if not was_cancelled:
            await self._enter(batch, BatchStatus.FINALIZING)
        if was_cancelled and not results.is_open:
            await self._open(batch, results)
        is_checked = BatchStatus.IN_PROGRESS.value in batch.times
        if is_checked and (has_expired or was_cancelled) and results.is_open:
            code: UnrunCode = "batch_cancelled" if was_cancelled else "batch_expired"
            with contextlib.suppress(FileQuotaError, OSError, _InputMissing), await self._input(batch) as reader:
                while lines := await self._next_lines(batch, reader, results):
                    await self._on_disk(Principal(batch.owner), partial(results.add_unrun, lines, code))
        await self._on_disk(Principal(batch.owner), partial(results.publish, self._store))
        final = (
            BatchStatus.CANCELLED if was_cancelled else BatchStatus.EXPIRED if has_expired else BatchStatus.COMPLETED
        )
        await self._enter(batch, final)

    async def _fail(self, batch: Batch, code: str, message: str) -> None:
        batch.errors.append({"code": code, "line": None, "message": message, "param": None})
        await self._enter(batch, BatchStatus.FAILED)

    async def _enter(self, batch: Batch, status: BatchStatus) -> None:
        if batch.status is BatchStatus.CANCELLING and not status.is_final:
            return
        batch.enter(status, self._now())
        await self._save(batch)

    async def _save(self, batch: Batch) -> None:
        def save() -> None:  # the state of the moment, so that an older one never replaces a newer one
            self._store.put_record(batch.owner, batch.batch_id, batch.to_plain())

        await self._on_disk(Principal(batch.owner), save)

    async def _on_disk(self, principal: Principal, fn: Callable[[], _T]) -> _T:
        return await self._host.run(principal, DISK_S, fn, kind=WorkKind.OTHER, may_wait=True, is_bounded=False)


class _InputMissing(Exception):
    """The input file of a batch is not there."""


class _Input:
    """The lines of an input file, as a context manager that closes it."""

    def __init__(self, reader: LineReader, close: Callable[[], None]) -> None:
        self._reader, self._close = reader, close

    def __enter__(self) -> LineReader:
        return self._reader

    def __exit__(self, *_: object) -> None:
        self._close()


class _Results:
    """The output and error files of a batch while it runs. Methods run on threads, one at a time.

    Attributes:
        done: keys of the requests that have a result.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._output: FileWriter | None = None
        self._errors: FileWriter | None = None
        self._lock = threading.Lock()
        self.done: set[bytes] = set()

    @property
    def is_open(self) -> bool:
        """Whether results can be kept."""
        return self._errors is not None

    def open(self, store: FileStore) -> None:
        """Open the files, with the results of an earlier process."""
        with self._lock:
            batch = self._batch
            self._output = store.begin(batch.owner, batch.output_id)
            self._errors = store.begin(batch.owner, batch.error_id)
            batch.usage = BatchUsage()
            completed, failed = self._known(self._output), self._known(self._errors)
            self.done = completed | failed
            batch.completed, batch.failed = len(completed), len(failed - completed)

    def _known(self, writer: FileWriter) -> set[bytes]:
        """The keys of the results in a file, whose tokens are counted."""
        found: set[bytes] = set()
        for key, body in results_in(writer.lines()):
            found.add(key)
            self._count(body)
        return found

    def _count(self, body: object) -> None:
        self._batch.usage.add(body)
        if self._batch.model is None and isinstance(body, dict) and isinstance(body.get("model"), str):
            self._batch.model = body["model"]

    def taker(
        self, keep: Callable[[str, Callable[[], None]], Awaitable[None]]
    ) -> Callable[[BatchLine, LineResult], Awaitable[None]]:
        """Keeps results, on a thread."""

        async def take(line: BatchLine, result: LineResult) -> None:
            await keep(self._batch.owner, partial(self._add, line, result))

        return take

    def _add(self, line: BatchLine, result: LineResult) -> None:
        with self._lock:
            writer = self._output if result.is_success else self._errors
            if writer is None or line.key in self.done:
                return  # the batch has ended meanwhile
            writer.write(result_line(line_id(self._batch, line), line.custom_id, result))
            self.done.add(line.key)
            self._batch.completed += result.is_success
            self._batch.failed += not result.is_success
            with contextlib.suppress(ValueError, RecursionError):
                self._count(json.loads(result.body))

    def add_unrun(self, lines: list[BatchLine], code: UnrunCode) -> None:
        """Note that requests were not run."""
        with self._lock:
            assert self._errors is not None
            rows = [unrun_line(line_id(self._batch, line), line.custom_id, code) for line in lines]
            self._errors.write(b"".join(rows))
            self._batch.failed += len(lines)

    def publish(self, store: FileStore) -> None:
        """Make files of the results; one without lines is deleted."""
        batch, after_s = self._batch, self._batch.output_expires_after_s
        with self._lock:
            for writer, name in ((self._output, "output"), (self._errors, "error")):
                if writer is None:
                    continue
                if writer.num_bytes:
                    store.publish(batch.owner, writer, f"{batch.batch_id}_{name}.jsonl", "batch_output", after_s)
                else:
                    writer.drop()
            batch.has_output = bool(self._output and self._output.num_bytes)
            batch.has_errors = bool(self._errors and self._errors.num_bytes)
            self._output = self._errors = None

    def release(self) -> None:
        """Close the files and keep their bytes. Idempotent."""
        with self._lock:
            for writer in (self._output, self._errors):
                if writer is not None:
                    writer.release()
            self._output = self._errors = None


def batch_principal(principal: Principal) -> Principal:
    """The principal of the requests of batches: a client of its own, with a small share and the lowest priority."""
    return replace(principal, share=SHARE, client=CLIENT, min_priority=principal.max_priority)


def line_id(batch: Batch, line: BatchLine) -> str:
    """The id of a request, the same in each try and after a restart."""
    return f"batch_req_{key_of(f'{batch.batch_id} {line.custom_id}').hex()}"
