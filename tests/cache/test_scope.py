"""Namespaces: what sequences of different ones share, against sets of prefixes."""

from __future__ import annotations

import random
from array import array

from rtlang.cache import scope
from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.scope import PUBLIC, CacheScope, Namespaces, unpacked


def store(cache: PrefixCache, tokens: list[int], scope: CacheScope) -> int:
    """Compute and store a sequence as the scheduler does, page by page; returns the number of tokens that were there."""
    match = cache.match(tokens, len(tokens) - 1, scope)
    cache.lock(match.node)
    pages = cache.allocate(-(-len(tokens) // 4) - len(match.page_ids))
    assert pages is not None
    node, position = match.node, match.num_tokens
    while position + 4 <= len(tokens) and pages:
        node, _ = cache.extend(node, tokens[position : position + 4], pages[:1], scope, position)
        pages, position = pages[1:], position + 4
        cache.commit()
    cache.finish(node, tokens[position:], pages, scope, position)
    cache.check()
    return match.num_tokens + match.num_tail_tokens


def common(a: list[int], b: list[int]) -> int:
    return next(
        (index for index, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b))
    )


def test_random_sequences_find_those_of_their_namespace_and_public_starts() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        public = [[rng.randint(1, 2) for _ in range(rng.randint(1, 20))] for _ in range(rng.randint(0, 3))]
        namespaces, cache = Namespaces(public), PrefixCache(4000, 4)
        stored: list[tuple[str, list[int]]] = []
        for _ in range(60):
            name = rng.choice(["", "a", "b"])
            base = rng.choice([*public, [], *(each for _, each in stored)])
            tokens = base[: rng.randint(0, len(base))] + [rng.randint(1, 2) for _ in range(rng.randint(1, 12))]
            start = max((common(each, tokens) for each in public), default=0)
            # What was stored under another name is there as far as both are public.
            expected = max(
                (common(each, tokens) if name == other else min(common(each, tokens), start) for other, each in stored),
                default=0,
            )
            found = store(cache, tokens, namespaces.scope(name, tokens))
            assert found <= min(expected, len(tokens) - 1)
            assert found >= min(expected, len(tokens) - 1) // 4 * 4
            stored.append((name, tokens))


def test_without_a_namespace_nothing_changes() -> None:
    namespaces = Namespaces([[1, 2, 3]])
    assert namespaces.scope("", [1, 2, 3]) is PUBLIC
    assert namespaces.scope("a", [1, 2, 4]) == CacheScope(1, 2)
    assert namespaces.scope("b", [9]) == CacheScope(2, 0)
    assert namespaces.scope("a", [1, 2, 3, 4]) == CacheScope(1, 3)


def test_forgotten_namespaces_share_nothing_with_their_later_selves() -> None:
    namespaces = Namespaces(max_namespaces=3)
    numbers = {name: namespaces.scope(name, [1]).number for name in "abc"}
    assert namespaces.scope("a", [1]).number == numbers["a"]
    fourth = namespaces.scope("d", [1]).number  # "b" was used least recently
    assert [namespaces.name(number) for number in (0, numbers["a"], numbers["c"], fourth)] == ["", "a", "c", "d"]
    forgotten = namespaces.name(numbers["b"])
    assert forgotten.endswith(str(numbers["b"]))
    assert forgotten != Namespaces().name(numbers["b"])
    again = namespaces.scope("b", [1]).number
    assert again not in (*numbers.values(), fourth)
    for i in range(10_000):
        namespaces.scope(str(i), [1])
    assert len(namespaces._numbers) == 3
    assert len(namespaces._names) == 4


def test_numbers_begin_again_and_pass_over_those_in_use() -> None:
    namespaces = Namespaces(max_namespaces=3)
    first = namespaces.scope("a", [1]).number
    namespaces._last_number = scope._MAX_NUMBER - 1
    last = namespaces.scope("b", [1])
    assert unpacked(array("q", last.pack([5]))[0]) == (scope._MAX_NUMBER, 5)
    assert namespaces.scope("c", [1]).number == first + 1


def test_a_scope_packs_pieces_as_it_packs_the_whole() -> None:
    own, tokens = CacheScope(7, 5), [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    whole = own.pack(tokens)
    for cut in range(len(tokens) + 1):
        assert own.pack(tokens[:cut]) + own.pack(tokens[cut:], cut) == whole
    assert [unpacked(each) for each in array("q", whole)] == [(7 * (at >= 5), each) for at, each in enumerate(tokens)]


def test_what_is_stored_behind_a_sequence_is_seen_as_far_as_it_is_own_or_public() -> None:
    namespaces = Namespaces([[1, 2, 3, 4], [1, 2, 9]])
    own = namespaces.scope("a", [1, 2])

    def keys(scope: CacheScope, tokens: list[int], start: int) -> list[int]:
        return list(array("q", scope.pack(tokens[start:], start)))

    public = keys(PUBLIC, [1, 2, 3, 4, 5, 6], 2)
    assert namespaces.visible(own, [1, 2], 2, public) == [3, 4], "5 and 6 are of a sequence without a namespace"
    assert namespaces.visible(own, [1, 2, 3, 4], 4, keys(PUBLIC, [1, 2, 3, 4, 5], 4)) == []
    assert namespaces.visible(own, [7], 1, public) == []
    assert namespaces.visible(PUBLIC, [1, 2], 2, public) == [3, 4, 5, 6]
    stored = namespaces.scope("a", [1, 2, 3, 8, 8])
    assert namespaces.visible(stored, [1, 2], 2, keys(stored, [1, 2, 3, 8, 8], 2)) == [3, 8, 8]
    other = namespaces.scope("b", [1, 2, 3, 8, 8])
    assert namespaces.visible(own, [1, 2], 2, keys(other, [1, 2, 3, 8, 8], 2)) == [3]
    assert namespaces.visible(PUBLIC, [1, 2], 2, keys(other, [1, 2, 3, 8, 8], 2)) == [3]
