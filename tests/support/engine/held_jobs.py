"""An executor whose jobs a test runs when and in the order that it likes."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class Jobs(Executor):
    """Runs jobs when and in the order that the test says; by default at once."""

    def __init__(self, is_held: bool = False) -> None:
        self.is_held = is_held
        self.waiting: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            future.set_result(fn(*args, **kwargs))

        if self.is_held:
            self.waiting.append(run)
        else:
            run()
        return future

    def run_one(self, rng: random.Random) -> None:
        if self.waiting:
            self.waiting.pop(rng.randrange(len(self.waiting)))()
