"""Expressions that can be appended to a state.

`text`, `gen`, `select` and the roles create immutable expressions; `+` concatenates them. Nothing is recorded until an expression is added
to a state (`s += ...`), so it can be created anywhere and reused. Arguments are checked immediately, and errors name the argument and the
line.
"""

from __future__ import annotations

import enum
import inspect
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Unpack

from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.graph.host_calls import to_plain
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.contract.params import (
    MAX_MAX_TOKENS,
    SamplingParams,
    SelectMethod,
    normalized_option,
    sampling_params,
)
from rtlang.contract.request_graph import ROLES, RoleStart, TokenIds
from rtlang.contract.sampling_keywords import SAMPLING_KEYWORDS, SamplingKeywords
from rtlang.contract.service.generation import token_ids_part
from rtlang.lang.lazy_values import operations
from rtlang.lang.lazy_values.values import Value, derived, lazy_form, real, user_location
from rtlang.lang.output_types.checks import Check, Checks, Keep, Turn, checks_of
from rtlang.lang.output_types.tools import ToolChoice, message_start, tool_calls
from rtlang.lang.output_types.types import OutputType, choice_type, output_type
from rtlang.lang.program_state.lost_expressions import check_kept
from rtlang.lang.recordings.error_places import OptionsOf

if TYPE_CHECKING:
    import datetime
    import decimal
    import uuid

    from rtlang.lang.lazy_values.static_types import AnyValue

Sampling = SamplingParams
"""Sampling parameters, under the name used in programs."""


class Expr:
    """An expression that can be appended to a state; `a + b` is their concatenation. Either side may be text or a value."""

    __slots__ = ()
    _rt_is_expression = True

    def __str__(self) -> str:
        raise TraceError(
            f"{described(self)} has no text yet, so it cannot be used in an f-string or str(); pass it to rt.text(...) as an "
            "argument, or append it: s += ...",
            user_location(),
        )

    def __format__(self, spec: str) -> str:
        return str(self)

    def __add__(self, other: Appendable) -> Expr:
        made = Series((*items_of(self), *items_of(as_expr(other, "the right operand of +"))))
        check_kept(made, described)
        return made

    def __radd__(self, other: Appendable) -> Expr:
        made = Series((*items_of(as_expr(other, "the left operand of +")), *items_of(self)))
        check_kept(made, described)
        return made


if TYPE_CHECKING:

    class _Model(Protocol):
        def model_dump_json(self) -> str: ...

    class _Dataclass(Protocol):
        __dataclass_fields__: ClassVar[dict[str, Any]]

    class _BoundProgram(Protocol):
        def _rt_call(self, state: Any) -> None: ...

    _Simple = AnyValue | str | int | float | enum.Enum | datetime.date | datetime.time | decimal.Decimal | uuid.UUID
    _Structured = list[Any] | tuple[Any, ...] | Mapping[str, Any] | _Model | _Dataclass
    Appendable = Expr | _BoundProgram | _Simple | _Structured
    """What can be appended, for type checkers: expressions, text, numbers, and the types that lazy values have there. None is not."""
    Piece = Appendable | Coroutine[Any, Any, Any]
    """The same for parts of text. Programs without annotations are coroutines for pyright."""
else:
    Appendable = Piece = Any


@dataclass(frozen=True, slots=True)
class Pieces(Expr):
    """Text: strings, values and tokens."""

    pieces: tuple[str | Value | TokenIds, ...]


@dataclass(frozen=True, slots=True)
class Gen(Expr):
    """A generation; see `gen`."""

    name: str | None
    kind: OutputType
    params: SamplingParams | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    reasoning: bool | int = False
    checks: Checks | None = None


@dataclass(frozen=True, slots=True)
class Recorded(Expr):
    """A function that records on a `StateRecord`."""

    record: Callable[[Any], None]
    called: str = "rt.text(...)"


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """A choice; see `select`."""

    name: str | None
    choices: tuple[str, ...]
    kind: OutputType
    method: SelectMethod


@dataclass(frozen=True, slots=True)
class Role(Expr):
    """A chat message; see `system`, `user`, `assistant`, `tool`."""

    start: RoleStart
    content: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class FreeText(Expr):
    """Pieces of text whose order the compiler chooses."""

    pieces: tuple[Pieces, ...]


@dataclass(frozen=True, slots=True)
class Series(Expr):
    """A sequence of expressions."""

    items: tuple[Expr, ...]


