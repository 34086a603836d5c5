"""Drafts from the prefix cache."""

from __future__ import annotations

import random

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.scope import PUBLIC, CacheScope
from rtlang.engine.drafts.stored_text import StoredText
from tests.engine.requests.test_request import request

PAGE = 4


def store(cache: PrefixCache, tokens: list[int], scope: CacheScope = PUBLIC) -> None:
    """Compute a sequence and end its request."""
    match = cache.match(tokens, len(tokens), scope)
    cache.lock(match.node)
    pages = cache.allocate(-(-len(tokens) // PAGE) - len(match.page_ids))
    assert pages is not None
    cache.finish(match.node, tokens[match.num_tokens :], pages, scope, match.num_tokens)
    cache.check()


def test_what_is_stored_behind_a_sequence_is_found_like_in_a_set_of_all_sequences() -> None:
    rng = random.Random(4)
    cache = PrefixCache(400, PAGE)
    stored: list[list[int]] = []
    for _ in range(40):
        base = rng.choice(stored)[: rng.randint(0, 20)] if stored else []
        tokens = base + rng.choices(range(5, 8), k=rng.randint(1, 20))
        store(cache, tokens)
        stored.append(tokens)
    num_found = 0
    for _ in range(300):
        tokens = rng.choice(stored)[: rng.randint(1, 24)] + rng.choices(range(5, 8), k=rng.choice([0, 0, 1]))
        match = cache.match(tokens, len(tokens) // PAGE * PAGE)
        rest = tokens[match.num_tokens :]
        found = cache.continuation(match.node, rest, 7)
        followers = [
            each[len(tokens) :] for each in stored if each[: len(tokens)] == tokens and len(each) > len(tokens)
        ]
        assert len(found) <= 7
        if found:
            num_found += 1
            assert any(each[: len(found)] == found for each in followers) or _is_stored(stored, tokens + found)
        elif len(rest) < PAGE:
            assert not followers or all(len(each) < PAGE for each in followers)
        cache.check()
    assert num_found > 50


def _is_stored(stored: list[list[int]], tokens: list[int]) -> bool:
    return any(each[: len(tokens)] == tokens for each in stored)


def test_a_namespace_finds_its_own_texts_only() -> None:
    cache = PrefixCache(64, PAGE)
    tokens = list(range(10, 30))
    store(cache, tokens, CacheScope(1))
    for scope, is_found in ((CacheScope(1), True), (CacheScope(2), False), (PUBLIC, False)):
        match = cache.match(tokens[:8], 8, scope)
        assert bool(cache.continuation(match.node, tokens[match.num_tokens : 10], 4, scope, match.num_tokens)) == (
            is_found and match.num_tokens == 8
        )
    match = cache.match(tokens[:8], 8, CacheScope(1))
    assert cache.continuation(match.node, tokens[8:10], 4, CacheScope(1), 8) == tokens[10:14]


def test_more_tokens_that_came_true_are_more_evidence() -> None:
    cache = PrefixCache(64, PAGE)
    tokens = list(range(10, 40))
    store(cache, tokens)
    match = cache.match(tokens[:8], 8)
    source, target = StoredText(cache), request(tokens[:9])
    target.pages.node, target.pages.num_tree_tokens = match.node, 8
    evidence = []
    for token_id in tokens[9:12]:
        found = source.propose(target, 5)
        assert found is not None
        evidence.append(found.evidence)
        assert found.token_ids[0] == token_id
        target.token_ids.append(token_id)
    assert evidence == [1, 2, 3]
    target.token_ids[-1] = 99  # it went another way
    assert source.propose(target, 5) is None
