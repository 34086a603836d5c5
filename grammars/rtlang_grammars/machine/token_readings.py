"""Grammars that name ordinary tokens by id: a token is then read as its text or as itself, and a place holds all readings of the text.

Special tokens have one reading and need none of this. The ids of a grammar fall into groups that it treats alike, so that one member of
each decides the mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.matcher import Completion, MatcherGrammar, MatcherState
from rtlang_grammars.machine.token_index.mask import Mask, write_rows
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.tokens import TOKEN_LEAD, Ranges, spelling
from rtlang_grammars.spec.work_limit import WorkLimit

_MAX_READINGS = 256
_LEAD = np.frombuffer(bytes([TOKEN_LEAD]), dtype=np.uint8)

Configuration: TypeAlias = tuple[Any, ...]
"""One of the grammar's for each reading."""


class Readings(NamedTuple):
    """A place in a text that may be read in several ways.

    Attributes:
        configuration: the places of the grammar, without duplicates.
        is_complete: whether the text may end in one of them.
    """

    configuration: Configuration
    is_complete: bool

    @property
    def steps(self) -> None:
        """See `MatcherState`."""


class _Group(NamedTuple):
    """Ordinary tokens that belong to the same sets of the grammar.

    Attributes:
        example: the spelling of one, uint8.
        mask: uint32 [num_words].
    """

    example: NDArray[np.uint8]
    mask: NDArray[np.uint32]


def names_ordinary_tokens(index: VocabularyIndex, sets: Iterable[Ranges]) -> bool:
    """Whether some sets contain a token that text may spell as well."""
    silent = index.vocabulary.silent_ids
    return any(
        last - first >= len(silent) or not silent.issuperset(range(first, last + 1))
        for each in sets
        for first, last in each
    )


class TokenReadings:
    """A grammar with its ordinary tokens read both ways. Safe to use from several threads if the grammar is.

    Attributes:
        grammar, index: the grammar as given, and its vocabulary.
        start_place: the place at the start of the text.
    """

    def __init__(self, grammar: MatcherGrammar, sets: Iterable[Ranges]) -> None:
        """`sets`: all sets of tokens in the grammar."""
        self.grammar, self.index = grammar, grammar.index
        self.start_place = Readings((grammar.start_place.configuration,), grammar.start_place.is_complete)
        self._groups = list(_groups(self.index, list(sets)))

    @property
    def is_busy(self) -> bool:
        """See `MatcherGrammar.is_busy`."""
        return self.grammar.is_busy

    def after(self, configuration: Configuration, token_id: int) -> Readings | None:
        """The place after a token; None where it cannot follow."""
        places = []
        spelled = self._spelling(token_id)
        for each in configuration:
            places += [self.grammar.after(each, token_id)]
            if spelled is not None:
                places += [self.grammar.advance(each, spelled, 0, len(spelled))]
        return _joined(places)

    def advance(self, configuration: Configuration, data: NDArray[np.uint8], start: int, end: int) -> Readings | None:
        """The place after data[start:end]; None where these bytes cannot follow."""
        return _joined(self.grammar.advance(each, data, start, end) for each in configuration)

    def mask(self, configuration: Configuration) -> Mask:
        """The tokens that may follow, end tokens among them."""
        rows = np.empty((len(configuration), self.index.num_words), dtype=np.int32)
        write_rows([self.grammar.mask(each) for each in configuration], rows)
        row: NDArray[np.uint32] = np.bitwise_or.reduce(rows, axis=0).view(np.uint32)
        for each in configuration:
            if self.grammar.advance(each, _LEAD, 0, 1) is not None:
                for group in self._groups:
                    if self.grammar.advance(each, group.example, 0, len(group.example)) is not None:
                        row |= group.mask
        return Mask(row, self.index.no_ids, 0, owns_base=True)

    def only_ends(self, configuration: Configuration) -> bool:
        """Whether nothing but an end token may follow."""
        return self.index.only_ends(self.mask(configuration).base)

    def temperature(self, configuration: Configuration) -> float | None:
        """See `GrammarMatcher.temperature`: grammars with options of rules have one reading."""
        return None

    def captures(self, token_ids: Sequence[int]) -> dict[str, list[bytes]]:
        """See `GrammarMatcher.captures`: grammars with options of rules have one reading."""
        return {}

    def forced(self, configuration: Configuration) -> bytes:
        """The bytes that must come next."""
        texts = [self.grammar.forced(each) for each in configuration]
        first, last = min(texts), max(texts)
        num = next((i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
        return first[:num]

    def _spelling(self, token_id: int) -> NDArray[np.uint8] | None:
        """The spelling of an ordinary token."""
        vocabulary = self.index.vocabulary
        if (
            token_id in vocabulary.silent_ids
            or not 0 <= token_id < len(vocabulary.token_bytes)
            or not vocabulary.token_bytes[token_id]
        ):
            return None
        return np.frombuffer(spelling(token_id), dtype=np.uint8)


class ReadingsCompletion:
    """Finds short completions of a text that may be read in several ways."""

    def __init__(self, completion: Completion) -> None:
        self._completion = completion

    def find(self, configuration: Configuration, work: WorkLimit | None = None) -> tuple[bytes | None, bool]:
        """The shortest completion of all readings; see `Completion`."""
        found = [self._completion.find(each, work) for each in configuration]
        texts = [text for text, _ in found if text is not None]
        return (min(texts, key=len), False) if texts else (None, any(is_far for _, is_far in found))


def _joined(places: Iterable[MatcherState | None]) -> Readings | None:
    found: dict[object, MatcherState] = {}
    for place in places:
        if place is not None:
            configuration = place.configuration
            found.setdefault(configuration.tobytes() if isinstance(configuration, np.ndarray) else configuration, place)
    if len(found) > _MAX_READINGS:
        raise GrammarError(f"too ambiguous: the text has more than {_MAX_READINGS} readings as text and tokens")
    if not found:
        return None
    return Readings(
        tuple(place.configuration for place in found.values()), any(place.is_complete for place in found.values())
    )


def _groups(index: VocabularyIndex, sets: Sequence[Ranges]) -> Iterator[_Group]:
    vocabulary = index.vocabulary
    num = len(vocabulary.token_bytes)
    is_text = np.array([bool(text) for text in vocabulary.token_bytes], dtype=np.bool_)
    is_text[[token_id for token_id in vocabulary.silent_ids if token_id < num]] = False
    bits = np.zeros((num, (len(sets) + 7) // 8), dtype=np.uint8)
    for number, ranges in enumerate(sets):
        for first, last in ranges:
            bits[first : last + 1, number >> 3] |= 1 << (number & 7)
    ids = np.flatnonzero(is_text & bits.any(axis=1))
    if not len(ids):
        return
    _, firsts, which = np.unique(bits[ids], axis=0, return_index=True, return_inverse=True)
    for number, first in enumerate(firsts.tolist()):
        members = np.zeros(32 * index.num_words, dtype=np.bool_)
        members[ids[which.reshape(-1) == number]] = True
        example = np.frombuffer(spelling(int(ids[first])), dtype=np.uint8)
        yield _Group(example, np.packbits(members, bitorder="little").view(np.uint32))
