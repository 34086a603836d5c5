"""JSON schemas of pydantic types that are as strict as the validators of pydantic.

The schemas of pydantic are looser than its validators: any string is a Decimal, a key of `dict[int, str]` or a UUID of version 4, patterns
have another syntax than in JSON Schema, bounds of dates are left out. Text that matches such a schema may fail to validate. The schemas
here are made from the core schemas, by which pydantic validates. They leave out uncommon spellings of values (`+1`, `0x1F`).

Types whose validity depends on more than the text, such as a path that must exist, are refused. Python validators cannot be read:
they see the finished value.

Objects are closed: pydantic ignores undeclared keys by default, so that writing them only costs tokens. With `extra="allow"` they are open.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rtlang.lang.output_types.schemas.aliased_objects import AliasConflictError, AliasSlot, object_schema
from rtlang.lang.output_types.schemas.core_schemas import (
    decimal_literal,
    is_text,
    leaf_of,
    pattern_with_flags,
    whole_bounds,
)
from rtlang.lang.output_types.schemas.date_patterns import date_range, datetime_pattern, duration_pattern, time_pattern
from rtlang.lang.output_types.schemas.decimal_schema import decimal_bounds, decimal_schema
from rtlang.lang.output_types.schemas.json_texts import json_text_pattern
from rtlang.lang.output_types.schemas.range_patterns import NOTHING, decimals, either, integers, multiples
from rtlang.lang.output_types.schemas.text_forms import (
    BYTE_SIZE,
    COMPLEX,
    FRACTION,
    base64_pattern,
    form,
    hex_pattern,
    url_pattern,
    uuid_pattern,
)
from rtlang_grammars import GrammarError

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema

PATTERN_DIALECT = "x-pattern-dialect"
_ASCII = r"^[\x00-\x7f]*$"
_STRIPPED = {"pattern": r"^(?:\S(?s:.*\S)?)?$", PATTERN_DIALECT: "rust"}
_TIGHT_LENGTH = 1000
"""Longest URLs of which the type must write the same text, because their length is limited."""
_MAX_VARIADIC = 16
"""Items of the middle of a tuple with items after it."""
_TEXT_KEYWORDS = frozenset(
    {"type", "pattern", PATTERN_DIALECT, "enum", "const", "format", "minLength", "maxLength", "anyOf", "allOf", "$ref"}
)
_REFUSED_FUNCTIONS = {
    "PathType.validate_file": "whether the file exists cannot be seen from the text; use pathlib.Path",
    "PathType.validate_directory": "whether the directory exists cannot be seen from the text; use pathlib.Path",
    "PathType.validate_new": "whether the path is new cannot be seen from the text; use pathlib.Path",
    "PathType.validate_socket": "whether the path is a socket cannot be seen from the text; use pathlib.Path",
    "PaymentCardNumber.validate": "its check digit cannot be enforced; use a str with a pattern",
    "pattern_bytes_validator": "pydantic reads patterns of bytes from bytes only; use re.Pattern[str]",
    "import_string": "whether the name can be imported cannot be seen from the text; use str",
}
_JSON_SAMPLES: dict[str, Any] = {
    "string": "a",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}


@functools.cache
def generator() -> type[GenerateJsonSchema]:
    """The `schema_generator` for pydantic's `json_schema` functions. Refusals (PydanticInvalidForJsonSchema) name the field."""
    from pydantic.errors import PydanticInvalidForJsonSchema
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import PydanticOmit, SchemaValidator, ValidationError, to_jsonable_python

    class Generator(GenerateJsonSchema):
        ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}  # noqa: RUF012

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._place: list[str] = []
            self._core_definitions: dict[str, Any] = {}
            self._is_name = False
            self._is_canonical = False
            self._is_inside_text = False

        # Places, names and references

        def refuse(self, reason: str) -> PydanticInvalidForJsonSchema:
            place = ".".join(self._place)
            return PydanticInvalidForJsonSchema(f"{place}: {reason}" if place else reason)

        @contextmanager
        def _at(self, place: str) -> Iterator[None]:
            self._place.append(place)
            try:
                yield
            finally:
                self._place.pop()

        @contextmanager
        def _set(self, **flags: bool) -> Iterator[None]:
            before = {name: getattr(self, f"_{name}") for name in flags}
            for name, value in flags.items():
                setattr(self, f"_{name}", value)
            try:
                yield
            finally:
                for name, value in before.items():
                    setattr(self, f"_{name}", value)

        def definitions_schema(self, schema: Any) -> dict[str, Any]:
            self._core_definitions |= {each["ref"]: each for each in schema["definitions"]}
            return super().definitions_schema(schema)

        def generate_inner(self, schema: Any) -> dict[str, Any]:
            if "ref" in schema:
                self._core_definitions.setdefault(schema["ref"], schema)
            self._check_function(schema)
            if self._is_name or self._is_canonical:  # the definitions describe values, not names
                schema = self._without_reference(schema)
            found = super().generate_inner(schema)
            form_of = found.get("format")
            if found.get("type") == "string" and isinstance(form_of, str):
                found = self._with_form(found, form_of)
            return found

        def _without_reference(self, schema: Any) -> Any:
            depth = 0
            while schema.get("type") == "definition-ref" and depth < len(self._core_definitions):
                schema, depth = self._core_definitions[schema["schema_ref"]], depth + 1
            if self._is_name and schema["type"] == "enum":
                schema = {key: each for key, each in schema.items() if key != "metadata"}
            if self._is_name and getattr(schema.get("cls"), "__hash__", True) is None:
                raise self.refuse(f"values of the type {schema['cls'].__name__} cannot be keys: they have no hash")
            is_leaf = schema["type"] not in ("model", "dataclass", "typed-dict", "named-tuple", "definition-ref")
            return {key: each for key, each in schema.items() if key != "ref"} if is_leaf or self._is_name else schema

        def _name_schema(self, schema: Any) -> dict[str, Any]:
            """The names of an object that a type of keys reads."""
            with self._set(is_name=True, is_canonical=True), self._at("[key]"):
                found = self.generate_inner(schema)
                if not is_text(found):
                    raise self.refuse(f"names of JSON objects cannot be read as keys of the type {schema['type']}")
            return {key: each for key, each in found.items() if key in _TEXT_KEYWORDS}

        def _as_text(self, pattern: str, what: str) -> dict[str, Any]:
            if pattern == NOTHING:
                raise self.refuse(f"no {what} is within the bounds")
            return {"type": "string", "pattern": f"^({pattern})$"}

        def _with_form(self, found: dict[str, Any], name: str) -> dict[str, Any]:
            """A string with the pattern of its format, if pydantic's types name it. Lengths of encoded bytes count the bytes."""
            low, high = found.get("minLength", 0), found.get("maxLength")
            if name in ("base64", "base64url"):
                if "pattern" in found and not low and high is None:
                    return found
                is_text = found.get("contentMediaType") == "text/plain"
                encoded = base64_pattern(low, high, is_url=name == "base64url", is_text=is_text)
                kept = {key: each for key, each in found.items() if key not in ("minLength", "maxLength")}
                return kept | self._as_text(encoded, "text")
            pattern = form(name)
            if pattern is None or "pattern" in found:
                return found
            found = {key: each for key, each in found.items() if key != "format" or name not in _ASSERTED_FORMATS}
            return found | self._as_text(pattern, name)

        # Scalars

        def none_schema(self, schema: Any) -> dict[str, Any]:
            if self._is_name:
                raise self.refuse("no name of a JSON object is read as None")
            return super().none_schema(schema)

        def bool_schema(self, schema: Any) -> dict[str, Any]:
            return {"type": "string", "enum": ["true", "false"]} if self._is_name else super().bool_schema(schema)

        def int_schema(self, schema: Any) -> dict[str, Any]:
            if not self._is_name:
                return super().int_schema(schema)
            low, high, *_ = whole_bounds(decimal_bounds(schema))
            step = schema.get("multiple_of")
            if step is None:
                return self._as_text(integers(low, high), "integer")
            first, last = None if low is None else -(-low // step), None if high is None else high // step
            listed = [str(int(each)) for each in multiples(Fraction(step), first, last)]
            return self._as_text(either(*listed), "integer")

        def float_schema(self, schema: Any) -> dict[str, Any]:
            return self._decimal_name(schema) if self._is_name else super().float_schema(schema)

        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            if self._is_name:
                return self._decimal_name(schema)
            found = decimal_schema(schema)
            if self._is_canonical and "anyOf" in found:
                return {"anyOf": [each for each in found["anyOf"] if each["type"] != "string"]}
            return found

        def _decimal_name(self, schema: Any) -> dict[str, Any]:
            low, high, open_low, open_high = decimal_bounds(schema)
            digits, places, step = (schema.get(key) for key in ("max_digits", "decimal_places", "multiple_of"))
            whole = None if digits is None else max(digits - (0 if places is None else places), 0)
            if digits is not None and places is None:
                places = 0  # each place leaves one digit less before the point
            if step is not None:
                size = Fraction(str(step))
                first = None if low is None else -(-low // size) + (open_low and low % size == 0)
                last = None if high is None else high // size - (open_high and high % size == 0)
                listed = [Decimal(each.numerator) / each.denominator for each in multiples(size, first, last)]
                return self._as_text(either(*(decimal_literal(each) for each in listed)), "number")
            pattern = decimals(low, high, open_low=open_low, open_high=open_high, whole_digits=whole, places=places)
            return self._as_text(pattern, "number")

        def fraction_schema(self, schema: Any) -> dict[str, Any]:
            low, high, open_low, open_high = decimal_bounds(schema)
            step = schema.get("multiple_of")
            if low is None and high is None and step is None:
                return self._as_text(FRACTION, "fraction")
            if step is not None:
                first = None if low is None else -(-low // step) + (open_low and low % step == 0)
                last = None if high is None else high // step - (open_high and high % step == 0)
                return self._as_text(either(*map(str, multiples(Fraction(step), first, last))), "fraction")
            return self._as_text(decimals(low, high, open_low=open_low, open_high=open_high), "fraction")

        def complex_schema(self, schema: Any) -> dict[str, Any]:
            return self._as_text(COMPLEX, "number")

        def literal_schema(self, schema: Any) -> dict[str, Any]:
            values = [each.value if isinstance(each, Enum) else each for each in schema["expected"]]
            return self._members(schema, values)

        def enum_schema(self, schema: Any) -> dict[str, Any]:
            found = {} if self._is_name else super().enum_schema(schema)
            kept = {key: each for key, each in found.items() if key in ("title", "description")}
            return kept | self._members(schema, [each.value for each in schema["members"]])

        def _members(self, schema: Any, values: list[Any]) -> dict[str, Any]:
            """The values of an enum or literal that pydantic reads from JSON: as they are, or as names of an object."""
            plain = {key: each for key, each in schema.items() if key not in ("ref", "metadata")}
            core = {"type": "dict", "keys_schema": plain} if self._is_name else plain
            validator = SchemaValidator(core)
            listed: list[Any] = []
            for value in values:
                try:
                    jsonable = to_jsonable_python(value)
                    if self._is_name and not isinstance(jsonable, str):
                        jsonable = json.dumps(jsonable)
                    validator.validate_json(json.dumps({jsonable: 0} if self._is_name else jsonable))
                except (ValueError, ValidationError):
                    continue
                if not any(type(each) is type(jsonable) and each == jsonable for each in listed):
                    listed.append(jsonable)
            if not listed:
                raise self.refuse("no value of it can be read from JSON")
            found: dict[str, Any] = (
                {"const": listed[0]} if len(listed) == 1 and schema["type"] == "literal" else {"enum": listed}
            )
            types = {_TYPE_NAMES.get(type(each)) for each in listed}
            return found | {"type": types.pop()} if len(types) == 1 and None not in types else found

        def str_schema(self, schema: Any) -> dict[str, Any]:
            found = super().str_schema(schema)
            given = found.pop("pattern", None)
            config = self._config
            patterns: list[dict[str, Any]] = []
            if given is not None:
                engine = schema.get("regex_engine") or config.regex_engine
                patterns.append(self._own_pattern(schema["pattern"], engine))
            if schema.get("ascii_only"):
                patterns.append({"pattern": _ASCII})
            is_stripped = schema.get("strip_whitespace", config.str_strip_whitespace)
            if is_stripped and (patterns or found.get("minLength") or self._is_canonical):
                patterns.append(_STRIPPED)
            if self._is_canonical:
                lower = schema.get("to_lower", config.str_to_lower)
                upper = schema.get("to_upper", config.str_to_upper)
                if lower or upper:
                    patterns.append({"pattern": r"^[\x00-@\[-\x7f]*$" if lower else r"^[\x00-`{-\x7f]*$"})
            if len(patterns) == 1:
                return found | patterns[0]
            return found | {"allOf": patterns} if patterns else found

        def _own_pattern(self, given: Any, engine: str) -> dict[str, Any]:
            """The pattern of a type, in the dialect of its engine."""
            from rtlang_grammars.regular.language import compile_regex

            if isinstance(given, re.Pattern):
                pattern, dialect = pattern_with_flags(given), "python"
            else:
                pattern, dialect = given, "python" if engine == "python-re" else "rust"
            try:
                compile_regex(pattern, dialect=dialect, mode="search")  # type: ignore[arg-type]
            except GrammarError as error:
                raise self.refuse(f"pattern = {pattern[:80]!r}: {error}") from error
            return {"pattern": pattern, PATTERN_DIALECT: dialect}

        def bytes_schema(self, schema: Any) -> dict[str, Any]:
            low, high = schema.get("min_length", 0), schema.get("max_length")
            written = self._config.val_json_bytes
            if written == "base64":
                return {"format": "base64url"} | self._as_text(base64_pattern(low, high, is_url=True), "text")
            if written == "hex":
                return self._as_text(hex_pattern(low, high), "text")
            found = {"type": "string", "format": "binary"}
            self.update_with_validations(found, schema, self.ValidationsMapping.bytes)
            return found | {"pattern": _ASCII} if low or high is not None else found

        # Strings of one form

        def date_schema(self, schema: Any) -> dict[str, Any]:
            found = {"type": "string", "format": "date"}
            pattern = date_range(schema)
            return found if pattern is None else found | self._as_text(pattern, "date")

        def datetime_schema(self, schema: Any) -> dict[str, Any]:
            return self._as_text(datetime_pattern(schema, is_canonical=self._is_canonical), "datetime")

        def time_schema(self, schema: Any) -> dict[str, Any]:
            return self._as_text(time_pattern(schema, is_canonical=self._is_canonical), "time")

        def timedelta_schema(self, schema: Any) -> dict[str, Any]:
            return self._as_text(duration_pattern(schema), "duration")

        def uuid_schema(self, schema: Any) -> dict[str, Any]:
            return {"format": "uuid"} | self._as_text(uuid_pattern(schema.get("version")), "UUID")

        def url_schema(self, schema: Any) -> dict[str, Any]:
            return super().url_schema(schema) | {"pattern": self._url(schema)}

        def multi_host_url_schema(self, schema: Any) -> dict[str, Any]:
            return super().multi_host_url_schema(schema) | {"pattern": self._url(schema)}

        def _url(self, schema: Any) -> str:
            is_tight = schema.get("max_length", _TIGHT_LENGTH + 1) <= _TIGHT_LENGTH
            needs_host = bool(schema.get("host_required"))
            is_plain, schemes = self._is_inside_text, schema.get("allowed_schemes")
            return f"^({url_pattern(schemes, needs_host=needs_host, is_tight=is_tight, is_plain=is_plain)})$"

        def json_schema(self, schema: Any) -> dict[str, Any]:
            with self._set(is_name=False, is_inside_text=True):
                content = self.generate_inner(schema["schema"]) if "schema" in schema else {}
            if self._is_name and schema.get("schema", {}).get("type", "any") not in _HASHABLE:
                raise self.refuse(
                    "values of JSON texts cannot be keys, unless they are numbers, texts, dates or the like"
                )
            try:
                pattern = json_text_pattern(content, self.resolve_ref_schema)
            except (ValueError, RuntimeError, GrammarError) as error:
                raise self.refuse(str(error)) from error
            return {"contentMediaType": "application/json"} | self._as_text(pattern, "JSON text")

        # Functions

        def function_after_schema(self, schema: Any) -> dict[str, Any]:
            function = schema["function"]["function"]
            owner = getattr(function, "__self__", None)
            name = getattr(function, "__qualname__", "")
            if name == "ByteSize._validate":
                sizes = self._as_text(BYTE_SIZE, "size")
                return sizes if self._is_name else {"anyOf": [{"type": "integer", "minimum": 0}, sizes]}
            found = super().function_after_schema(schema)
            if name == "EncodedStr.decode_str" and hasattr(owner, "encoder"):
                found = found | {"contentMediaType": "text/plain"}
            if not isinstance(function, functools.partial):
                return found
            limit, inner = function.keywords.get("max_length"), leaf_of(schema)
            if inner["type"] in ("url", "multi-host-url") and limit is not None:
                return found | {"pattern": self._url({**inner, "max_length": limit})}
            if inner["type"] == "bytes" and function.keywords.keys() & {"min_length", "max_length"}:
                return {"pattern": _ASCII} | found  # lengths count bytes
            return found

        def _check_function(self, schema: Any) -> None:
            """Refuse functions of pydantic that look at more than the text."""
            function = schema["function"]["function"] if schema["type"].startswith("function-") else None
            name = getattr(function, "__qualname__", "")
            if name in _REFUSED_FUNCTIONS and getattr(function, "__module__", "").startswith("pydantic"):
                raise self.refuse(_REFUSED_FUNCTIONS[name])

        def is_instance_schema(self, schema: Any) -> dict[str, Any]:
            found = [name for name, sample in _JSON_SAMPLES.items() if isinstance(sample, schema["cls"])]
            if not found or schema["cls"] is object:
                return {} if found else super().is_instance_schema(schema)
            return {"type": [each for each in found if each != "integer" or "number" not in found]}

        def is_subclass_schema(self, schema: Any) -> dict[str, Any]:
            raise self.refuse("a class cannot be read from JSON; use a Literal of names")

        def chain_schema(self, schema: Any) -> dict[str, Any]:
            first = super().chain_schema(schema)
            checks = [self.generate_inner(each) for each in schema["steps"][1:] if each["type"] == "is-instance"]
            return {"allOf": [first, *checks]} if checks and self.mode == "validation" else first

        # Arrays

        def tuple_schema(self, schema: Any) -> dict[str, Any]:
            items, at = schema["items_schema"], schema.get("variadic_item_index")
            if at is None or at + 1 == len(items):
                return super().tuple_schema(schema)
            before, after = items[:at], items[at + 1 :]
            low = max(schema.get("min_length", 0) - len(before) - len(after), 0)
            high = min(
                schema.get("max_length", low + _MAX_VARIADIC + len(before) + len(after)) - len(before) - len(after),
                low + _MAX_VARIADIC,
            )
            made = [[*before, *[items[at]] * count, *after] for count in range(low, high + 1)]
            return {
                "anyOf": [super(Generator, self).tuple_schema({"type": "tuple", "items_schema": each}) for each in made]
            }

        def _common_set_schema(self, schema: Any) -> dict[str, Any]:
            """A set. Elements may be repeated, which pydantic allows, unless there is a least number of them or few are possible."""
            is_counted = schema.get("min_length", 0) > 1
            with self._set(is_canonical=is_counted or self._is_canonical):
                found = super()._common_set_schema(schema)
            items = self.resolve_ref_schema(found["items"]) if "$ref" in found["items"] else found["items"]
            if not is_counted and len(items.get("enum", range(_MANY))) >= _MANY:
                del found["uniqueItems"]
            return found

        # Unions

        def union_schema(self, schema: Any) -> dict[str, Any]:
            choices = [each[0] if isinstance(each, tuple) else each for each in schema["choices"]]
            if self._is_canonical and not self._is_name and any(each["type"] in _NUMBERS for each in choices):
                choices = [each for each in choices if each["type"] != "bool"]  # True is equal to 1
            narrowed: Any = {**schema, "choices": choices}
            found = super().union_schema(narrowed)
            if found.get("anyOf") == []:
                raise self.refuse("no member of the union can be read from JSON")
            return found

        def nullable_schema(self, schema: Any) -> dict[str, Any]:
            return self.generate_inner(schema["schema"]) if self._is_name else super().nullable_schema(schema)

        def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
            """The members; each has its tag, also where the tag has a default, since pydantic chooses the member by it."""
            made: list[dict[str, Any]] = []
            for choice in schema["choices"].values():
                try:
                    member = self.generate_inner(choice)
                except PydanticOmit:
                    continue
                key = self._tag_key(schema["discriminator"], choice)
                if key is not None:
                    member = {**member, "required": list(dict.fromkeys([*member.get("required", ()), key]))}
                if member not in made:
                    made.append(member)
            return made[0] if len(made) == 1 else {"anyOf": made}

        def _tag_key(self, discriminator: Any, choice: Any) -> str | None:
            keys = [discriminator] if isinstance(discriminator, str) else discriminator
            if not isinstance(keys, list):
                return None  # a function, which cannot be read
            keys = (
                [keys]
                if not any(isinstance(each, list) for each in keys) and not isinstance(discriminator, str)
                else keys
            )
            paths = [[each] if isinstance(each, str) else each for each in keys]
            fields = self._keys_of(choice)
            return next((path[0] for path in paths if len(path) == 1 and path[0] in fields), None)

        def _keys_of(self, core: Any, depth: int = 0) -> set[str]:
            """The names by which an object's fields are written."""
            if core.get("type") == "definition-ref":
                core = self._core_definitions.get(core["schema_ref"], {})
            if depth > 20 or not core:
                return set()
            fields, choices = core.get("fields"), core.get("choices")
            if isinstance(choices, dict):
                return set().union(*(self._keys_of(each, depth + 1) for each in choices.values()))
            if fields is None:
                return self._keys_of(core["schema"], depth + 1) if isinstance(core.get("schema"), dict) else set()
            pairs = fields.items() if isinstance(fields, dict) else ((each["name"], each) for each in fields)
            return {str(path[0]) for name, each in pairs for path in self._paths(name, each)[:1] if len(path) == 1}

        # Objects

        def model_schema(self, schema: Any) -> dict[str, Any]:
            found = super().model_schema(schema)
            return found if schema.get("root_model") else _closed(found)

        def dataclass_schema(self, schema: Any) -> dict[str, Any]:
            return _closed(super().dataclass_schema(schema))

        def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
            return _closed(super().typed_dict_schema(schema))

        def model_fields_schema(self, schema: Any) -> dict[str, Any]:
            found = super().model_fields_schema(schema)
            if "extras_keys_schema" in schema:
                names = self._name_schema(schema["extras_keys_schema"])
                found["propertyNames"] = {"anyOf": [{"enum": list(found.get("properties", {}))}, names]}
            return found

        def dict_schema(self, schema: Any) -> dict[str, Any]:
            return self._common_dict_schema(schema)

        def _common_dict_schema(self, schema: Any) -> dict[str, Any]:
            found: dict[str, Any] = {"type": "object", "additionalProperties": True}
            if "values_schema" in schema:
                values = self.generate_inner(schema["values_schema"])
                found["additionalProperties"] = {key: each for key, each in values.items() if key != "title"} or True
            names = self._name_schema(schema["keys_schema"]) if "keys_schema" in schema else {}
            if names not in ({}, {"type": "string"}):
                found["propertyNames"] = names
            self.update_with_validations(found, schema, self.ValidationsMapping.object)
            if names.keys() & {"enum", "const"} and found.get("maxProperties") != 0:
                found.setdefault("minProperties", 1)  # a map of listed keys without any says nothing
            return found

        def _named_required_fields_schema(
            self, named_required_fields: Sequence[tuple[str, bool, Any]]
        ) -> dict[str, Any]:
            slots = []
            for name, is_required, field in named_required_fields:
                if field.get("init") is False:
                    continue
                paths = self._paths(name, field)
                with self._at(str(paths[0][0])):
                    try:
                        found = dict(self.generate_inner(field))
                    except PydanticOmit:
                        continue
                if "title" not in found and self.field_title_should_be_set(field):
                    found["title"] = self.get_title_from_name(str(paths[0][0]))
                slots.append(AliasSlot(paths, self.handle_ref_overrides(found), is_required))
            try:
                return object_schema(slots)
            except AliasConflictError as error:
                raise self.refuse(str(error)) from error

        def _paths(self, name: str, field: Any) -> list[list[str | int]]:
            """The places of a field in its object, the best one first."""
            alias = field.get("validation_alias", name) if self._config.validate_by_alias is not False else name
            if isinstance(alias, str):
                return [[alias]]
            paths = [list(each) for each in alias] if isinstance(alias[0], list) else [list(alias)]
            return sorted(paths, key=len)

    return Generator


_MANY = 6
"""Members of an enum of which there are too many sets to list."""
_NUMBERS = ("int", "float", "decimal")
_HASHABLE = (
    "str",
    "int",
    "float",
    "bool",
    "decimal",
    "date",
    "time",
    "datetime",
    "timedelta",
    "uuid",
    "literal",
    "enum",
    "none",
)
_TYPE_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", list: "array"}
_ASSERTED_FORMATS = frozenset({"ipv4", "ipv6", "email", "regex"})


def _closed(found: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object without undeclared keys, unless its type allows them."""
    if found.get("type") == "object" and "additionalProperties" not in found:
        return found | {"additionalProperties": False}
    return found
