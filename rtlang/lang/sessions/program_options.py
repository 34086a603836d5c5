"""The options of a run of a program: the keywords of `Program.run` and of the methods like it.

`ProgramOptions` holds what the program itself needs, and the `RunOptions` of its graph. The fields of `RunOptions` that a program takes as
keywords are marked there (`KEYWORD`). Names, defaults, checks and signatures are made from the fields; type checkers need `RunKeywords` and
`RunMethod`, which list the types again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, ParamSpec, Protocol, TypedDict, TypeVar, overload, runtime_checkable

from rtlang.compiler.pipeline import Passes, chosen_passes
from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SamplingParams
from rtlang.contract.process.call_context import Handler
from rtlang.contract.runs.budget import Budget
from rtlang.contract.runs.known_finder import Base
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, KEYWORD, RunOptions
from rtlang.contract.service.target import Target

OnError = Literal["raise", "result"]
_F = TypeVar("_F", bound=Callable[..., Any])
_P = ParamSpec("_P")
_T_co = TypeVar("_T_co", covariant=True)


@runtime_checkable
class Reusable(Protocol):
    """A finished run whose outcomes another run may take over: a `Result`."""

    @property
    def _rt_model(self) -> str | None: ...

    def _rt_base(self) -> Base: ...


class RunKeywords(TypedDict, total=False):
    """The keywords that set options of a run; None leaves an option as it is."""

    runtime: Target | None
    params: SamplingParams | None
    priority: int | None
    deadline_s: float | None
    seed: int | None
    budget: Budget | None
    cache_salt: str | None
    passes: Passes | None
    outputs: Collection[str] | None
    on_error: OnError | None
    ask: Handler | None
    base: Reusable | Sequence[Reusable | None] | None


class RunMethod(Protocol[_P, _T_co]):
    """A method of a program that runs it: called with the arguments of the function, or with options beside them."""

    @overload
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, runtime: Target | None, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, params: SamplingParams | None, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, priority: int, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, deadline_s: float | None, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, seed: int | None, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, budget: Budget, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, cache_salt: str, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, passes: Passes, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, outputs: Collection[str], **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, on_error: OnError, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, ask: Handler, **others: Any) -> _T_co: ...
    @overload
    def __call__(self, *args: Any, base: Reusable | None, **others: Any) -> _T_co: ...


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """Options of one run of a program.

    Attributes:
        runtime: the runtime to use; the default runtime if None.
        params: sampling parameters of every generation without its own `params`. A seed among them is the seed of the run,
            if that is not given.
        passes: the passes of the compiler: True for all, False for none, or names, where `-name` leaves one out.
        outputs: names of the variables to generate, or paths of nodes or of places such as a fork, besides the returned value and what the
            body reads; None for all.
        on_error: "raise" raises the error of the run; "result" returns a partial result with `Result.error` set.
        ask: answers the questions of `rt.ask` in code: called with each `rt.Question`, on a thread of its own; returns the answer.
        base: the result of an earlier run; nodes whose inputs are the same take over its outcomes. For a batch, a list of results.
        run: the options of the graph, with which it is submitted.
    Raises:
        ParameterError: an option is invalid; names it.
    """

    runtime: Target | None = None
    params: SamplingParams | None = None
    passes: Passes = True
    outputs: Collection[str] | None = None
    on_error: OnError = "raise"
    ask: Handler | None = None
    base: Reusable | Sequence[Reusable | None] | None = None
    run: RunOptions = DEFAULT_OPTIONS

    def __post_init__(self) -> None:
        chosen_passes(self.passes)
        checked_outputs(self.outputs)
        if self.params is not None and not isinstance(self.params, SamplingParams):
            raise ParameterError("params", self.params, "expected rt.Sampling(...)")
        if self.params is not None and self.params.seed is not None:
            # Not for each generation: all forks and all samples of a loop would be the same.
            if self.run.seed is None:
                object.__setattr__(self, "run", replace(self.run, seed=self.params.seed))
            object.__setattr__(self, "params", replace(self.params, seed=None))
        if self.on_error not in ("raise", "result"):
            raise ParameterError("on_error", self.on_error, 'expected "raise" or "result"')
        if self.ask is not None and not callable(self.ask):
            raise ParameterError("ask", self.ask, "expected a function that answers an rt.Question")
        for each in self.base if isinstance(self.base, (list, tuple)) else (self.base,):
            if each is not None and not isinstance(each, Reusable):
                raise ParameterError("base", self.base, "expected a result of a run, or for a batch a list of results")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ProgramOptions:
        """The options of keywords; those that are not given have their defaults.

        Raises:
            ParameterError: an option is invalid; names it.
        """
        run = RunOptions(**{name: value for name, value in given.items() if name in _OF_RUN})
        return cls(**{name: value for name, value in given.items() if name not in _OF_RUN}, run=run)


_OF_RUN = tuple(item.name for item in fields(RunOptions) if KEYWORD in item.metadata)
KEYWORDS = (*(item.name for item in fields(ProgramOptions) if item.name != "run"), *_OF_RUN)
"""Names of the keywords."""


def given_options(keywords: Mapping[str, Any], own: Collection[str] = ()) -> dict[str, Any]:
    """The options among keyword arguments, in their order; None is the same as a missing one. `own`: names that are no options here."""
    return {name: keywords[name] for name in KEYWORDS if keywords.get(name) is not None and name not in own}


def arguments_in(keywords: Mapping[str, Any], own: Collection[str] = ()) -> dict[str, Any]:
    """The other keyword arguments: those of the function, which has parameters with the names in `own`."""
    return {name: value for name, value in keywords.items() if name not in KEYWORDS or name in own}


def checked_outputs(outputs: object) -> frozenset[str] | None:
    """The names in `outputs`.

    Raises:
        ParameterError: it is neither None nor an iterable of names.
    """
    if outputs is None:
        return None
    names: set[str] = set()
    for name in outputs if isinstance(outputs, Iterable) and not isinstance(outputs, str) else (None,):
        if not isinstance(name, str) or not name:
            raise ParameterError("outputs", outputs, "expected a list of names of variables")
        names.add(name)
    return frozenset(names)


def with_keywords(method: _F) -> _F:
    """Show the keywords in the signature of a method that takes them as `**keywords`."""
    found = inspect.signature(method)
    own = list(found.parameters.values())
    shown = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in KEYWORDS]
    method.__signature__ = found.replace(parameters=[*own[:-1], *shown, own[-1]])  # type: ignore[attr-defined]
    return method


DEFAULT_PROGRAM_OPTIONS = ProgramOptions()
