"""Expressions: what can be appended to a state.

`text`, `gen`, `select` and the roles make immutable expressions; `+` puts them in a row. Nothing is recorded until a state takes one
(`s += ...`), so an expression may be made anywhere and used many times. Pieces of text are checked where they are given, and an error
names the argument and the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.graph import ROLES
from rtlang.contract.params import SamplingParams, SelectMethod
from rtlang.lang.output_types.types import OutputType, choice_type, output_type
from rtlang.lang.values import Value, real, user_location

Sampling = SamplingParams
"""Options of generations, under the name that programs use."""


class Expr:
    """Something that can be appended to a state; `a + b` is both, one after the other. Text and values may stand on either side."""

    __slots__ = ()
    _rt_is_expression = True

    def __add__(self, other: object) -> Expr:
        return Series((*_items(self), *_items(as_expr(other, "the right of +"))))

    def __radd__(self, other: object) -> Expr:
        return Series((*_items(as_expr(other, "the left of +")), *_items(self)))


@dataclass(frozen=True, slots=True)
class Pieces(Expr):
    """Text: strings and values."""

    pieces: tuple[str | Value, ...]


@dataclass(frozen=True, slots=True)
class Gen(Expr):
    """A generation; see `gen`."""

    name: str | None
    kind: OutputType
    params: SamplingParams | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


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

    role: str
    content: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Series(Expr):
    """Expressions in a row."""

    items: tuple[Expr, ...]


def _items(expr: Expr) -> tuple[Expr, ...]:
    return expr.items if isinstance(expr, Series) else (expr,)


def as_expr(item: object, where: str) -> Expr:
    """`item` as an expression.

    Raises:
        TraceError: it is no text, number, value or expression; says where it was given.
    """
    if isinstance(item, Expr):
        return item
    if isinstance(item, (str, Value)):
        return Pieces((item,))
    if isinstance(item, (int, float)):
        return Pieces((str(item),))
    if isinstance(item, (list, tuple)):
        hint = "a list; put * before it to spread it"
    elif item is None:
        hint = "None"
    elif callable(item):
        hint = f"the function {getattr(item, '__name__', item)!r}; call it"
    else:
        hint = f"a {type(item).__name__}; use str() on it"
    raise TraceError(
        f"{where} is {hint}. Text is made of strings, numbers, generated values and expressions", user_location()
    )


def _content(function: str, pieces: Iterable[object]) -> tuple[Expr, ...]:
    content: list[Expr] = []
    for number, piece in enumerate(pieces, 1):
        for expr in _items(as_expr(piece, f"argument {number} of {function}()")):
            if isinstance(expr, Pieces) and content and isinstance(content[-1], Pieces):
                content[-1] = Pieces(content[-1].pieces + expr.pieces)
            else:
                content.append(expr)
    return tuple(content)


def text(*pieces: object) -> Expr:
    """Text made of strings, numbers, generated values and other expressions, without separators.

    Raises:
        TraceError: a piece is None or something else that is no text; names the argument.
    """
    return Series(_content("text", pieces))


def _role(role: str, pieces: tuple[object, ...]) -> Expr:
    assert role in ROLES
    return Role(role, _content(role, pieces))


def system(*pieces: object) -> Expr:
    """A system message; pieces as for `text`."""
    return _role("system", pieces)


def user(*pieces: object) -> Expr:
    """A user message; pieces as for `text`."""
    return _role("user", pieces)


def assistant(*pieces: object) -> Expr:
    """An assistant message; pieces as for `text`, generations among them."""
    return _role("assistant", pieces)


def tool(*pieces: object) -> Expr:
    """A message with a tool's result; pieces as for `text`."""
    return _role("tool", pieces)