def described(expr: Expr) -> str:
    """An expression as its call, for messages."""
    match expr:
        case Gen() | Select():
            kind = "rt.gen" if isinstance(expr, Gen) else "rt.select"
            return f"{kind}({expr.name!r})" if expr.name is not None else f"{kind}()"
        case Role():
            return f"rt.{expr.start.role}(...)"
        case Series() if any(not isinstance(each, Pieces) for each in expr.items):
            return described(next(each for each in expr.items if not isinstance(each, Pieces)))
        case Pieces((TokenIds(),)):
            return "rt.tokens(...)"
        case Recorded():
            return expr.called
        case _:
            return "rt.text(...)"


def items_of(expr: Expr) -> tuple[Expr, ...]:
    """The expressions of which an expression is the concatenation."""
    return expr.items if isinstance(expr, Series) else (expr,)


def as_expr(item: object, where: str) -> Expr:
    """Convert `item` to an expression.

    Raises:
        TraceError: it is not text, a number, a value or an expression; names where it was given.
    """
    if isinstance(item, Expr):
        return item
    if isinstance(item, (str, Value)):
        return Pieces((item,))
    if isinstance(item, (int, float)):
        return Pieces((str(item),))
    if isinstance(item, (list, tuple)) and item and all(type(each) is int for each in item):
        hint = "a list of integers; write rt.tokens(...) if they are token ids"
    elif isinstance(item, (list, tuple)):
        hint = "a list; put * before it to spread it"
    elif item is None:
        hint = "None"
    elif hasattr(type(item), "_rt_is_state"):
        hint = "a state; write s += ... to append to it"
    elif inspect.isawaitable(item):
        hint = "a coroutine; write await in front of it"
    elif callable(item):
        hint = f"the function {getattr(item, '__name__', item)!r}; call it"
    elif isinstance(item, enum.Enum):
        hint = f"{type(item).__name__}.{item.name}; write its .value"
    else:
        hint = f"a {type(item).__name__}; use str() on it"
    raise TraceError(f"{where} is {hint}. Expected strings, numbers, generated values or expressions", user_location())


def content_of(pieces: Iterable[object], where: Callable[[int], str]) -> tuple[Expr, ...]:
    """The expressions of a content; texts that follow each other are one.

    Args:
        where: the place of a piece, by its number from 1, for messages.
    Raises:
        TraceError: as `as_expr`.
    """
    content: list[Expr] = []
    for number, piece in enumerate(pieces, 1):
        kind = type(piece)
        if kind is str or kind is Value:
            if content and type(before := content[-1]) is Pieces:
                content[-1] = Pieces((*before.pieces, piece))  # type: ignore[arg-type]
            else:
                content.append(Pieces((piece,)))  # type: ignore[arg-type]
            continue
        if kind is Gen:
            content.append(piece)  # type: ignore[arg-type]
            continue
        for expr in items_of(as_expr(piece, where(number))):
            if isinstance(expr, Pieces) and content and isinstance(content[-1], Pieces):
                content[-1] = Pieces(content[-1].pieces + expr.pieces)
            else:
                content.append(expr)
    return tuple(content)


def _content(function: str, pieces: Iterable[object]) -> tuple[Expr, ...]:
    return content_of(pieces, lambda number: f"argument {number} of {function}()")


Order = Literal["written", "free"]


def text(*pieces: Piece, order: Order = "written") -> Expr:
    """Text made of strings, numbers, generated values and other expressions, without separators.

    Args:
        order: "free" lets the compiler put the arguments that most runs of a batch, or most forks, share in front of the others, so
            that more of the text is found in the cache. Each argument stays whole and must be text.
    Raises:
        TraceError: an argument is None or cannot be converted to text; names the argument.
        ParameterError: `order` is invalid.
    """
    made = Series(_ordered("text", pieces, order))
    check_kept(made, described)
    return made


def tokens(token_ids: Iterable[int]) -> Expr:
    """Tokens of the model, appended as they are. At the start of a sequence no start token is put before them.

    Text before and after is tokenized on its own, so tokens are also a boundary that no token of the text crosses. The text of a state
    (`s.text()`) and its messages leave them out, because only the model knows their text.

    Raises:
        ParameterError: an item is not an integer in range. An id outside the model's vocabulary fails the generations that follow it.
    """
    made = Pieces((token_ids_part(token_ids),))
    check_kept(made, described)
    return made


def _ordered(function: str, pieces: tuple[object, ...], order: str) -> tuple[Expr, ...]:
    if order == "written":
        return _content(function, pieces)
    if order != "free":
        raise ParameterError("order", order, 'expected "written" or "free"')
    found: list[Pieces] = []
    for number, piece in enumerate(pieces, 1):
        content = _content(function, (piece,))
        if not all(isinstance(each, Pieces) for each in content):
            raise TraceError(
                f"argument {number} of {function}(order='free') is not text; only text can be reordered",
                user_location(),
            )
        found.extend(each for each in content if isinstance(each, Pieces))
    return (FreeText(tuple(found)),)


