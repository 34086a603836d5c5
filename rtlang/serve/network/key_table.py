"""The keys of a server and the principal of each.

Keys come from a file (`keys_file`), from text in the same form (`keys`) and from the single `api_key`. A file holds digests of keys, never
the keys:

    [[keys]]
    name = "ana"
    sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    weight = 2.0
    limits = { max_places = 2000, tokens_per_minute = 100000 }

The file is read again when it changes. A file that cannot be read leaves the keys as they were.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.runs.principal import LOCAL, Principal

logger = logging.getLogger(__name__)

MAX_KEYS = 10_000
MAX_FILE_BYTES = 8 << 20
_KEY_BYTES = 32


def digest_of(key: str) -> str:
    """The SHA-256 of a key, in hexadecimal. Keys made by `new_key` are random, so they need no salt and no slow hash."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def new_key() -> str:
    """A random key."""
    return "rtl-" + secrets.token_urlsafe(_KEY_BYTES)


def entry_of(name: str, key: str) -> str:
    """The lines for a key in a file of keys."""
    return f"[[keys]]\nname = {json.dumps(Principal(name).name)}\nsha256 = {json.dumps(digest_of(key))}\n"


class KeyTable:
    """The principals of a server by key. Used on the server's event loop.

    Raises:
        ConfigError: the file or the text cannot be read; names the entry and the field.
    """

    def __init__(self, config: ServeConfig) -> None:
        self._path, self._text, self._api_key = config.keys_file, config.keys, config.api_key
        self._max_streams = config.max_streams_per_principal
        self._is_open = self._path is None and self._text is None and self._api_key is None
        self._stamp: tuple[int, int, int] | None = None
        self._by_digest: dict[str, Principal] = {}
        self._by_name: dict[str, Principal] = {}
        self._load()

    @property
    def is_open(self) -> bool:
        """Whether the server has no keys and answers everybody."""
        return self._is_open

    @property
    def is_shared(self) -> bool:
        """Whether several principals have keys."""
        return len(self._by_name) > 1

    def principal_of(self, key: str | None, client: str = "") -> Principal | None:
        """The principal of a key, with `client` as its client; None for an unknown key. Takes the same time for every unknown key."""
        if self._is_open:
            return replace(self._with_defaults(LOCAL), client=client)
        given, found = digest_of(key or ""), None
        for digest, principal in self._by_digest.items():
            if hmac.compare_digest(given, digest):
                found = principal
        return None if found is None or not key else replace(found, client=client)

    def current(self, principal: Principal) -> Principal | None:
        """The principal with its present settings; None if its keys were removed."""
        if self._is_open:
            return principal
        found = self._by_name.get(principal.name)
        return None if found is None else replace(found, client=principal.client)

    def reload(self, *, only_if_changed: bool = True) -> bool:
        """Read the file again; returns whether the keys are now those of the file. Errors are logged and change nothing."""
        if self._path is None or (only_if_changed and self._stamp == _stamp(self._path)):
            return False
        try:
            self._load()
        except ConfigError as error:
            self._stamp = _stamp(self._path)  # complain once, not at every check
            logger.error("the keys stay as they were: %s", error)
            return False
        logger.info("read %d keys", len(self._by_digest))
        return True

    def _load(self) -> None:
        entries: dict[str, Principal] = {}
        if self._path is not None:
            stamp = _stamp(self._path)
            entries |= _parsed("keys_file", self._path, _read(self._path))
            self._stamp = stamp
        if self._text is not None:
            entries |= _parsed("keys", "...", self._text)
        if self._api_key is not None:
            entries[digest_of(self._api_key)] = Principal("default")
        entries = {digest: self._with_defaults(principal) for digest, principal in entries.items()}
        self._by_digest = entries
        self._by_name = {principal.name: principal for principal in entries.values()}

    def _with_defaults(self, principal: Principal) -> Principal:
        """A principal with the limits of the server where it has none of its own."""
        if self._max_streams is None or principal.limits.max_streams is not None:
            return principal
        return replace(principal, limits=replace(principal.limits, max_streams=self._max_streams))


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise ConfigError("keys_file", path, f"expected at most {MAX_FILE_BYTES} bytes")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError("keys_file", path, f"cannot be read: {reason}") from None


def _parsed(source: str, shown: str, text: str) -> dict[str, Principal]:
    try:
        content: Any = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(source, shown, f"expected TOML, or JSON that begins with {{: {error}") from None
    if not isinstance(content, dict) or set(content) != {"keys"} or not isinstance(content["keys"], list):
        raise ConfigError(source, shown, "expected a list of entries under 'keys' and nothing else")
    if not 1 <= len(content["keys"]) <= MAX_KEYS:
        raise ConfigError(source, shown, f"expected 1 to {MAX_KEYS} entries")
    entries: dict[str, Principal] = {}
    settings: dict[str, Principal] = {}
    for number, entry in enumerate(content["keys"], 1):
        where = f"{source}, entry {number}"
        digest, principal = _entry(where, entry)
        if digest in entries:
            raise ConfigError(f"{where}, sha256", digest, "the digest of an earlier entry")
        if settings.setdefault(principal.name, principal) != principal:
            raise ConfigError(f"{where}, name", principal.name, "has other settings in an earlier entry")
        entries[digest] = principal
    return entries


def _entry(where: str, entry: object) -> tuple[str, Principal]:
    if not isinstance(entry, Mapping):
        raise ConfigError(where, entry, "expected a table")
    given = dict(entry)
    digest = given.pop("sha256", None)
    is_digest = isinstance(digest, str) and len(digest) == 64 and not set(digest) - set("0123456789abcdef")
    if not is_digest:
        raise ConfigError(
            f"{where}, sha256", digest, "expected the SHA-256 of a key: 64 hexadecimal digits, lower case"
        )
    if "name" not in given:
        raise ConfigError(f"{where}, name", None, "expected a name")
    for name in ("client", "share"):
        if name in given:
            raise ConfigError(f"{where}, {name}", given[name], "unknown field")
    try:
        principal = Principal.from_plain({"namespace": given["name"]} | given)
    except ConfigError as error:
        raise ConfigError(f"{where}, {error.field}", error.value, error.allowed) from None
    return str(digest), principal
