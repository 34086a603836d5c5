"""Output types: the constraint of a generation and the parser of its text.

An `OutputType` pairs a `Constraint`, which is sent to the runtime, with a local parser. Simple types are written in plain text (42, 3.5,
true, 2024-05-01, one of the choices), structured types as JSON. `pydantic`, the value checks and `outlines` are imported only for types
that need them.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import inspect
import json
import math
import os
import re
import sys
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rtlang.contract.errors import ParameterError, ValueParseError
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.lang.output_types.kinds import Reading, reading_of_json
from rtlang.lang.output_types.schemas.date_patterns import DATE, TIME
from rtlang.lang.output_types.schemas.pydantic_schema import generator
from rtlang.lang.output_types.signatures import signature_of
from rtlang.lang.output_types.value_kinds import reading_of_type
from rtlang.lang.partials.shapes import PLAIN, ValueShape, shape_of, whole
from rtlang_grammars import GrammarError, library_constraint
from rtlang_grammars.context_free.lark_library import LIBRARY

_INTEGER = "-?(0|[1-9][0-9]*)"
_NUMBER = rf"{_INTEGER}(\.[0-9]+)?"
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The calls in the value of a type.

    Attributes:
        names: the tools.
        are_many: whether the value has any number of calls, and not exactly one.
        functions: those of the tools that have one.
    """

    names: tuple[str, ...]
    are_many: bool
    functions: tuple[Callable[..., Any], ...]

    @property
    def can_run(self) -> bool:
        """Whether a tool has a function."""
        return bool(self.functions)


@dataclass(frozen=True, slots=True)
class OutputType:
    """A constraint on text and its parser.

    Attributes:
        constraint: the constraint on the text; None allows any text.
        parse: converts the text to a value; raises ValueError or TypeError for invalid text.
        is_text: whether the value is the text itself.
        for_format: makes the type for a model whose tool-call format has this name (None: unknown), if it depends on the model.
        python_type: the type that `parse` gives, as pydantic reads it; None if it is known by `parse` alone.
        reading: how a graph reads the text, for types without a `python_type`; None if it does not.
        calls: the calls of tools that the value has.
        shape: the types inside a value that is written as JSON; None if the text is not JSON.
    """

    constraint: Constraint | None
    parse: Callable[[str], Any]
    is_text: bool = False
    for_format: Callable[[str | None], OutputType] | None = None
    shape: ValueShape | None = None
    python_type: Any = None
    reading: Callable[[], Reading | None] | None = None
    calls: ToolUse | None = None

    def read(self, name: str, text: str) -> Any:
        """Parse `text` into a value.

        Raises:
            ValueParseError: the text is invalid for this type; stores the text.
        """
        try:
            return self.parse(text)
        except Exception as error:  # validators of user types may raise any exception
            raise ValueParseError(name, text, str(error) or type(error).__name__) from error

    def schema_error(self, text: str) -> str | None:
        """Why a JSON text breaks the schema of the constraint, as the engine checks it; None if it does not, or if `parse` says it."""
        constraint = self.constraint
        if constraint is None or constraint.kind is not ConstraintKind.JSON_SCHEMA or self.python_type is None:
            return None
        return _value_error(json.loads(constraint.source), text)


def reader_of(output_type: OutputType) -> Callable[[Any], Any]:
    """Makes a value of a type from the value in the graph: plain data if the type has a kind, else its text."""

    def read(plain: Any) -> Any:
        reading = reading_of_type(output_type.python_type) if output_type.reading is None else output_type.reading()
        if reading is None:
            return output_type.read("a value", plain)
        return output_type.read("a value", json.dumps(plain)) if reading.function == "parse_json" else plain

    return read


def _same(text: str) -> str:
    return text


TEXT = OutputType(None, _same, is_text=True)


def output_type(
    *, type: Any = None, schema: Any = None, regex: Any = None, choices: Any = None, grammar: Any = None
) -> OutputType:
    """The output type for the options of a `gen` call; free text if none is given.

    Args:
        type: a Python type (int, float, bool, str, date, time, datetime, UUID, Decimal, Literal, Enum, list[...], a model, ...)
            or any output type of the `outlines` package.
        schema: a pydantic model, dataclass, TypedDict, other type, or a JSON schema as a mapping or as JSON text.
        regex: a pattern, as text or compiled, that must match the whole text.
        choices: strings, numbers, an Enum class or a `Literal`; the value is the chosen item.
        grammar: a Lark or GBNF grammar as text, a path to one (.gbnf and .ebnf select the notation), or the name of a grammar of the
            library.
    Each may also be an output type, such as the functions of `rtlang.lang.output_types.forms` return.

    Raises:
        ParameterError: more than one option is given, or one is invalid; names it.
    """
    given = {
        key: value
        for key, value in (
            ("type", type),
            ("schema", schema),
            ("regex", regex),
            ("choices", choices),
            ("grammar", grammar),
        )
        if value is not None
    }
    if len(given) > 1:
        raise ParameterError(
            " and ".join(given), tuple(given.values()), "expected only one of type, schema, regex, choices and grammar"
        )
    for field, value in given.items():
        if isinstance(value, OutputType):
            return value
        foreign = _outlines_type(field, value)
        return foreign if foreign is not None else _MAKERS[field](value)
    return TEXT


