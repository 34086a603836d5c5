"""Types of answers of people: a JSON schema for forms, and a check of plain data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.lang.output_types.kinds import STR, Kind
from rtlang.lang.output_types.types import output_type
from rtlang.lang.output_types.value_kinds import reading_of_type


@dataclass(frozen=True, slots=True)
class AnswerType:
    """The type of an answer.

    Attributes:
        schema: its JSON schema; None for text.
        check: plain data in one form for an answer, plain data or a value of the type; raises ValueError or TypeError if it does not fit.
        read: the value of checked plain data.
        kind: the kind of the value, if plain data equals it.
    """

    schema: Any
    check: Callable[[Any], Any]
    read: Callable[[Any], Any]
    kind: Kind | None


def answer_type(schema: Any) -> AnswerType:
    """The type of answers for the option `schema` of `rt.ask`.

    Raises:
        ParameterError: it is neither a type nor a JSON schema.
    """
    if schema is None or schema is str:
        return AnswerType(None, _text, _same, STR)
    if isinstance(schema, (str, Mapping, bool)):
        made = output_type(schema=schema)
        plain = json.loads(schema) if isinstance(schema, str) else schema

        def check(answer: Any) -> Any:
            return made.parse(_json_text(answer))

        reading = None if made.reading is None else made.reading()
        return AnswerType(plain, check, _same, None if reading is None else reading.kind)
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticInvalidForJsonSchema

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(schema)
        described = adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, PydanticInvalidForJsonSchema, NameError) as error:
        raise ParameterError(
            "schema", schema, f"expected a type with a JSON schema, or a JSON schema: {error}"
        ) from None

    def fitting(answer: Any) -> Any:
        return adapter.dump_python(adapter.validate_json(_json_text(answer), strict=None), mode="json")

    def read(plain: Any) -> Any:
        return adapter.validate_json(json.dumps(plain))

    found = reading_of_type(schema)
    return AnswerType(described, fitting, read, None if found is None else found.kind)


def _json_text(answer: Any) -> str:
    """An answer as JSON; functions also answer with models, enums, dates and other values of the type itself.

    Raises:
        ValueError, TypeError: it has no JSON form.
    """
    try:
        return json.dumps(answer)
    except TypeError:
        from pydantic_core import to_json

        return to_json(answer).decode()


def _text(answer: Any) -> str:
    if not isinstance(answer, str):
        raise ValueError(f"expected text, not {answer!r:.80}")
    return answer


def _same(value: Any) -> Any:
    return value
