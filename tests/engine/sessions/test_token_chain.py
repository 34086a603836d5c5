"""Chains have equal digests for equal prefixes, however they were extended."""

from __future__ import annotations

import random

from rtlang.engine.sessions.token_chain import BLOCK_TOKENS, TokenChain, digest_after


def test_digests_depend_on_the_prefix_and_the_root_only() -> None:
    generator = random.Random(0)
    tokens = [generator.randrange(1 << 32) for _ in range(5 * BLOCK_TOKENS + 7)]
    whole = TokenChain(b"root")
    whole.extend(tokens)
    assert len(whole) == len(tokens)
    for _ in range(20):
        parts, start = TokenChain(b"root"), 0
        while start < len(tokens):
            size = generator.randrange(1, 2 * BLOCK_TOKENS)
            parts.extend(tokens[start : start + size])
            start += size
            if generator.random() < 0.3:
                parts.trim()
        assert parts.end() == whole.end()
        assert len(parts) == len(tokens)
    seen = set()
    for length in range(len(tokens) + 1):
        chain = TokenChain(b"root")
        chain.extend(tokens[:length])
        border, num_behind, digest = chain.end()
        assert border == whole.digests[length // BLOCK_TOKENS]
        assert num_behind == length % BLOCK_TOKENS
        assert digest == digest_after(border, tokens[length - num_behind : length])
        seen.add(digest)
    other = TokenChain(b"other")
    other.extend(tokens)
    assert len(seen) == len(tokens) + 1
    assert not seen & set(other.digests)
