"""Turns of clients and channels."""

from __future__ import annotations

import random
from collections import defaultdict

from rtlang.fleet.messages.turn_queue import TurnQueue


def taken(queue: TurnQueue[str]) -> list[str]:
    found = []
    while queue:
        found.append(queue.take()[2])
    return found


def test_one_client_waits_for_one_item_of_each_other() -> None:
    queue: TurnQueue[str] = TurnQueue()
    for channel in range(2000):
        queue.put("many", channel, [f"m{channel}"])
    queue.put("few", 5000, ["f0", "f1"])
    queue.put("one", 5001, ["o0"])
    assert taken(queue)[:6] == ["m0", "f0", "o0", "m1", "f1", "m2"]


def test_a_short_channel_does_not_wait_for_a_long_one_of_the_same_client() -> None:
    queue: TurnQueue[str] = TurnQueue()
    queue.put("a", 1, map(str, range(100)))
    queue.put("a", 2, ["short"])
    assert taken(queue)[:3] == ["0", "short", "1"]


def test_an_item_that_is_put_back_stays_the_first_of_its_channel() -> None:
    queue: TurnQueue[str] = TurnQueue()
    queue.put("a", 1, ["long", "next"])
    queue.put("b", 2, ["other"])
    assert queue.take() == ("a", 1, "long")
    queue.put_back("a", 1, "long")
    assert taken(queue) == ["other", "long", "next"]
    queue.put_back("a", 1, "rest")
    assert taken(queue) == ["rest"]


def test_nothing_is_lost_and_channels_stay_in_order() -> None:
    source = random.Random(5)
    queue: TurnQueue[int] = TurnQueue()
    given: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    found: defaultdict[tuple[object, int], list[int]] = defaultdict(list)
    for number in range(3000):
        if source.random() < 0.6:
            client, channel = source.randrange(4), source.randrange(3)
            items = [number] * source.randrange(3)
            queue.put(client, channel, items)
            given[client, channel] += items
        elif queue:
            taken_client, taken_channel, item = queue.take()
            found[taken_client, taken_channel].append(item)
    while queue:
        taken_client, taken_channel, item = queue.take()
        found[taken_client, taken_channel].append(item)
    assert {key: items for key, items in found.items() if items} == {
        key: items for key, items in given.items() if items
    }
