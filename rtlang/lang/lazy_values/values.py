"""Lazy values of generations.

A `Value` stands for a value that a running graph will produce. It can be used in text, stored and passed on. Operations on the actual value
(truth, `int()`, an f-string, iteration, ...) wait for it, which is a graph break; `await value` waits without blocking a thread. All public
attributes belong to the actual value, so this class defines none.

Pure operations (methods of strings, fields and items, arithmetic, comparisons) give another lazy value, if
`rtlang.lang.lazy_values.operations` can compute it in the graph. Python computes the same from the actual values if it needs the result
itself.

The class of a value is named after its variable, because functions written in C know nothing else about it: `json.dumps` and `", ".join`
name the class in their errors.
"""

from __future__ import annotations

import operator
import sys
from asyncio import Task, current_task
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from types import FrameType
from typing import Any, Protocol

from rtlang.contract.errors import TraceError
from rtlang.contract.request_graph import Arg, Operand, Part, Ref
from rtlang.lang.lazy_values import operations
from rtlang.lang.lazy_values.identity_tests import check_tests
from rtlang.lang.lazy_values.operations import Lazy, Term
from rtlang.lang.lazy_values.static_types import AnyValue
from rtlang.lang.output_types.kinds import STR


class ValueSource(Protocol):
    """The recording that values belong to."""

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine, which must await values."""

    @property
    def is_in_block(self) -> bool:
        """Whether a branch or the body of a loop is being recorded, where nothing can be waited for."""

    def has(self, node_ids: Sequence[int]) -> bool:
        """Whether these nodes have ended."""

    def type_of(self, ref: Ref) -> Any:
        """The output type of a generation or select; None for another node."""

    def location_of(self, node_ids: Sequence[int]) -> str:
        """`file:line` of the call that recorded the last of these nodes."""

    def needs_of(self, node_ids: Sequence[int]) -> tuple[int, ...]:
        """The generations that must have ended before the texts or values of these nodes are known."""

    def lazy_of(self, ref: Ref) -> Lazy | None:
        """A generation with a type other than text, as a lazy value; None if its type has no kind."""

    def operand(self, term: Term, needs: tuple[int, ...], read: Callable[[], Any], what: str) -> Ref:
        """The node that computes a term; recorded once for equal terms.

        Args:
            needs: see `needs_of`.
            read: computes the value in Python, once they have ended.
            what: describes the value.
        """

    def require(self, node_ids: Sequence[int], reason: str, what: str) -> None:
        """Wait until these nodes have ended; a graph break if one has not.

        Raises:
            TraceError: a graph break is not possible here.
        """

    async def require_async(self, node_ids: Sequence[int], what: str, location: str) -> None:
        """`require` for coroutines."""

    def text_of(self, node_id: int, choice: int) -> str:
        """The text of a node that has ended; raises the error of a failed node."""


def user_frame() -> FrameType | None:
    """The innermost frame outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module != "rtlang" and not module.startswith("rtlang."):
            return frame
        frame = frame.f_back
    return None


