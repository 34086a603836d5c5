"""Completion paths: bytes that complete a text, with the fewest tokens that spell each suffix. Special tokens stand in them as spelled.

A completion path is stored as bytes. One table, filled from the end, holds the token cost of every suffix; a path that ends like an earlier
one reuses that part of its table.
"""

from __future__ import annotations

from rtlang_grammars.spec.tokens import SPELLING_BYTES, TOKEN_LEAD, token_at
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.spec.work_limit import StoppableWork, WorkLimit

UNREACHABLE = 1 << 30
"""Cost of bytes that no tokens spell."""

_BYTES_A_UNIT = 8  # of a table of costs, see WorkLimit
_MAX_TOKEN_BYTES = 24  # longer tokens are rare, save little and would slow the table down


class CompletionPath:
    """Bytes that complete a text, and for every suffix the fewest tokens that spell it. Immutable.

    Attributes:
        data: the bytes.
    """

    __slots__ = ("_costs", "_lengths", "_spelled", "_table", "_tail", "data")

    def __init__(self, data: bytes, table: TokenTable, tail: tuple[CompletionPath, int] | None = None) -> None:
        """`tail`: an earlier path and an offset in it; `data` ends with the path from that offset on, whose costs are reused."""
        self.data, self._table, self._tail = data, table, tail
        self._costs: list[int] | None = None  # computed on first use
        self._lengths: list[int] = []
        self._spelled: dict[int, list[int]] = {}

    def cost(self, offset: int = 0) -> int:
        """The fewest tokens for data[offset:]; UNREACHABLE if no tokens spell it."""
        return self._known_costs()[offset]

    def fits(self, limit: int, offset: int = 0, work: WorkLimit | None = None) -> bool:
        """Whether data[offset:] takes at most `limit` tokens. Fast if one token per byte fits, and if even the longest tokens do not.

        Raises:
            WorkLimitError: finding out is more than `work` allows.
        """
        known = self.fits_at_once(limit, offset)
        if known is not None:
            return known
        if work is not None:
            work.spend(1 + (len(self.data) - len(self._known_end()[0])) // _BYTES_A_UNIT)
        return self._known_costs(work)[offset] <= limit

    def fits_at_once(self, limit: int, offset: int = 0) -> bool | None:
        """As `fits`, but None if the costs have to be computed first: neither one token per byte fits nor are the longest too many."""
        if self._table.has_every_byte and len(self.data) - offset <= limit:
            return True
        if len(self.data) - offset > limit * max(self._table.max_length, SPELLING_BYTES):
            return False
        return None if self._costs is None else self._costs[offset] <= limit

    @property
    def num_tokens(self) -> int | None:
        """The fewest tokens for the data; None while the costs are not computed, and if no tokens spell it."""
        return None if self._costs is None or self._costs[0] == UNREACHABLE else self._costs[0]

    def compute_costs(self, work: StoppableWork) -> None:
        """Compute the costs now, which takes about 2 us a byte.

        Raises:
            GrammarError: the budget is used up.
        """
        self._known_costs(work)

    def _known_costs(self, work: WorkLimit | None = None) -> list[int]:
        if self._costs is None:
            costs, self._lengths = self._table.costs(self.data, self._known_end(), work)
            self._costs, self._tail = costs, None  # last, since other threads look at it first
            return costs
        return self._costs

    def _known_end(self) -> tuple[list[int], list[int]]:
        """Costs and lengths of an end of the data, as far as an earlier path knows them; each path only leads to the one before it."""
        path, num_shared = self, len(self.data)
        while path._costs is None:
            if path._tail is None:
                return [], []
            path, offset = path._tail
            num_shared = min(num_shared, len(path.data) - offset)
        start = len(path.data) - num_shared
        return path._costs[start:], path._lengths[start:]

    def token_ids(self, offset: int = 0) -> list[int]:
        """Tokens that spell data[offset:], as few as possible. Do not modify the list."""
        found = self._spelled.get(offset)
        if found is None:
            found = self._spelled[offset] = self.head(offset, len(self.data))
        return found

    def head(self, offset: int, num_tokens: int) -> list[int]:
        """The first `num_tokens` of the tokens that spell data[offset:]."""
        self._known_costs()
        data, lengths, ids = self.data, self._lengths, self._table.ids
        found: list[int] = []
        while offset < len(data) and len(found) < num_tokens:
            end = offset + lengths[offset]
            token_id = token_at(data, offset) if data[offset] == TOKEN_LEAD else ids[data[offset:end]]
            assert token_id is not None, "a token that is cut off has no cost"
            found.append(token_id)
            offset = end
        return found

    def num_first_bytes(self, offset: int) -> int:
        """The bytes of the first of the tokens that spell data[offset:]."""
        self._known_costs()
        return self._lengths[offset]


class TokenTable:
    """Tokens by their bytes. Immutable.

    Attributes:
        ids: token id by bytes, without special tokens.
        has_every_byte: every byte of UTF-8 is a token, so any bytes can be spelled.
        max_length: bytes of the longest token.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.ids = {text: i for text, i in vocabulary.ids_by_bytes().items() if len(text) <= _MAX_TOKEN_BYTES}
        self.max_length = max(map(len, self.ids), default=1)
        self.has_every_byte = all(bytes([byte]) in self.ids for byte in range(TOKEN_LEAD))

    def costs(
        self, data: bytes, known: tuple[list[int], list[int]], work: WorkLimit | None = None
    ) -> tuple[list[int], list[int]]:
        """For each offset the fewest tokens to the end, and the length of the first of them; both [len(data) + 1].

        Args:
            known: these of the last offsets; may be empty.
            work: asked on the way if it `waits`; otherwise it is spent already.
        """
        asks = work if work is not None and work.waits else None
        costs, lengths = known if known[0] else ([0], [0])
        num_new = len(data) + 1 - len(costs)
        costs, lengths = [UNREACHABLE] * num_new + costs, [0] * num_new + lengths
        ids = self.ids
        for at in range(num_new - 1, -1, -1):
            if asks is not None and not at % 256:
                asks.spend()
            if data[at] == TOKEN_LEAD:
                end = at + SPELLING_BYTES
                if end <= len(data) and costs[end] < UNREACHABLE:
                    costs[at], lengths[at] = costs[end] + 1, SPELLING_BYTES
                continue
            best = UNREACHABLE
            for end in range(at + 1, min(at + self.max_length, len(data)) + 1):
                if costs[end] < best and data[at:end] in ids:
                    best, lengths[at] = costs[end], end - at
            costs[at] = min(best + 1, UNREACHABLE)
        return costs, lengths
