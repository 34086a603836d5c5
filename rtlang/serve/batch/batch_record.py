"""A batch as clients of the OpenAI API see it, and as it is kept on the disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.serve.batch.batch_usage import BatchUsage
from rtlang.serve.batch.file_store import new_batch_id, new_file_id
from rtlang.serve.openai.fields import FieldTable, check_inner, read_metadata, read_text

MIN_EXPIRY_S, MAX_EXPIRY_S = 3600, 2_592_000
"""Seconds after which a file may expire, as in the OpenAI API."""
MAX_WINDOW_S = 30 * 86_400
_UNITS = {"m": 60, "h": 3600, "d": 86_400}
_WINDOW = re.compile(r"([1-9]\d{0,5})([mhd])")
FIELDS = FieldTable(
    accepted=frozenset(("input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after")),
    hints=frozenset(("user", "service_tier")),
)
"""The fields of `POST /v1/batches`."""


class BatchStatus(StrEnum):
    """The states of a batch."""

    VALIDATING = "validating"
    FAILED = "failed"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing of the batch runs any more."""
        return self in (BatchStatus.FAILED, BatchStatus.COMPLETED, BatchStatus.EXPIRED, BatchStatus.CANCELLED)


@dataclass(slots=True)
class Batch:
    """A batch of one principal. Owned by the `Batches` of a server.

    Attributes:
        owner: the name of the principal.
        output_id, error_id: of the files, which exist once the batch has ended and if they have lines.
        times: when each state began, in seconds since 1970.
        model: that of the first response; None before it.
        usage: sums over the responses.
    """

    owner: str
    batch_id: str
    input_file_id: str
    endpoint: str
    completion_window: str
    created_at: int
    expires_at: int
    output_id: str
    error_id: str
    metadata: dict[str, str] | None = None
    output_expires_after_s: int | None = None
    status: BatchStatus = BatchStatus.VALIDATING
    times: dict[str, int] = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    total: int = 0
    completed: int = 0
    failed: int = 0
    has_output: bool = False
    has_errors: bool = False
    model: str | None = None
    usage: BatchUsage = field(default_factory=BatchUsage)

    def enter(self, status: BatchStatus, now: float) -> None:
        """Enter a state."""
        self.status = status
        self.times[status.value] = int(now)

    def to_object(self) -> dict[str, Any]:
        """The batch as clients see it."""
        found: dict[str, Any] = {
            "id": self.batch_id,
            "object": "batch",
            "endpoint": self.endpoint,
            "model": self.model,
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "input_file_id": self.input_file_id,
            "completion_window": self.completion_window,
            "status": self.status.value,
            "output_file_id": self.output_id if self.has_output else None,
            "error_file_id": self.error_id if self.has_errors else None,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "request_counts": {"total": self.total, "completed": self.completed, "failed": self.failed},
            "metadata": self.metadata,
            "usage": self.usage.to_object(),
        }
        states = (each for each in BatchStatus if each is not BatchStatus.VALIDATING)
        return found | {f"{each.value}_at": self.times.get(each.value) for each in states}

    def to_plain(self) -> dict[str, Any]:
        """The batch as it is kept."""
        return asdict(self) | {"status": self.status.value}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Batch:
        """The batch of a map made by `to_plain`.

        Raises:
            TypeError, ValueError: it is none.
        """
        known = {item.name for item in fields(cls)}
        given = {name: value for name, value in plain.items() if name in known}
        return cls(**given | {"status": BatchStatus(given["status"]), "usage": BatchUsage(**given.get("usage", {}))})


def read_batch(body: Mapping[str, Any], owner: str, endpoints: tuple[str, ...], now: float) -> Batch:
    """The batch that a request asks for.

    Args:
        endpoints: the routes that a batch may name.
    Raises:
        ParameterError: a field is missing or invalid; names it.
    """
    given = FIELDS.given(body)
    endpoint, window = read_text(given, "endpoint"), read_text(given, "completion_window")
    if endpoint not in endpoints:
        raise ParameterError("endpoint", endpoint[:200], f"expected {' or '.join(endpoints)}")
    expires_after_s = (
        read_expiry(given["output_expires_after"], "output_expires_after") if "output_expires_after" in given else None
    )
    return Batch(
        owner,
        new_batch_id(),
        read_text(given, "input_file_id"),
        endpoint,
        window,
        int(now),
        int(now) + _window_s(window),
        new_file_id(),
        new_file_id(),
        None if given.get("metadata") is None else read_metadata(given["metadata"]),
        expires_after_s,
    )


def read_expiry(value: Any, where: str) -> int:
    """The seconds of `expires_after` and `output_expires_after`.

    Raises:
        ParameterError: a field is missing or invalid; names it.
    """
    given = check_inner(where, value, ("anchor", "seconds"))
    if given.get("anchor") != "created_at":
        raise ParameterError(f"{where}.anchor", given.get("anchor"), "expected 'created_at'")
    seconds = given.get("seconds")
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal() and len(seconds) < 10:  # of a form
        seconds = int(seconds)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not MIN_EXPIRY_S <= seconds <= MAX_EXPIRY_S:
        raise ParameterError(f"{where}.seconds", seconds, f"expected an integer from {MIN_EXPIRY_S} to {MAX_EXPIRY_S}")
    return seconds


def _window_s(window: str) -> int:
    found = _WINDOW.fullmatch(window)
    seconds = 0 if found is None else int(found[1]) * _UNITS[found[2]]
    if not 0 < seconds <= MAX_WINDOW_S:
        raise ParameterError("completion_window", window[:200], "expected a time such as 24h, from 1m to 30d")
    return seconds
