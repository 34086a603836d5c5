"""The watch names what held a thread, leaves out what does not count, and times nothing unless it is asked to."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time

import pytest

from rtlang.contract.process import thread_watch
from rtlang.contract.process.thread_watch import VARIABLE, ThreadWatch, WatchedLoop, name_of, stack_of, watch_of
from tests.support.waiting import wait_until

LIMIT_S = 0.03


def compute(seconds: float = 4 * LIMIT_S) -> None:
    """Computes for some time of this thread."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_a_call_that_computes_long_is_named_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    watch = ThreadWatch("test thread", LIMIT_S)
    logger = logging.getLogger("rtlang.contract.process.thread_watch")
    logger.addHandler(caplog.handler)
    caller = threading.Thread(target=watch.call, args=[compute])  # the newest threads are those whose stacks are known
    caller.start()
    caller.join()
    logger.removeHandler(caplog.handler)
    (slow,) = watch.slow_calls
    assert (slow.thread, slow.what) == ("test thread", "compute")
    assert slow.seconds >= LIMIT_S
    assert "compute" in slow.place
    assert "the test thread was held for" in caplog.text
    watch.close()


def test_waiting_and_what_is_excluded_do_not_count() -> None:
    watch = ThreadWatch("test thread", LIMIT_S)
    watch.call(lambda: threading.Event().wait(2 * LIMIT_S))
    watch.call(lambda: watch.excluding(compute)())
    watch.call(lambda: None)
    assert not watch.slow_calls
    assert watch.num_calls == 3
    watch.close()


def test_an_exception_goes_through() -> None:
    watch = ThreadWatch("test thread", LIMIT_S)
    with pytest.raises(ZeroDivisionError):
        watch.call(lambda: 1 / 0)
    watch.close()


def test_the_callbacks_of_one_loop_are_timed_until_the_end() -> None:
    watch = ThreadWatch("event loop", LIMIT_S)

    async def hog() -> None:
        compute()

    async def main() -> None:
        watched = WatchedLoop(asyncio.get_running_loop(), watch)
        await asyncio.create_task(hog())
        asyncio.get_running_loop().call_soon(compute)
        await asyncio.sleep(0.001)
        watched.close()
        await asyncio.create_task(hog())

    asyncio.run(main())
    assert [slow.what.rpartition(".")[2] for slow in watch.slow_calls] == ["hog", "compute"]


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(thread_watch, "default_limit_ms", None)
    assert watch_of("x") is None
    monkeypatch.setenv(VARIABLE, "7")
    watch = watch_of("x")
    assert watch is not None
    assert watch.limit_s == pytest.approx(0.007)
    for wrong in ("0", "-1", "x"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(ValueError):
            watch_of("x")


def test_names_are_those_of_functions() -> None:
    assert name_of("step") == "step"
    assert name_of(compute) == "compute"


def test_a_stack_begins_with_the_innermost_function() -> None:
    is_over = threading.Event()

    def outer() -> None:
        is_over.wait()

    other = threading.Thread(target=outer)
    other.start()
    wait_until(lambda: [place.split()[0] for place in stack_of(other.ident or 0)][1:3] == ["wait", "outer"])
    assert f"outer ({__file__}:{outer.__code__.co_firstlineno + 1})" in stack_of(other.ident or 0)
    is_over.set()
    other.join()
    assert stack_of(other.ident or 0) == []


STACKS_DURING_COLLECTIONS = """
import gc, sys, threading, time
from rtlang.contract.process.thread_watch import stack_of

def one(n):
    return two(n - 1) + three(n - 1) if n > 0 else 1

def two(n):
    a = b = c = 1
    return three(n - 1) + one(n - 1) if n > 0 else 1

def three(n):
    a, b, c, d, e, f, g = range(7)
    return one(n - 1) + two(n - 1) if n > 0 else 1

def compute():
    while not is_over.is_set():
        one(8)

def let_others_run(phase, info):
    time.sleep(0)

is_over = threading.Event()
sys.setswitchinterval(1e-6)
gc.callbacks.append(let_others_run)
gc.set_threshold(3, 1000, 1000)
thread = threading.Thread(target=compute)
thread.start()
end, found = time.monotonic() + 3, set()
while time.monotonic() < end or not {"one", "two", "three"} <= found:
    found.update(place.split()[0] for place in stack_of(thread.ident))
is_over.set()
thread.join()
print(sorted(found & {"one", "two", "three"}))
"""


def test_looking_at_a_stack_leaves_the_thread_whole_whenever_garbage_is_collected() -> None:
    ran = subprocess.run([sys.executable, "-c", STACKS_DURING_COLLECTIONS], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "['one', 'three', 'two']\n", "")
