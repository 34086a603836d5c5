"""Search for completion paths of a constrained text.

`CompletionSearch` works over any matcher. It descends along the most promising tokens (closing quotes and brackets, short values), tells
places apart by the tokens that may follow, backtracks within bounds, and stops as soon as a suffix of an earlier path fits again. A path is
stored as bytes, because grammars work on bytes: it stays valid however the model spells the text.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.completion.completion_path import UNREACHABLE, CompletionPath, TokenTable
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.protocols import GrammarMatcher
from rtlang_grammars.spec.tokens import SPELLING_BYTES
from rtlang_grammars.spec.vocabulary import Vocabulary

DEFAULT_STATES = 20_000
"""Maximum number of states that a search outside the step may visit; about 40 us each."""

_CLOSERS = (b'"', b"}", b"]", b")", b"'", b">", b";", b'"}', b'"]', b"}}", b"]}", b"\n")
_SEPARATORS = (b", ", b",", b": ", b":", b"=")
_VALUES = (b"0", b'""', b"[]", b"{}", b"null", b"1", b"9", b"true", b"a", b"x", b"A", b"{", b"[", b" ")
_BRIDGES = (
    b"",
    b'"',
    b' ""',
    b" 0",
    b'": ""',
    b'": 0',
    b" {}",
    b" []",
    b" true",
    b" null",
    b'": []',
    b'": {}',
    b'": true',
    b' "": ""',
    b"0",
    b"}",
    b"]",
)
"""Texts that, in JSON, often connect a token that opened something with the rest of the earlier path; tried immediately."""
_PUNCTUATION = tuple(bytes([byte]) for byte in range(0x21, 0x7F) if not chr(byte).isalnum())
_LETTERS = tuple(bytes([byte]) for byte in range(0x20, 0x7F) if chr(byte).isalnum())
_NUM_FREE = 48
_BRACKETS = (b"}", b"]", b")", b">", b";", b"}}", b"]}")
_PLAIN = re.compile(rb"(?![-+.])[ -\[\]-~]+")
_NUM_LONGEST = 4
_MAX_RUN = 250  # steps within one free text; with long tokens about 5,000 characters
_MAX_ANCESTORS = 64
_NUM_NEAR = 6
_MAX_SEEN = 3  # repeated visits lower the priority of a place up to this count
_JOINT = re.compile(rb"(?<![,\[{]) ?[]},]|(?<=[^ ])\"|[;\n)]")
_NUM_JOINTS = 12


class CompletionSearch:
    """Finds completion paths. Immutable; safe to use from several threads.

    Works with any `GrammarMatcher` and uses optional methods if a matcher offers them: `closing()` gives bytes that complete the text, or
    reports that they are too many, and its answer is final; `completes(token_ids)` replaces a fork; `forced_bytes()` gives the bytes that
    must come next, `allowed(token_ids)` which tokens may follow, `hints` texts that match patterns of the grammar.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.table = TokenTable(vocabulary)
        ids = self.table.ids
        probed = (*_CLOSERS, *_SEPARATORS, *_VALUES, *_PUNCTUATION, *_LETTERS)
        self._probes = tuple(dict.fromkeys(ids[text] for text in probed if text in ids))
        self._closers = frozenset(ids[text] for text in _CLOSERS if text in ids)
        self._letters = frozenset(ids[text] for text in _LETTERS if text in ids and text not in _VALUES)
        spelled = ((bridge, CompletionPath(bridge, self.table)) for bridge in _BRIDGES)
        self._bridges = [(bridge, path.token_ids()) for bridge, path in spelled if path.cost() < UNREACHABLE]
        self._lengths: NDArray[np.int32] = np.zeros(vocabulary.vocab_size, dtype=np.int32)
        for text, token_id in ids.items():
            self._lengths[token_id] = len(text)
        self._lengths[list(vocabulary.silent_ids)] = SPELLING_BYTES

    def completes(self, matcher: GrammarMatcher, token_ids: list[int]) -> bool:
        """Whether the text is complete after `token_ids`. Does not change the matcher."""
        check: Any = getattr(matcher, "completes", None)
        if check is not None:
            return bool(check(token_ids))
        copy = matcher.fork()
        return all(map(copy.accept_token, token_ids)) and copy.is_accepting

    def completes_with(self, matcher: GrammarMatcher, path: CompletionPath, offset: int) -> bool:
        """Whether the text is complete after the rest of a path. Does not change the matcher."""
        check: Any = getattr(matcher, "completes_bytes", None)
        if check is not None:
            return bool(check(path.data[offset:]))
        return self.completes(matcher, path.token_ids(offset))

    def find(
        self,
        matcher: GrammarMatcher,
        limit: int,
        tail: tuple[CompletionPath, int] | None = None,
        num_states: int = DEFAULT_STATES,
        is_unwanted: Event | None = None,
    ) -> CompletionPath | None:
        """Find a completion of at most `limit` tokens, not necessarily the shortest. Does not change the matcher.

        Args:
            tail: an earlier path and the offset up to which it was followed; the search ends when a suffix of it fits again.
            num_states: how many states of the matcher may be visited.
            is_unwanted: may be set from any thread to stop the search.
        Returns:
            None if no such path was found.
        """
        return self._search(matcher, limit, tail, num_states, is_unwanted)[0]

    def is_hopeless(self, matcher: GrammarMatcher) -> bool:
        """Whether every continuation was visited and none is complete, so that the constraint allows no text."""
        return self._search(matcher, 64, None, 300)[1]

    def _search(
        self,
        matcher: GrammarMatcher,
        limit: int,
        tail: tuple[CompletionPath, int] | None,
        num_states: int,
        is_unwanted: Event | None = None,
    ) -> tuple[CompletionPath | None, bool]:
        """The path, and whether every continuation was visited without reaching a bound.

        Masks leave no dead ends, only long paths and loops. So each descent takes the most promising token at every step; the first descent
        begins at the start, later ones where an earlier descent could have reached another kind of place.
        """
        known: Any = getattr(matcher, "closing", None)
        data, is_far = (None, False) if known is None else known()
        if data is not None:
            path = CompletionPath(data, self.table, None if tail is None else _shared_end(data, tail[0]))
            return (path if path.fits(limit) else None), False
        if is_far:
            return None, False
        hints, joints = self._hints_of(matcher), self._joints(tail, limit)
        effort = _Effort(limit, tail, num_states, 2 * limit + 8, hints, joints, is_unwanted)
        start = self._reach(matcher.fork(), b"", 0, None, effort)
        if start is None or start.path is not None:
            return (None, not effort.was_cut) if start is None else (start.path, False)
        waiting = deque([start])
        seen = {start.kind}
        while waiting:
            place: _Place | None = waiting.popleft()
            num_same = 0
            while place is not None:
                if place.num_tokens >= effort.max_tokens or num_same > _MAX_RUN:
                    effort.was_cut = True
                    break
                following = self._following(place, effort)
                if following and following[0].path is not None:
                    return following[0].path, False
                if effort.num_left <= 0:
                    return None, False
                for other in following[1:]:
                    if other.kind in seen:
                        effort.was_cut = True
                    else:
                        seen.add(other.kind)
                        waiting.append(other)
                best = following[0] if following else None
                num_same = num_same + 1 if best is not None and best.signature == place.signature else 0
                place = best
        return None, not effort.was_cut

    def _following(self, place: _Place, effort: _Effort) -> list[_Place]:
        """Places one token (or hint) further, the most promising first, one of each kind; if one completes the path, only that one."""
        found: dict[bytes, _Place] = {}
        for stage in _Stage:
            for token_ids in self._candidates(place, stage, effort):
                reached = self._step(place, token_ids, effort)
                if reached is not None:
                    if reached.path is not None:
                        return [reached]
                    known = found.get(reached.signature)
                    is_further = stage is _Stage.LONGEST and known is not None and len(reached.data) > len(known.data)
                    if known is None or reached.score < known.score or is_further:
                        found[reached.signature] = reached
                if effort.num_left <= 0:
                    return []
            if self._is_enough(place, stage, found):
                effort.was_cut = True  # some tokens were not visited
                break
        return sorted(found.values(), key=lambda reached: reached.score)

    def _is_enough(self, place: _Place, stage: _Stage, found: dict[bytes, _Place]) -> bool:
        """Whether the stages so far found a place worth following."""
        best = min((reached.score for reached in found.values()), default=None)
        match stage:
            case _Stage.CLOSE:
                return best == 0  # closed, and at a new place
            case _Stage.HINTS:
                return best is not None and best <= 1
            case _Stage.GO_ON:
                return any(reached.score == best and reached.signature != place.signature for reached in found.values())
            case _Stage.LONGEST:
                return best is not None
            case _Stage.REST:
                return False

    def _step(self, place: _Place, token_ids: list[int], effort: _Effort) -> _Place | None:
        effort.num_left = 0 if effort.is_unwanted and effort.is_unwanted.is_set() else effort.num_left - 1
        state, text = place.state.fork(), b"".join(map(self.vocabulary.spelled, token_ids))
        try:
            if not all(map(state.accept_token, token_ids)):
                return None
        except GrammarError:  # the matcher cannot follow this path
            effort.was_cut = True
            return None
        score = 1 if place.is_free and text in _BRACKETS else _score(text)
        return self._reach(state, place.data + text, place.num_tokens + len(token_ids), place, effort, score)

    def _reach(
        self,
        state: GrammarMatcher,
        data: bytes,
        num_tokens: int,
        parent: _Place | None,
        effort: _Effort,
        score: int = 0,
    ) -> _Place | None:
        """Follow forced text and collect what may follow; None if nothing can follow. Takes ownership of `state`."""
        try:
            path = self._finish(state, data, effort)
            forced = [] if path is not None else self._forced(state)
            text = b""
            if forced:
                if not all(map(state.accept_token, forced)):
                    return None
                text = b"".join(map(self.vocabulary.spelled, forced))
                data, num_tokens = data + text, num_tokens + len(forced)
                path = self._finish(state, data, effort)
            if path is not None:
                return _Place(state, data, num_tokens, (), b"", 0, path, parent, 0)
            check: Any = getattr(state, "allowed", None)
            allowed = bytes(check(self._probes) if check is not None else (state.accepts([i]) for i in self._probes))
        except GrammarError:
            effort.was_cut = True
            return None
        signature = allowed + text
        num_seen, ancestor, left = 0, parent, _MAX_ANCESTORS
        while ancestor is not None and num_seen < _MAX_SEEN and left:
            num_seen += ancestor.signature == signature
            ancestor, left = ancestor.parent, left - 1
        probes = tuple(itertools.compress(self._probes, allowed))
        num_changes = 0 if parent is None else parent.num_changes + (parent.signature != signature)
        return _Place(state, data, num_tokens, probes, signature, score + num_seen, None, parent, num_changes)

    def _candidates(self, place: _Place, stage: _Stage, effort: _Effort) -> list[list[int]]:
        """Token sequences to try at a place."""
        match stage:
            case _Stage.CLOSE:
                return [[token_id] for token_id in place.probes if token_id in self._closers]
            case _Stage.HINTS:
                return self._fitting_hints(place, effort) if place.is_free else []
            case _Stage.GO_ON:
                skipped = self._closers | self._letters if place.is_free else self._closers
                return [[token_id] for token_id in place.probes if token_id not in skipped]
        row = np.empty(self.vocabulary.num_mask_words, dtype=np.int32)
        try:
            place.state.fill_bitmask(row)
        except GrammarError:  # the matcher cannot compute this mask
            effort.was_cut = True
            return []
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[: self._lengths.size])
        lengths = self._lengths[allowed]
        if stage is _Stage.REST:
            return [[int(token_id)] for token_id in allowed[lengths == 1]]
        hints = [] if place.is_free else self._fitting_hints(place, effort)
        if allowed.size > _NUM_LONGEST:
            top = np.argpartition(lengths, -_NUM_LONGEST)[-_NUM_LONGEST:]
            allowed, lengths = allowed[top], lengths[top]
        return hints + [[int(token_id)] for token_id in allowed[np.argsort(-lengths, kind="stable")]]

    def _fitting_hints(self, place: _Place, effort: _Effort) -> list[list[int]]:
        return [token_ids for token_ids in effort.hints if place.state.accepts(token_ids)]

    def _finish(self, state: GrammarMatcher, data: bytes, effort: _Effort) -> CompletionPath | None:
        """The whole path if the text is complete here or a bridge leads back to the earlier path; else None."""
        limit = effort.limit
        if state.is_accepting:
            path = CompletionPath(data, self.table)
            return path if path.cost() <= limit else None
        if effort.tail is None:
            return None
        earlier, _ = effort.tail
        for bridge, token_ids in self._bridges:
            if token_ids and not state.accepts(token_ids):
                continue
            for offset, near in effort.joints:
                # Most bridges fail within a few tokens.
                if state.accepts(token_ids + near) and self.completes(state, token_ids + earlier.token_ids(offset)):
                    path = CompletionPath(data + bridge + earlier.data[offset:], self.table, (earlier, offset))
                    if path.cost() <= limit:
                        return path
        return None

    def _joints(self, tail: tuple[CompletionPath, int] | None, limit: int) -> list[tuple[int, list[int]]]:
        """Offsets where the earlier path may be resumed: at its beginning, or where something in it ends."""
        if tail is None:
            return []
        path, start = tail
        ends = itertools.islice(_JOINT.finditer(path.data, start + 3), _NUM_JOINTS)
        offsets = dict.fromkeys((start, start + 1, start + 2, *(found.start() for found in ends)))
        return [
            (offset, path.head(offset, _NUM_NEAR))
            for offset in offsets
            if offset < len(path.data) and path.cost(offset) <= limit
        ]

    def _hints_of(self, matcher: GrammarMatcher) -> list[list[int]]:
        paths = [CompletionPath(text, self.table) for text in getattr(matcher, "hints", ())]
        return [path.token_ids() for path in paths if path.cost() < UNREACHABLE]

    def _forced(self, state: GrammarMatcher) -> list[int]:
        """Bytes that must come next. `forced_tokens` withholds tokens whose spelling may change, which does not matter here."""
        forced_bytes: Any = getattr(state, "forced_bytes", None)
        if forced_bytes is None:
            return state.forced_tokens()
        path = CompletionPath(forced_bytes(), self.table)
        return path.token_ids() if 0 < path.cost() < UNREACHABLE else []


