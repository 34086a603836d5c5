"""Proves to two peers that both know the secret and serve the same model, and gives them a key for the session.

The client says hello with a nonce and the identity of its pages, the server answers with a nonce, the client proves that it knows the
secret, and then the server does. A proof is an HMAC-SHA256 over both nonces and the identity, with another label for each side, so no proof
can be used twice or sent back. The secret never travels. The pages of the session are sealed with a key that is made the same way: content
that was changed on its way, or belongs to another digest, is found.

This authenticates; it does not encrypt.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any

from rtlang.cache.tiers.peers.frames import FrameStream, PeerError

PROTOCOL_VERSION = 1
NONCE_BYTES = 16
HANDSHAKE_S = 5.0
"""Seconds for each frame of it."""
SEAL_BYTES = 16


class OtherModelError(PeerError):
    """The other side serves another model, format of pages or version."""


class SealKey:
    """Seals the pages of one session. Thread-safe."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, digest: bytes, page: bytes | memoryview) -> bytes:
        """The seal of a page, [SEAL_BYTES]; does not hold the interpreter's lock while it reads a large page."""
        found = hmac.new(self._key, digest, "sha256")
        found.update(page)
        return found.digest()[:SEAL_BYTES]

    def is_sealed(self, digest: bytes, page: bytes | memoryview, seal: Any) -> bool:
        """Whether the seal is that of the page."""
        return isinstance(seal, bytes) and hmac.compare_digest(seal, self.seal(digest, page))


def greet(stream: FrameStream, secret: bytes, identity: bytes, instance: bytes) -> tuple[SealKey, bytes]:
    """Open a session as the client.

    Args:
        identity: of the pages: their digest before the first page.
        instance: a name of this process.
    Returns:
        The key of the session, and the instance of the server.
    Raises:
        OtherModelError: the server has another identity.
        PeerError: it refuses, or does not know the secret.
    """
    own = secrets.token_bytes(NONCE_BYTES)
    stream.send({"t": "hello", "v": PROTOCOL_VERSION, "nonce": own, "identity": identity}, timeout_s=HANDSHAKE_S)
    other = _nonce(_expected(stream, "challenge"))
    label = own + other + identity
    stream.send({"t": "proof", "mac": _mac(secret, b"client", label), "instance": instance}, timeout_s=HANDSHAKE_S)
    answer = _expected(stream, "welcome")
    if not _is_mac(answer.get("mac"), _mac(secret, b"server", label)):
        raise PeerError("it does not know the secret")
    name = answer.get("instance")
    if not isinstance(name, bytes):
        raise PeerError("it has no instance")
    return SealKey(_mac(secret, b"pages", label)), name


def welcome(stream: FrameStream, secret: bytes, identity: bytes, instance: bytes) -> SealKey:
    """Open a session as the server; see `greet`.

    Raises:
        PeerError: the client was refused, and knows why.
    """
    hello = _expected(stream, "hello")
    if hello.get("v") != PROTOCOL_VERSION:
        stream.send({"t": "refused", "reason": "version"}, timeout_s=HANDSHAKE_S)
        raise PeerError("it speaks another version of the protocol")
    own, other = secrets.token_bytes(NONCE_BYTES), _nonce(hello)
    stream.send({"t": "challenge", "nonce": own}, timeout_s=HANDSHAKE_S)
    named = hello.get("identity")
    label = other + own + (named if isinstance(named, bytes) else b"")
    if not _is_mac(_expected(stream, "proof").get("mac"), _mac(secret, b"client", label)):
        stream.send({"t": "refused", "reason": "secret"}, timeout_s=HANDSHAKE_S)
        raise PeerError("it does not know the secret")
    if named != identity:
        stream.send({"t": "refused", "reason": "model"}, timeout_s=HANDSHAKE_S)
        raise OtherModelError("it serves another model, format of pages or version")
    stream.send({"t": "welcome", "mac": _mac(secret, b"server", label), "instance": instance}, timeout_s=HANDSHAKE_S)
    return SealKey(_mac(secret, b"pages", label))


def _mac(secret: bytes, side: bytes, label: bytes) -> bytes:
    return hmac.digest(secret, b"rtlang peers " + side + b"\0" + label, "sha256")


def _is_mac(given: Any, expected: bytes) -> bool:
    return isinstance(given, bytes) and hmac.compare_digest(given, expected)


def _expected(stream: FrameStream, kind: str) -> dict[str, Any]:
    fields, body = stream.receive(HANDSHAKE_S, HANDSHAKE_S)
    if fields.get("t") == "refused":
        reason = fields.get("reason")
        if reason == "model":
            raise OtherModelError("it serves another model, format of pages or version")
        raise PeerError(f"it refused: {str(reason)[:40]}")
    if fields.get("t") != kind or body:
        raise PeerError(f"expected the frame {kind}")
    return fields


def _nonce(fields: dict[str, Any]) -> bytes:
    nonce = fields.get("nonce")
    if not isinstance(nonce, bytes) or len(nonce) != NONCE_BYTES:
        raise PeerError(f"expected a nonce of {NONCE_BYTES} bytes")
    return nonce