def _role(
    role: str,
    pieces: tuple[object, ...],
    tools: Iterable[Any] | None = None,
    order: Order = "written",
    template: TemplateOptions | None = None,
) -> Expr:
    assert role in ROLES
    return Role(message_start(role, tools, template), _ordered(role, pieces, order))


def system(
    *pieces: Piece,
    tools: Iterable[Any] | None = None,
    template: TemplateOptions | None = None,
    order: Order = "written",
) -> Expr:
    """A system message; arguments and `order` as for `text`.

    Args:
        tools: the tools of the conversation, as for `gen`: the chat template shows them to the model. Only in the first message.
        template: options of the chat template for the conversation, such as
            `rt.TemplateOptions(variables={"enable_thinking": False})`. Only in the first message.
    Raises:
        ParameterError: a tool or an option is invalid.
    """
    made = _role("system", pieces, tools, order, template)
    check_kept(made, described)
    return made


def user(
    *pieces: Piece,
    tools: Iterable[Any] | None = None,
    template: TemplateOptions | None = None,
    order: Order = "written",
) -> Expr:
    """A user message; arguments and `order` as for `text`, `tools` and `template` as for `system`."""
    made = _role("user", pieces, tools, order, template)
    check_kept(made, described)
    return made


def assistant(*pieces: Piece) -> Expr:
    """An assistant message; arguments as for `text`, including generations."""
    made = _role("assistant", pieces)
    check_kept(made, described)
    return made


def tool(*pieces: Piece) -> Expr:
    """A tool message with a tool's result; arguments as for `text`. Dicts, lists and pydantic models are written as JSON.

    Raises:
        TraceError: as for `text`; also, an argument is not JSON data.
    """
    made = _role("tool", tool_content(pieces))
    check_kept(made, described)
    return made


def tool_content(pieces: Iterable[object]) -> tuple[object, ...]:
    """The pieces of a tool's result as text. Raises as `tool`."""
    return tuple(_as_json(piece) for piece in pieces)