@dataclass(slots=True)
class _Effort:
    """The target and the remaining bounds of one search. `max_tokens` counts the search's own tokens, an upper bound of the cost."""

    limit: int
    tail: tuple[CompletionPath, int] | None
    num_left: int
    max_tokens: int
    hints: list[list[int]]
    joints: list[tuple[int, list[int]]]  # an offset in the earlier path, and its next tokens from there
    is_unwanted: Event | None
    was_cut: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A state that the search reached. Places with equal signatures look alike: the same text led there and the same probes may follow."""

    state: GrammarMatcher
    data: bytes
    num_tokens: int
    probes: tuple[int, ...]  # the probe tokens that are allowed here
    signature: bytes
    score: int  # priority, lower is better: from its token and from how often such a place was visited
    path: CompletionPath | None
    parent: _Place | None
    num_changes: int  # how often the signature changed: an operand after an operator is a new place

    @property
    def kind(self) -> tuple[bytes, int]:
        """The search continues from one place of each kind only."""
        return self.signature, self.num_changes

    @property
    def is_free(self) -> bool:
        """Whether so much may follow that this is free text, where all letters are equivalent and brackets close nothing."""
        return len(self.probes) > _NUM_FREE


class _Stage(Enum):
    """The order in which tokens are tried at a place."""

    CLOSE = auto()  # closing tokens
    HINTS = auto()  # samples of the constraint's patterns
    GO_ON = auto()  # likely single characters
    LONGEST = auto()  # the longest tokens: they fill obligatory text in the fewest steps
    REST = auto()  # every single byte


def _score(text: bytes) -> int:
    """Priority of a token, lower is better: 0 closes, 1 is plain, 4 begins an escape or part of a character."""
    if text in _CLOSERS:
        return 0
    return 1 if _PLAIN.fullmatch(text) else 4


def _shared_end(data: bytes, earlier: CompletionPath) -> tuple[CompletionPath, int] | None:
    """The earlier path and the offset from which on `data` ends with it; None if they end differently."""
    low, high = 0, min(len(data), len(earlier.data))
    while low < high:
        middle = (low + high + 1) // 2
        if data.endswith(earlier.data[len(earlier.data) - middle :]):
            low = middle
        else:
            high = middle - 1
    return (earlier, len(earlier.data) - low) if low else None
