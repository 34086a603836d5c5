"""Finished values held against a whole schema: how what a report leaves "to be checked" is checked.

The `jsonschema` validator of the schema's draft does the work, with exact numbers (0.3 is a multiple of 0.1), with the patterns and formats
of this package, nothing fetched, and a clock in every keyword so that no value takes longer than allowed. It is a second reading of the
schema, independent of the shapes that made the masks.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from rtlang_grammars.limits import Budget
from rtlang_grammars.regular.formats import format_language
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.schema.dialects import Dialect, detect, escape, survey
from rtlang_grammars.schema.options import SchemaOptions
from rtlang_grammars.schema.values import exact, is_number, json_key
from rtlang_grammars.spec import GrammarError

MAX_SECONDS = 1.0
_Keyword = Callable[[Any, Any, Any, Any], "Iterator[Any] | None"]


class CheckTimeError(GrammarError):
    """A value took longer to check than allowed."""


class ValueCheck:
    """Says what is wrong with values. Made by `value_check`; safe to use from several threads."""

    def __init__(self, validator: Callable[[float], Any], max_seconds: float) -> None:
        self._validator, self._max_seconds = validator, max_seconds

    def error(self, value: Any) -> str | None:
        """What is wrong with a value (numbers may be `Decimal`), with a JSON pointer into it; None where it is valid.

        Raises:
            CheckTimeError: it takes too long to say.
        """
        try:
            found = next(self._validator(time.monotonic() + self._max_seconds).iter_errors(value), None)
        except RecursionError:
            raise CheckTimeError("the value is nested too deeply to be checked") from None
        if found is None:
            return None
        pointer = "".join(f"/{escape(str(part))}" for part in found.absolute_path)
        return f"{found.message[:200]} (at #{pointer})"

    def error_in(self, text: str) -> str | None:
        """The same for the text of a value, numbers taken exactly."""
        try:
            return self.error(json.loads(text, parse_float=Decimal))
        except (json.JSONDecodeError, RecursionError) as error:
            return f"not JSON: {error}"


def value_check(schema: Any, options: SchemaOptions | None = None, max_seconds: float = MAX_SECONDS) -> ValueCheck:
    """The check of one schema.

    Args:
        schema: as parsed JSON; numbers may be `Decimal`.
        options: as the schema was compiled with.
        max_seconds: wall time of one value.
    Raises:
        GrammarError: its dialect is unknown.
    """
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    options = options or SchemaOptions()
    dialect = detect(schema, survey(schema), options.default_dialect).without(options.lenient)
    validator_class = _validator_class(dialect, options.assert_formats)
    if isinstance(schema, dict):  # a reference to the root would else go on with the plain class of its dialect
        schema = {key: value for key, value in schema.items() if key != "$schema"}
    checked = _with_exact_numbers(schema)
    return ValueCheck(
        lambda deadline: validator_class(checked, registry=REGISTRY, format_checker=_Clock(deadline)), max_seconds
    )


def _with_exact_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_exact_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_exact_numbers(item) for item in value]
    return Decimal(repr(value)) if isinstance(value, float) else value


class _Clock:
    """The deadline of one check; it travels where the validator class keeps its format checker, which is not used."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def look(self) -> None:
        if time.monotonic() > self._deadline:
            raise CheckTimeError("the value takes too long to be checked")


@functools.lru_cache(maxsize=32)
def _validator_class(dialect: Dialect, assert_formats: bool) -> Any:
    from jsonschema import validators

    base = {
        "draft-04": validators.Draft4Validator,
        "draft-06": validators.Draft6Validator,
        "draft-07": validators.Draft7Validator,
        "2019-09": validators.Draft201909Validator,
        "2020-12": validators.Draft202012Validator,
    }[dialect.name]
    keywords: dict[str, Any] = dict(base.VALIDATORS)
    keywords["dependencies"] = validators.Draft7Validator.VALIDATORS["dependencies"]
    keywords |= {
        "multipleOf": _multiple_of,
        "uniqueItems": _unique_items,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "format": functools.partial(_format, dialect if assert_formats else None),
    }
    known = dialect.keywords | {"$ref", "$dynamicRef"}
    kept: dict[str, Any] = {name: _timed(function) for name, function in keywords.items() if name in known}
    types = base.TYPE_CHECKER.redefine_many(
        {
            "number": lambda _, value: is_number(value),
            "integer": functools.partial(_is_integer, dialect.integer_form),
        }
    )
    return validators.create(
        meta_schema=base.META_SCHEMA,
        validators=kept,
        type_checker=types,
        id_of=base.ID_OF,  # type: ignore[arg-type]
        applicable_validators=_applicable(dialect),
    )


def _applicable(dialect: Dialect) -> Callable[[Any], Any]:
    def items(schema: dict[str, Any]) -> list[tuple[str, Any]]:
        if dialect.ref_hides_siblings and "$ref" in schema:
            return [("$ref", schema["$ref"])]
        return list(schema.items())

    return items


def _timed(function: _Keyword) -> _Keyword:
    def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        clock = validator.format_checker
        if clock is not None:
            clock.look()
        yield from function(validator, value, instance, schema) or ()

    return keyword


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)


def _is_integer(needs_form: bool, _: Any, value: Any) -> bool:
    if not is_number(value):
        return False
    return isinstance(value, int) if needs_form else exact(value).denominator == 1


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if is_number(instance) and (exact(instance) / exact(step)).denominator != 1:
        yield _error(f"{instance} is not a multiple of {step}")


def _unique_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if value and isinstance(instance, list) and len({json_key(item) for item in instance}) < len(instance):
        yield _error("two elements are equal")


@functools.lru_cache(maxsize=512)
def _search(pattern: str) -> Language:
    return compile_regex(pattern, dialect="ecma", mode="search", budget=Budget())


def _finds(pattern: str, text: str) -> bool:
    return _search(pattern).accepts(text, Budget())


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _finds(pattern, instance):
        yield _error(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: dict[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, inner in patterns.items():
            for name, value in instance.items():
                if _finds(pattern, name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    patterns = schema.get("patternProperties", {})
    for name, value in instance.items():
        if name not in schema.get("properties", {}) and not any(_finds(pattern, name) for pattern in patterns):
            yield from validator.descend(value, inner, path=name)


def _format(dialect: Dialect | None, validator: Any, name: str, instance: Any, schema: Any) -> Iterator[Any]:
    if dialect is None or not isinstance(instance, str) or name not in dialect.formats:
        return
    language = format_language(name)
    if language is None:
        try:
            compile_regex(instance, dialect="ecma", mode="search", budget=Budget())
        except GrammarError as error:
            yield _error(f"{instance!r} is no regular expression: {error.reason}")
    elif not language.accepts(instance, Budget()):
        yield _error(f"{instance!r} is not of the format {name!r}")
