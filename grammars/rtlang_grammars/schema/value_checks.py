"""Checks finished values against a whole schema, for keywords that masks cannot enforce.

The validator walks the value and the schema together. It reads the schema independently of the shapes from which the masks come and has
only the resolution of references, the patterns and the formats in common with them. Numbers are exact (0.3 is a multiple of 0.1), nothing
is fetched, and a time limit stops long checks.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.patterns.escapes import RegexDialect
from rtlang_grammars.regular.patterns.parser import check_pattern
from rtlang_grammars.regular.string_formats.formats import (
    LOOSE_FORMATS,
    format_language,
    is_of_loose_format,
    loose_format_language,
)
from rtlang_grammars.schema.reading.dialects import PATTERN_DIALECT, escape
from rtlang_grammars.schema.reading.documents import Documents, SchemaNode
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.values import exact, is_number, json_key
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits

MAX_SECONDS = 1.0
_MAX_NODES = 1_000_000
_TYPES = {"null": type(None), "boolean": bool, "string": str, "array": list, "object": dict}


class CheckTimeError(GrammarError):
    """A value takes longer to check than allowed, or is nested too deeply."""


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """Checks values against one schema. Safe to use from several threads."""

    schema: Any
    options: SchemaOptions
    max_seconds: float

    def error(self, value: Any) -> str | None:
        """The first violation in a value (numbers may be `Decimal`), with a JSON pointer into it; None if the value is valid.

        Raises:
            CheckTimeError: the check takes too long.
            GrammarError: the schema is malformed; compiling it raises the same error.
        """
        budget = Budget(Limits(max_seconds=self.max_seconds, max_states=_MAX_NODES))
        try:
            budget.check()
            documents = Documents(self.schema, budget, self.options.default_dialect, self.options.lenient)
            _Walk(documents, budget, self.options.assert_formats).check(documents.root_node(), value, ())
        except _InvalidError as error:
            return str(error)
        except RecursionError:
            raise CheckTimeError("the value is nested too deeply to be checked") from None
        except GrammarError as error:
            if error.reason.startswith("too complex"):
                raise CheckTimeError("checking the value takes too long") from error
            raise
        return None

    def may_begin(self, text: str, num_new: int) -> bool:
        """See `TextCheck`: the whole text is the value."""
        return True

    def error_in(self, text: str) -> str | None:
        """Check the text of a value, with exact numbers."""
        try:
            value = json.loads(text, parse_float=Decimal)
        except (ValueError, RecursionError) as error:  # a number may have too many digits to be read
            return f"not JSON: {error}"
        return self.error(value)


def value_check(schema: Any, options: SchemaOptions | None = None, max_seconds: float = MAX_SECONDS) -> ValueCheck:
    """Create the check of a schema.

    Args:
        schema: parsed JSON; not copied, so it must not be modified.
        options: those with which the schema was compiled.
        max_seconds: limit on the CPU time for one value.
    """
    return ValueCheck(schema, options or SchemaOptions(), max_seconds)


_Path = tuple[str | int, ...]


class _InvalidError(Exception):
    def __init__(self, message: str, path: _Path) -> None:
        pointer = "".join(f"/{escape(str(part))}" for part in path)
        super().__init__(f"{message[:200]} (at #{pointer})")


@dataclass(slots=True)
class _Seen:
    """Properties or items of a value that were evaluated."""

    names: set[str] = field(default_factory=set)
    items: set[int] = field(default_factory=set)

    def add(self, other: _Seen) -> None:
        self.names |= other.names
        self.items |= other.items


class _Walk:
    """One check. Every method raises _InvalidError if the value violates the schema."""

    def __init__(self, documents: Documents, budget: Budget, assert_formats: bool) -> None:
        self._documents, self._budget, self._assert_formats = documents, budget, assert_formats

    def check(self, node: SchemaNode, value: Any, path: _Path) -> _Seen:
        """Check a value against a schema; returns what it evaluated."""
        self._budget.spend()
        seen, schema = _Seen(), node.schema
        if schema is False:
            raise _InvalidError("no value is allowed here", path)
        if not isinstance(schema, dict):
            return seen
        asked = {name: item for name, item in schema.items() if name in node.dialect.keywords}
        if node.dialect.ref_hides_siblings and "$ref" in asked:
            asked = {"$ref": asked["$ref"]}
        for name in ("$ref", "$dynamicRef", "$recursiveRef"):
            if name in asked:
                seen.add(self.check(self._documents.resolve(node, name), value, path))
        self._check_scalar(node, asked, value, path)
        self._check_combined(node, asked, value, path, seen)
        if isinstance(value, list):
            self._check_array(node, asked, value, path, seen)
        elif isinstance(value, dict):
            self._check_object(node, asked, value, path, seen)
        return seen

    def _is_valid(self, node: SchemaNode, value: Any, seen: _Seen | None = None) -> bool:
        try:
            found = self.check(node, value, ())
        except _InvalidError:
            return False
        if seen is not None:
            seen.add(found)
        return True

    def _children(self, node: SchemaNode, keyword: str) -> Iterator[SchemaNode]:
        assert isinstance(node.schema, dict)
        members = node.schema[keyword]
        assert isinstance(members, list)
        return (self._documents.child(node, keyword, index) for index in range(len(members)))

    def _check_scalar(self, node: SchemaNode, asked: dict[str, Any], value: Any, path: _Path) -> None:
        if "type" in asked:
            names = asked["type"] if isinstance(asked["type"], list) else [asked["type"]]
            if not any(_is_of_type(name, value, node.dialect.integer_form) for name in names):
                raise _InvalidError(f"not of type {' or '.join(names)}", path)
        if "enum" in asked and json_key(value) not in {json_key(each) for each in asked["enum"]}:
            raise _InvalidError("not one of the listed values", path)
        if "const" in asked and json_key(value) != json_key(asked["const"]):
            raise _InvalidError("not equal to `const`", path)
        if is_number(value):
            _check_number(asked, exact(value), node.dialect.boolean_exclusive, path)
        if isinstance(value, str):
            self._check_text(node, asked, value, path)

    def _check_text(self, node: SchemaNode, asked: dict[str, Any], value: str, path: _Path) -> None:
        if len(value) < asked.get("minLength", 0) or len(value) > asked.get("maxLength", len(value)):
            raise _InvalidError("too short or too long", path)
        if "pattern" in asked and not self._finds(asked["pattern"], value, asked.get(PATTERN_DIALECT, "ecma")):
            raise _InvalidError(f"does not match {asked['pattern']!r}", path)
        name = asked.get("format")
        if self._assert_formats and name in node.dialect.formats and not self._is_of_format(name, value):
            raise _InvalidError(f"does not match the format {name!r}", path)

    def _finds(self, pattern: str, text: str, dialect: str = "ecma") -> bool:
        return pattern_language(pattern, dialect).accepts(text, self._budget)

    def _is_of_format(self, name: str, value: str) -> bool:
        if name in LOOSE_FORMATS:
            return loose_format_language(name).accepts(value, self._budget) and is_of_loose_format(name, value)
        language = format_language(name)
        if language is not None:
            return language.accepts(value, self._budget)
        try:
            check_pattern(value, RegexDialect.ECMA, self._budget)
        except GrammarError:
            self._budget.check()  # raises if the budget was the cause; otherwise the value is not a pattern
            return False
        return True

    def _check_combined(self, node: SchemaNode, asked: dict[str, Any], value: Any, path: _Path, seen: _Seen) -> None:
        for name in ("allOf", "anyOf", "oneOf"):
            if name not in asked:
                continue
            children = self._children(node, name)
            if name == "allOf":
                for child in children:
                    seen.add(self.check(child, value, path))
                continue
            count = sum([self._is_valid(child, value, seen) for child in children])
            if count == 0 or (name == "oneOf" and count > 1):
                raise _InvalidError(f"{count} branches of {name} match", path)
        if "not" in asked and self._is_valid(self._documents.child(node, "not"), value):
            raise _InvalidError("the value matches the schema in `not`", path)
        if "if" in asked:
            branch = "then" if self._is_valid(self._documents.child(node, "if"), value, seen) else "else"
            if branch in asked:
                seen.add(self.check(self._documents.child(node, branch), value, path))

    def _check_array(self, node: SchemaNode, asked: dict[str, Any], value: list[Any], path: _Path, seen: _Seen) -> None:
        if len(value) < asked.get("minItems", 0) or len(value) > asked.get("maxItems", len(value)):
            raise _InvalidError("too few or too many elements", path)
        if asked.get("uniqueItems") and len({json_key(item) for item in value}) < len(value):
            raise _InvalidError("two elements are equal", path)
        is_old = "prefixItems" not in node.dialect.keywords and isinstance(asked.get("items"), list)
        first, rest = ("items", "additionalItems") if is_old else ("prefixItems", "items")
        num_first = 0
        if first in asked and isinstance(asked[first], list):
            num_first = len(asked[first])
            for index, (child, item) in enumerate(zip(self._children(node, first), value, strict=False)):
                self.check(child, item, (*path, index))
                seen.items.add(index)
        if rest in asked and (is_old or rest == "items"):
            child = self._documents.child(node, rest)
            for index in range(num_first, len(value)):
                self.check(child, value[index], (*path, index))
                seen.items.add(index)
        if "contains" in asked:
            child = self._documents.child(node, "contains")
            found = {index for index, item in enumerate(value) if self._is_valid(child, item)}
            if len(found) < asked.get("minContains", 1) or len(found) > asked.get("maxContains", len(found)):
                raise _InvalidError(f"{len(found)} elements match `contains`", path)
            if node.dialect.contains_evaluates:
                seen.items |= found
        if "unevaluatedItems" in asked:
            child = self._documents.child(node, "unevaluatedItems")
            for index in set(range(len(value))) - seen.items:
                self.check(child, value[index], (*path, index))
            seen.items |= set(range(len(value)))

    def _check_object(
        self, node: SchemaNode, asked: dict[str, Any], value: dict[str, Any], path: _Path, seen: _Seen
    ) -> None:
        if len(value) < asked.get("minProperties", 0) or len(value) > asked.get("maxProperties", len(value)):
            raise _InvalidError("too few or too many properties", path)
        missing = [name for name in asked.get("required", ()) if name not in value]
        if isinstance(asked.get("required"), list) and missing:
            raise _InvalidError(f"{missing[0]!r} is missing", path)
        self._check_dependents(node, asked, value, path, seen)
        for name, item in value.items():
            if "propertyNames" in asked:
                self.check(self._documents.child(node, "propertyNames"), name, (*path, name))
            if self._check_property(node, asked, name, item, path):
                seen.names.add(name)
        if "unevaluatedProperties" in asked:
            child = self._documents.child(node, "unevaluatedProperties")
            for name in value.keys() - seen.names:
                self.check(child, value[name], (*path, name))
            seen.names |= value.keys()

    def _check_property(self, node: SchemaNode, asked: dict[str, Any], name: str, item: Any, path: _Path) -> bool:
        """Check one property by its name; returns whether any keyword evaluated it."""
        matched = [("properties", name)] if name in asked.get("properties", {}) else []
        matched += [
            ("patternProperties", each) for each in asked.get("patternProperties", {}) if self._finds(each, name)
        ]
        for tokens in matched:
            self.check(self._documents.child(node, *tokens), item, (*path, name))
        if not matched and "additionalProperties" in asked:
            self.check(self._documents.child(node, "additionalProperties"), item, (*path, name))
            return True
        return bool(matched)

    def _check_dependents(
        self, node: SchemaNode, asked: dict[str, Any], value: dict[str, Any], path: _Path, seen: _Seen
    ) -> None:
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, dependent in asked.get(keyword, {}).items():
                if name not in value:
                    continue
                if not isinstance(dependent, list):
                    seen.add(self.check(self._documents.child(node, keyword, name), value, path))
                elif not all(other in value for other in dependent):
                    raise _InvalidError(f"a property required by {name!r} is missing", path)


def _is_of_type(name: str, value: Any, needs_form: bool) -> bool:
    if name == "number":
        return is_number(value)
    if name == "integer":
        return is_number(value) and (isinstance(value, int) if needs_form else exact(value).denominator == 1)
    return isinstance(value, _TYPES[name])


def _check_number(asked: dict[str, Any], value: Any, has_flags: bool, path: _Path) -> None:
    for name, sign in (("inimum", 1), ("aximum", -1)):
        plain, exclusive = asked.get(f"m{name}"), asked.get(f"exclusiveM{name}")
        is_open = has_flags and exclusive is True
        if plain is not None and (sign * (value - exact(plain)) < 0 or (is_open and value == exact(plain))):
            raise _InvalidError(f"violates `m{name}`", path)
        if is_number(exclusive) and sign * (value - exact(exclusive)) <= 0:
            raise _InvalidError(f"violates `exclusiveM{name}`", path)
    if "multipleOf" in asked and (value / exact(asked["multipleOf"])).denominator != 1:
        raise _InvalidError(f"not a multiple of {asked['multipleOf']}", path)


@functools.lru_cache(maxsize=512)
def pattern_language(pattern: str, dialect: str) -> Language:
    """The texts that a `pattern` of a dialect of `x-pattern-dialect` allows.

    Raises:
        GrammarError: the pattern is malformed or not supported.
    """
    if dialect == "lark":
        from rtlang_grammars.context_free.lark_reader import lark_language

        return lark_language(pattern)
    return compile_regex(pattern, dialect=RegexDialect(dialect), mode="search", budget=Budget())
