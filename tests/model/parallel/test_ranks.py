"""A runner's connection to other ranks: absent, given, or started."""

from __future__ import annotations

from typing import ClassVar

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError, ModelLoadError
from rtlang.model.parallel import ranks as ranks_module
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.messages import end_words
from rtlang.model.parallel.rank_processes import RankProcesses
from rtlang.model.parallel.ranks import Ranks


class Processes(RankProcesses):
    """Processes that are pretended."""

    made: ClassVar[list[Processes]] = []
    is_closed = False

    def start(self) -> RankGroup:
        self.made.append(self)
        return RankGroup(0, 2, None, None)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> list[Processes]:
    monkeypatch.setattr(ranks_module, "RankProcesses", Processes)
    monkeypatch.setattr(Processes, "made", [])
    return Processes.made


def test_a_process_alone_has_no_group_and_tells_nobody() -> None:
    ranks = Ranks(RuntimeConfig(), None)
    with ranks.loading() as group:
        assert group is None
    ranks.send(end_words())
    ranks.check()
    with pytest.raises(ZeroDivisionError), ranks.guard():
        raise ZeroDivisionError
    assert (ranks.is_following, ranks.pids) == (False, ())


def test_a_rank_of_a_given_group_starts_no_process(pretended: list[Processes]) -> None:
    ranks = Ranks(RuntimeConfig(tensor_parallel=2), RankGroup(1, 2, None, None))
    with ranks.loading() as group:
        assert group is ranks.group
    ranks.send(end_words())  # only rank 0 sends
    assert ranks.is_following
    assert pretended == []


def test_processes_end_when_the_model_cannot_be_loaded(pretended: list[Processes]) -> None:
    ranks = Ranks(RuntimeConfig(tensor_parallel=2), None)
    with pytest.raises(ModelLoadError), ranks.loading():
        raise ModelLoadError("x", "y")
    assert pretended[0].is_closed
    assert ranks.group is None


def test_the_end_of_a_process_is_told_after_the_load(pretended: list[Processes]) -> None:
    ranks = Ranks(RuntimeConfig(tensor_parallel=2), None)
    told: list[EngineDeadError] = []
    ranks.on_death = told.append
    with ranks.loading():
        pretended[0]._codes[1] = -9
    assert [str(error) for error in told] == ["rank 1 of 2 ended with code -9"]
    with pytest.raises(EngineDeadError, match="rank 1 of 2 ended with code -9"):
        ranks.check()
    ranks.close()
    ranks.close()
