"""An accelerator whose copies beside the steps happen late: when somebody waits for them, and not before."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch

from rtlang.model.gpu.accelerator import InterpretedAccelerator


class LateCopies(InterpretedAccelerator):
    """Copies are done in the order of their launch, by the first thread that waits for one of them or for a later one.

    Whoever uses a page without having waited for its copy finds what was there before.

    Attributes:
        num_copies: launched so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.num_copies = 0
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], None]] = []

    def beside(self, work: Callable[[], None]) -> Callable[[], None]:
        """See `Accelerator`."""
        with self._lock:
            self.num_copies += 1
            self._waiting.append(work)

        def wait() -> None:
            with self._lock, torch.inference_mode():
                while work in self._waiting:
                    self._waiting.pop(0)()

        return wait
