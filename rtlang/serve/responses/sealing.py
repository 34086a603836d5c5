"""Opaque texts that a client keeps for the server: thoughts and compacted conversations.

A sealed text is encrypted and authenticated with a key of its principal, so that nobody else can read, change or use it: a text that
another principal or another server made does not open. Encrypt-then-MAC with SHAKE-256 as the key stream (FIPS 202, as a keyed sponge) and
BLAKE2b as the MAC (RFC 7693). The key is made at the start of the server: after a restart, earlier texts do not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from typing import Any

_VERSION = "rts1_"
_NONCE_BYTES, _TAG_BYTES = 16, 16


class Sealer:
    """Seals values for principals. Thread-safe.

    Args:
        key: 32 secret bytes; by default random ones.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def seal(self, owner: str, purpose: str, value: Any) -> str:
        """The opaque text of a JSON value.

        Args:
            owner: name of the principal that may open it.
            purpose: the kind of the value; a text opens only for the purpose for which it was made.
        """
        data = json.dumps(value, separators=(",", ":")).encode()
        nonce = secrets.token_bytes(_NONCE_BYTES)
        body = nonce + self._crypted(owner, purpose, nonce, data)
        return _VERSION + base64.urlsafe_b64encode(body + self._tag(owner, purpose, body)).decode()

    def open(self, owner: str, purpose: str, text: str) -> Any | None:
        """The value of an opaque text; None if it was not sealed by this server for this owner and purpose."""
        if not text.startswith(_VERSION):
            return None
        try:
            whole = base64.urlsafe_b64decode(text.removeprefix(_VERSION).encode())
        except (binascii.Error, ValueError):
            return None
        body, tag = whole[:-_TAG_BYTES], whole[-_TAG_BYTES:]
        if len(body) < _NONCE_BYTES or not hmac.compare_digest(tag, self._tag(owner, purpose, body)):
            return None
        data = self._crypted(owner, purpose, body[:_NONCE_BYTES], body[_NONCE_BYTES:])
        return json.loads(data)

    def _secret(self, owner: str, purpose: str, use: str) -> bytes:
        return hashlib.blake2b(json.dumps([owner, purpose, use]).encode(), key=self._key, digest_size=32).digest()

    def _crypted(self, owner: str, purpose: str, nonce: bytes, data: bytes) -> bytes:
        """The data combined with the key stream, which encrypts and decrypts."""
        stream = hashlib.shake_256(self._secret(owner, purpose, "stream") + nonce).digest(len(data))
        return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data))

    def _tag(self, owner: str, purpose: str, body: bytes) -> bytes:
        return hashlib.blake2b(body, key=self._secret(owner, purpose, "tag"), digest_size=_TAG_BYTES).digest()
