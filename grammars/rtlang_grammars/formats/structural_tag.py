"""Reads structural tags: the JSON description of mixed free and constrained text that xgrammar and vLLM take as `response_format`.

Both forms are read: the older one with `structures` (begin, schema, end) and `triggers`, and the one with a `format` that nests. Unlike in
xgrammar, `any_text` is bounded in characters (`max_chars`) but not in tokens (`max_tokens` is refused), since constraints of this library
do not depend on tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from rtlang_grammars.formats.arguments.argument_grammar import call_arguments
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.tools import Tool
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import any_of, raw_text, repeat, sequence, tagged, token

Mark = str | Constraint
_MANY = 32
"""Maximum nesting."""


def read_structural_tag(source: str | Mapping[str, Any], *, style: JsonStyle | None = None) -> Constraint:
    """The constraint of a structural tag.

    Args:
        source: the value of `response_format`, as JSON text or as a map; `{"type": "structural_tag", ...}` in either form.
        style: how JSON values are written.
    Raises:
        GrammarError: it is malformed, or asks for something that is not supported; the location is a JSON pointer.
    """
    if isinstance(source, str):
        try:
            plain = json.loads(source)
        except ValueError as error:
            raise GrammarError(f"expected JSON: {error}", "#") from None
    else:
        plain = source
    if not isinstance(plain, Mapping) or plain.get("type", "structural_tag") != "structural_tag":
        raise GrammarError('expected a map with "type": "structural_tag"', "#")
    reader = _Reader(style or JsonStyle())
    if "format" in plain:
        return sequence(reader.part(plain["format"], "#/format", ()))
    if "structures" in plain:
        return reader.structures(plain)
    raise GrammarError("expected format, or structures and triggers", "#")


class _Reader:
    def __init__(self, style: JsonStyle) -> None:
        self._style = style
        self._readers: dict[str, Callable[[Mapping[str, Any], str, tuple[str, ...]], Constraint]] = {
            "const_string": lambda plain, at, ends: sequence(_text(plain, "value", at)),
            "any_text": self._any_text,
            "json_schema": self._json_schema,
            "regex": lambda plain, at, ends: Constraint(ConstraintKind.REGEX, _text(plain, "pattern", at)),
            "grammar": lambda plain, at, ends: Constraint(ConstraintKind.GBNF, _text(plain, "grammar", at)),
            "qwen_xml_parameter": lambda plain, at, ends: self._xml(plain, at, "qwen_xml"),
            "sequence": self._sequence,
            "or": self._or,
            "optional": lambda plain, at, ends: any_of("", self._content(plain, at, ends)),
            "plus": lambda plain, at, ends: repeat(self._content(plain, at, ends), 1),
            "star": lambda plain, at, ends: repeat(self._content(plain, at, ends)),
            "repeat": self._repeat,
            "tag": self._tag,
            "triggered_tags": self._triggered_tags,
            "tags_with_separator": self._tags_with_separator,
            "token": lambda plain, at, ends: _token(plain.get("token"), f"{at}/token"),
        }

    def part(self, plain: Any, at: str, ends: tuple[str, ...]) -> Constraint:
        """A format. `ends` are the texts that end it, which free text inside must not contain."""
        if at.count("/") > 4 * _MANY:
            raise GrammarError(f"nested too deeply: its pointer has more than {4 * _MANY} steps", at)
        if not isinstance(plain, Mapping):
            raise GrammarError("expected a format: a map with a type", at)
        kind = plain.get("type")
        if kind not in self._readers:
            raise GrammarError(f"type = {kind!r}: expected one of {', '.join(self._readers)}", f"{at}/type")
        return self._readers[kind](plain, at, ends)

    def structures(self, plain: Mapping[str, Any]) -> Constraint:
        """The older form."""
        tags = []
        for i, each in enumerate(_list(plain, "structures", "#")):
            at = f"#/structures/{i}"
            if not isinstance(each, Mapping):
                raise GrammarError("expected a map with begin, schema and end", at)
            schema = Constraint(
                ConstraintKind.JSON_SCHEMA, _json(each.get("schema", True), f"{at}/schema"), self._style
            )
            tags.append((_text(each, "begin", at), schema, _text(each, "end", at)))
        return tagged(tags, triggers=_texts(plain, "triggers", "#"))

    def _any_text(self, plain: Mapping[str, Any], at: str, ends: tuple[str, ...]) -> Constraint:
        if plain.get("max_tokens") is not None:
            raise GrammarError("max_tokens is not supported here; use max_chars, or max_tokens of the generation", at)
        most = plain.get("max_chars")
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
            raise GrammarError(f"max_chars = {most!r}: expected an integer from 0", f"{at}/max_chars")
        schema: Any = True if most is None else {"type": "string", "maxLength": most}
        return raw_text(schema, excludes=dict.fromkeys((*_texts(plain, "excludes", at), *ends)))

    def _json_schema(self, plain: Mapping[str, Any], at: str, ends: tuple[str, ...]) -> Constraint:
        if (style := plain.get("style", "json")) != "json":
            return self._xml(plain, at, style)
        schema = _json(plain.get("json_schema"), f"{at}/json_schema")
        return Constraint(ConstraintKind.JSON_SCHEMA, schema, self._style)

    def _xml(self, plain: Mapping[str, Any], at: str, style: str) -> Constraint:
        formats = {"qwen_xml": "qwen-coder", "glm_xml": "glm-4.5"}
        if style not in formats:
            raise GrammarError(f"style = {style!r}: expected one of json, {', '.join(formats)}", f"{at}/style")
        schema = plain.get("json_schema")
        if not isinstance(schema, Mapping):
            raise GrammarError("expected the schema of an object", f"{at}/json_schema")
        try:
            tool = Tool("parameters", schema)
        except GrammarError as error:
            raise GrammarError(error.reason, f"{at}/json_schema") from None
        return sequence(call_arguments(FORMATS[formats[style]], tool, self._style, is_forced=True))

    def _sequence(self, plain: Mapping[str, Any], at: str, ends: tuple[str, ...]) -> Constraint:
        elements = _list(plain, "elements", at)
        return sequence(*(self.part(each, f"{at}/elements/{i}", ends) for i, each in enumerate(elements)))

    def _or(self, plain: Mapping[str, Any], at: str, ends: tuple[str, ...]) -> Constraint:
        elements = _list(plain, "elements", at)
        return any_of(*(self.part(each, f"{at}/elements/{i}", ends) for i, each in enumerate(elements)))

    def _content(self, plain: Mapping[str, Any], at: str, ends: tuple[str, ...]) -> Constraint:
        return self.part(plain.get("content"), f"{at}/content", ends)

    def _repeat(self, plain: Mapping[str, Any], at: str, ends: tuple[str, ...]) -> Constraint:
        low, high = plain.get("min"), plain.get("max")
        if not isinstance(low, int) or not isinstance(high, int) or low < 0 or not (high == -1 or high >= low):
            raise GrammarError(f"min = {low!r}, max = {high!r}: expected integers, max at least min or -1", at)
        return repeat(self._content(plain, at, ends), low, None if high == -1 else high)

    def _tag(self, plain: Mapping[str, Any], at: str, ends: tuple[str, ...]) -> Constraint:
        begin, content, closing = self._tag_parts(plain, at)
        return sequence(begin, content, any_of(*closing))

    def _tag_parts(self, plain: Any, at: str) -> tuple[Mark, Constraint, list[Mark]]:
        """The beginning, the content and the possible ends of a tag."""
        if not isinstance(plain, Mapping):
            raise GrammarError("expected a tag: a map with begin, content and end", at)
        given = plain.get("end")
        listed = given if isinstance(given, list) else [given]
        closing = [_mark(each, f"{at}/end") for each in listed]
        if not closing:
            raise GrammarError("end = []: expected at least one text", f"{at}/end")
        texts = tuple(each for each in closing if isinstance(each, str) and each)
        return _mark(plain.get("begin"), f"{at}/begin"), self._content(plain, at, texts), closing

    def _tags(self, plain: Mapping[str, Any], at: str) -> list[tuple[Mark, Constraint, Mark]]:
        found = []
        for i, each in enumerate(_list(plain, "tags", at)):
            begin, content, closing = self._tag_parts(each, f"{at}/tags/{i}")
            if len(closing) == 1:
                found.append((begin, content, closing[0]))
            else:
                found.append((begin, sequence(content, any_of(*closing)), ""))
        return found

    def _triggered_tags(self, plain: Mapping[str, Any], at: str, ends: tuple[str, ...]) -> Constraint:
        tags, triggers = self._tags(plain, at), _texts(plain, "triggers", at)
        is_single, is_needed = _flag(plain, "stop_after_first", at), _flag(plain, "at_least_one", at)
        excludes = [each for each in dict.fromkeys((*_texts(plain, "excludes", at), *ends)) if each not in triggers]
        if not is_needed:
            high = 1 if is_single else None
            return tagged(tags, triggers=triggers, excludes=excludes, high=high, text_behind=not is_single)
        first = any_of(*(sequence(begin, content, end) for begin, content, end in tags))
        return first if is_single else sequence(first, tagged(tags, triggers=triggers, excludes=excludes))

    def _tags_with_separator(self, plain: Mapping[str, Any], at: str, ends: tuple[str, ...]) -> Constraint:
        one = any_of(*(sequence(begin, content, end) for begin, content, end in self._tags(plain, at)))
        separator = _text(plain, "separator", at)
        some = one if _flag(plain, "stop_after_first", at) else sequence(one, repeat(sequence(separator, one)))
        return some if _flag(plain, "at_least_one", at) else any_of("", some)


def _mark(plain: Any, at: str) -> Mark:
    if isinstance(plain, Mapping) and plain.get("type") == "token":
        return _token(plain.get("token"), f"{at}/token")
    if not isinstance(plain, str):
        raise GrammarError("expected a string or a token", at)
    return plain


def _token(plain: Any, at: str) -> Constraint:
    if isinstance(plain, bool) or not isinstance(plain, str | int):
        raise GrammarError(f"token = {plain!r}: expected a name or an id", at)
    return token(plain)


def _text(plain: Mapping[str, Any], key: str, at: str) -> str:
    value = plain.get(key)
    if not isinstance(value, str):
        raise GrammarError(f"{key} = {value!r}: expected a string", f"{at}/{key}")
    return value


def _texts(plain: Mapping[str, Any], key: str, at: str) -> list[str]:
    value = plain.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise GrammarError(f"{key}: expected a list of non-empty strings", f"{at}/{key}")
    return value


def _list(plain: Mapping[str, Any], key: str, at: str) -> list[Any]:
    value = plain.get(key)
    if not isinstance(value, list) or not value:
        raise GrammarError(f"{key}: expected a list that is not empty", f"{at}/{key}")
    return value


def _flag(plain: Mapping[str, Any], key: str, at: str) -> bool:
    value = plain.get(key, False)
    if not isinstance(value, bool):
        raise GrammarError(f"{key} = {value!r}: expected true or false", f"{at}/{key}")
    return value


def _json(schema: Any, at: str) -> str:
    if not isinstance(schema, Mapping | bool):
        raise GrammarError("expected a JSON schema (a map or a boolean)", at)
    return json.dumps(schema, ensure_ascii=False)