def user_location() -> str:
    """`file:line` of the innermost frame outside this package."""
    frame = user_frame()
    return "<unknown>:0" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Value(AnyValue):
    """A value that a running graph will produce.

    Within text it stands for the generated text, without waiting. Other uses wait for the value in a plain program; an `async def` program
    must `await` it first. In `Program.graph` both raise TraceError.
    """

    __slots__ = ("_rt_is_text", "_rt_lazy", "_rt_needs", "_rt_parts", "_rt_read", "_rt_source", "_rt_what")

    def __new__(
        cls,
        source: ValueSource | None,
        needs: tuple[int, ...],
        parts: tuple[Part, ...] | None,
        read: Callable[[], Any],
        what: str,
        is_text: bool = False,
        lazy: Lazy | None = None,
    ) -> Value:
        return object.__new__(_named_class(what, is_async=source is not None and source.is_async))

    def __init__(
        self,
        source: ValueSource | None,
        needs: tuple[int, ...],
        parts: tuple[Part, ...] | None,
        read: Callable[[], Any],
        what: str,
        is_text: bool = False,
        lazy: Lazy | None = None,
    ) -> None:
        self._rt_lazy = lazy
        self._rt_source, self._rt_needs, self._rt_parts = source, needs, parts
        self._rt_read, self._rt_what, self._rt_is_text = read, what, is_text

    def _rt_real(self, reason: str) -> Any:
        if self._rt_source is not None:
            self._rt_source.require(self._rt_needs, reason, self._rt_what)
        return self._rt_read()

    def _rt_form(self) -> Lazy | None:
        return lazy_form(self)

    def __repr__(self) -> str:
        return f"<value of {self._rt_what}>"

    def __str__(self) -> str:
        return str(self._rt_real("str() or an f-string"))

    def __format__(self, spec: str) -> str:
        return format(self._rt_real("an f-string or format()"), spec)

    def __bool__(self) -> bool:
        return bool(self._rt_real("a truth test"))

    def __int__(self) -> int:
        return int(self._rt_real("int()"))

    def __float__(self) -> float:
        return float(self._rt_real("float()"))

    def __index__(self) -> int:
        return operator.index(self._rt_real("use as an index"))

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._rt_real("round()"), digits)

    def __fspath__(self) -> str:
        return str(self._rt_real("use as a path"))

    def __len__(self) -> int:
        return len(self._rt_real("len()"))

    def __iter__(self) -> Iterator[Any]:
        if self._rt_is_text and _caller() == "pydantic":  # which takes any iterable for a list, but no text
            raise TypeError(f"a {_class_name(self._rt_what)} is not a list")
        return iter(self._rt_real("iteration"))

    def __reversed__(self) -> Iterator[Any]:
        return iter(reversed(self._rt_real("reversed()")))

    def __contains__(self, item: object) -> bool:
        return real(item) in self._rt_real("`in`")

    def __getitem__(self, key: Any) -> Any:
        lazy = lazy_form(self)
        if lazy is not None:
            found = None
            if isinstance(key, slice):
                found = operations.cut(lazy, key)
            elif (index := lazy_form(key)) is not None:
                found = operations.item(lazy, index)
            made = derived(found, operator.getitem, (self, key), f"{self._rt_what}[{_shown(key)}]")
            if made is not None:
                return made
        return self._rt_real("indexing")[real(key)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_rt_", "_repr_", "_ipython_")):  # looked up by Python, this class and notebooks
            raise AttributeError(name)
        lazy = lazy_form(self)
        if lazy is not None:
            if operations.is_method(lazy.kind, name):
                return _Method(self, name)
            found = operations.field(lazy, name)
            made = derived(found, lambda owner: getattr(owner, name), (self,), f"{self._rt_what}.{name}")
            if made is not None:
                return made
        return getattr(self._rt_real(f"attribute .{name}"), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._rt_real("a call")(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self._rt_real("hash()"))

    def __add__(self, other: Any) -> Any:
        joined = _joined(self, other)
        if joined is not None:
            return joined
        if hasattr(type(other), "_rt_is_expression"):  # expressions implement __radd__
            return NotImplemented
        return _operated("add", self, other)

    def __radd__(self, other: Any) -> Any:
        joined = _joined(other, self)
        return joined if joined is not None else _operated("add", other, self)

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError(f"cannot pickle a {_class_name(self._rt_what)}")

    def __copy__(self) -> Value:
        return self

    def __deepcopy__(self, memo: object) -> Value:
        return self

    def __await__(self) -> Generator[Any, None, AnyValue]:
        return self._rt_await(user_location()).__await__()

    async def _rt_await(self, location: str) -> Any:
        if self._rt_source is not None:
            await self._rt_source.require_async(self._rt_needs, self._rt_what, location)
        return self._rt_read()


class _AwaitableValue(Value):
    """A value of an `async def` program: also a coroutine, which `asyncio` can make a task of, any number of times."""

    __slots__ = ("_rt_tasks",)

    _rt_tasks: dict[Task[Any] | None, Coroutine[Any, Any, Any]]

    def _rt_coroutine(self) -> Coroutine[Any, Any, Any]:
        try:
            tasks = self._rt_tasks
        except AttributeError:
            tasks = self._rt_tasks = {}
        task = current_task()
        if task not in tasks:
            assert self._rt_source is not None
            tasks[task] = self._rt_await(
                self._rt_source.location_of(self._rt_needs)
            )  # no frame of the body is known here
            if task is not None:
                task.add_done_callback(lambda ended: tasks.pop(ended, None))
        return tasks[task]

    def send(self, item: Any) -> Any:
        """See `collections.abc.Coroutine`: one step of the current task's wait for this value."""
        return self._rt_coroutine().send(item)

    def throw(self, *error: Any) -> Any:
        """See `collections.abc.Coroutine`."""
        return self._rt_coroutine().throw(*error)

    def close(self) -> None:
        """See `collections.abc.Coroutine`."""
        self._rt_coroutine().close()

    def __getattr__(self, name: str) -> Any:
        if name in _COROUTINE_ATTRIBUTES:  # asyncio describes a task by them
            raise AttributeError(name)
        return super().__getattr__(name)

    def __hash__(self) -> int:
        if _caller() == "asyncio" and not self._rt_source.has(self._rt_needs):  # type: ignore[union-attr]
            return id(self)  # gather and as_completed only look for one object given twice
        return super().__hash__()


_COROUTINE_ATTRIBUTES = frozenset(
    f"{kind}_{name}" for kind in ("cr", "gi", "ag") for name in ("code", "frame", "running", "await")
)
_classes: dict[tuple[str, bool], type[Value]] = {}
_MAX_CLASSES = 2_000


def _class_name(what: str) -> str:
    return f"lazy value of {what:.80} (write rt.value(...) to get the actual value)"


def _named_class(what: str, *, is_async: bool) -> type[Value]:
    """The class of values of a variable; made once per name."""
    found = _classes.get((what, is_async))
    if found is None:
        base = _AwaitableValue if is_async else Value
        if len(_classes) >= _MAX_CLASSES:  # a program with endless names
            what = "a variable"
        made = type(_class_name(what), (base,), {"__slots__": (), "__module__": "rtlang"})
        found = _classes.setdefault((what, is_async), made)
    return found


def _caller() -> str:
    """The package of the innermost Python code that calls a method of a value."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).partition(".")[0]


class _Method:
    """A method of a string that does not exist yet."""

    __slots__ = ("_name", "_value")

    def __init__(self, value: Value, name: str) -> None:
        self._value, self._name = value, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value, name = self._value, self._name
        lazy = lazy_form(value)
        if lazy is not None and not kwargs:
            found = operations.method(lazy, name, [lazy_form(each) for each in args])
            shown = ", ".join(map(_shown, args))
            call = lambda owner, *given: getattr(owner, name)(*given)  # noqa: E731
            made = derived(found, call, (value, *args), f"{value._rt_what}.{name}({shown})")
            if made is not None:
                return made
        actual = getattr(value._rt_real(f"attribute .{name}"), name)
        return actual(*map(real, args), **{key: real(each) for key, each in kwargs.items()})

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(self._value._rt_real(f"attribute .{self._name}"), self._name), name)


_ORDER_SYMBOLS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", **_ORDER_SYMBOLS}


def _operated(name: str, left: Any, right: Any) -> Any:
    """A binary operator of the `operator` module, of which at least one side is lazy."""
    if name in _SYMBOLS:
        forms = lazy_form(left), lazy_form(right)
        if forms[0] is not None and forms[1] is not None:
            found = operations.binary(name, forms[0], forms[1])
            what = f"{_shown(left)} {_SYMBOLS[name]} {_shown(right)}"
            made = derived(found, getattr(operator, name), (left, right), what)
            if made is not None:
                return made
    reason = "a comparison" if name in _ORDER_SYMBOLS else "arithmetic"
    first, second = (side._rt_real(reason) if isinstance(side, Value) else side for side in (left, right))
    return divmod(first, second) if name == "divmod" else getattr(operator, name)(first, second)


def _binary(name: str, is_reflected: bool) -> Callable[[Value, Any], Any]:
    if is_reflected:
        return lambda self, other: _operated(name, other, self)
    return lambda self, other: _operated(name, self, other)


def _unary(function: Callable[..., Any]) -> Callable[[Value], Any]:
    def method(self: Value) -> Any:
        lazy = lazy_form(self) if function is operator.neg else None
        made = None if lazy is None else derived(operations.negative(lazy), function, (self,), f"-{self._rt_what}")
        return function(self._rt_real("arithmetic")) if made is None else made

    return method


for _name in (
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "divmod",
    "pow",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "matmul",
):
    setattr(Value, f"__{_name.rstrip('_')}__", _binary(_name, is_reflected=False))
    setattr(Value, f"__r{_name.rstrip('_')}__", _binary(_name, is_reflected=True))
for _name in _ORDER_SYMBOLS:
    setattr(Value, f"__{_name}__", _binary(_name, is_reflected=False))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Value, f"__{_name}__", _unary(getattr(operator, _name)))


def lazy_form(item: Any) -> Lazy | None:
    """An item as a part of a lazy operation: a value of a known kind, or a constant; None for everything else."""
    if not isinstance(item, Value):
        return operations.constant(item)
    if item._rt_lazy is None and item._rt_parts is not None:
        if item._rt_is_text:
            item._rt_lazy = operations.text_of_parts(item._rt_parts)
        elif item._rt_source is not None:
            (ref,) = item._rt_parts
            assert isinstance(ref, Ref)
            item._rt_lazy = item._rt_source.lazy_of(ref)
    return item._rt_lazy


def derived(lazy: Lazy | None, compute: Callable[..., Any], args: Sequence[Any], what: str) -> Value | None:
    """The value of `compute(*args)`, which is `lazy`; None if that cannot be computed lazily."""
    if lazy is None or (isinstance(lazy.term, operations.Operation) and lazy.term.is_too_deep):
        return None
    values = [each for each in args if isinstance(each, Value)]
    source, needs = values[0]._rt_source, values[0]._rt_needs
    for each in values[1:]:
        if source is None:
            source = each._rt_source
        elif each._rt_source not in (None, source):
            return None
        needs = tuple(dict.fromkeys((*needs, *each._rt_needs)))
    if not lazy.is_certain and not (source is not None and source.is_in_block):
        return None  # Python code may test it with `is None`

    def read() -> Any:
        return compute(*map(real, args))

    made = Value(source, needs, None, read, what[:120], is_text=lazy.kind == STR, lazy=lazy)
    if not lazy.is_certain and (frame := user_frame()) is not None:
        check_tests(made, frame)
    return made


def _shown(item: Any) -> str:
    return item._rt_what if isinstance(item, Value) else repr(item)[:40]


def real(item: Any) -> Any:
    """The actual value of a `Value`, which waits for it; other items are returned unchanged."""
    return item._rt_real("use with another value") if isinstance(item, Value) else item


def parts_of(value: Value, source: ValueSource | None = None) -> tuple[Part, ...] | None:
    """The text parts that represent a value; None if it must be waited for.

    Args:
        source: records the node that computes the value; by default the recording that it belongs to.
    """
    source = value._rt_source or source
    lazy = value._rt_lazy
    if value._rt_parts is not None or lazy is None or source is None or not operations.is_shown(lazy.kind):
        return value._rt_parts
    return (source.operand(operations.shown(lazy), value._rt_needs, value._rt_read, value._rt_what),)


def operand_of(item: Any, source: ValueSource) -> Operand | None:
    """A lazy value of a known kind, or a constant, as an operand of a node; None if the actual value must be waited for first."""
    lazy = lazy_form(item)
    if lazy is None:
        return None
    if not isinstance(lazy.term, operations.Operation):
        return lazy.term
    if not isinstance(item, Value) or item._rt_source not in (None, source):
        return None
    return source.operand(lazy.term, item._rt_needs, item._rt_read, item._rt_what)


def inputs_of(value: Value) -> list[str]:
    """The names of the graph inputs that a value depends on."""
    found: list[str] = []

    def search(term: object) -> None:
        if isinstance(term, Arg):
            found.append(term.name)
        elif isinstance(term, operations.Operation):
            for each in term.args:
                search(each)

    lazy = lazy_form(value)
    search(None if lazy is None else lazy.term)
    return found


def source_of(value: Value) -> ValueSource | None:
    """The recording that a value belongs to; None for an input of a graph."""
    return value._rt_source


def needs_of(value: Value) -> tuple[int, ...]:
    """Ids of the nodes that a value waits for."""
    return value._rt_needs


def text_value(source: ValueSource | None, parts: Sequence[Part], what: str) -> Value:
    """A value whose text is the concatenation of `parts`."""
    refs = [part.node_id for part in parts if type(part) is Ref]
    needs = tuple(refs) if source is None else source.needs_of(refs)

    def read() -> str:
        pieces = []
        for part in parts:
            if isinstance(part, str):
                pieces.append(part)
            elif isinstance(part, Ref):
                assert source is not None
                pieces.append(source.text_of(part.node_id, part.choice))
            elif isinstance(part, Arg):
                raise TraceError(f"input {part.name!r} has no value while the graph is being recorded", user_location())
        return "".join(pieces)

    return Value(source, needs, tuple(parts), read, what, is_text=True)


def arg(name: str) -> Any:
    """An input of `Program.graph`: text that is passed when the graph is submitted.

    Raises:
        TraceError: the name is not a non-empty string.
    """
    if not isinstance(name, str) or not name:
        raise TraceError(f"arg(): name = {name!r}; expected a non-empty string", user_location())
    return text_value(None, (Arg(name),), f"the input {name!r}")


def _joined(left: Any, right: Any) -> Value | None:
    """Concatenate two strings lazily; None if a side is not text or they belong to different runs."""
    parts: list[Part] = []
    source: ValueSource | None = None
    for side in (left, right):
        if isinstance(side, str):
            parts.append(side)
        elif isinstance(side, Value) and side._rt_is_text and (found := parts_of(side)) is not None:
            parts.extend(found)
            if side._rt_source is not None:
                if source is not None and side._rt_source is not source:
                    return None
                source = side._rt_source
        else:
            return None
    return text_value(source, parts, "joined text")