def _as_json(piece: object) -> object:
    """JSON for plain data and models; other objects unchanged."""
    if isinstance(piece, Value):
        lazy = lazy_form(piece)
        found = None if lazy is None else operations.tool_text(lazy)
        made = derived(found, lambda value: str(_as_json(to_plain(value))), (piece,), f"the text of {piece!r}")
        return piece if made is None else made
    dump = getattr(type(piece), "model_dump_json", None)
    if dump is not None:
        return dump(piece)
    if not isinstance(piece, (dict, list)):
        return piece
    try:
        return json.dumps(piece, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TraceError(f"the result of a tool is not JSON data: {error}", user_location()) from error


def gen(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    type: Any = None,
    schema: Any = None,
    regex: Any = None,
    choices: Any = None,
    grammar: Any = None,
    tools: Iterable[Any] | None = None,
    tool_choice: ToolChoice | Callable[..., Any] | None = None,
    parallel: bool | None = None,
    reasoning: bool | int = False,
    check: Check | Iterable[Check] | None = None,
    repair: int = 0,
    keep: Keep = "last",
    on_repair: Turn = None,
    params: SamplingParams | None = None,
    n: int | None = None,
    **options: Unpack[SamplingKeywords],
) -> Expr:
    """Generate text and store it as variable `name`, if given.

    Args:
        type, schema, regex, choices, grammar: at most one; constrains the text and determines the type of the value (see
            `rtlang.lang.output_types.types.output_type`).
        tools: functions with annotated parameters, or maps in the form of the OpenAI API. The text is one call of them in the format of
            the model, the value a `ToolCall`.
        tool_choice: "required" (the default), a function or its name, "auto" or "none"; with these two the value is a `ToolReply`.
        parallel: True: one call or more, where the format has them; the value is a list.
        reasoning: the model reasons first, between the marks of its format, in the same sequence; the reasoning is not part of the value
            but in `s.meta(name).reasoning`. A number is its budget in tokens, marks included; True: as many as `max_tokens`.
        check: refuses values: a function of the value, a program (`rt.program`) that gets the value, or a list of these, asked in order.
            None and True accept; False, a message (text) and an exception refuse. A program gets a state that continues the generation.
            Validators of the type come first; with `check` or `repair` the sequence goes on only after all of them.
        repair: the number of further attempts after a refused value. The refused text stays in a side sequence, and a turn with the
            message follows it, from which the model writes again. `s.meta(name).attempts` has all attempts. If none is accepted, the
            generation fails with CheckError.
        keep: "last": after a repair the sequence has the accepted value in place of the first one. "all": it has all attempts and turns.
        on_repair: the turn with the message: a text with `{message}`, for the user message in a chat; or a function of the lazy message
            that returns such a text or an expression.
        params: an `rt.Sampling`, used instead of the run's (`run(params=...)`); options given here override it.
        n: if more than 1, the value is a list, and the sequence continues from before the generation.
        others: as in `rt.Sampling`.
    Raises:
        ParameterError: the output type or an option is invalid; names it, the generation and the line.
        TraceError: the name is not a non-empty string.
    """
    if not SAMPLING_KEYWORDS.issuperset(options):
        unknown = next(each for each in options if each not in SAMPLING_KEYWORDS)
        raise TypeError(f"gen() got an unexpected keyword argument {unknown!r}")
    chosen: dict[str, Any] = {"max_tokens": max_tokens, "n": n, **options}
    with OptionsOf(name):
        if params is not None and not isinstance(params, SamplingParams):
            raise ParameterError("params", params, "expected rt.Sampling(...)")
        if callable(max_tokens) or hasattr(max_tokens, "__args__"):
            raise ParameterError("max_tokens", max_tokens, "expected a number of tokens; write type= for a type")
        if not isinstance(reasoning, int) or (not isinstance(reasoning, bool) and not 1 <= reasoning <= MAX_MAX_TOKENS):
            raise ParameterError("reasoning", reasoning, f"expected True, False or 1 to {MAX_MAX_TOKENS} tokens")
        if tools is None and (tool_choice is not None or parallel is not None):
            raise ParameterError("tools", None, "expected tools where tool_choice or parallel are given")
        if tools is not None:
            type = _tool_calls(tools, tool_choice, parallel, type, has_reasoned=bool(reasoning))
        kind = output_type(type=type, schema=schema, regex=regex, choices=_real_items(choices), grammar=grammar)
        given = {key: normalized_option(key, value) for key, value in chosen.items() if value is not None}
        if given:
            # Errors name the option here. What must agree with the run's max_tokens and temperature is checked later.
            sampling_params({"max_tokens": MAX_MAX_TOKENS, "temperature": 1.0, **given})
        has_checks = check is not None or repair != 0 or keep != "last" or on_repair is not None
        checks = checks_of(kind, check, repair, keep, on_repair) if has_checks else None
    made = Gen(_name(name, "gen"), kind, params, given, reasoning, checks)
    check_kept(made, described)
    return made


def _with_keywords(function: Any) -> None:
    """Show the sampling options in the signature of `gen`."""
    found = inspect.signature(function)
    *own, _ = found.parameters.values()
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=getattr(kind, "__forward_arg__", kind)
        )
        for name, kind in SamplingKeywords.__annotations__.items()
    ]
    function.__signature__ = found.replace(parameters=[*own, *options])


_with_keywords(gen)


def _tool_calls(tools: Any, tool_choice: Any, parallel: Any, type: Any, *, has_reasoned: bool) -> OutputType:
    if type is not None:
        raise ParameterError("type and tools", (type, tools), "expected only one of them")
    return tool_calls(tools, tool_choice, parallel, has_reasoned=has_reasoned)


Method = (
    SelectMethod
    | Literal[
        "token_length_normalized",
        "greedy_token_selection",
        "unconditional_likelihood_normalized",
        "full_likelihood",
    ]
)
"""How `select` compares choices."""


def select(name: str | None, choices: Any, *, method: Method = SelectMethod.TOKEN_LENGTH_NORMALIZED) -> Expr:
    """Append the most likely of `choices`; `s.meta(name)` has the probabilities of all.

    Args:
        choices: strings or numbers, an Enum class, or a `Literal`; the value is the chosen item.
        method: a `SelectMethod` or its name.
    Raises:
        ParameterError: a choice or the method is invalid; names it, the generation and the line.
        TraceError: the name is not a non-empty string.
    """
    with OptionsOf(name):
        if method not in list(SelectMethod):
            raise ParameterError("method", method, f"expected one of {', '.join(SelectMethod)}")
        texts, kind = choice_type(_real_items(choices))
    made = Select(_name(name, "select"), texts, kind, SelectMethod(method))
    check_kept(made, described)
    return made


def _name(name: object, function: str) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        raise TraceError(f"{function}(): name = {name!r}; expected a non-empty string", user_location())
    return str(name)


def _real_items(items: Any) -> Any:
    return [real(item) for item in items] if isinstance(items, (list, tuple)) else real(items)
