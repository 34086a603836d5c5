"""Pages of which every rank has a part, as rank 0 sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rtlang.model.layers.attention import PagedKV
from rtlang.model.parallel.messages import Words, release_words


class RankPages:
    """See `PageMemory`. The content of a page cannot be read or written: settings that need it are refused.

    Args:
        kv: the part of rank 0.
        send: sends a message to the others.
    """

    def __init__(self, kv: PagedKV, num_ranks: int, send: Callable[[Words], None]) -> None:
        self._kv, self._num_ranks, self._send = kv, num_ranks, send

    @property
    def page_format(self) -> str:
        """See `PageMemory`."""
        return f"{self._kv.page_format}, one of {self._num_ranks} parts"

    @property
    def page_bytes(self) -> int:
        """Bytes of one page in all layers of all ranks."""
        return self._kv.page_bytes * self._num_ranks

    @property
    def gives_back(self) -> bool:
        """See `PageMemory`."""
        return True

    def release(self, runs: Sequence[tuple[int, int]]) -> None:
        """See `PageMemory`; on every rank."""
        self._kv.release(runs)
        self._send(release_words(runs))

    def read_pages(self, page_ids: Sequence[int]) -> NDArray[np.uint8]:
        """Refused."""
        raise NotImplementedError("the content of a page is divided among ranks")

    def write_pages(self, pages: Iterable[tuple[int, NDArray[np.uint8]]]) -> None:
        """Refused."""
        raise NotImplementedError("the content of a page is divided among ranks")

    def abandon_writes(self) -> None:
        """See `PageMemory`; there are none."""
