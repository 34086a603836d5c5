"""Pages of which rank 0 has a part: sizes are those of the whole, and their memory is given back on every rank."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rtlang.model.layers.attention import HeadGeometry, PagedKV
from rtlang.model.parallel.messages import Words, release_of
from rtlang.model.parallel.rank_pages import RankPages


def test_unused_pages_are_given_back_on_every_rank() -> None:
    kv = PagedKV((HeadGeometry(2, 1, 8, 8),), 4, 4, torch.float32)
    sent: list[Words] = []
    pages = RankPages(kv, 2, sent.append)
    pages.release([(1, 2)])
    assert [release_of(words) for words in sent] == [[(1, 2)]]
    assert pages.page_bytes == 2 * kv.page_bytes
    assert pages.page_format != kv.page_format


def test_the_content_of_a_page_is_not_at_hand() -> None:
    pages = RankPages(PagedKV((HeadGeometry(2, 1, 8, 8),), 4, 4, torch.float32), 2, lambda words: None)
    with pytest.raises(NotImplementedError, match="divided among ranks"):
        pages.read_pages([0])
    with pytest.raises(NotImplementedError, match="divided among ranks"):
        pages.write_pages([(0, np.zeros(pages.page_bytes, dtype=np.uint8))])
