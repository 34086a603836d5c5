"""Coroutines in plain code, outside and inside a running event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rtlang.contract.process.coroutines import run_coroutine


async def _thread_name() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def _fails() -> None:
    await asyncio.sleep(0)
    raise LookupError("gone")


def test_a_coroutine_runs_in_this_thread_or_beside_a_running_loop() -> None:
    here = threading.current_thread().name
    assert run_coroutine(_thread_name) == here

    async def inside() -> str:
        return run_coroutine(_thread_name)

    assert asyncio.run(inside()) != here


def test_an_exception_of_the_coroutine_is_raised() -> None:
    async def inside() -> None:
        run_coroutine(_fails)

    for call in (lambda: run_coroutine(_fails), lambda: asyncio.run(inside())):
        with pytest.raises(LookupError, match="gone"):
            call()
