"""The credit of a graph: how many more of its tokens may be delivered. Shared by all of its requests."""

from __future__ import annotations

from typing import Any


class Credit:
    """A number of tokens. Used on the engine thread only.

    It falls by the tokens of each delivered delta, below zero if one delta has more than are left, and rises by the grants of the reader.

    Attributes:
        parked: the requests that the scheduler has parked for lack of it, oldest first.
    """

    __slots__ = ("num_tokens", "parked")

    def __init__(self, num_tokens: int) -> None:
        self.num_tokens = num_tokens
        self.parked: dict[Any, None] = {}  # of `Request`, which refers to this class

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.num_tokens <= 0
