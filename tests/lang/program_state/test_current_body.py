"""The state of the innermost body, in the context of each task and thread."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import rtlang as rt
from rtlang.lang.program_state.current_body import running
from rtlang.testing import ScriptedRuntime


def test_a_body_sets_it_and_another_thread_has_none() -> None:
    @rt.program
    def main(s: rt.State) -> list[Any]:
        seen: list[Any] = [running.get() is s]
        thread = threading.Thread(target=lambda: seen.append(running.get()))
        thread.start()
        thread.join()
        return seen

    assert main.run(runtime=ScriptedRuntime()).value == [True, None]
    assert running.get() is None


def test_tasks_of_a_body_share_it() -> None:
    @rt.program
    async def main(s: rt.State) -> list[Any]:
        async def seen() -> bool:
            await asyncio.sleep(0)
            return running.get() is s

        return await asyncio.gather(seen(), seen())

    assert main.run(runtime=ScriptedRuntime()).value == [True, True]
