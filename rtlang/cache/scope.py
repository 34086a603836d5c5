"""Namespaces of the prefix cache: which stored sequences a request may find.

The tree compares token ids as 64-bit numbers, of which token ids use the lower half. The tokens of a namespace carry its number in the
upper half, so sequences of different namespaces share nothing. Tokens at the start of a sequence that agree with a public prompt carry no
number: they are shared by all, and what follows is not.
"""

from __future__ import annotations

import secrets
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtlang.cache.node import TOKEN_BYTES, common_tokens, pack

_SHIFT = 32
TOKEN_MASK = (1 << _SHIFT) - 1
"""The part of a number in the tree that is the token id."""
MAX_NAMESPACES = 1 << 15
"""Namespaces that are remembered, in about 10 MB. Each salt of a request makes one."""
_MAX_NUMBER = (1 << 31) - 1  # the tree's numbers are signed


@dataclass(frozen=True, slots=True)
class CacheScope:
    """The namespace of one sequence. Number 0 is the public one.

    Attributes:
        number: of the namespace.
        num_public: tokens at the start of the sequence that are public.
    """

    number: int = 0
    num_public: int = 0

    def pack(self, token_ids: Sequence[int], start: int = 0) -> bytes:
        """Tokens of a sequence from position `start` on, as the tree compares them."""
        num_public = max(0, self.num_public - start)
        if not self.number or num_public >= len(token_ids):
            return pack(token_ids)
        salt = self.number << _SHIFT
        return pack(token_ids[:num_public]) + array("q", [salt | each for each in token_ids[num_public:]]).tobytes()


PUBLIC = CacheScope()


class Namespaces:
    """Numbers of namespaces, and the public prompts. Used on the engine thread.

    Beyond `max_namespaces`, the one that was used least recently is forgotten: it gets another number when it comes again, so that nothing
    is shared with what it has stored before.

    Args:
        public_prompts: tokens of prompts whose cached pages are shared by all namespaces.
    """

    def __init__(self, public_prompts: Iterable[Sequence[int]] = (), *, max_namespaces: int = MAX_NAMESPACES) -> None:
        self._max_namespaces = max_namespaces
        self._numbers: OrderedDict[str, int] = OrderedDict()
        self._names: dict[int, str] = {0: ""}
        self._last_number = 0
        # Random, since digests of stored pages must not be those of another process.
        self._forgotten = f"forgotten {secrets.token_hex(8)}"
        self._public = [pack(each) for each in public_prompts]
        self._most_public = max(map(len, self._public), default=0) // TOKEN_BYTES

    def name(self, number: int) -> str:
        """The namespace with this number; of a forgotten one, a name that no other has."""
        return self._names.get(number) or ("" if not number else f"{self._forgotten} {number}")

    def scope(self, namespace: str, token_ids: Sequence[int]) -> CacheScope:
        """The scope of a sequence that begins with these tokens."""
        if not namespace:
            return PUBLIC
        number = self._numbers.get(namespace) or self._new_number(namespace)
        self._numbers.move_to_end(namespace)
        return CacheScope(number, self._num_public(token_ids))

    def _new_number(self, namespace: str) -> int:
        while True:  # begins again after 2^31 namespaces, whose pages have left the pool
            self._last_number = self._last_number % _MAX_NUMBER + 1
            if self._last_number not in self._names:
                break
        self._numbers[namespace], self._names[self._last_number] = self._last_number, namespace
        if len(self._numbers) > self._max_namespaces:
            del self._names[self._numbers.popitem(last=False)[1]]
        return self._numbers[namespace]

    def visible(
        self, scope: CacheScope, token_ids: Sequence[int], position: int, next_keys: Iterable[int]
    ) -> list[int]:
        """The tokens that are stored behind a sequence, as far as its namespace may know them: its own, and those of public prompts.

        Args:
            token_ids, position: the sequence is the first `position` of these tokens.
            next_keys: the stored tokens as numbers of the tree, of any namespace.
        """
        found = list[int]()
        for key in next_keys:
            number, token_id = unpacked(key)
            if number != scope.number:
                end = position + len(found) + 1
                if number or end > self._most_public:
                    break
                if self._num_public([*token_ids[:position], *found, token_id]) < end:
                    break
            found.append(token_id)
        return found

    def _num_public(self, token_ids: Sequence[int]) -> int:
        """Tokens at the start of a sequence that agree with a public prompt."""
        start = pack(token_ids[: self._most_public])
        return max((common_tokens(start, each) for each in self._public), default=0)


def unpacked(key: int) -> tuple[int, int]:
    """The namespace number and the token id of a number in the tree."""
    return key >> _SHIFT, key & TOKEN_MASK
