"""Digests of the prefixes of a token sequence: a dictionary of digests finds the sequences that share a prefix.

The digest of a prefix hashes the digest at its last block border and the tokens after it. Chains with the same root have equal digests
for equal prefixes only, as far as BLAKE2b has no collisions. The root is secret, so clients cannot compute digests.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b

BLOCK_TOKENS = 64
"""Tokens of a block: 142,000 tokens take 10 ms with blocks of 16, 3.0 ms with 64 and 2.4 ms with 256, when measured."""
_DIGEST_BYTES = 16
_TOKEN = "I"  # token ids have at most 32 bits


class TokenChain:
    """The digests of a growing sequence. Owned by one turn of a session.

    Args:
        root: the digest of the empty sequence.

    Attributes:
        digests: after 0, 1, 2, ... blocks; `trim` drops all but the last one.
    """

    __slots__ = ("_num_dropped", "_rest", "digests")

    def __init__(self, root: bytes) -> None:
        self.digests = [root]
        self._num_dropped = 0  # digests before the first of `digests`
        self._rest = b""  # packed tokens after the last block

    def __len__(self) -> int:
        """Number of tokens."""
        num_blocks = self._num_dropped + len(self.digests) - 1
        return num_blocks * BLOCK_TOKENS + len(self._rest) // _TOKEN_BYTES

    def extend(self, token_ids: Sequence[int]) -> None:
        """Append tokens. O(number of tokens)."""
        data = self._rest + array(_TOKEN, token_ids).tobytes()
        digests, digest = self.digests, self.digests[-1]
        end = len(data) // _BLOCK_BYTES * _BLOCK_BYTES
        for start in range(0, end, _BLOCK_BYTES):
            digest = blake2b(digest + data[start : start + _BLOCK_BYTES], digest_size=_DIGEST_BYTES).digest()
            digests.append(digest)
        self._rest = data[end:]

    def trim(self) -> None:
        """Keep only the last digest, for a sequence that is only extended."""
        self._num_dropped += len(self.digests) - 1
        self.digests = self.digests[-1:]

    def end(self) -> tuple[bytes, int, bytes]:
        """The end of the sequence as (digest at the last block border, number of tokens after it, digest of the whole)."""
        return self.digests[-1], len(self._rest) // _TOKEN_BYTES, _with_rest(self.digests[-1], self._rest)


def digest_after(digest: bytes, token_ids: Sequence[int]) -> bytes:
    """Digest of a prefix that ends fewer than a block of tokens after a block border with this digest."""
    return _with_rest(digest, array(_TOKEN, token_ids).tobytes())


def _with_rest(digest: bytes, rest: bytes) -> bytes:
    return blake2b(digest + rest, digest_size=_DIGEST_BYTES).digest() if rest else digest


_TOKEN_BYTES = array(_TOKEN).itemsize
_BLOCK_BYTES = BLOCK_TOKENS * _TOKEN_BYTES
