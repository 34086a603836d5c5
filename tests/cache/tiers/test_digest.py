"""Digests of pages: by definition, by namespace, and from the tree as from the tokens."""

from __future__ import annotations

import hashlib
import random
from array import array

from rtlang.cache.page_digests import PageDigests
from rtlang.cache.radix import RadixTree
from rtlang.cache.scope import Namespaces
from rtlang.cache.tiers.digest import root_digest, sequence_digests
from tests.support.engine.tier_simulation import ROOT, naive_digest, naive_end_digest


def test_the_digest_of_a_page_covers_all_tokens_up_to_its_end() -> None:
    tokens = list(range(10))
    found = sequence_digests(ROOT, tokens, 3, 3)
    assert found == [naive_digest(tuple(tokens[:end]), 3) for end in (3, 6, 9)]
    assert sequence_digests(ROOT, [9, *tokens[1:]], 3, 3)[2] != found[2]
    assert sequence_digests(b"x", tokens, 3, 3)[0] != found[0]
    assert root_digest("a") != root_digest("b")


def test_a_page_with_a_token_of_a_namespace_is_of_that_namespace() -> None:
    tokens = list(range(12))
    public, a, b = (sequence_digests(ROOT, tokens, 3, 4, name, 4) for name in ("", "a", "b"))
    assert public[0] == a[0] == b[0]
    assert len({each[1] for each in (public, a, b)}) == 3
    content = public[0] + (1).to_bytes(4, "little") + b"a" + b"".join(t.to_bytes(8, "little") for t in tokens[3:6])
    assert a[1] == hashlib.blake2b(content, digest_size=16, person=b"rtlang page").digest()


def test_the_tree_gives_the_digests_of_its_tokens_whatever_the_numbers_of_namespaces() -> None:
    tokens = list(range(12))
    for earlier in ([], ["x", "y"]):
        namespaces = Namespaces([tokens[:4]])
        for each in earlier:
            namespaces.scope(each, tokens)
        scope = namespaces.scope("a", tokens)
        tree = RadixTree(3)
        node = tree.append(tree.root, scope.pack(tokens[:6]), [0, 1], held=0, is_pending=False)
        digests = PageDigests(ROOT, 3, namespaces.name)
        expected = sequence_digests(ROOT, tokens, 3, 4, "a", scope.num_public)
        assert digests.of(node, 1) == expected[:1]
        tree.append(node, scope.pack(tokens[6:], 6), [2, 3], held=0, is_pending=False)
        upper = tree.split(node, 1)
        assert digests.of(node) == expected[1:]
        assert digests.of(upper) == expected[:1]


def test_the_digest_of_a_state_in_the_tree_covers_all_tokens_before_it() -> None:
    """Whatever node it is in, with and without namespace, also inside a page, whose other tokens do not matter."""
    rng, size = random.Random(0), 4
    for _ in range(30):
        tokens = [rng.randrange(3) for _ in range(24)]
        namespaces, tree = Namespaces([tokens[: rng.choice([0, 6])]]), RadixTree(size)
        digests = PageDigests(ROOT, size, namespaces.name)
        namespace = rng.choice(["", "a"])
        scope = namespaces.scope(namespace, tokens)
        num_public = scope.num_public
        node, page = tree.root, 0
        while page < 6:
            count = min(rng.randint(1, 3), 6 - page)
            data = scope.pack(tokens[page * size : (page + count) * size], page * size)
            node = tree._add_child(node, array("q", data), [0] * count)
            page += count
        for each in list(node.path(tree.root)):
            for offset in range(1, len(each.key) + 1):
                position = each.depth * size + offset
                name = namespace if position % size and position > num_public else ""
                found = digests.of_state(each, offset)
                expected = [
                    naive_end_digest(kind, tuple(tokens[:position]), size, namespace, num_public, name)
                    for kind in (b"rtlang state", b"rtlang tail")
                ]
                assert found == (expected[0], expected[1] if position % size else None)
