"""Errors that say where: the name of a generation, and the line that recorded it."""

from __future__ import annotations

from types import TracebackType

from rtlang.contract.errors import ParameterError, RtlangError, rebuild
from rtlang.lang.lazy_values.values import user_location


def at_generation(error: RtlangError, name: str | None, location: str, noun: str = "generation") -> RtlangError:
    """A copy of an error, without its traceback, with `generation` and `recorded_at`, which its message names too.

    Args:
        noun: the kind of thing that was recorded there, and how it belongs to the error.
    """
    if error.recorded_at is not None:
        return rebuilt(error, error.message)
    named = f" {name!r}" if name else ""
    copy = rebuilt(error, f"{error.message} ({noun}{named} at {location})")
    copy.generation, copy.recorded_at = name, location
    return copy


def rebuilt(error: RtlangError, message: str) -> RtlangError:
    """A copy of an error with another message and without its traceback."""
    copy = rebuild(error.code, message, error.facts)
    copy.__cause__ = error.__cause__
    return copy


class OptionsOf:
    """Context manager: errors of options name the generation `name` and the line of the user's call."""

    __slots__ = ("_name",)

    def __init__(self, name: object) -> None:
        self._name = name if isinstance(name, str) else None

    def __enter__(self) -> None:
        """Nothing is needed to begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ParameterError):
            raise at_generation(error, self._name, user_location()) from error.__cause__
