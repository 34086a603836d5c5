"""Settings that must be there before any test file is imported."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from dataclasses import fields

import hypothesis
import pytest

from rtlang.contract.process import thread_watch
from rtlang.model import system_resources
from rtlang.runtime.process import process_settings
from rtlang_grammars.spec import limits
from tests.support import long_tests, slow_calls
from tests.support.kernels import fast_interpreter

# The kernels for a GPU run in triton's interpreter, which is chosen when triton is first imported, by whatever test file that is.
# Tests of the kernels run natively where RTLANG_TEST_DEVICE=cuda asks for it.
if os.environ.get("RTLANG_TEST_DEVICE", "cpu") == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

# A shell starts background jobs with SIGINT ignored, and tests of Ctrl-C would then wait forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Test processes side by side (pytest -n) share the cores. A runtime takes its part of them only: it would let torch use all of them
# for the rest of the process.
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    num_workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // num_workers)))
    os.environ.setdefault(system_resources.SHARED_BY, str(num_workers))

# Tests of hypothesis that name no number of examples take those of other random tests.
hypothesis.settings.register_profile("sized", hypothesis.settings(), max_examples=long_tests.sized(100))
hypothesis.settings.load_profile("sized")

# On a busy machine no test may depend on how long a compile takes; those of the time limit itself set their own. The counts of
# states and bytes, which stop hostile input first, stay as they are.
limits.Limits.__init__.__defaults__ = tuple(
    60.0 if field.name == "max_seconds" else field.default for field in fields(limits.Limits)
)
limits._LATER_SECONDS = 60.0

# Names what holds the event loop or the engine thread for more than 5 ms; see the end of a run.
thread_watch.default_limit_ms = 5.0
SLOW_CALLS = slow_calls.Collector()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import all test files without garbage collections, which take a tenth of that time: almost everything is kept."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def only_what_a_file_makes_is_collected() -> None:
    """Full garbage collections, one of which each runtime begins with, leave out what earlier files have made: millions of objects."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Libraries report what is not freed at the end of the process."""
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def no_runtime_left() -> Iterator[None]:
    """A runtime that a file leaves running changes settings of the whole process for every file after it."""
    before = process_settings._num_users
    yield
    assert process_settings._num_users <= before, "this file left a runtime running"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what held the event loop or the engine thread."""
    lines = SLOW_CALLS.summary()
    if lines:
        terminalreporter.section("held the event loop or the engine thread")
        for line in lines:
            terminalreporter.line(line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the long tests where nobody asked for them."""
    if long_tests.is_long():
        return
    skip = pytest.mark.skip(reason=f"long; {long_tests.LONG}=1 runs it")
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Where a test file has imported triton's interpreter, make it faster."""
    if "triton.runtime.interpreter" in sys.modules:
        fast_interpreter.install()