def choice_type(items: Any, field: str = "choices") -> tuple[tuple[str, ...], OutputType]:
    """The choices as strings, and the output type that returns the chosen item.

    Raises:
        ParameterError: there are no choices, a string is empty or repeated, or an item cannot be written as plain text.
    """
    if isinstance(items, type) and issubclass(items, enum.Enum):
        by_text = {_choice_text(member, field): member for member in items}
        texts, output_type = _choices(by_text, len(items), items, field)
        return texts, replace(output_type, python_type=items)
    if typing.get_origin(items) is typing.Literal:
        items = typing.get_args(items)
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise ParameterError(field, items, "expected a list of strings or numbers, an Enum class or a Literal")
    listed = list(items)
    return _choices({_choice_text(item, field): item for item in listed}, len(listed), listed, field)


def _choices(by_text: dict[str, Any], count: int, given: Any, field: str) -> tuple[tuple[str, ...], OutputType]:
    if not by_text:
        raise ParameterError(field, given, "expected at least one choice")
    if len(by_text) != count:
        raise ParameterError(field, given, "expected choices whose strings are distinct")
    texts = tuple(by_text)
    kinds = {type(item) for item in by_text.values()}
    number = next(iter(kinds)) if len(kinds) == 1 and kinds <= {int, float, bool} else None
    if number is float and not all(map(math.isfinite, by_text.values())):
        number = None

    def parse(text: str) -> Any:
        if text not in by_text:
            raise ValueError(f"the text is not one of the {len(by_text)} choices")
        return by_text[text]

    constraint = Constraint(ConstraintKind.CHOICE, json.dumps(list(texts), ensure_ascii=False))
    return texts, OutputType(constraint, parse, is_text=kinds == {str}, python_type=number)


def _choice_text(item: object, field: str) -> str:
    if isinstance(item, enum.Enum):
        plain = isinstance(item.value, (str, int, float)) and item.value != ""
        return _choice_text(item.value, field) if plain else item.name
    if isinstance(item, bool):
        return "true" if item else "false"
    if item is None:
        return "null"
    if isinstance(item, (str, int, float)) and str(item):
        return str(item)
    raise ParameterError(field, item, "expected non-empty strings, numbers, true, false or null")


def _from_type(given: Any, field: str = "type") -> OutputType:
    try:
        return _cached_type(given, field, datetime.date.today())
    except TypeError:  # not hashable, so not cached
        return _type(given, field)


def _type(given: Any, field: str, today: datetime.date | None = None) -> OutputType:
    """The output type of a Python type. `today` is part of the key of the cache: dates of the past or future are compared with it."""
    simple = _SIMPLE.get(given) if isinstance(given, type) else None
    if simple is not None:
        pattern, parse = simple
        return (
            TEXT if pattern is None else OutputType(Constraint(ConstraintKind.REGEX, pattern), parse, python_type=given)
        )
    if given is bool:
        return choice_type([True, False], field)[1]
    if given is types.NoneType:
        return choice_type([None], field)[1]
    if typing.get_origin(given) is typing.Literal:
        return choice_type(list(typing.get_args(given)), field)[1]
    if isinstance(given, type) and issubclass(given, enum.Enum):
        return choice_type(given, field)[1]
    if inspect.isroutine(given):
        return _signature(given, field)
    return _structured(given, field)


_cached_type = functools.lru_cache(maxsize=256)(_type)


def _structured(given: Any, field: str) -> OutputType:
    from pydantic import BaseModel, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticInvalidForJsonSchema
    from pydantic_core import SchemaError

    if isinstance(given, (str, bytes, int, float, list, tuple, set, Mapping)):
        also = ", a JSON schema (a mapping or a string) or a boolean" if field == "schema" else ""
        raise ParameterError(field, given, f"expected a type{also}")
    try:
        if isinstance(given, type) and issubclass(given, BaseModel):
            parse = given.model_validate_json
            return OutputType(
                _json_constraint(_schema_of(given)), parse, shape=shape_of(given, parse), python_type=given
            )
        readable = _with_readable_typed_dicts(given, ())
        adapter: TypeAdapter[Any] = TypeAdapter(readable)
        constraint = _json_constraint(adapter.json_schema(schema_generator=generator()))
        shape = shape_of(readable, adapter.validate_json)
        return OutputType(constraint, adapter.validate_json, shape=shape, python_type=readable)
    except PydanticInvalidForJsonSchema as error:
        raise ParameterError(field, given, f"expected a type with a JSON schema: {error.message}") from error
    except (PydanticSchemaGenerationError, PydanticUserError, SchemaError, NameError, RuntimeError) as error:
        raise ParameterError(field, given, f"expected a type with a JSON schema: {error}") from error


