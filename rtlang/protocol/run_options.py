"""The options of a run in messages: one table of their names, places and forms.

An option stands in the body of an `open` message, or beside it; a message to an engine in another process holds them all side by side.
`/v1/programs` takes the options of the body, and the deadline. The deadline, the credit and the results of an earlier run are live: when
a graph is opened again elsewhere, its sender writes what is left of them, so they have no plain form here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rtlang.contract.accounts.request_context import RequestContext
from rtlang.contract.errors import GraphError
from rtlang.contract.params import MAX_CREDIT, MAX_PRIORITY, MAX_SEED
from rtlang.contract.runs.budget import Budget
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.runs.session_options import SessionOptions
from rtlang.protocol.continuation import continue_from_from_wire, known_from_wire
from rtlang.protocol.field_checks import MAX_ID, check_int, check_map, optional

Fields = Mapping[str, Any]
ReadInt = Callable[[Fields, str, int, int], int | None]
"""Reads an integer between two limits from a field; None if it is missing."""
Read = Callable[[Fields, str, ReadInt], Any]


class Place(Enum):
    """Where an option stands in an `open` message of `rtlang.v1`; ENGINE is for options that engines alone are sent."""

    BODY = "body"
    BESIDE = "beside"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True)
class OptionField:
    """One option in messages.

    Attributes:
        option: the field of `RunOptions`.
        name: the field of the message.
        read: the option from a map of fields; None if it is missing.
        write: its plain form; None for a live option.
    """

    option: str
    name: str
    place: Place
    read: Read
    write: Callable[[Any], Any] | None = None


def _integer(low: int, high: int) -> Read:
    return lambda fields, name, read_int: read_int(fields, name, low, high)


def _inputs(fields: Fields, name: str, read_int: ReadInt) -> dict[str, str]:
    inputs = optional(check_map, fields, name) or {}
    for key, text in inputs.items():
        if not isinstance(text, str):
            raise GraphError(None, name, f"{key[:80]!r} is {type(text).__name__}; expected a string")
    return inputs


def _text(fields: Fields, name: str, read_int: ReadInt) -> Any:
    return fields.get(name)  # `RunOptions` checks it


def _budget(fields: Fields, name: str, read_int: ReadInt) -> Budget | None:
    return None if fields.get(name) is None else Budget.from_plain(fields[name])


def _principal(fields: Fields, name: str, read_int: ReadInt) -> Principal:
    return Principal.from_plain(fields.get(name) or {})


def _context(fields: Fields, name: str, read_int: ReadInt) -> RequestContext | None:
    plain = optional(check_map, fields, name)
    return None if plain is None else RequestContext.from_plain(plain)


def _session(fields: Fields, name: str, read_int: ReadInt) -> SessionOptions | None:
    plain = optional(check_map, fields, name)
    return None if plain is None else SessionOptions.from_plain(plain)


def _flag(fields: Fields, name: str, read_int: ReadInt) -> bool:
    return fields.get(name) is True


def _milliseconds(fields: Fields, name: str, read_int: ReadInt) -> float | None:
    found = read_int(fields, name, 1, MAX_ID)
    return None if found is None else found / 1000


def _same(value: Any) -> Any:
    return value


_TABLE = (
    OptionField("inputs", "inputs", Place.BODY, _inputs, dict),
    OptionField("priority", "priority", Place.BODY, _integer(-MAX_PRIORITY, MAX_PRIORITY), _same),
    OptionField("seed", "seed", Place.BODY, _integer(0, MAX_SEED), _same),
    OptionField("budget", "budget", Place.BODY, _budget, Budget.to_plain),
    OptionField("cache_salt", "cache_salt", Place.BODY, _text, _same),
    OptionField(
        "principal", "principal", Place.ENGINE, _principal, lambda each: None if each == LOCAL else each.to_plain()
    ),
    OptionField("session", "session", Place.ENGINE, _session, SessionOptions.to_plain),
    OptionField("reports_progress", "progress", Place.BESIDE, _flag, _same),
    OptionField("context", "context", Place.BESIDE, _context, RequestContext.to_plain),
    OptionField("deadline_s", "deadline_ms", Place.BESIDE, _milliseconds),
    OptionField("credit", "credit", Place.BESIDE, _integer(0, MAX_CREDIT)),
)
BODY_FIELDS = tuple(item.name for item in _TABLE if item.place is Place.BODY)
"""Names of the options in the body of an `open` message."""


def _read_int(fields: Fields, name: str, low: int, high: int) -> int | None:
    return optional(check_int, fields, name, low, high)


def _read(items: tuple[OptionField, ...], fields: Fields, read_int: ReadInt = _read_int) -> dict[str, Any]:
    found = ((item.option, item.read(fields, item.name, read_int)) for item in items)
    return {option: value for option, value in found if value is not None}


def _written(options: RunOptions, place: Place | None = None) -> dict[str, Any]:
    """The plain options without the live ones; None where an option is not given."""
    plain: dict[str, Any] = {}
    for item in _TABLE:
        if item.write is not None and place in (None, item.place):
            value = getattr(options, item.option)
            plain[item.name] = None if value is None else item.write(value)
    return plain


def fields_of(options: RunOptions, place: Place) -> dict[str, Any]:
    """The fields of an `open` message, in its body or beside it, without the live ones. Options that are not given are left out."""
    return {name: value for name, value in _written(options, place).items() if value is not None and value is not False}


def deadline_ms(options: RunOptions, now: float) -> int | None:
    """What is left of the deadline of a run that has begun; None if it has none."""
    deadline = options.deadline
    return None if deadline is None else max(1, round(1000 * (deadline - now)))


_BODY = tuple(item for item in _TABLE if item.place is Place.BODY)
_BESIDE = tuple(item for item in _TABLE if item.place is Place.BESIDE)
_HTTP = tuple(item for item in _TABLE if item.name == "deadline_ms" or (item in _BODY and item.name != "inputs"))
_ENGINE = tuple(item for item in _TABLE if item.name != "deadline_ms")
HTTP_FIELDS = tuple(item.name for item in _HTTP)
"""Names of the options in the body of `/v1/programs`, besides inputs and open."""


def options_beside(message: Fields) -> dict[str, Any]:
    """The options that stand beside the body of an `open` message, by the names of `RunOptions`, without the results of an earlier run.

    Raises:
        ProtocolError: one is invalid; names the field.
    """
    return _read(_BESIDE, message)


def options_from_open(body: Fields, beside: Mapping[str, Any], continuation: Fields, *, is_open: bool) -> RunOptions:
    """The options of an `open` message.

    Args:
        beside: see `options_beside`.
        continuation: the fields `known` and `continue_from`.
    Raises:
        RtlangError: one is invalid; names the field.
    """
    return RunOptions(
        is_open=is_open,
        **_read(_BODY, body),
        **beside,
        known=known_from_wire(continuation),
        continue_from=continue_from_from_wire(continuation),
    )


def options_from_http(given: Fields, read_int: ReadInt) -> dict[str, Any]:
    """The options `HTTP_FIELDS` in the body of `/v1/programs`, by the names of `RunOptions`.

    Raises:
        RtlangError: one is invalid; names the field.
    """
    return _read(_HTTP, given, read_int)


def options_to_engine(options: RunOptions) -> dict[str, Any]:
    """The fields of a message that opens a graph at an engine, without the live ones."""
    return _written(options)


def options_from_engine(message: Fields) -> RunOptions:
    """The options in a message that opens a graph at an engine.

    Raises:
        RtlangError: one is invalid; names the field.
    """
    return RunOptions(
        is_open=message["open"],
        deadline_s=message.get("deadline_s"),
        **_read(_ENGINE, message),
        known=known_from_wire(message),
        continue_from=continue_from_from_wire(message),
    )