def gen(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    type: Any = None,
    schema: Any = None,
    regex: Any = None,
    choices: Any = None,
    grammar: Any = None,
    params: SamplingParams | None = None,
    min_tokens: int | None = None,
    stop: str | Iterable[str] | None = None,
    stop_token_ids: Iterable[int] | None = None,
    stop_regex: str | re.Pattern[str] | Iterable[str | re.Pattern[str]] | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    presence_penalty: float | None = None,
    frequency_penalty: float | None = None,
    repetition_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Iterable[tuple[int, float]] | None = None,
    seed: int | None = None,
    n: int | None = None,
    logprobs: int | None = None,
    prompt_logprobs: int | None = None,
    ignore_eos: bool | None = None,
    max_retries: int | None = None,
) -> Expr:
    """Generate text, under `name` if one is given.

    Args:
        type, schema, regex, choices, grammar: at most one; holds the text to a form and makes the value (see
            `rtlang.lang.output_types.types.output_type`).
        params: options as `rt.Sampling`; those given beside it come first, those of the run (`run(params=...)`) do not apply.
        n: with more than one, the value is a list; the sequence goes on from before the generation.
        others: as in `rt.Sampling`.
    Raises:
        ParameterError: the output type or an option is wrong; names it.
        TraceError: the name is not a non-empty string.
    """
    options: dict[str, Any] = {
        "max_tokens": max_tokens,
        "min_tokens": min_tokens,
        "stop": _tuple(stop, str),
        "stop_token_ids": _tuple(stop_token_ids),
        "stop_regex": _patterns(stop_regex),
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty,
        "repetition_penalty": repetition_penalty,
        "logit_bias": _biases(logit_bias),
        "seed": seed,
        "n": n,
        "logprobs": logprobs,
        "prompt_logprobs": prompt_logprobs,
        "ignore_eos": ignore_eos,
        "max_retries": max_retries,
    }
    if params is not None and not isinstance(params, SamplingParams):
        raise ParameterError("params", params, "rt.Sampling(...) is allowed")
    kind = output_type(type=type, schema=schema, regex=regex, choices=_real_items(choices), grammar=grammar)
    return Gen(_name(name, "gen"), kind, params, {key: value for key, value in options.items() if value is not None})


def select(
    name: str | None, choices: Iterable[object], *, method: SelectMethod | str = SelectMethod.TOKEN_LENGTH_NORMALIZED
) -> Expr:
    """Append the one of `choices` that the model finds likeliest; the probabilities of all are in `s.meta(name)`.

    Args:
        choices: texts or numbers, or an Enum class; the value is the chosen item.
        method: how choices are compared, a `SelectMethod` or its name.
    Raises:
        ParameterError: a choice or the method is wrong; names it.
        TraceError: the name is not a non-empty string.
    """
    try:
        method = SelectMethod(method)
    except ValueError:
        raise ParameterError("method", method, f"allowed are {', '.join(SelectMethod)}") from None
    texts, kind = choice_type(_real_items(choices))
    return Select(_name(name, "select"), texts, kind, method)


def _name(name: object, function: str) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        raise TraceError(f"the name of {function}() is a non-empty string, not {name!r}", user_location())
    return str(name)


def _real_items(items: Any) -> Any:
    return [real(item) for item in items] if isinstance(items, (list, tuple)) else real(items)


def _tuple(items: Any, single: type | None = None) -> Any:
    if items is None or isinstance(items, tuple):
        return items
    if single is not None and isinstance(items, single):
        return (items,)
    return tuple(items) if isinstance(items, Iterable) and not isinstance(items, (str, bytes)) else items


def _patterns(given: Any) -> Any:
    listed = _tuple(given, str) if not isinstance(given, re.Pattern) else (given,)
    if not isinstance(listed, tuple):
        return listed
    patterns = tuple(item.pattern if isinstance(item, re.Pattern) else item for item in listed)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise ParameterError("stop_regex", pattern, f"a pattern of Python's re is allowed: {error}") from None
    return patterns


def _biases(given: Any) -> Any:
    if isinstance(given, Mapping):
        return tuple((token_id, bias) for token_id, bias in given.items())
    if given is None or not isinstance(given, Iterable):
        return given
    return tuple(tuple(pair) if isinstance(pair, (list, tuple)) else pair for pair in given)
