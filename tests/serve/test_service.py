"""A service knows when nothing runs any more, and reaches every connection."""

from __future__ import annotations

import asyncio

from rtlang.contract.config import ServeConfig
from rtlang.contract.service.metrics import Metrics
from rtlang.serve.connection import ServerInfo
from rtlang.serve.service import StreamService
from tests.support.programs.scripted_target import ScriptedTarget


class Socket:
    def __init__(self, num_running: int) -> None:
        self.num_running = num_running
        self.told: list[object] = []

    def drain(self, deadline_s: float) -> None:
        self.told.append(deadline_s)

    def end(self, code: int, reason: str) -> None:
        self.told.append((code, reason))


def create() -> StreamService:
    loop = asyncio.get_running_loop()
    return StreamService(ScriptedTarget(), ServeConfig(), ServerInfo("epoch"), Metrics(), loop)


def test_draining_notifies_every_client_and_ends_when_idle() -> None:
    async def body() -> None:
        service = create()
        busy, quiet = Socket(2), Socket(0)
        service.sockets |= {busy, quiet}
        service.drain(3.0)
        assert service.is_draining
        assert busy.told == quiet.told == [3.0]
        assert not service.idle.is_set()
        busy.num_running = 0
        service.check_idle()
        assert service.idle.is_set()

    asyncio.run(body())


def test_draining_an_idle_server_ends_at_once() -> None:
    async def body() -> None:
        service = create()
        service.drain(3.0)
        assert service.idle.is_set()

    asyncio.run(body())


def test_closing_reaches_every_connection() -> None:
    async def body() -> None:
        service = create()
        sockets = [Socket(1), Socket(0)]
        service.sockets.update(sockets)
        service.close_all(1001, "over")
        assert [socket.told for socket in sockets] == [[(1001, "over")]] * 2

    asyncio.run(body())
