"""A partition of the code points into character classes.

Within an automaton a set of characters is a bit mask of classes: two characters of one class are equivalent in all its sets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.coarse_classes import LEVELS
from rtlang_grammars.regular.characters.code_points import CodePoints


class Partition:
    """The coarsest partition in which each of the given sets is a union of classes.

    Attributes:
        num_classes: the number of classes, all nonempty.
        all_mask: the mask of all classes.
        firsts, lasts, classes: ranges of code points and their classes, ascending; without surrogates.
        representatives: the least code point of each class.
        split_coarse_classes: for each level, the masks of the coarse classes that overlap more than one class.
    """

    __slots__ = (
        "_masks",
        "all_mask",
        "classes",
        "firsts",
        "lasts",
        "num_classes",
        "representatives",
        "split_coarse_classes",
    )

    def __init__(self, sets: Iterable[CodePoints]) -> None:
        changes: dict[int, int] = {0xD800: 0, 0xE000: 0}
        distinct = list(dict.fromkeys(sets))
        for index, points in enumerate(distinct):
            bit = 1 << index
            for first, last in points:
                changes[first] = changes.get(first, 0) ^ bit
                changes[last + 1] = changes.get(last + 1, 0) ^ bit
        changes.setdefault(0, 0)
        bounds = sorted(changes)
        bounds.append(code_points.MAX_CODE_POINT + 1)
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        self.classes: list[int] = []
        self.representatives: list[int] = []
        numbers: dict[int, int] = {}
        inside = 0
        for at in range(len(bounds) - 1):
            first, end = bounds[at], bounds[at + 1]
            inside ^= changes[first]
            if first >= end or first == code_points.FIRST_SURROGATE:
                continue
            number = numbers.get(inside)
            if number is None:
                number = numbers[inside] = len(numbers)
                self.representatives.append(first)
            if self.classes and self.classes[-1] == number and self.lasts[-1] == first - 1:
                self.lasts[-1] = end - 1
            else:
                self.firsts.append(first)
                self.lasts.append(end - 1)
                self.classes.append(number)
        self.num_classes = len(numbers)
        self.all_mask = (1 << len(numbers)) - 1
        masks = [0] * len(distinct)
        for members, number in numbers.items():
            while members:
                low = members & -members
                masks[low.bit_length() - 1] |= 1 << number
                members ^= low
        self._masks = dict(zip(distinct, masks, strict=True))
        self.split_coarse_classes = tuple(
            tuple(mask for coarse_class in level if (mask := self._mask_of(coarse_class.ranges)).bit_count() > 1)
            for level in LEVELS
        )

    def knows(self, points: CodePoints) -> bool:
        """Whether a set is one of the given sets."""
        return points in self._masks

    def mask(self, points: CodePoints) -> int:
        """The classes of one of the given sets."""
        return self._masks[points]

    def coarse_levels(self, mask: int) -> int:
        """The levels (as bits) of coarse classes that a mask does not split."""
        found = 0
        for level, coarse_classes in enumerate(self.split_coarse_classes):
            for coarse_class in coarse_classes:
                common = mask & coarse_class
                if common and common != coarse_class:
                    break
            else:
                found |= 1 << level
        return found

    def _mask_of(self, points: CodePoints) -> int:
        """The classes that intersect a set."""
        mask = 0
        for first, last in points:
            for number in self.sorted_classes_within(first, last):
                mask |= 1 << number
        return mask

    def class_of(self, code_point: int) -> int:
        """The class of a code point, which must not be a surrogate."""
        return self.classes[bisect_right(self.firsts, code_point) - 1]

    def last_alike(self, code_point: int) -> int:
        """The last code point such that all from `code_point` to there are of one class."""
        return self.lasts[bisect_right(self.firsts, code_point) - 1]

    def ranges_within(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """The ranges (first, last, class) of an interval, clipped to it."""
        low, high = self._places_within(first, last)
        found = list(zip(self.firsts[low:high], self.lasts[low:high], self.classes[low:high], strict=True))
        if found:
            begin, end, number = found[0]
            found[0] = max(begin, first), end, number
            begin, end, number = found[-1]
            found[-1] = begin, min(end, last), number
        return found

    def _places_within(self, first: int, last: int) -> tuple[int, int]:
        """The first range that intersects an interval, and the first one after it."""
        low = max(bisect_right(self.firsts, first) - 1, 0)
        return low + (self.lasts[low] < first), bisect_right(self.firsts, last)

    def sorted_classes_within(self, first: int, last: int) -> tuple[int, ...]:
        """The classes that occur in an interval, ascending. Fast for intervals within one range, which are most."""
        at = max(bisect_right(self.firsts, first) - 1, 0)
        if self.firsts[at] <= first and last <= self.lasts[at]:
            return (self.classes[at],)
        low, high = self._places_within(first, last)
        return tuple(sorted(set(self.classes[low:high])))

    def classes_within(self, first: int, last: int) -> frozenset[int]:
        """The classes that occur in an interval."""
        low, high = self._places_within(first, last)
        return frozenset(self.classes[low:high])
