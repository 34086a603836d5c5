"""Stored responses: bounded in total and for each principal; one principal never sees or drops another's within its share."""

from __future__ import annotations

from random import Random

from rtlang.serve.responses.store import ResponseStore, StoredResponse


def stored(name: str, size: int = 10) -> StoredResponse:
    return StoredResponse({"id": name}, ({"role": "user", "content": "a"},), 1, size + 100)


def test_a_response_is_found_by_its_owner_until_it_is_removed() -> None:
    store = ResponseStore()
    assert store.put("ann", stored("r"))
    assert store.get("ann", "r") == stored("r")
    assert store.get("bob", "r") is None
    assert not store.remove("bob", "r")
    assert store.remove("ann", "r")
    assert not store.remove("ann", "r")
    assert (store.get("ann", "r"), store.num_bytes) == (None, 0)


def test_many_responses_of_one_principal_drop_its_own_oldest() -> None:
    store = ResponseStore(max_bytes=4_000)
    store.put("bob", stored("b"))
    for i in range(100):
        assert store.put("ann", stored(str(i), 200))
    assert store.get("bob", "b") is not None
    assert store.get("ann", "0") is None
    assert store.get("ann", "99") is not None
    assert [each.key for each in store.of("ann")] == ["97", "98", "99"]
    assert [each.key for each in store.of("bob")] == ["b"]
    assert not store.put("ann", stored("huge", 1_000))


def test_the_bound_holds_under_random_use() -> None:
    random, store = Random(0), ResponseStore(max_bytes=3_000)
    for i in range(2_000):
        owner = random.choice("abcdefgh")
        if random.random() < 0.8:
            store.put(owner, stored(str(random.randrange(40) if random.random() < 0.2 else i), random.randrange(700)))
        else:
            store.remove(owner, str(random.randrange(40)))
        assert 0 <= store.num_bytes <= 3_000
        kept = [store.get(owner, str(name)) for owner in "abcdefgh" for name in range(i + 1)] if i % 400 == 399 else []
        assert not kept or store.num_bytes == sum(each.num_bytes for each in kept if each is not None)
