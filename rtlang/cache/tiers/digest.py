"""Digests that name pages across processes and machines.

The digest of a page covers the identity of the model and its number formats, the namespace, and all tokens up to the end of the page: it
is chained from page to page. So equal digests mean equal K and V, and a page of one namespace is never found from another.

The states of recurrent layers are named in the same way, by all tokens before them. A state may lie inside a page: the page up to there,
its *tail*, has a digest of its own, since whole pages are named by all their tokens. The three kinds of digests are never equal.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b

from rtlang.cache.node import TOKEN_BYTES, pack

DIGEST_BYTES = 16


def root_digest(identity: str) -> bytes:
    """The digest before the first page. `identity` names whatever determines the content of pages besides tokens and namespace."""
    return blake2b(identity.encode(), digest_size=DIGEST_BYTES, person=b"rtlang root").digest()


def page_digest(before: bytes, namespace: str, tokens: bytes) -> bytes:
    """The digest of a page that follows a page with the digest `before`.

    Args:
        namespace: of the last token of the page; "" if the page is public.
        tokens: the tokens of the page, packed as int64 without a namespace number.
    """
    return _digest(b"rtlang page", before, namespace, tokens)


def state_digest(before: bytes, namespace: str, tokens: bytes) -> bytes:
    """The digest of the state after a page with the digest `before` and some more tokens; see `page_digest`.

    Args:
        namespace: of the last of these tokens; "" if there are none.
        tokens: fewer than a page.
    """
    return _digest(b"rtlang state", before, namespace, tokens)


def tail_digest(before: bytes, namespace: str, tokens: bytes) -> bytes:
    """The digest of a page whose first tokens are these, and whose others do not matter; see `state_digest`."""
    return _digest(b"rtlang tail", before, namespace, tokens)


def sequence_digests(
    root: bytes, token_ids: Sequence[int], page_size: int, num_pages: int, namespace: str = "", num_public: int = 0
) -> list[bytes]:
    """The digests of the first `num_pages` pages of a sequence.

    Args:
        namespace, num_public: the tokens from position `num_public` on belong to the namespace, those before are public.
    """
    data = pack(token_ids[: num_pages * page_size])
    page_bytes = page_size * TOKEN_BYTES
    found, before = list[bytes](), root
    for page in range(num_pages):
        name = namespace if (page + 1) * page_size > num_public else ""
        before = page_digest(before, name, data[page * page_bytes : (page + 1) * page_bytes])
        found.append(before)
    return found


def _digest(kind: bytes, before: bytes, namespace: str, tokens: bytes) -> bytes:
    name = namespace.encode()
    found = blake2b(before, digest_size=DIGEST_BYTES, person=kind)
    found.update(len(name).to_bytes(4, "little"))
    found.update(name)
    found.update(tokens)
    return found.digest()


def without_namespace(key: array[int], mask: int) -> bytes:
    """The packed tokens of a key of the tree, whose numbers have a namespace number above `mask`."""
    return array("q", [each & mask for each in key]).tobytes()
