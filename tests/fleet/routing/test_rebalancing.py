"""Programs move to a replica that came if what waits before them exceeds what they would compute again, and the work is even afterwards."""

from __future__ import annotations

from random import Random

import pytest

from rtlang.fleet.routing.rebalancing import MovableProgram, programs_to_move
from rtlang.fleet.routing.router import MISS_WEIGHT
from tests.support.long_tests import sized


def test_half_of_the_programs_move_to_an_idle_replica() -> None:
    programs = [MovableProgram(number, 100.0, 1.0) for number in range(16)]
    moves = programs_to_move({"a": 1600.0, "b": 0.0}, {"a": programs}, "b")
    assert len(moves) in (7, 8)
    assert {name for _, name in moves} == {"a"}


def test_a_program_stays_where_computing_it_again_takes_longer_than_its_wait() -> None:
    again = 50.0
    limit = MISS_WEIGHT * again

    def moves(waiting: float) -> list[tuple[int, str]]:
        return programs_to_move({"a": waiting, "b": 0.0}, {"a": [MovableProgram(1, 10.0, again)]}, "b")

    assert moves(10.0 + limit) == []
    assert moves(10.1 + limit) == [(1, "a")]


def test_the_cheapest_move_first_and_from_the_busiest() -> None:
    cheap, dear = MovableProgram(1, 100.0, 1.0), MovableProgram(2, 100.0, 40.0)
    assert programs_to_move({"a": 200.0, "b": 0.0}, {"a": [dear, cheap]}, "b") == [(1, "a")]
    both = {"a": [MovableProgram(1, 100.0, 0.0)], "c": [MovableProgram(2, 100.0, 0.0)]}
    assert programs_to_move({"a": 200.0, "b": 0.0, "c": 900.0}, both, "b") == [(2, "c")]


def test_a_program_that_is_alone_stays() -> None:
    assert programs_to_move({"a": 5000.0, "b": 0.0}, {"a": [MovableProgram(1, 5000.0, 10.0)]}, "b") == []


def test_frontends_that_share_a_replica_move_half_together() -> None:
    mine = [MovableProgram(number, 100.0, 0.0) for number in range(8)]
    moves = programs_to_move({"a": 1600.0, "b": 0.0}, {"a": mine}, "b")
    assert len(moves) in (3, 4), "the other frontend moves as many"


@pytest.mark.parametrize("seed", range(sized(20)))
def test_the_busiest_replica_never_gets_busier(seed: int) -> None:
    rng = Random(seed)
    names = [f"r{number}" for number in range(rng.randint(1, 4))]
    programs = {
        name: [
            MovableProgram(
                100 * index + number, rng.choice((0.0, rng.uniform(1, 400))), rng.choice((0.0, rng.uniform(0, 200)))
            )
            for number in range(rng.randint(0, 12))
        ]
        for index, name in enumerate(names)
    }
    waiting = {name: sum(one.left for one in each) for name, each in programs.items()} | {"to": rng.uniform(0, 500)}
    moves = programs_to_move(waiting, programs, "to")
    assert len(set(moves)) == len(moves)
    after = dict(waiting)
    by_id = {(one.graph_id, name): one for name, each in programs.items() for one in each}
    for move in moves:
        one = by_id[move]
        after[move[1]] -= one.left
        after["to"] += one.left + one.again
    assert max(after.values()) <= max(waiting.values()) + 1e-6
    assert programs_to_move(after, {}, "to") == []
