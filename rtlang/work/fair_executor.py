"""A thread pool and timers that use daemon threads, so that they never keep the process from exiting.

The standard library's executor joins its threads at interpreter exit, so a native call that never returns would block the exit forever.
The number of threads of this pool can also change while it runs, and its queue is fair between the owners of jobs (`FairQueue`). A job
that nobody waits for any more leaves the queue; one that runs may ask `is_unwanted` and stop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Protocol, TypeVar

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.work.fair_queue import FairQueue, Owner, QueueLimits, Ticket
from rtlang.work.work_account import TakesWork, note_request_work

_T = TypeVar("_T")
_NOBODY = Owner("")

CHEAP_S = 0.02
"""Jobs up to this price never wait for an expensive one to end."""

TRIM_PRICE = 0.25
"""Least price of jobs that may leave much freed memory behind: the C library keeps 100 MB after the tokenization of a megabyte."""


def shared_limits(num_threads: int, *, max_waiting: int = 256, max_waiting_s: float = 120.0) -> QueueLimits:
    """Limits of a pool whose prices are seconds: cheap jobs always find a thread, and so does the first expensive one of another
    party.

    No party has all threads, so that a wrong price, or a call that hangs, stops no other party.
    """
    return QueueLimits(
        max_waiting=max_waiting,
        max_waiting_price=max_waiting_s,
        max_each=max(1, num_threads - 1),
        cheap_price=CHEAP_S,
        max_expensive=max(1, num_threads - 1),
        max_expensive_each=max(1, (num_threads - 1) // 2),
    )


class WorkFuture(Future[_T]):
    """The future of a job. Cancelling it takes a job that waits out of the queue, and tells one that runs by `is_unwanted`.

    Attributes:
        is_unwanted: whether it was cancelled, in time or not.
        waited_s: seconds from the submission of the job to its beginning; 0 before.
        seconds: CPU time of its thread; 0 before its end.
        elsewhere: work that it had other processes do: kind, seconds, and seconds in a queue.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_unwanted = False
        self.waited_s = self.seconds = 0.0
        self.elsewhere: list[tuple[WorkKind, float, float]] = []

    def cancel(self) -> bool:
        """See `Future.cancel`."""
        self.is_unwanted = True
        return super().cancel()


