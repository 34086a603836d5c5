"""A constraint that allows everything, for tests of what the engine does around constraints."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.errors import ParameterError
from rtlang.engine.constraints.stop_search import StopPattern, compile_stop_patterns
from rtlang.work.fair_queue import Owner
from rtlang_grammars.spec.work_limit import WorkLimit


class OpenSession:
    """Allows every token; see `ConstraintSession`."""

    end_token_ids: frozenset[int] = frozenset()
    is_accepting = True
    is_complete = is_slow = is_preparing = False
    may_draft = True
    temperatures: tuple[float | None, ...] = ()

    def captures(self) -> None:
        """Nothing is captured."""

    def accept(self, token_id: int, remaining: int) -> int:
        return token_id

    def try_accept(self, token_id: int, remaining: int, work: WorkLimit) -> bool:
        return True

    def takes(self, token_id: int) -> bool:
        return False

    def num_allowed(self, draft: Sequence[int]) -> int:
        return len(draft)

    def raise_if_failed(self) -> None:
        """It does not fail."""

    def close(self) -> None:
        """Nothing to end."""


NOBODY = Owner("")


class OpenCompiler:
    """Fills masks and compiles stop patterns at once; see `ConstraintCompiler`."""

    def stop_patterns(self, sources: tuple[str, ...], owner: Owner = NOBODY) -> Future[tuple[StopPattern, ...]]:
        done: Future[tuple[StopPattern, ...]] = Future()
        try:
            done.set_result(compile_stop_patterns(sources))
        except ParameterError as error:
            done.set_exception(error)
        return done

    def fill(self, sessions: list[Any], bitmask: NDArray[np.int32], drafts: object = ()) -> Future[None]:
        bitmask[:] = -1
        done: Future[None] = Future()
        done.set_result(None)
        return done
