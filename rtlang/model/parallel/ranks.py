"""A runner's connection to the other ranks of its model, if there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.messages import Words
from rtlang.model.parallel.rank_processes import RankProcesses


class Ranks:
    """Owned by a runner, and used on its thread.

    Args:
        group: the connected ranks; default: `loading` starts the processes of the others, if there are to be any.

    Attributes:
        group: None if this process computes the model alone.
        on_death: called on another thread when the process of a rank ends, after which every step fails.
    """

    def __init__(self, config: RuntimeConfig, group: RankGroup | None) -> None:
        self.group = group
        self.on_death: Callable[[EngineDeadError], None] | None = None
        self._config = config
        self._processes: RankProcesses | None = None

    @property
    def is_following(self) -> bool:
        """Whether another rank schedules and samples."""
        return self.group is not None and not self.group.is_first

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the processes that were started, from rank 1 on."""
        return () if self._processes is None else self._processes.pids

    @contextmanager
    def loading(self) -> Iterator[RankGroup | None]:
        """Start the other ranks; within, all of them load the model. They end if that fails.

        Raises:
            ModelLoadError: a rank has ended.
            RtlangError: as what runs within, on any rank.
        """
        try:
            if self._config.tensor_parallel > 1 and self.group is None:
                self._processes = RankProcesses(self._config, self._note_death)
                self.group = self._processes.start()
            with self.guard():
                yield self.group
        except BaseException:
            self.close()
            raise
        if self._processes is not None:
            self._processes.loaded()

    def guard(self) -> AbstractContextManager[None]:
        """See `RankProcesses.guard`; does nothing if there are no processes."""
        return nullcontext() if self._processes is None else self._processes.guard()

    def send(self, words: Words) -> None:
        """Tell all other ranks, if this is rank 0 of several. Raises EngineDeadError if one has ended."""
        if self.group is not None and self.group.is_first:
            with self.guard():
                self.group.send(words)

    def check(self) -> None:
        """Raise EngineDeadError if a rank has ended."""
        if self._processes is not None:
            self._processes.check()

    def close(self) -> None:
        """End the processes of other ranks. Idempotent."""
        if self._processes is not None:
            self._processes.close()
            self.group = None
        self._processes = None

    def _note_death(self, error: EngineDeadError) -> None:
        if self.on_death is not None:
            self.on_death(error)