def _schema_of(model: Any) -> dict[str, Any]:
    """The strict JSON schema of a pydantic model, or its own schema if the model overrides it."""
    from pydantic import BaseModel

    own = getattr(model.model_json_schema, "__func__", None)  # not for static methods
    if own is not BaseModel.model_json_schema.__func__:  # type: ignore[attr-defined]
        return dict(model.model_json_schema())
    return dict(model.model_json_schema(schema_generator=generator()))


def _with_readable_typed_dicts(given: Any, seen: tuple[Any, ...]) -> Any:
    """Convert a TypedDict to a TypedDict of typing_extensions, the only kind that pydantic accepts before Python 3.12."""
    if sys.version_info >= (3, 12) or given in seen:
        return given
    if typing.is_typeddict(given) and type(given).__module__ == "typing":
        from typing_extensions import TypedDict

        inner = (*seen, given)
        fields: dict[str, Any] = {}
        for name, hint in typing.get_type_hints(given, include_extras=True).items():
            is_required = name in given.__required_keys__
            while (origin := typing.get_origin(hint)) in (typing.Required, typing.NotRequired):
                is_required = origin is typing.Required  # if annotations are strings, the class attribute is unreliable
                (hint,) = typing.get_args(hint)
            wrapper: Any = typing.Required if is_required else typing.NotRequired
            fields[name] = wrapper[_with_readable_typed_dicts(hint, inner)]
        return TypedDict(given.__name__, fields)  # type: ignore[operator]
    args = typing.get_args(given)
    if isinstance(given, types.GenericAlias) and args:
        return types.GenericAlias(
            typing.get_origin(given), tuple(_with_readable_typed_dicts(arg, seen) for arg in args)
        )
    return given


def _signature(function: Callable[..., Any], field: str) -> OutputType:
    """The arguments of a function as a JSON object; the value is a dict."""
    found = signature_of(function, field)
    constraint = _json_constraint({**found.schema, "additionalProperties": False})
    return OutputType(constraint, found.read, shape=whole(found.read))


def _from_schema(given: Any) -> OutputType:
    if isinstance(given, str):
        try:
            schema = json.loads(given)
        except ValueError as error:
            raise ParameterError("schema", given, f"expected a schema as valid JSON: {error}") from None
    elif isinstance(given, Mapping):
        schema = dict(given)
    elif isinstance(given, bool):
        schema = given
    else:
        return _from_type(given, "schema")
    if not isinstance(schema, (dict, bool)):
        raise ParameterError("schema", given, "a JSON schema must be an object or a boolean")
    read = functools.partial(_read_json, schema)
    return OutputType(_json_constraint(schema), read, shape=PLAIN, reading=lambda: reading_of_json(schema))


def _json_constraint(schema: object) -> Constraint:
    try:
        return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError("schema", schema, f"expected a schema of plain JSON data: {error}") from None


def _read_json(schema: dict[str, Any] | bool, text: str) -> Any:
    """Parse JSON text and check it against a schema as the engine does: exact numbers, ECMA-262 patterns."""
    value = json.loads(text, parse_constant=_refuse_constant)
    error = _value_error(schema, text)
    if error is not None:
        raise ValueError(error)
    return value


def _value_error(schema: dict[str, Any] | bool, text: str) -> str | None:
    """Why a text breaks a schema; None if it does not, or if this is not checked here.

    Raises:
        ValueError: the schema is invalid.
    """
    from rtlang_grammars.schema.value_checks import value_check

    try:
        return value_check(schema).error_in(text)
    except GrammarError as wrong:
        if wrong.location is not None and wrong.location.startswith("#"):
            raise ValueError(f"the schema is invalid: {wrong}") from wrong
        return None  # long numbers, back-references, timeout; the engine has enforced the schema


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _from_regex(given: Any) -> OutputType:
    pattern = given.pattern if isinstance(given, re.Pattern) else given
    if not isinstance(pattern, str) or not pattern:
        raise ParameterError("regex", given, "expected a non-empty pattern")
    if isinstance(given, re.Pattern) and given.flags & ~re.UNICODE:
        raise ParameterError("regex", given, "expected a pattern without flags; use inline flags")
    return OutputType(Constraint(ConstraintKind.REGEX, pattern), _same, is_text=True)


