"""The remaining budget of a graph. Used on the engine thread only."""

from __future__ import annotations

from dataclasses import replace

from rtlang.contract.errors import SpentError
from rtlang.contract.params import Usage
from rtlang.contract.request_graph import Generate
from rtlang.contract.runs.budget import Budget


class BudgetAccount:
    """Gives each generation a part of what is left.

    Attributes:
        is_late: whether the time limit of the budget has passed.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.is_late = False
        self._spent = Usage()
        self._reserved: dict[int, int] = {}

    def lowered(self, node: Generate, num_sharing: int) -> Generate:
        """The node with the tokens that it may generate.

        Args:
            num_sharing: completions of this node and of others that start at the same time.
        Raises:
            SpentError: nothing is left.
        """
        budget = self.budget
        if self.is_late and budget.seconds is not None:
            raise SpentError("seconds", budget.seconds)
        reserved = sum(self._reserved.values())
        params = node.params
        num_texts = max(params.n, params.best_of)
        max_tokens = params.max_tokens
        for name, limit, spent in (
            ("tokens", budget.tokens, self._spent.completion_tokens),
            ("computed", budget.computed, computed_tokens(self._spent)),
        ):
            if limit is None:
                continue
            left = (limit - spent - reserved) // max(num_sharing, num_texts)
            if left < 1:
                raise SpentError(name, limit)
            max_tokens = min(max_tokens, left)
        self._reserved[node.node_id] = max_tokens * num_texts
        if max_tokens == params.max_tokens:
            return node
        lowered = replace(params, max_tokens=max_tokens, min_tokens=min(params.min_tokens, max_tokens))
        return replace(node, params=lowered)

    def spend(self, node_id: int, usage: Usage) -> None:
        """Account for a generation or select that has ended."""
        self._reserved.pop(node_id, None)
        self._spent = self._spent + usage


def computed_tokens(usage: Usage) -> int:
    """Tokens that the model computed."""
    return usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens
