"""Engines without a model: they say that they are ready, keep what they are sent, and say what a test tells them to."""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import threading
from typing import Any

from rtlang.contract.errors import ModelLoadError, RtlangError
from rtlang.contract.events import Event
from rtlang.contract.process.current_work import CurrentWork
from rtlang.fleet.engines.work_record import WorkRecord
from rtlang.fleet.messages.frames import FrameWriter, Message, read_messages
from rtlang.protocol.event_codec import error_facts_to_wire, event_to_wire

READY = {
    "t": "ready",
    "tool_format": None,
    "vocab_size": 100,
    "max_model_len": 2048,
    "cache_tokens": 6400,
    "model_identity": "m",
}


class ScriptedEngine:
    """The handle of one engine; see `rtlang.fleet.engines.launcher.EngineHandle`.

    Attributes:
        received: the messages that came, besides the configuration and pings.
        beats: whether it answers pings.
        work: its record of work, which names no graph unless a test says so.
        stack: is written to the record when it is asked for.
        ends: whether it ends with its connection; otherwise it must be killed.
    """

    def __init__(self, *, starts: bool, fails: RtlangError | None, ends: bool) -> None:
        self.connection, self._theirs = socket.socketpair()
        self.pid: int | None = 7
        self.record: WorkRecord | None = WorkRecord()
        self.work = CurrentWork()
        self.work.share(memoryview(mmap.mmap(self.record.work_fd, 0)).cast("Q"))
        self.stack = ""
        self.received: list[Message] = []
        self.beats = True
        self.was_killed = False
        self._code = -9
        self._starts, self._fails, self._ends = starts, fails, ends
        self._has_ended = threading.Event()
        self._writer = FrameWriter(self._theirs)
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, message: Message) -> None:
        """Send a message to the owner of the engine."""
        self._writer.put(message)

    def tell(self, stream_id: int, event: Event) -> None:
        """Send an event of a graph."""
        self.send(event_to_wire(stream_id, event))

    def opened(self) -> list[Message]:
        """The graphs that were opened here."""
        return [message for message in list(self.received) if message["t"] == "open"]

    def wait(self, timeout_s: float) -> int:
        """See `EngineHandle.wait`."""
        if not self._has_ended.wait(timeout_s if self._ends or self.was_killed else 0.0):
            raise TimeoutError
        return self._code if self.was_killed else 0

    def crash(self) -> None:
        """End as by a fault of the engine itself."""
        self._code = 3
        self.kill()

    def leave(self) -> None:
        """End in order."""
        self._code = 0
        self.kill()

    def ask_for_stack(self) -> None:
        """See `EngineHandle.ask_for_stack`; writes `stack`."""
        assert self.record is not None
        os.write(self.record.stack_fd, self.stack.encode())

    def kill(self) -> None:
        """See `EngineHandle.kill`."""
        self.was_killed = True
        self._has_ended.set()
        with contextlib.suppress(OSError):
            self._theirs.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        for message in read_messages(self._theirs):
            match message["t"]:
                case "config" if self._fails is not None:
                    self._writer.put({"t": "failed"} | error_facts_to_wire(self._fails))
                    self._writer.flush(5.0)
                    break
                case "config" if self._starts:
                    self.send(READY)
                case "ping":
                    if self.beats:
                        self.send({"t": "pong", "age": 0.0})
                case _:
                    self.received.append(message)
        self._writer.close()
        self._theirs.close()
        if self._ends:
            self._has_ended.set()


class ScriptedLauncher:
    """Launches such engines.

    Args:
        num_refused: launches that fail first.
        num_failed: further engines that say that their model cannot be loaded.
        options: of each engine.

    Attributes:
        engines: those that were launched, the last one at the end.
        beats: whether later engines answer pings.
    """

    def __init__(
        self, name: str = "engine", *, num_refused: int = 0, num_failed: int = 0, starts: bool = True, ends: bool = True
    ) -> None:
        self.name, self.beats = name, True
        self.engines: list[ScriptedEngine] = []
        self._num_refused, self._num_failed = num_refused, num_failed
        self._options: dict[str, Any] = {"starts": starts, "ends": ends}

    def launch(self) -> ScriptedEngine:
        """See `Launcher.launch`."""
        if self._num_refused:
            self._num_refused -= 1
            raise OSError("there is no place")
        fails = ModelLoadError("m", "it is broken") if self._num_failed else None
        self._num_failed = max(0, self._num_failed - 1)
        self.engines.append(ScriptedEngine(fails=fails, **self._options))
        self.engines[-1].beats = self.beats
        return self.engines[-1]