def _from_grammar(given: Any) -> OutputType:
    if isinstance(given, os.PathLike):
        text = _read_file("grammar", given)
        return OutputType(Constraint(_grammar_kind(text, os.fsdecode(given)), text), _same, is_text=True)
    if not isinstance(given, str) or not given.strip():
        raise ParameterError(
            "grammar", given, "expected a Lark grammar, the path of one or the name of a library grammar"
        )
    if given.isidentifier():
        if given not in LIBRARY:
            raise ParameterError("grammar", given, f"unknown library grammar; expected one of {', '.join(LIBRARY)}")
        return OutputType(library_constraint(given), _same, is_text=True)
    return OutputType(Constraint(_grammar_kind(given), given), _same, is_text=True)


def _grammar_kind(text: str, path: str = "") -> ConstraintKind:
    """The notation of a grammar. In Lark no line starts with `name ::=`."""
    if path.endswith(".ebnf"):
        return ConstraintKind.EBNF
    return ConstraintKind.GBNF if re.search(r"^\s*[\w.-]+\s*::=", text, re.MULTILINE) else ConstraintKind.LARK


def _read_file(field: str, path: os.PathLike[Any]) -> str:
    shown = os.fsdecode(path)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise ParameterError(field, shown, f"the file cannot be read: {error.strerror or error}") from None
    except ValueError:  # invalid UTF-8, or a NUL in the path
        raise ParameterError(field, shown, "expected the path of a UTF-8 text file") from None


def _outlines_type(field: str, given: Any) -> OutputType | None:
    """The output type of an `outlines` object; None for anything else."""
    owner = given if isinstance(given, type) else type(given)
    is_term = any(base.__module__.partition(".")[0] == "outlines" and base.__name__ == "Term" for base in owner.__mro__)
    if isinstance(given, type) or not is_term:
        if owner.__module__.partition(".")[0] == "genson" and hasattr(given, "to_json"):
            return _from_schema(given.to_json())
        return None
    from outlines.types import dsl

    if isinstance(given, dsl.JsonSchema):
        return _from_schema(given.schema)
    if isinstance(given, dsl.CFG):
        return OutputType(Constraint(ConstraintKind.LARK, given.definition), _same, is_text=True)
    if isinstance(given, dsl.Choice):
        return choice_type(given.items, field)[1]
    if isinstance(given, dsl.String):
        return choice_type([given.value], field)[1]
    if isinstance(given, dsl.Regex):
        typed = _outlines_values().get(given.pattern)
        if typed is not None:
            return typed
    try:
        return OutputType(Constraint(ConstraintKind.REGEX, dsl.to_regex(given)), _same, is_text=True)
    except (TypeError, NotImplementedError, ValueError) as error:
        raise ParameterError(
            field, given, f"expected an outlines type that can be converted to a regex: {error}"
        ) from error


@functools.cache
def _outlines_values() -> dict[str, OutputType]:
    """The named types of `outlines` that stand for Python types, by pattern. Dates are those that exist."""
    from outlines import types as named

    values: tuple[tuple[Any, str, Callable[[str], Any]], ...] = (
        (named.integer, named.integer.pattern, int),
        (named.number, named.number.pattern, _read_number),
        (named.boolean, named.boolean.pattern, lambda text: text == "True"),
        (named.date, DATE, datetime.date.fromisoformat),
        (named.time, TIME, datetime.time.fromisoformat),
        (named.datetime, f"{DATE} {TIME}", datetime.datetime.fromisoformat),
        (named.uuid4, named.uuid4.pattern, uuid.UUID),
    )
    return {
        term.pattern: OutputType(Constraint(ConstraintKind.REGEX, pattern), parse) for term, pattern, parse in values
    }


def _read_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("the number is too large")
    return value


_SIMPLE: dict[type, tuple[str | None, Callable[[str], Any]]] = {
    str: (None, _same),
    int: (_INTEGER, int),
    float: (_NUMBER, _read_number),
    decimal.Decimal: (_NUMBER, decimal.Decimal),
    datetime.date: (DATE, datetime.date.fromisoformat),
    datetime.time: (TIME, datetime.time.fromisoformat),
    datetime.datetime: (f"{DATE}T{TIME}", datetime.datetime.fromisoformat),
    uuid.UUID: (_UUID, uuid.UUID),
}

_MAKERS: dict[str, Callable[[Any], OutputType]] = {
    "type": _from_type,
    "schema": _from_schema,
    "regex": _from_regex,
    "choices": lambda given: choice_type(given)[1],
    "grammar": _from_grammar,
}
