"""Calls of tools as values of a program: their arguments as Python values, and their execution."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from types import TracebackType
from typing import Any, NoReturn, Protocol

from rtlang.contract.errors import ToolError, TraceError, ValueParseError, described
from rtlang.contract.process.coroutines import run_coroutine
from rtlang.lang.output_types.signatures import Signature
from rtlang_grammars.formats import parsing
from rtlang_grammars.formats.tools import Tool

runs_tools: ContextVar[bool] = ContextVar("rtlang_runs_tools", default=True)
"""Whether tools are called in this context."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that a program offers as a tool."""

    call: Callable[..., Any]
    signature: Signature


@dataclass(frozen=True, slots=True, eq=False)
class BoundTool:
    """A tool with a JSON schema of its own, and what calls it, as tools of servers are.

    Attributes:
        call: takes the arguments by name, as plain JSON data.
    """

    tool: Tool
    call: Callable[..., Any]


class CallRuns(Protocol):
    """Runs calls as nodes of the graph of a program that runs."""

    @property
    def is_open(self) -> bool:
        """Whether calls are recorded now; else they run directly."""

    def run(self, call: ToolCall, origin: Origin) -> Any:
        """See `ToolCall.run`."""

    async def arun(self, call: ToolCall, origin: Origin) -> Any:
        """See `ToolCall.arun`."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call was read: the program that runs, the path of the generation, and the number among its calls of the same tool."""

    runs: CallRuns
    path: str
    number: int = 0

    def place_of(self, name: str) -> tuple[str, str]:
        """The place and the last segment of the path of the call, whose tool has this name as a segment."""
        return self.path, f"{name}()" if self.number == 0 else f"{name}()[{self.number}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # copies do not belong to the run


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model wrote.

    Attributes:
        name: the name of the tool.
        args: the arguments by name, of the annotated types of the function, with its defaults; for a tool without a function, `arguments`.
        arguments: the arguments as the model wrote them, as plain JSON data.
        id: the id that the model wrote, if the format has ids.
        function: the function of the tool, or None.
    """

    name: str
    args: dict[str, Any]
    arguments: dict[str, Any]
    id: str | None = None
    function: Callable[..., Any] | None = field(default=None, repr=False, compare=False)
    _origin: Origin | None = field(default=None, repr=False, compare=False)

    @property
    def __pydantic_serializer__(self) -> Any:
        """How pydantic writes a call as JSON: what the model wrote, without the function and the run."""
        return _call_serializer()

    def run(self) -> Any:
        """Call the function and return its result. A coroutine function is run to its end, in an event loop of its own.

        In the body of a program it is a call of the graph, as `rt.call` makes one, and the body waits for it: a durable run (`rt.journal`)
        that goes on has the recorded result, and does not call again. The function runs in this thread. It returns plain data (None, bool,
        int, float, str, lists, dicts), dataclasses, models, or what JSON can write; the result has the annotated return type.

        Raises:
            TraceError: the tool has no function, or a branch or loop of the graph is being recorded.
            ToolError: the function raised an exception, which is the cause; names the tool and the line.
            CallError: the function returned something that a run cannot keep.
        """
        if self.function is not None and self._origin is not None and self._origin.runs.is_open:
            return self._origin.runs.run(self, self._origin)
        return self.run_here()

    def run_here(self) -> Any:
        """`run` without a run."""
        function, positional, keywords = self._prepared()
        try:
            if not inspect.iscoroutinefunction(function):
                return function(*positional, **keywords)
            return run_coroutine(lambda: function(*positional, **keywords))
        except Exception as error:
            self._fail(error)

    async def arun(self) -> Any:
        """`run` for coroutines: awaits a coroutine function, and calls another one in a thread.

        Raises: as `run`.
        """
        if self.function is not None and self._origin is not None and self._origin.runs.is_open:
            return await self._origin.runs.arun(self, self._origin)
        return await self.arun_here()

    async def arun_here(self) -> Any:
        """`arun` without a run."""
        function, positional, keywords = self._prepared()
        try:
            if inspect.iscoroutinefunction(function):
                return await function(*positional, **keywords)
            return await asyncio.to_thread(function, *positional, **keywords)
        except Exception as error:
            self._fail(error)

    def _prepared(self) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
        if not runs_tools.get():
            raise TraceError(f"the tool {self.name!r} was not called: rt.explain runs no tools unless run_tools=True")
        if self.function is None:
            raise TraceError(f"the tool {self.name!r} was given as a schema, without a function to run")
        keywords = dict(self.args)
        kinds = inspect.signature(self.function).parameters
        positional = [keywords.pop(name) for name in kinds if kinds[name].kind is inspect.Parameter.POSITIONAL_ONLY]
        return self.function, positional, keywords

    def _fail(self, error: Exception) -> NoReturn:
        assert self.function is not None
        location = _location(error.__traceback__, inspect.unwrap(self.function))
        raise ToolError(self.name, described(error), location) from error


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The reply of a model that may call tools: content, reasoning, and calls."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()


def with_origin(value: Any, runs: CallRuns, path: str) -> Any:
    """The calls in a value that was read from the generation at `path`, as calls that know it; other values as they are."""
    if isinstance(value, ToolCall):
        return replace(value, _origin=Origin(runs, path))
    if isinstance(value, ToolReply):
        return replace(value, calls=tuple(with_origin(list(value.calls), runs, path)))
    if isinstance(value, list) and value and all(isinstance(each, ToolCall) for each in value):
        seen: Counter[str] = Counter()
        found = []
        for each in value:
            found.append(replace(each, _origin=Origin(runs, path, seen[each.name])))
            seen[each.name] += 1
        return found
    return value


MAX_THREADS = 32
"""Calls of one reply that run at the same time."""


def results_of(value: ToolCall | ToolReply | list[ToolCall], *, catches: bool) -> Any:
    """The result of a call, or the list of the results of several ones, which run side by side.

    Args:
        catches: a call that fails gives the text of its error.
    Raises:
        ToolError, TraceError: of the first call that failed; see `ToolCall.run`.
    """
    if isinstance(value, ToolCall):
        return _result(value, catches)
    calls = value.calls if isinstance(value, ToolReply) else value
    if len(calls) < 2:
        return [_result(each, catches) for each in calls]
    outcomes: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}
    numbers = iter(range(len(calls)))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                outcomes[number] = _result(calls[number], catches)
            except BaseException as error:
                errors[number] = error

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(len(calls), MAX_THREADS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [outcomes[number] for number in range(len(calls))]


def _result(call: ToolCall, catches: bool) -> Any:
    try:
        return call.run_here()
    except ToolError as error:
        if not catches:
            raise
        return error_text(error)


def caught(run: Callable[[tuple[Any, ...]], Any]) -> Callable[[tuple[Any, ...]], Any]:
    """A function that gives the text of the error where `run`, or the coroutine that it returns, raises one."""

    def guarded(plain: tuple[Any, ...]) -> Any:
        try:
            value = run(plain)
            return run_coroutine(lambda: _awaited(value)) if inspect.isawaitable(value) else value
        except Exception as error:
            return error_text(error)

    return guarded


async def _awaited(value: Any) -> Any:
    return await value


def error_text(error: Exception) -> str:
    """The text of an error for a model: the exception, without file names and lines."""
    known = error.reason if isinstance(error, (ToolError, ValueParseError)) else described(error)
    return f"Error: {known}"


def typed_reply(output: parsing.ToolOutput, functions: Mapping[str, Function]) -> ToolReply:
    """The output of a model with arguments of the functions' types.

    Raises:
        ValueError: arguments do not fit the types of a function; names the tool.
    """
    return ToolReply(output.content, output.reasoning, tuple(_typed(call, functions) for call in output.calls))


def _typed(call: parsing.ToolCall, functions: Mapping[str, Function]) -> ToolCall:
    function = functions.get(call.name)
    if function is None:
        return ToolCall(call.name, call.arguments, call.arguments, call.id)
    try:
        args = function.signature.read(json.dumps(_with_integers(call.arguments)))
    except Exception as error:  # validators of users' types may raise any exception
        raise ValueError(f"the arguments of the tool {call.name!r}: {error}") from error
    return ToolCall(call.name, args, call.arguments, call.id, function.call)


def _with_integers(value: Any) -> Any:
    """Plain data in which large whole numbers are written in digits: `5e300` is an integer for JSON Schema, but not for pydantic."""
    match value:
        case float() if value.is_integer() and abs(value) >= 2**53:
            return int(value)
        case list():
            return [_with_integers(each) for each in value]
        case dict():
            return {key: _with_integers(each) for key, each in value.items()}
    return value


@cache
def _call_serializer() -> Any:
    from pydantic_core import SchemaSerializer, core_schema

    def fields(call: ToolCall) -> dict[str, Any]:
        return {"name": call.name, "args": call.args, "arguments": call.arguments, "id": call.id}

    written = core_schema.plain_serializer_function_ser_schema(fields)
    return SchemaSerializer(core_schema.any_schema(serialization=written))


def _location(trace: TracebackType | None, function: Any) -> str:
    """`file:line` of the innermost frame in the file of the function; else of the function itself."""
    code = getattr(function, "__code__", None)
    file = code.co_filename if code is not None else "<unknown>"
    found = f"{file}:{code.co_firstlineno if code is not None else 0}"
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            found = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
