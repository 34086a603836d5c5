"""The function of a program, its bound arguments, and how it is called."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from rtlang.contract.errors import TraceError
from rtlang.lang.lazy_values.identity_tests import check_argument
from rtlang.lang.lazy_values.values import Value, inputs_of, source_of, user_location
from rtlang.lang.program_state.current_body import running
from rtlang.lang.program_state.expr import Expr, described
from rtlang.lang.program_state.state import State

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def current_state() -> State | None:
    """The state of the innermost running program body in this context."""
    found: State | None = running.get()
    return found


@contextmanager
def state_of_body(state: State) -> Iterator[None]:
    """Make `state` the current state within a context."""
    token = running.set(state)
    try:
        yield
    finally:
        running.reset(token)


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function, of the function of a `functools.partial`, or of the class of another callable object."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


_signatures: WeakKeyDictionary[Any, inspect.Signature] = WeakKeyDictionary()


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function; read once, because each row of a batch binds its arguments.

    Raises:
        TypeError, ValueError: as `inspect.signature`.
    """
    try:
        found = _signatures.get(function)
    except TypeError:  # of an object that is not hashable or has no weak references
        return inspect.signature(function)
    if found is None:
        found = _signatures[function] = inspect.signature(function)
    return found


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether calling `function` gives a coroutine; also for partial functions and objects with a coroutine `__call__`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _keyword_names(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the parameters that can be given by keyword."""
    try:
        return _cached_names(function)
    except TypeError:  # an object that cannot be hashed
        return _cached_names.__wrapped__(function)


@functools.lru_cache(maxsize=4096)
def _cached_names(function: Callable[..., Any]) -> frozenset[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = signature_of(function).parameters.values()
    return frozenset(each.name for each in found if each.kind in kinds)


def _positional_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters that can be given by position and by keyword, from the first one on."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(each.name for each in signature_of(function).parameters.values() if each.kind in kinds)


def in_order(value: Any) -> Any:
    """The value with sets as lists: their order differs from one process to the next."""
    match value:
        case set() | frozenset():
            return sorted(map(in_order, value), key=repr)
        case list() | tuple():
            return [in_order(each) for each in value]
        case dict():
            return {name: in_order(each) for name, each in value.items()}
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Body:
    """A function whose first parameter is a state, with bound arguments for the others.

    Attributes:
        receiver: the instance or class in front of the state, if the function is a method; else empty.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    receiver: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return name_of(self.function)

    @property
    def is_async(self) -> bool:
        return is_coroutine_function(self.function)

    def identity(self) -> str:
        """A text that tells a run of the body from others: the names of the function and of its module, and a digest of the arguments.

        It is the same in every process. Objects whose representation has an address count as their type.
        """
        function = self.function
        while isinstance(function, functools.partial):
            function = function.func
        return f"{getattr(function, '__module__', '')}.{self.name} {self.arguments_digest()}"

    def arguments_digest(self) -> str:
        """A digest of the bound arguments, the same in every process, and whether they were given by position or by keyword.

        Objects whose representation has an address count as their type.
        """
        names = _positional_names(self.function)[len(self.receiver) + 1 :]
        given = {**dict(zip(names, self.args, strict=False)), **self.kwargs}
        found = (self.args[len(names) :], [(name, given[name]) for name in sorted(given)])
        with suppress(RecursionError):  # data that contains itself
            found = in_order(found)
        text = repr(found)
        return hashlib.blake2b(_ADDRESS.sub("", text).encode(errors="surrogatepass"), digest_size=16).hexdigest()

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Body:
        """A copy with more arguments bound; a repeated keyword replaces the earlier value.

        Raises:
            TypeError: the function does not accept these arguments.
        """
        both = Body(self.function, (*self.args, *args), {**self.kwargs, **kwargs}, self.receiver)
        try:
            signature_of(self.function).bind_partial(*self.receiver, None, *both.args, **both.kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        return both

    def open_names(self, args: tuple[Any, ...], among: Collection[str]) -> frozenset[str]:
        """The parameters with these names that a keyword can give, once `args` are bound too."""
        own = _keyword_names(self.function)
        if own.isdisjoint(among):
            return frozenset()
        try:
            given = signature_of(self.function).bind_partial(*self.receiver, None, *self.args, *args, **self.kwargs)
        except TypeError:  # reported when the arguments are bound
            return frozenset()
        return own.intersection(among).difference(given.arguments)

    def check_complete(self) -> None:
        """Check that the function can be called.

        Raises:
            TypeError: an argument is missing or unknown.
            TraceError: an argument is an input of a graph (`rt.arg`), which has no text in a run.
        """
        try:
            signature_of(self.function).bind(*self.receiver, None, *self.args, **self.kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        for value in (*self.args, *self.kwargs.values()):
            if isinstance(value, Value) and source_of(value) is None:
                names = ", ".join(inputs_of(value))
                raise TraceError(
                    f"rt.arg({names!r}) is only allowed in graph(); pass the text itself to run()", user_location()
                )

    def call(self, state: State) -> Any:
        """Call a plain function.

        Raises:
            TraceError: it tests a generated argument as `identity_tests` refuses.
        """
        self._check_arguments()
        token = running.set(state)
        try:
            return self._checked(self.function(*self.receiver, state, *self.args, **self.kwargs))
        finally:
            running.reset(token)

    async def call_async(self, state: State) -> Any:
        """Call a coroutine function. Raises as `call`."""
        self._check_arguments()
        token = running.set(state)
        try:
            returned = await self.function(*self.receiver, state, *self.args, **self.kwargs)
            if inspect.iscoroutine(returned):  # return rt.value(x), without await
                returned = await returned
            return self._checked(returned)
        finally:
            running.reset(token)

    def _check_arguments(self) -> None:
        code = getattr(self.function, "__code__", None)
        if not isinstance(code, CodeType):
            return
        names = code.co_varnames[len(self.receiver) + 1 : code.co_argcount]
        for name, value in (*zip(names, self.args, strict=False), *self.kwargs.items()):
            check_argument(value, code, name)

    def _checked(self, returned: Any) -> Any:
        """Return the value of the function; raise TraceError if it is or has an expression, which would never be generated."""
        items: Iterable[object] = (returned,)
        if isinstance(returned, dict):
            items = returned.values()
        elif isinstance(returned, (list, tuple)):
            items = returned
        for each in items:
            if not isinstance(each, Expr):
                continue
            raise TraceError(
                f"{self.name}() returns {described(each)}, which is not part of a sequence: "
                "append it with s += ..., and return s[name]",
                user_location(),
            )
        return returned
