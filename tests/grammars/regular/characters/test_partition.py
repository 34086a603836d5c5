"""Partitions separate exactly the characters that their sets separate."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.partition import Partition
from tests.support.long_tests import sized

BASE = 0xD7F0
pairs = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: (BASE + min(pair), BASE + max(pair)))
sets = st.lists(st.lists(pairs, max_size=4).map(code_points.normalize), max_size=4)


@settings(max_examples=sized(200), deadline=None, derandomize=True)
@given(sets)
def test_two_characters_share_a_class_if_every_set_has_both_or_neither(
    given_sets: list[code_points.CodePoints],
) -> None:
    partition = Partition([code_points.ALL, *given_sets])
    characters = [0, BASE - 1, *(each for each in range(BASE, BASE + 45) if not 0xD800 <= each <= 0xDFFF), 0x10FFFF]

    def signature(code_point: int) -> tuple[bool, ...]:
        return tuple(code_points.contains(points, code_point) for points in given_sets)

    for one, other in itertools.combinations(characters, 2):
        assert (partition.class_of(one) == partition.class_of(other)) == (signature(one) == signature(other))
    for points in given_sets:
        for each in characters:
            assert bool(partition.mask(points) >> partition.class_of(each) & 1) == code_points.contains(points, each)
    assert partition.mask(code_points.ALL) == partition.all_mask == (1 << partition.num_classes) - 1


def test_ranges_cover_everything_except_surrogates() -> None:
    partition = Partition([code_points.ALL, ((0x61, 0x7A),), ((0x70, 0x10FFFF),)])
    covered = [(first, last) for first, last, _ in partition.ranges_within(0, 0x10FFFF)]
    assert code_points.normalize(covered) == code_points.ALL
    assert partition.ranges_within(0x6F, 0x71) == [
        (0x6F, 0x6F, partition.class_of(0x61)),
        (0x70, 0x71, partition.class_of(0x71)),
    ]
    assert partition.ranges_within(0xD800, 0xDFFF) == []
    assert partition.classes_within(0x61, 0x7B) == {partition.class_of(each) for each in (0x61, 0x70, 0x7B)}
    assert [partition.class_of(each) for each in partition.representatives] == list(range(partition.num_classes))
