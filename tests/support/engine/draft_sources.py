"""Sources of drafts that tests control, and a cost at which every draft is computed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from rtlang.engine.drafts.proposal import Proposal
from rtlang.engine.planning.step_cost import StepSize
from rtlang.engine.requests.request import Request


class FreeCost:
    """Every step takes as long as any other, so every draft that may be right is worth it."""

    def predict(self, size: StepSize) -> float:
        return 1.0


class Oracle:
    """Knows the output of each request; each of its tokens is wrong with some probability, and then any of `wrong_ids`."""

    name = "oracle"

    def __init__(
        self,
        outputs: Callable[[Request], Sequence[int]],
        *,
        wrong: float = 0.0,
        wrong_ids: Sequence[int] = (5,),
        seed: int = 0,
    ) -> None:
        self._outputs, self._wrong, self._wrong_ids = outputs, wrong, wrong_ids
        self._rng = random.Random(seed)

    def propose(self, request: Request, limit: int) -> Proposal | None:
        done, rng = request.num_output_tokens, self._rng
        expected = self._outputs(request)[done : done + limit]
        draft = [rng.choice(self._wrong_ids) if rng.random() < self._wrong else each for each in expected]
        if self._wrong and len(draft) < limit:  # beyond the end
            draft += rng.choices(self._wrong_ids, k=limit - len(draft))
        return Proposal(self.name, draft, 16) if draft else None

    def forget(self, request: Request) -> None:
        """Nothing to drop."""
