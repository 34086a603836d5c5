"""Errors that say where: the name of a generation, and the line that recorded it."""

from __future__ import annotations

from types import TracebackType

from rtlang.contract.errors import ParameterError, RtlangError, rebuild
from rtlang.contract.graph.node_paths import tells_more
from rtlang.lang.lazy_values.values import user_location


def at_generation(
    error: RtlangError, name: str | None, location: str, noun: str = "generation", path: str | None = None
) -> RtlangError:
    """A copy of an error, without its traceback, with `generation`, `node_path` and `recorded_at`, which its message names too.

    Args:
        noun: the kind of thing that was recorded there, and how it belongs to the error.
        path: the path of the node; the message has it, too, where it tells more than the name.
    """
    if error.recorded_at is not None:
        return rebuilt(error, error.message)
    shown = path if path is not None and tells_more(path) else None
    named = f" {name!r}" if name else ""
    named += f"{',' if named else ''} {shown}{',' if named else ''}" if shown else ""
    copy = rebuilt(error, f"{error.message} ({noun}{named} at {location})")
    copy.generation, copy.node_path, copy.recorded_at = name, path, location
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
