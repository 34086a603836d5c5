"""Asks the head of a Ray cluster for a sign of life every few seconds, and reports when there has been none for too long.

Ray ends a process that has lost its head after RAY_gcs_rpc_server_reconnect_timeout_s (60 s), in the middle of its streams and with status
1. This watch gives up earlier, so that programs get an error that says why, and a server its own exit code. A head that comes back in time,
as Ray's fault tolerance lets it, is found by Ray itself.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from rtlang.contract.errors import ConnectionLostError
from rtlang.fleet.ray.head import check_head

logger = logging.getLogger(__name__)

INTERVAL_S = 5.0
RAY_TIMEOUT_S = 60.0
"""After this time without a head, Ray ends a process, unless the environment says otherwise."""
_RAY_TIMEOUT = "RAY_gcs_rpc_server_reconnect_timeout_s"
PART = 0.6
"""Part of Ray's time after which the head is given up: what is left is needed to end in order."""


def patience_s() -> float:
    """Seconds without an answer after which a head is given up."""
    try:
        return PART * float(os.environ[_RAY_TIMEOUT])
    except (KeyError, ValueError):
        return PART * RAY_TIMEOUT_S


class HeadWatch:
    """Watches a head on a thread of its own, from `start` to `close`.

    Args:
        address: HOST:PORT of the head.
        on_lost: called once, on that thread, with the reason in one line, after the head has not answered for `limit_s`.
        check: raises ConnectionLostError if the head does not answer.
    """

    def __init__(
        self,
        address: str,
        on_lost: Callable[[str], None],
        *,
        check: Callable[[str], None] = check_head,
        interval_s: float = INTERVAL_S,
        limit_s: float | None = None,
    ) -> None:
        self._address, self._on_lost, self._check, self._interval_s = address, on_lost, check, interval_s
        self._limit_s = patience_s() if limit_s is None else limit_s
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rtlang-head", daemon=True)

    def start(self) -> None:
        """Begin to watch, unless it has begun."""
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """Stop watching. Returns at once."""
        self._is_closing.set()

    def _run(self) -> None:
        last_answer, was_missing = time.monotonic(), False
        while not self._is_closing.wait(self._interval_s):
            try:
                self._check(self._address)
            except ConnectionLostError as error:
                silent_s = time.monotonic() - last_answer
                if silent_s > self._limit_s:
                    self._is_closing.set()
                    self._on_lost(
                        f"the head of the Ray cluster at {self._address} has not answered for {silent_s:.0f} s"
                    )
                    return
                if not was_missing:
                    logger.warning(
                        "%s; programs go on, and the fleet is given up %g s after its last answer", error, self._limit_s
                    )
                was_missing = True
                continue
            if was_missing:
                logger.warning("the head of the Ray cluster at %s answers again", self._address)
            last_answer, was_missing = time.monotonic(), False