class FairExecutor(Executor):
    """Runs jobs: of each owner the cheapest first, and those of one price in order of submission. Safe to use from several threads.

    Args:
        num_threads: maximum number of threads; started on demand.
        name: prefix of thread names.
        limits: of the queue; see `shared_limits`. Default: none.
        account: receives the CPU time of each job.
        clock: measures what is fair: the CPU time of the thread, or `time.perf_counter` where jobs wait for other processes.
        trim_memory: called on the thread of a job of at least `TRIM_PRICE`, after its result was handed out.
    """

    def __init__(
        self,
        num_threads: int,
        name: str,
        limits: QueueLimits | None = None,
        account: TakesWork | None = None,
        *,
        clock: Callable[[], float] = time.thread_time,
        trim_memory: Callable[[], None] = lambda: None,
    ) -> None:
        self._trim_memory = trim_memory
        self._num_threads, self._name = num_threads, name
        self._account, self._clock = account, clock
        self._condition = threading.Condition()
        self._jobs = FairQueue(limits)
        self._threads: set[threading.Thread] = set()
        self._num_idle = 0
        self._is_shut_down = False

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Run `fn` on a thread of the pool.

        Raises:
            RuntimeError: the pool was shut down.
        """
        return self.submit_for(_NOBODY, 0, lambda: fn(*args, **kwargs))

    def submit_for(
        self,
        owner: Owner,
        price: float,
        fn: Callable[[], _T],
        *,
        kind: WorkKind = WorkKind.OTHER,
        is_bounded: bool = False,
    ) -> WorkFuture[_T]:
        """Run `fn` on a thread of the pool, for an owner.

        Args:
            price: orders the jobs of one owner; in a pool with limits, an estimate of the seconds that the job takes.
            kind: of the job, for the account.
            is_bounded: refuse the job if too much of its owner waits; False for work of a request that was accepted before.
        Raises:
            OverloadError: too much of its owner waits.
            RuntimeError: the pool was shut down.
        """
        future: WorkFuture[_T] = WorkFuture()
        submitted_at = time.perf_counter()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            future.waited_s = time.perf_counter() - submitted_at
            started = time.thread_time()
            _current.future = future
            try:
                result = fn()
            except BaseException as error:
                self._note(future, owner, kind, started)
                future.set_exception(error)
            else:
                self._note(future, owner, kind, started)
                future.set_result(result)

        with self._condition:
            if self._is_shut_down:
                raise RuntimeError("the pool was shut down")
            ticket = self._jobs.put((future, job), owner, price, is_bounded=is_bounded)
            self._serve()
        future.add_done_callback(lambda done: self._withdraw(ticket) if done.cancelled() else None)
        return future

    async def run(
        self,
        owner: Owner,
        price: float,
        fn: Callable[[], _T],
        *,
        kind: WorkKind = WorkKind.OTHER,
        is_bounded: bool = True,
    ) -> _T:
        """`submit_for`, awaited; its times count to the request that the task serves. Cancelling the task cancels the job.

        Raises:
            OverloadError: too much of its owner waits.
        """
        future = self.submit_for(owner, price, fn, kind=kind, is_bounded=is_bounded)
        try:
            return await asyncio.wrap_future(future)
        finally:
            note_request_work(kind, future.seconds, future.waited_s)
            for each in tuple(future.elsewhere):
                note_request_work(*each)

    @property
    def num_waiting(self) -> int:
        """Number of jobs that wait for a thread. Read without a lock."""
        return len(self._jobs)

    def resize(self, num_threads: int) -> None:
        """Change the maximum number of threads. Surplus threads end after their current job."""
        with self._condition:
            self._num_threads = num_threads
            self._serve()
            self._condition.notify_all()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse new jobs; `wait` for accepted ones; with `cancel_futures`, cancel those not started."""
        with self._condition:
            self._is_shut_down = True
            dropped = [future for future, _ in self._jobs.clear()] if cancel_futures else []
            self._condition.notify_all()
            threads = list(self._threads)
        for future in dropped:  # outside the lock: it runs callbacks
            future.cancel()
        if wait:
            for thread in threads:
                thread.join()

    def _serve(self) -> None:
        if len(self._jobs) > self._num_idle and len(self._threads) < self._num_threads:
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.add(thread)
            thread.start()
        self._condition.notify()

    def _work(self) -> None:
        while True:
            with self._condition:
                while len(self._threads) <= self._num_threads and not self._jobs.has_next and not self._is_over:
                    self._num_idle += 1
                    self._condition.wait()
                    self._num_idle -= 1
                if len(self._threads) > self._num_threads or not self._jobs.has_next:
                    self._threads.discard(threading.current_thread())
                    self._condition.notify()
                    return
                (future, job), ticket = self._jobs.take()
            started = self._clock()
            job()
            del future, job  # an idle thread must not keep a result alive
            if ticket.price >= TRIM_PRICE:
                self._trim_memory()
            with self._condition:
                self._jobs.charge(ticket, self._clock() - started)
                self._condition.notify()  # a job may begin that had to wait for this one

    @property
    def _is_over(self) -> bool:
        return self._is_shut_down and not self._jobs

    def _note(self, future: WorkFuture[Any], owner: Owner, kind: WorkKind, started: float) -> None:
        """Note the end of the job of the present thread."""
        _current.future = None
        future.seconds = time.thread_time() - started
        if self._account is not None:
            self._account.add(owner.party, kind, future.seconds)

    def _withdraw(self, ticket: Ticket) -> None:
        with self._condition:
            self._jobs.remove(ticket)
            if self._is_over:
                self._condition.notify_all()


def note_work_elsewhere(kind: WorkKind, seconds: float, waited_s: float) -> None:
    """Note work that another process has done for the job of this thread, if there is one."""
    if _current.future is not None:
        _current.future.elsewhere.append((kind, seconds, waited_s))


class _Current(threading.local):
    future: WorkFuture[Any] | None = None


_current = _Current()


def is_unwanted() -> bool:
    """Whether nobody waits any more for the job that this thread runs, so that it may stop."""
    future = _current.future
    return future is not None and future.is_unwanted


class JobTimer(Protocol):
    """A running timer."""

    def cancel(self) -> None:
        """Cancel the timer unless it has fired."""


def start_timer(seconds: float, action: Callable[[], None]) -> JobTimer:
    """Call `action` once after `seconds`, on a daemon thread."""
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
    return timer


def run_or_cancel(
    submit: Callable[[Callable[[], None]], Future[Any]], job: Callable[[], None], asked: Future[Any] | None = None
) -> None:
    """Submit a job; if the pool is shut down before the job starts, the future that was asked for is cancelled."""
    try:
        submitted = submit(job)
    except RuntimeError:
        submitted = Future()
        submitted.cancel()
    submitted.add_done_callback(lambda done: asked.cancel() if asked and done.cancelled() else None)
