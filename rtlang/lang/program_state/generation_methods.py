"""The typed methods that append a generation and return its value: `s.gen`, `s.select`, `forks.gen` and `forks.select`.

The value is lazy, as `s[name]` is; type checkers see the type of the generation. The protocols list the keywords of `rt.gen` again, because
a type checker cannot take them from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, Unpack, overload

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SamplingParams, SelectMethod
from rtlang.contract.sampling_keywords import SamplingKeywords
from rtlang.lang.lazy_values.static_types import AnyValue
from rtlang.lang.output_types.checks import Check, Keep, Turn
from rtlang.lang.output_types.tool_calls import ToolCall, ToolReply
from rtlang.lang.output_types.tools import ToolChoice
from rtlang.lang.output_types.types import OutputType
from rtlang.lang.program_state.expr import Expr, Method, gen
from rtlang.lang.recordings.error_places import OptionsOf

if TYPE_CHECKING:
    import os

    from typing_extensions import TypeForm

T = TypeVar("T")
Form = OutputType | Callable[..., Any]
"""An output type that only the run knows the values of, or a function whose arguments are generated."""


class GenOptions(SamplingKeywords, total=False):
    """The keywords of `rt.gen` that do not change the type of the value."""

    max_tokens: int | None
    reasoning: bool | int
    check: Check | Iterable[Check] | None
    repair: int
    keep: Keep
    on_repair: Turn
    params: SamplingParams | None


Name = str | None
Tools = Iterable[Any]
Choice = ToolChoice | Callable[..., Any] | None
Options = GenOptions  # short, because each overload unpacks it


class GenMethod(Protocol):
    """See `State.gen`."""

    @overload
    def __call__(
        self,
        name: Name = None,
        *,
        regex: str | re.Pattern[str] | None = None,
        grammar: str | os.PathLike[str] | None = None,
        **options: Unpack[Options],
    ) -> str: ...
    @overload
    def __call__(self, name: Name, type: TypeForm[T], **options: Unpack[Options]) -> T: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, name: Name, type: TypeForm[T], *, n: int, **options: Unpack[Options]) -> list[T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, name: Name = None, *, n: int, **options: Unpack[Options]) -> list[str]: ...
    @overload
    def __call__(self, name: Name = None, *, type: TypeForm[T], **options: Unpack[Options]) -> T: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, name: Name = None, *, schema: TypeForm[T], **options: Unpack[Options]) -> T: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, name: Name = None, *, choices: type[T], **options: Unpack[Options]) -> T: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, name: Name = None, *, choices: Iterable[T], **options: Unpack[Options]) -> T: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        name: Name = None,
        *,
        tools: Tools,
        tool_choice: Literal["auto", "none"],
        parallel: bool | None = None,
        **options: Unpack[Options],
    ) -> ToolReply: ...
    @overload
    def __call__(
        self,
        name: Name = None,
        *,
        tools: Tools,
        tool_choice: Choice = None,
        parallel: Literal[True],
        **options: Unpack[Options],
    ) -> list[ToolCall]: ...
    @overload
    def __call__(
        self,
        name: Name = None,
        *,
        tools: Tools,
        tool_choice: Choice = None,
        parallel: Literal[False] | None = None,
        **options: Unpack[Options],
    ) -> ToolCall: ...
    @overload
    def __call__(self, name: Name, type: OutputType, **options: Unpack[Options]) -> AnyValue: ...
    @overload
    def __call__(
        self,
        name: Name = None,
        *,
        type: Form | None = None,
        schema: Form | Mapping[str, Any] | str | bool | None = None,
        regex: Form | None = None,
        choices: Form | None = None,
        grammar: Form | None = None,
        **options: Unpack[Options],
    ) -> AnyValue: ...
    @overload
    def __call__(
        self,
        name: Name = None,
        type: Form | None = None,
        *,
        n: int,
        schema: Any = None,
        regex: Any = None,
        choices: Any = None,
        grammar: Any = None,
        tools: Tools | None = None,
        tool_choice: Choice = None,
        parallel: bool | None = None,
        **options: Unpack[Options],
    ) -> list[AnyValue]: ...


class ForksGenMethod(Protocol):
    """See `Forks.gen`."""

    @overload
    def __call__(
        self,
        name: Name = None,
        *,
        regex: str | re.Pattern[str] | None = None,
        grammar: str | os.PathLike[str] | None = None,
        **options: Unpack[Options],
    ) -> list[str]: ...
    @overload
    def __call__(self, name: Name, type: TypeForm[T], **options: Unpack[Options]) -> list[T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, name: Name, type: TypeForm[T], *, n: int, **options: Unpack[Options]) -> list[list[T]]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, name: Name = None, *, type: TypeForm[T], **options: Unpack[Options]) -> list[T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, name: Name = None, *, schema: TypeForm[T], **options: Unpack[Options]) -> list[T]: ...
    @overload
    def __call__(self, name: Name = None, *, choices: type[T], **options: Unpack[Options]) -> list[T]: ...
    @overload
    def __call__(self, name: Name = None, *, choices: Iterable[T], **options: Unpack[Options]) -> list[T]: ...
    @overload
    def __call__(
        self,
        name: Name = None,
        type: Form | None = None,
        *,
        schema: Any = None,
        regex: Any = None,
        choices: Any = None,
        grammar: Any = None,
        tools: Tools | None = None,
        tool_choice: Choice = None,
        parallel: bool | None = None,
        n: int | None = None,
        **options: Unpack[Options],
    ) -> list[AnyValue]: ...


class SelectCall(Protocol):
    """See `State.select`."""

    @overload
    def __call__(self, name: Name, choices: type[T], *, method: Method = ...) -> T: ...
    @overload
    def __call__(self, name: Name, choices: Iterable[T], *, method: Method = ...) -> T: ...
    @overload
    def __call__(self, name: Name, choices: TypeForm[T], *, method: Method = ...) -> T: ...


class ForksSelectCall(Protocol):
    """See `Forks.select`."""

    @overload
    def __call__(self, name: Name, choices: type[T], *, method: Method = ...) -> list[T]: ...
    @overload
    def __call__(self, name: Name, choices: Iterable[T], *, method: Method = ...) -> list[T]: ...
    @overload
    def __call__(self, name: Name, choices: TypeForm[T], *, method: Method = ...) -> list[T]: ...


def typed_gen(name: str | None, type: Any, options: dict[str, Any]) -> Expr:
    """`rt.gen` with the type as the second argument.

    Raises:
        ParameterError: it is no type; also as `rt.gen`.
    """
    with OptionsOf(name):
        for kinds, hint in _NOT_TYPES:
            if isinstance(type, kinds):
                raise ParameterError("type", type, f"the second argument is a type, such as int or a model; {hint}")
    return gen(name, type=type, **options)


_NOT_TYPES: tuple[tuple[Any, str], ...] = (
    (int, "write max_tokens= for a number of tokens"),
    (Mapping, "write schema= for a JSON schema"),
    ((list, tuple, set, frozenset), "write choices= for a list of choices, or use select"),
    (str, "write regex=, grammar= or schema= for their text"),
)
DEFAULT_METHOD = SelectMethod.TOKEN_LENGTH_NORMALIZED
