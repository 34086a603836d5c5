"""Pages in memory: the tier has copies of its own. (What every tier keeps to: test_tier.py.)"""

from __future__ import annotations

from rtlang.cache.tiers.host_tier import HostTier


def test_a_stored_page_does_not_change_with_the_buffer_that_it_came_from() -> None:
    tier, buffer = HostTier(100), bytearray(b"abcd")
    tier.put(b"x", memoryview(buffer))
    buffer[:] = b"efgh"
    tier.put(b"x", memoryview(buffer))
    found = tier.get(b"x")
    assert found is not None
    assert bytes(found) == b"abcd"
    assert tier.stats.num_bytes == 4
    assert not tier.is_persistent
