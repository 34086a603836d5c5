"""The processes of the other ranks: rank 0 starts them, waits until they are there, notices when one ends, and ends them.

    processes = RankProcesses(config)
    group = processes.start()
    with processes.guard():
        ...  # collectives

A rank that ends takes its connections with it: every collective of the others fails. `guard` turns that into one error that names the rank.
A rank ends by itself when the process of rank 0 has ended, because its standard input does.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch.distributed

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError, ModelLoadError, RtlangError, rebuild
from rtlang.contract.process.logs import writes_json
from rtlang.model.parallel.group import COLLECTIVE_TIMEOUT_S, RankGroup
from rtlang.model.parallel.messages import end_words

logger = logging.getLogger(__name__)

START_TIMEOUT_S = 300.0
"""Seconds until the processes must have started, without the model."""
CLOSE_TIMEOUT_S = 5.0
_POLL_S = 0.02
_EXIT_TIMEOUT_S = 2.0  # between the end of a rank's connections and that of its process

dist: Any = torch.distributed


class RankProcesses:
    """Starts and watches all ranks but 0. Used by the runner of rank 0, on one thread.

    Args:
        config: settings of the runtime.

    Attributes:
        on_death: called on another thread when a process ends by itself after the model is loaded.
    """

    def __init__(self, config: RuntimeConfig, on_death: Callable[[EngineDeadError], None] | None = None) -> None:
        self.size = config.tensor_parallel
        self.on_death = on_death
        self._config = config
        self._directory: Path | None = None
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._codes: dict[int, int] = {}  # exit codes, by rank
        self._watches: list[threading.Thread] = []
        self._group: RankGroup | None = None
        self._is_loading, self._is_closing = True, False

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the processes, from rank 1 on."""
        return tuple(process.pid for process in self._processes.values())

    def start(self) -> RankGroup:
        """Start the processes and connect to them. They load the model at the same time as rank 0.

        Raises:
            ModelLoadError: a process has ended, or has not started in time.
        """
        self._directory = Path(tempfile.mkdtemp(prefix="rtlang-ranks-"))
        path = self._directory / "store"
        store = dist.FileStore(str(path), self.size)
        settings = asdict(self._config)
        level = logging.getLevelName(logging.getLogger().getEffectiveLevel())
        for rank in range(1, self.size):
            start = {"settings": settings, "rank": rank, "store": str(path), "level": level, "is_json": writes_json()}
            self._processes[rank] = _spawn(start)
            watch = threading.Thread(target=self._watch, args=(rank,), name=f"rtlang-rank-{rank}", daemon=True)
            watch.start()
            self._watches.append(watch)
        deadline = time.monotonic() + START_TIMEOUT_S
        while missing := [rank for rank in self._processes if not store.check([up_key(rank)])]:
            if self._codes or time.monotonic() > deadline:
                raise self._failure(TimeoutError(f"rank {missing[0]} did not start within {START_TIMEOUT_S:g} s"))
            time.sleep(_POLL_S)
        with self.guard():
            self._group = RankGroup.connect(path, 0, self.size, self._config.device)
        return self._group

    def loaded(self) -> None:
        """Note that the model is loaded: from now on the end of a rank is the end of the engine."""
        self._is_loading = False
        if self._codes and self.on_death is not None:
            self.on_death(EngineDeadError(self._ended(next(iter(self._codes)))))

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn whatever is raised into an error that names the rank that caused it, since the ranks are out of step then.

        Raises:
            ModelLoadError, ConfigError: as the rank that has failed, while the model is loaded.
            EngineDeadError: a rank has ended or does not answer, or rank 0 has failed.
        """
        try:
            yield
        except Exception as error:
            failure = self._failure(error)
            if failure is error:
                raise
            raise failure from error

    def check(self) -> None:
        """Raise EngineDeadError if a rank has ended."""
        if self._codes:
            raise self._error(self._ended(next(iter(self._codes))))

    def close(self) -> None:
        """End the processes and wait for them. Idempotent."""
        self._is_closing = True
        if self._group is not None and not self._is_loading and not self._codes:
            with suppress(RuntimeError):  # one has ended just now
                self._group.send(end_words())
        for process in self._processes.values():
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        for process in self._processes.values():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for watch in self._watches:
            watch.join()
        self._group = None
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _watch(self, rank: int) -> None:
        code = self._processes[rank].wait()
        if self._is_closing:
            return
        self._codes[rank] = code
        logger.error("%s", self._ended(rank))
        if self._group is not None:
            self._group.abort()
        if not self._is_loading and self.on_death is not None:
            self.on_death(EngineDeadError(self._ended(rank)))

    def _failure(self, error: Exception) -> RtlangError:
        """The error to raise after a collective, or the computation around it, has raised this one."""
        deadline = time.monotonic() + (_EXIT_TIMEOUT_S if isinstance(error, RuntimeError) else 0.0)
        while not self._codes and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if self._codes:
            rank = next(iter(self._codes))
            return self._reported(rank) or self._error(self._ended(rank))
        if isinstance(error, RtlangError):
            return error
        reason = f"rank 0 of {self.size} failed, and the others cannot go on: {type(error).__name__}: {error}"
        if isinstance(error, TimeoutError):
            reason = str(error)
        elif "timed out" in str(error).lower():
            others = "rank 1" if self.size == 2 else f"one of the ranks 1 to {self.size - 1}"
            reason = f"{others} of {self.size} did not answer within {COLLECTIVE_TIMEOUT_S:g} s"
        return self._error(reason)

    def _ended(self, rank: int) -> str:
        return f"rank {rank} of {self.size} ended with code {self._codes[rank]}"

    def _error(self, reason: str) -> RtlangError:
        return ModelLoadError(self._config.model, reason) if self._is_loading else EngineDeadError(reason)

    def _reported(self, rank: int) -> RtlangError | None:
        """The error that a rank has left before it ended, while the model is loaded."""
        assert self._directory is not None
        path = failure_path(self._directory / "store", rank)
        if not path.is_file():
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
        return rebuild(found["code"], found["message"], found["facts"])


def up_key(rank: int) -> str:
    """The key of the store that is set once a rank has started."""
    return f"up/{rank}"


def failure_path(store_path: Path, rank: int) -> Path:
    """The file with the error of a rank that could not load the model."""
    return store_path.with_name(f"failed-{rank}.json")


def _spawn(start: dict[str, Any]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "rtlang.model.rank_worker"],
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(start).encode() + b"\n")
    process.stdin.flush()
    return process
