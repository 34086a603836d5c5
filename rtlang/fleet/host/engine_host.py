"""A `Runtime` in a process of its own, which serves one connection or several.

The first message of a connection is the configuration. The first connection loads the model; the others wait until it is loaded.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
from dataclasses import replace
from typing import Any

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import RtlangError
from rtlang.contract.process.current_work import Words
from rtlang.fleet.host.engine_connection import EngineConnection
from rtlang.fleet.messages.frames import FrameWriter, read_messages
from rtlang.protocol.event_codec import error_facts_to_wire
from rtlang.runtime.process.precompile import preload_grammars
from rtlang.runtime.runtime import Runtime

CLOSE_TIMEOUT_S = 5.0
UNLIMITED = 1 << 40


class EngineHost:
    """Owns the runtime of this process. `serve` may run on several threads.

    Args:
        settings: of the runtime, for every connection; None takes them from the first one.
        work: memory for the record of the engine thread's work; see `CurrentWork.share`.
    """

    def __init__(self, settings: dict[str, Any] | None = None, work: Words | None = None) -> None:
        self._settings, self._work = settings, work
        self._connection_numbers = itertools.count(1)
        self._lock = threading.Lock()  # held while the model is loaded
        self._runtime: Runtime | None = None

    def serve(self, connection: socket.socket) -> None:
        """Load the model if no connection did, then work until the socket ends."""
        messages = read_messages(connection)
        first = next(messages, None)
        if first is None:
            return
        try:
            runtime = self.start(first["settings"], preloads=bool(first.get("preloads")))
        except RtlangError as error:
            writer = FrameWriter(connection)
            writer.put({"t": "failed"} | error_facts_to_wire(error))
            writer.flush(CLOSE_TIMEOUT_S)
            return
        EngineConnection(runtime, connection, next(self._connection_numbers)).serve(messages)

    def start(self, settings: dict[str, Any], *, preloads: bool) -> Runtime:
        """The runtime, started. Blocks while the model is loaded.

        Args:
            preloads: whether the first start compiles the grammars of earlier programs.
        Raises:
            RtlangError: the model cannot be loaded with these settings. The next call tries again.
        """
        with self._lock:
            if self._runtime is None:
                # The frontend admits graphs; one that moves back may come while its earlier opening ends here.
                config = replace(RuntimeConfig(**(self._settings or settings)), max_waiting=UNLIMITED)
                self._runtime = Runtime(config=config).start()
                if self._work is not None:
                    self._runtime.share_work(self._work)
                if preloads:
                    preload_grammars(self._runtime.report)
            return self._runtime

    def close(self) -> None:
        """Close the runtime; end the process if that takes too long."""
        if self._runtime is None:
            return
        guard = threading.Timer(CLOSE_TIMEOUT_S, os._exit, (0,))
        guard.daemon = True
        guard.start()
        self._runtime.close()
        guard.cancel()
