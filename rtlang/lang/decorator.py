"""The `@program` decorator: functions and methods become programs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Never, Self, TypeVar, overload

from rtlang.contract.errors import TraceError
from rtlang.lang.lazy_values.static_types import P, R_co
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.program import AsyncProgram, Program, make_program
from rtlang.lang.program_state.body import Body, name_of
from rtlang.lang.program_state.state import State

_T = TypeVar("_T")
_S = TypeVar("_S")


class ProgramMethod(Generic[_T, P, R_co]):
    """A program in a class body whose state follows `self`. On an instance it is a `Program`.

    Read from the class, it is called with the instance in front, as other methods are: `Agent.ask(agent, s, ...)`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        functools.update_wrapper(self, function)

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, instance: _T, owner: type[Any] | None = None) -> Program[P, R_co]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The program with its instance; read from the class, the method itself."""
        return self if instance is None else make_program(Body(self._function, receiver=(instance,)))

    def __call__(self, instance: _T, /, *args: Any, **kwargs: Any) -> Any:
        """`instance.method(...)`; see `Program.__call__`."""
        return make_program(Body(self._function, receiver=(instance,)))(*args, **kwargs)

    def __getattr__(self, name: str) -> Never:
        known = name_of(vars(self).get("_function", type(self)))
        raise AttributeError(
            f"{known}.{name}: {known} is a method, so read it from an instance, as in instance.{known}.{name}; "
            "for a class method write @rt.program above @classmethod"
        )

    def __repr__(self) -> str:
        return f"<program method {name_of(self._function)}>"


class ProgramClassMethod(Generic[P, R_co]):
    """A program in a class body whose state follows `cls`. On the class or an instance it is a `Program`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        functools.update_wrapper(self, function)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Program[P, R_co]:
        """The program with its class."""
        receiver = type(instance) if owner is None else owner
        made: Program[P, R_co] = make_program(Body(self._function, receiver=(receiver,)))
        return made

    def __repr__(self) -> str:
        return f"<program class method {name_of(self._function)}>"


if TYPE_CHECKING:

    class _AsyncMethod(ProgramMethod[_T, P, R_co]):
        @overload
        def __get__(self, instance: None, owner: type[Any]) -> Self: ...
        @overload
        def __get__(self, instance: _T, owner: type[Any] | None = None) -> AsyncProgram[P, R_co]: ...
        def __get__(self, instance: Any, owner: Any = None) -> Any: ...

    class _AsyncClassMethod(ProgramClassMethod[P, R_co]):
        def __get__(self, instance: Any, owner: type[Any] | None = None) -> AsyncProgram[P, R_co]: ...


@overload
def program(function: Callable[Concatenate[State, P], Coroutine[Any, Any, _T]]) -> AsyncProgram[P, _T]: ...  # type: ignore[overload-overlap]
@overload
def program(function: Callable[Concatenate[State, P], _T]) -> Program[P, _T]: ...  # type: ignore[overload-overlap]
@overload
def program(  # type: ignore[overload-overlap]
    function: Callable[Concatenate[type[_S], State, P], Coroutine[Any, Any, _T]],
) -> _AsyncClassMethod[P, _T]: ...
@overload
def program(function: Callable[Concatenate[type[_S], State, P], _T]) -> ProgramClassMethod[P, _T]: ...
@overload
def program(function: Callable[Concatenate[_S, State, P], Coroutine[Any, Any, _T]]) -> _AsyncMethod[_S, P, _T]: ...
@overload
def program(function: Callable[Concatenate[_S, State, P], _T]) -> ProgramMethod[_S, P, _T]: ...
def program(function: Any) -> Any:
    """Turn a plain or `async` function whose first parameter is the state into a program.

    In a class body it makes a method, whose state follows `self`; `@rt.program` stands above `@classmethod` and `@staticmethod`.

    Raises:
        TraceError: the function has no positional parameter for the state.
    """
    is_of_class = isinstance(function, classmethod)
    if isinstance(function, classmethod | staticmethod):
        is_static, function = not is_of_class, function.__func__
    else:
        is_static = False
    if not callable(function) or isinstance(function, Program | ProgramMethod | ProgramClassMethod | type):
        raise TraceError("@rt.program decorates a function", user_location())
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TraceError(
            f"{name_of(function)}() contains yield; a program returns its value. For values and text while it runs, iterate over "
            f"{name_of(function)}.stream(...)",
            user_location(),
        )
    positional = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD, each.VAR_POSITIONAL)
    ]
    if not positional:
        raise TraceError(
            f"{name_of(function)}() has no parameter; the first parameter must be the state", user_location()
        )
    if is_static or not (is_of_class or _has_receiver(positional)):
        return make_program(Body(function))
    if len(positional) < 2 and positional[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        raise TraceError(
            f"{name_of(function)}({positional[0].name}) has no state; the parameter after "
            f"{positional[0].name!r} must be the state",
            user_location(),
        )
    return ProgramClassMethod(function) if is_of_class else ProgramMethod(function)


def _has_receiver(positional: list[inspect.Parameter]) -> bool:
    """Whether the first parameter is an instance: by its name, or because the second parameter is annotated as the state."""
    first, *others = positional
    if _is_state(first.annotation):
        return False
    return first.name in ("self", "cls") or any(_is_state(each.annotation) for each in others[:1])


def _is_state(annotation: object) -> bool:
    text = annotation if isinstance(annotation, str) else ""
    return annotation is State or text.rpartition(".")[2] == "State"
