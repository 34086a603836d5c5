"""The party that a request belongs to: its name, weight, prefix-cache namespace and limits.

A server derives the principal from the key of a request; a program in the process of its runtime is `LOCAL`. The principal goes with a
graph from the server to the engine as plain data.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from rtlang.contract.errors import ConfigError, ParameterError
from rtlang.contract.params import MAX_PRIORITY

MAX_NAME_LENGTH = 64
MAX_SALT_LENGTH = 256
MAX_WEIGHT = 1000.0
MAX_LIMIT = 1 << 50
_SALTED, _SALT_DIGITS = "salt ", 48  # together shorter than a name
DEFAULT_VALUE_BYTES = 1 << 30
"""`max_value_bytes` of a principal without one of its own."""


@dataclass(frozen=True, slots=True)
class PrincipalLimits:
    """Limits of all unfinished work of one principal; None for no limit of its own.

    Attributes:
        max_places: unfinished requests (n per generation, one per choice of a select).
        max_rows: requests that hold a row of the batch at the same time; others wait.
        max_prompt_bytes: bytes of the texts of unfinished graphs, in UTF-8.
        max_value_bytes: bytes in memory of the nodes and values of unfinished graphs: constants, results of functions and host calls; one
            graph may have a quarter of it. None for DEFAULT_VALUE_BYTES.
        max_prompt_tokens: tokens of the prompts of requests that hold a row at the same time; others wait. A longer prompt fails.
        max_output_tokens: the sum of `max_tokens` over unfinished requests.
        max_detached: graphs that run without a connection, to be resumed.
        max_connections: open WebSocket connections.
        max_streams: unfinished graphs, over WebSocket and HTTP together.
        tokens_per_minute: computed tokens (prompt tokens that were not cached, and generated tokens), as a refilling bucket that holds
            one minute.
        compile_seconds_per_minute: seconds of compiling constraints, as a refilling bucket that holds one minute.
    """

    max_places: int | None = None
    max_rows: int | None = None
    max_prompt_bytes: int | None = None
    max_value_bytes: int | None = None
    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None
    max_detached: int | None = None
    max_connections: int | None = None
    max_streams: int | None = None
    tokens_per_minute: int | None = None
    compile_seconds_per_minute: float | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None:
                continue
            if item.name == "compile_seconds_per_minute":
                _check_number(item.name, value, MAX_LIMIT)
            elif isinstance(value, bool) or not isinstance(value, int) or not _lowest(item.name) <= value <= MAX_LIMIT:
                raise ConfigError(
                    item.name, value, f"expected an integer from {_lowest(item.name)} to {MAX_LIMIT}, or None"
                )


_CHECKED_BEFORE = ("max_places", "max_prompt_bytes", "max_output_tokens", "max_streams", "tokens_per_minute")
"""The limits that are checked before a graph reaches the engine's process."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The party that a request belongs to.

    Attributes:
        name: an identifier for accounts, logs and metrics; never a key.
        weight: its share of computed tokens while others wait, relative to theirs.
        namespace: requests reuse cached prefixes of their own namespace only.
        limits: limits of its unfinished work.
        min_priority, max_priority: the priorities that its graphs may have; lower values run first.
        client: one client of the principal, such as a connection. Clients of one principal share its limits and its tokens.
        share: of this client in rows and pages, relative to the other clients; 1 is usual, and less makes its requests background work.
    """

    name: str = "local"
    weight: float = 1.0
    namespace: str = ""
    limits: PrincipalLimits = field(default_factory=PrincipalLimits)
    min_priority: int = -MAX_PRIORITY
    max_priority: int = MAX_PRIORITY
    client: str = ""
    share: float = 1.0

    def __post_init__(self) -> None:
        for name in ("name", "namespace", "client"):
            value = getattr(self, name)
            is_text = isinstance(value, str) and len(value) <= MAX_NAME_LENGTH and value.isprintable()
            if not is_text or (name == "name" and not value):
                raise ConfigError(name, value, f"expected printable text of at most {MAX_NAME_LENGTH} characters")
        _check_number("weight", self.weight, MAX_WEIGHT)
        _check_number("share", self.share, 1.0)
        for name in ("min_priority", "max_priority"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not -MAX_PRIORITY <= value <= MAX_PRIORITY:
                raise ConfigError(name, value, f"expected an integer from {-MAX_PRIORITY} to {MAX_PRIORITY}")
        if self.min_priority > self.max_priority:
            raise ConfigError("min_priority", self.min_priority, f"expected at most max_priority = {self.max_priority}")

    @property
    def max_value_bytes(self) -> int:
        """Bytes of the values of all of its unfinished graphs."""
        return self.limits.max_value_bytes or DEFAULT_VALUE_BYTES

    @property
    def is_background(self) -> bool:
        """Whether the requests of the client run in the time that the live ones of all principals leave."""
        return self.share < 1

    @property
    def client_id(self) -> tuple[str, str]:
        """Identifies the client among those of all principals."""
        return self.name, self.client

    def salted(self, salt: str) -> Principal:
        """The principal with a namespace of its own for this salt. It is a digest, which tells neither the salt nor the namespace."""
        named = json.dumps([self.namespace, salt]).encode()
        return replace(self, namespace=f"{_SALTED}{hashlib.sha256(named).hexdigest()[:_SALT_DIGITS]}")

    def priority_of(self, priority: int) -> int:
        """The nearest priority that the principal may use."""
        return min(max(priority, self.min_priority), self.max_priority)

    def in_engine(self) -> Principal:
        """The principal without the limits that are checked before its graphs reach the engine's process."""
        given = {name: None for name in _CHECKED_BEFORE if getattr(self.limits, name) is not None}
        return replace(self, limits=replace(self.limits, **given)) if given else self

    def to_plain(self) -> dict[str, Any]:
        """The principal as a map of plain values, without the defaults."""
        plain = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "limits"}
        plain = {name: value for name, value in plain.items() if value != getattr(LOCAL, name)}
        limits = {name: value for name, value in asdict(self.limits).items() if value is not None}
        return plain | ({"limits": limits} if limits else {})

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Principal:
        """The principal of a map made by `to_plain`.

        Raises:
            ConfigError: a field is unknown or invalid.
        """
        given = dict(plain)
        limits = given.pop("limits", None)
        if limits is not None:
            given["limits"] = PrincipalLimits(**_known("limits", limits, PrincipalLimits))
        return cls(**_known("principal", given, cls))


def check_cache_salt(salt: object) -> None:
    """Check a salt of the prefix cache.

    Raises:
        ParameterError: it is invalid.
    """
    if not isinstance(salt, str) or not 1 <= len(salt) <= MAX_SALT_LENGTH or not salt.isprintable():
        raise ParameterError("cache_salt", salt, f"expected printable text of 1 to {MAX_SALT_LENGTH} characters")


def _known(name: str, given: object, kind: type[Any]) -> dict[str, Any]:
    allowed = [item.name for item in fields(kind)]
    if not isinstance(given, Mapping):
        raise ConfigError(name, given, "expected a map")
    for key in given:
        if key not in allowed:
            raise ConfigError(f"{name}.{key}", given[key], f"unknown field; expected one of {', '.join(allowed)}")
    return dict(given)


def _lowest(name: str) -> int:
    return 0 if name == "max_detached" else 1


def _check_number(name: str, value: object, high: float) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 < value <= high:  # type: ignore[operator]
        raise ConfigError(name, value, f"expected a number above 0 and at most {high:g}")


LOCAL = Principal()
"""The principal of programs that run in the process of their runtime."""
