"""`rtlang serve`: it ends with its engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rtlang.console.serving import serve_while_alive
from tests.support.scripted_target import ScriptedTarget


class Server:
    """Serves until it is stopped."""

    def __init__(self) -> None:
        self.was_stopped = asyncio.Event()

    def stop(self) -> None:
        self.was_stopped.set()

    async def serve(self, *, handle_signals: bool, on_listening: Callable[[], None]) -> None:
        on_listening()
        await self.was_stopped.wait()


def test_the_server_is_stopped_when_its_engine_is_dead() -> None:
    async def serve() -> bool:
        server, target = Server(), ScriptedTarget()
        await serve_while_alive(server, target, target.close)
        return server.was_stopped.is_set()

    assert asyncio.run(serve())
