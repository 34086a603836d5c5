"""The expressions that are appended to a state, and the functions that make them.

They are immutable, and nothing is recorded until one is added to a state. A message is three expressions: its start, its content and its
end, so that one may also be written step by step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rtlang.compat.sglang.choices import ChoicesSamplingMethod, checked_method, token_length_normalized
from rtlang.compat.sglang.options import DTYPE_REGEXES, warn_unused
from rtlang.contract.errors import ParameterError, TraceError
from rtlang.lang.lazy_values.values import Value, user_location


class Expression:
    """Something that can be appended; `a + b` is one after the other, where either may be a string."""

    __slots__ = ()
    _rt_is_expression = True

    def __add__(self, other: object) -> Series:
        return Series((*_items(self), *_items(as_expression(other))))

    def __radd__(self, other: object) -> Series:
        return Series((*_items(as_expression(other)), *_items(self)))

    def __str__(self) -> str:
        raise TraceError(
            f"{self!r} stands in an f-string or str(), where it would not be generated; concatenate with + instead",
            user_location(),
        )

    def __format__(self, spec: str) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Text(Expression):
    """Text: a string, or a lazy value."""

    value: str | Value


@dataclass(frozen=True, slots=True)
class Gen(Expression):
    """A generation with its options, of which those that were not given are missing."""

    name: str | None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Select(Expression):
    """A choice."""

    name: str | None
    choices: tuple[str, ...]
    method: ChoicesSamplingMethod


@dataclass(frozen=True, slots=True)
class RoleBegin(Expression):
    """The start of a message."""

    role: str


@dataclass(frozen=True, slots=True)
class RoleEnd(Expression):
    """The end of the open message, which must have this role."""

    role: str


@dataclass(frozen=True, slots=True)
class Tokens(Expression):
    """Tokens, by their ids."""

    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reasoning(Expression):
    """An expression whose generations are divided into reasoning and answer."""

    expression: Expression
    model_type: str


@dataclass(frozen=True, slots=True)
class Series(Expression):
    """Expressions, one after the other."""

    items: tuple[Expression, ...]


def _items(expression: Expression) -> tuple[Expression, ...]:
    return expression.items if isinstance(expression, Series) else (expression,)


def as_expression(item: object) -> Expression:
    """Convert an appended item to an expression.

    Raises:
        TraceError: it is no text, number, list of token ids or expression.
    """
    if isinstance(item, Expression):
        return item
    if isinstance(item, (str, Value)):
        return Text(item)
    if isinstance(item, (int, float)):
        return Text(str(item))
    if isinstance(item, (list, tuple)) and item and all(type(each) is int and each >= 0 for each in item):
        return Tokens(tuple(item))
    if item is None:
        hint = "None"
    elif getattr(item, "_rt_is_expression", False):
        hint = f"an rt.{type(item).__name__.lower()} expression; use sgl.gen, sgl.select and sgl.user here"
    else:
        hint = f"a {type(item).__name__}"
    raise TraceError(
        f"cannot append {hint}; expected strings, numbers, lists of token ids and expressions", user_location()
    )


def gen(
    name: str | None = None,
    max_tokens: int | None = None,
    min_tokens: int | None = None,
    n: int | None = None,
    stop: str | list[str] | None = None,
    stop_token_ids: list[int] | None = None,
    stop_regex: str | list[str] | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    ignore_eos: bool | None = None,
    return_logprob: bool | None = None,
    logprob_start_len: int | None = None,
    top_logprobs_num: int | None = None,
    return_text_in_logprobs: bool | None = None,
    dtype: type | str | None = None,
    choices: Iterable[str] | None = None,
    choices_method: ChoicesSamplingMethod | None = None,
    regex: str | None = None,
    json_schema: str | Mapping[str, Any] | None = None,
) -> Expression:
    """Generate text and store it as `name`. Options that are not given are those of the run.

    Args:
        max_tokens: 0 generates nothing; the meta information then has the log-probabilities of the next token.
        n: number of texts. With more than one, the value is a list, and the sequence continues with the first.
        dtype: int, float, bool or str: a text of this form.
        choices: choose among these instead, as `select` does.
        json_schema: the text is JSON of this schema.
    Raises:
        ParameterError: the dtype, the regex or the schema is invalid.
    """
    given = locals()
    options = {key: value for key, value in given.items() if key not in _NOT_OPTIONS and value is not None}
    if choices:
        warn_unused("sgl.gen(choices=...)", [key for key in options if key != "temperature"])
        return select(
            name,
            choices,
            0.0 if temperature is None else temperature,
            token_length_normalized if choices_method is None else choices_method,
        )
    if choices_method is not None:
        raise ParameterError("choices_method", choices_method, "expected choices beside it")
    if dtype is not None and dtype not in DTYPE_REGEXES:
        raise ParameterError("dtype", dtype, "expected int, float, bool or str")
    if regex is not None:
        try:
            re.compile(regex)
        except (re.error, TypeError) as error:
            raise ParameterError("regex", regex, f"expected a valid pattern: {error}") from None
    if isinstance(json_schema, str):
        try:
            json.loads(json_schema)
        except ValueError as error:
            raise ParameterError("json_schema", json_schema, f"expected JSON: {error}") from None
    return Gen(name, options)


_NOT_OPTIONS = frozenset(("name", "choices", "choices_method"))


def gen_int(
    name: str | None = None,
    max_tokens: int | None = None,
    n: int | None = None,
    stop: str | list[str] | None = None,
    **options: Any,
) -> Expression:
    """`gen(..., dtype=int)`. Further options are those of `gen`."""
    return gen(name, max_tokens, n=n, stop=stop, dtype=int, **_without_constraint("gen_int", options))


def gen_string(
    name: str | None = None,
    max_tokens: int | None = None,
    n: int | None = None,
    stop: str | list[str] | None = None,
    **options: Any,
) -> Expression:
    """`gen(..., dtype=str)`: a text in double quotes. Further options are those of `gen`."""
    return gen(name, max_tokens, n=n, stop=stop, dtype=str, **_without_constraint("gen_string", options))


def _without_constraint(function: str, options: dict[str, Any]) -> dict[str, Any]:
    for key in ("dtype", "regex", "json_schema", "choices", "choices_method"):
        if key in options:
            raise TypeError(f"{function}() got an unexpected keyword argument {key!r}")
    return options


def select(
    name: str | None = None,
    choices: Iterable[str] | None = None,
    temperature: float = 0.0,
    choices_method: ChoicesSamplingMethod = token_length_normalized,
) -> Expression:
    """Append one of `choices` and store it as `name`.

    Raises:
        ParameterError: there are no choices, the temperature is not 0, or the method is none.
    """
    texts = () if choices is None else tuple(choices)
    if not texts or isinstance(choices, str) or not all(isinstance(each, str) for each in texts):
        raise ParameterError("choices", choices, "expected a list of texts")
    if temperature > 1e-5:
        raise ParameterError(
            "temperature", temperature, "a select takes the best choice, so only 0; for a sample use gen(regex='a|b')"
        )
    return Select(name, texts, checked_method(choices_method))


def _message(role: str, content: object) -> Expression:
    inside = () if content is None else _items(as_expression(content))
    return Series((RoleBegin(role), *inside, RoleEnd(role)))


def system(expr: object = None) -> Expression:
    """A system message."""
    return _message("system", expr)


def user(expr: object = None) -> Expression:
    """A user message."""
    return _message("user", expr)


def assistant(expr: object = None) -> Expression:
    """An assistant message."""
    return _message("assistant", expr)


def system_begin() -> Expression:
    """The start of a system message."""
    return RoleBegin("system")


def system_end() -> Expression:
    """The end of a system message."""
    return RoleEnd("system")


def user_begin() -> Expression:
    """The start of a user message."""
    return RoleBegin("user")


def user_end() -> Expression:
    """The end of a user message."""
    return RoleEnd("user")


def assistant_begin() -> Expression:
    """The start of an assistant message."""
    return RoleBegin("assistant")


def assistant_end() -> Expression:
    """The end of an assistant message."""
    return RoleEnd("assistant")


def separate_reasoning(expr: object = None, model_type: str | None = None) -> Expression:
    """Divide the text of each generation in `expr` into reasoning and answer.

    The answer is the value of the variable and stays in the sequence; the reasoning is the variable `NAME_reasoning_content`.

    Args:
        model_type: the kind of model, which decides the marks of reasoning: "deepseek-r1", "qwen3", "kimi" and others.
    """
    if expr is None:
        raise ParameterError("expr", expr, "expected an expression with a generation, such as sgl.gen('answer')")
    if not isinstance(model_type, str):
        raise ParameterError("model_type", model_type, "expected the kind of model, such as 'deepseek-r1' or 'qwen3'")
    return Reasoning(as_expression(expr), model_type)


def image(expr: object) -> NoReturn:
    """Refused: models with image input are not supported.

    Raises:
        ParameterError: always.
    """
    raise ParameterError("image", expr, "models with images are not supported; describe the image in text")


def video(path: object, num_frames: object = None) -> NoReturn:
    """Refused: models with video input are not supported.

    Raises:
        ParameterError: always.
    """
    raise ParameterError("video", path, "models with videos are not supported; describe the video in text")
