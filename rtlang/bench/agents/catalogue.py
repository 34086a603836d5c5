"""The doors by name."""

from __future__ import annotations

from collections.abc import Callable

from rtlang.bench.agents.doors import ChatDoor, Door
from rtlang.bench.agents.more_doors import MessagesDoor, ResponsesDoor, SocketDoor

DOORS: dict[str, Callable[[str], Door]] = {
    "chat": ChatDoor,
    "responses": ResponsesDoor,
    "messages": MessagesDoor,
    "websocket": SocketDoor,
}
"""Each door is made for the URL of a server, and belongs to one conversation."""
