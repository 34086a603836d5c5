"""The run behind a state: submits what is recorded, waits, and collects streamed text.

There is no thread that executes statements. Appended expressions are recorded, and submitted as one graph when a value
is read, when the body ends, or when the body does something else for 10 ms, so that generations run beside it. A
streamed run submits every generation at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from rtlang.contract.errors import OverloadError
from rtlang.contract.events import Event, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.service.target import Target
from rtlang.lang.lazy_values.values import Value, needs_of
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording
from rtlang.lang.sessions.interruptible_condition import InterruptibleCondition
from rtlang.lang.sessions.program_options import ProgramOptions
from rtlang.lang.sessions.session import MAX_OVERLOAD_WAIT_S, Session

logger = logging.getLogger(__name__)

EARLY_S = 0.01
"""A body that has not submitted a generation for so long does something else, such as calling a tool."""


class EarlySubmission:
    """A thread that submits what bodies have recorded but not submitted for `EARLY_S`. It starts when it is first needed."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._due: deque[tuple[float, Execution]] = deque()
        self._thread: threading.Thread | None = None

    def add(self, execution: Execution) -> None:
        """Submit what is recorded in `EARLY_S` from now, if it is not submitted by then."""
        with self._condition:
            self._due.append((time.monotonic() + EARLY_S, execution))
            if self._thread is None or not self._thread.is_alive():  # threads do not survive a fork of the process
                self._thread = threading.Thread(target=self._work, name="rtlang-sglang-early", daemon=True)
                self._thread.start()
            self._condition.notify()

    def _work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: bool(self._due))
                due, execution = self._due.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                execution.submit_early()
            except Exception:
                logger.exception("a program was not submitted early")
            del execution  # which keeps its run and runtime alive


_early = EarlySubmission()


class Texts(Protocol):
    """Access to the texts of tokens and message markers of a backend's model."""

    @property
    def has_vocabulary(self) -> bool:
        """Whether the texts of tokens are known."""

    def token_text(self, token_id: int) -> str | None:
        """The text of a token; None if it is not known."""

    def learn_texts(self, token_ids: Iterable[int]) -> None:
        """Make the texts of these tokens known at once, which costs less than one by one."""

    def mark_text(self, roles: tuple[str, ...], role: str, is_begin: bool) -> str:
        """The text around the content of a message; empty if it is not known."""


class Arrivals:
    """The text of a streamed run, by node and choice, as it arrives on the runtime's thread.

    Attributes:
        condition: notified of each arrival.
        count: the number of notifications so far.
    """

    def __init__(self) -> None:
        self.condition = InterruptibleCondition()
        self.count = 0
        self._texts: dict[tuple[int, int], str] = {}
        self._num_tokens: dict[tuple[int, int], int] = {}

    def listen(self, event: Event) -> None:
        """Take an event of the graph."""
        with self.condition.lock:
            if isinstance(event, TextDelta):
                key = (event.node_id, event.choice)
                self._texts[key] = self._texts.get(key, "") + event.text
                self._num_tokens[key] = self._num_tokens.get(key, 0) + len(event.token_ids)
            if isinstance(event, (TextDelta, NodeFinished, NodeFailed)):
                self.notify()

    def notify(self) -> None:
        """Wake those who wait for news."""
        with self.condition.lock:
            self.count += 1
            self.condition.notify_all()

    def text(self, node_id: int, choice: int) -> str:
        """The text so far."""
        return self._texts.get((node_id, choice), "")

    def num_tokens(self, node_id: int, choice: int) -> int:
        """The number of its tokens."""
        return self._num_tokens.get((node_id, choice), 0)


class Execution:
    """One run, shared by its state and all forks.

    Args:
        defaults: options of generations that do not have their own.
        arrivals: receives the events of a streamed run; None for others.

    Attributes:
        is_over: whether the body has ended.
        ret_value: the return value of the body.
        error: the exception that ended the body of a streamed run.
    """

    def __init__(
        self, recording: Recording, texts: Texts, defaults: dict[str, Any], arrivals: Arrivals | None = None
    ) -> None:
        self.recording, self.defaults, self.arrivals = recording, defaults, arrivals
        self.is_over = False
        self.ret_value: Any = None
        self.error: BaseException | None = None
        self._texts = texts
        self._is_early = False  # whether what is recorded will be submitted soon

    @property
    def is_streamed(self) -> bool:
        """Whether text is read while the body runs."""
        return self.arrivals is not None

    @property
    def is_traced(self) -> bool:
        """Whether nothing runs."""
        return isinstance(self.recording.driver, AheadOfTime)

    @property
    def has_vocabulary(self) -> bool:
        """See `Texts`."""
        return self._texts.has_vocabulary

    @property
    def token_text(self) -> Callable[[int], str | None]:
        """See `Texts`."""
        return self._texts.token_text

    def learn_texts(self, token_ids: Iterable[int]) -> None:
        """See `Texts`."""
        self._texts.learn_texts(token_ids)

    def mark_text(self, roles: tuple[str, ...], role: str, is_begin: bool) -> str:
        """See `Texts`."""
        return self._texts.mark_text(roles, role, is_begin)

    def appended(self, node_ids: Sequence[int]) -> None:
        """Take note that something was appended, with these generations: a streamed run submits it, and readers look at it."""
        driver = self.recording.driver
        if self.arrivals is not None:
            if node_ids and isinstance(driver, Session):
                driver.submit(node_ids)
            self.arrivals.notify()
        elif node_ids and not self._is_early and isinstance(driver, Session):
            self._is_early = True
            _early.add(self)

    def submit_early(self) -> None:
        """Submit what is recorded, on another thread than that of the body."""
        self._is_early = False
        driver = self.recording.driver
        if isinstance(driver, Session) and not self.recording.is_closed:
            driver.submit_early()

    def has(self, node_ids: Sequence[int]) -> bool:
        """Whether these nodes have ended."""
        return self.recording.has(node_ids)

    def wait(self, node_ids: Sequence[int], reason: str, what: str) -> None:
        """Wait until these nodes have ended; while the body runs, submit what is recorded first.

        Raises:
            TraceError: the program is traced, and nothing runs.
        """
        driver = self.recording.driver
        if isinstance(driver, Session) and (self.is_streamed or self.recording.is_closed):
            driver.wait_submitted(node_ids)
        else:
            self.recording.require(node_ids, reason, what)

    def real(self, value: Value) -> Any:
        """The actual value of a lazy one. Raises the error of what it depends on."""
        self.wait(needs_of(value), "reading", value._rt_what)
        return value._rt_real("reading")

    def streamed(self, node_id: int, choice: int) -> str:
        """The text of a running generation."""
        return "" if self.arrivals is None else self.arrivals.text(node_id, choice)

    def num_streamed_tokens(self, node_id: int, choice: int) -> int:
        """The number of tokens of a running generation."""
        return 0 if self.arrivals is None else self.arrivals.num_tokens(node_id, choice)

    def end(self, error: BaseException | None = None) -> None:
        """Take note that the body has ended."""
        self.is_over, self.error = True, error
        if self.arrivals is not None:
            self.arrivals.notify()


def new_session(target: Target, arrivals: Arrivals | None, params: SamplingParams | None = None) -> Session:
    """A session that waits while the queue of the target is full."""

    def wait(error: OverloadError) -> bool:
        time.sleep(min(error.retry_after_s, MAX_OVERLOAD_WAIT_S))
        return True

    return Session(
        target,
        ProgramOptions(params=params),
        on_event=None if arrivals is None else arrivals.listen,
        on_end=None if arrivals is None else arrivals.notify,
        on_overload=wait,
    )
