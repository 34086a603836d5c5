"""Reads structural tags: the JSON description of mixed free and constrained text that xgrammar, vLLM and SGLang take as `response_format`.

Both forms are read: the older one with `structures` (begin, schema, end) and `triggers`, and the one with a `format` that nests, with the
formats of xgrammar 0.2.9 (its `structural_tag.py` and documentation). Where the result differs, it is narrower, except that blanks may
precede a JSON value:

- properties in any order (`any_order`) are still required and written once, and `max_whitespace_cnt` up to 80 stands for none;
- arguments that are written one by one spell allowed values, but keywords about all of them (`minProperties`, `anyOf`) are refused;
- the special tokens of the vocabulary do not occur in free text unless the tag names them; formats of tokens take them.

`max_tokens` counts the tokens that end within the text, as `structure_parts.RawText` says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rtlang_grammars.formats.excluded_texts import without_texts
from rtlang_grammars.formats.parameter_styles import STYLES, written_arguments
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import (
    MAX_REPEATS,
    any_of,
    raw_text,
    repeat,
    sequence,
    tagged,
    token,
    token_except,
)

Mark = str | Constraint
TokenName = str | int
_MANY = 32
"""Maximum nesting."""
_MAX_BLANKS = 81
"""The longest run of blanks of the style FREE."""


def read_structural_tag(source: str | Mapping[str, Any], *, style: JsonStyle | None = None) -> Constraint:
    """The constraint of a structural tag.

    Args:
        source: the value of `response_format`, as JSON text or as a map; `{"type": "structural_tag", ...}` in either form.
        style: how JSON values are written; narrowed by `any_order` and `max_whitespace_cnt`.
    Raises:
        GrammarError: it is malformed, or asks for something that is not supported; the location is a JSON pointer.
    """
    if isinstance(source, str):
        try:
            plain = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise GrammarError(f"expected JSON: {error}", "#") from None
    else:
        plain = source
    if not isinstance(plain, Mapping) or plain.get("type", "structural_tag") != "structural_tag":
        raise GrammarError('expected a map with "type": "structural_tag"', "#")
    if "format" in plain:
        reader = _Reader(_common_style(plain["format"], style or JsonStyle()))
        return sequence(reader.part(plain["format"], "#/format", _Ends()))
    if "structures" in plain:
        return _Reader(style or JsonStyle()).structures(plain)
    raise GrammarError("expected format, or structures and triggers", "#")


@dataclass(frozen=True, slots=True)
class _Ends:
    """Texts and tokens that end the free text in a tag, so that it contains none of them."""

    texts: tuple[str, ...] = ()
    tokens: tuple[TokenName, ...] = ()


class _Reader:
    def __init__(self, style: JsonStyle) -> None:
        self._style = style
        self._readers: dict[str, Callable[[Mapping[str, Any], str, _Ends], Constraint]] = {
            "const_string": lambda plain, at, ends: sequence(_text(plain, "value", at)),
            "any_text": self._any_text,
            "json_schema": self._json_schema,
            "regex": lambda plain, at, ends: Constraint(ConstraintKind.REGEX, _text(plain, "pattern", at)),
            "grammar": self._grammar,
            "qwen_xml_parameter": lambda plain, at, ends: self._json_schema({**plain, "style": "qwen_xml"}, at, ends),
            "sequence": self._sequence,
            "or": self._or,
            "optional": lambda plain, at, ends: any_of("", self._content(plain, at, ends)),
            "plus": lambda plain, at, ends: repeat(self._content(plain, at, ends), 1),
            "star": lambda plain, at, ends: repeat(self._content(plain, at, ends)),
            "repeat": self._repeat,
            "tag": self._tag,
            "triggered_tags": self._triggered_tags,
            "tags_with_separator": self._tags_with_separator,
            "dispatch": self._dispatch,
            "token": lambda plain, at, ends: token(_token(plain.get("token"), f"{at}/token")),
            "exclude_token": self._exclude_token,
            "any_tokens": self._any_tokens,
            "token_triggered_tags": self._token_triggered_tags,
            "token_dispatch": self._token_dispatch,
        }

    def part(self, plain: Any, at: str, ends: _Ends) -> Constraint:
        """A format."""
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
            schema = _json(each.get("schema", True), f"{at}/schema")
            tags.append((_text(each, "begin", at), self._value(schema), _text(each, "end", at)))
        return tagged(tags, triggers=_texts(plain, "triggers", "#"))

    def _any_text(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        most, max_tokens = _bound(plain, "max_chars", at), _bound(plain, "max_tokens", at)
        schema: Any = True if most is None else {"type": "string", "maxLength": most}
        excludes = _without_longer([*_texts(plain, "excludes", at), *ends.texts])
        return raw_text(schema, excludes=excludes, max_tokens=max_tokens)

    def _json_schema(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        style, excludes = plain.get("style", "json"), _texts(plain, "excludes", at)
        schema = _json(plain.get("json_schema"), f"{at}/json_schema")
        if style == "json":
            return self._value(without_texts(schema, excludes))
        if style not in STYLES:
            raise GrammarError(f"style = {style!r}: expected one of json, {', '.join(STYLES)}", f"{at}/style")
        try:
            return sequence(written_arguments(style, schema, excludes, self._style))
        except GrammarError as error:
            raise GrammarError(error.reason, f"{at}/json_schema") from None

    def _value(self, schema: Mapping[str, Any] | bool) -> Constraint:
        return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema, ensure_ascii=False), self._style)

    def _grammar(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        kinds = {"ebnf": ConstraintKind.GBNF, "lark": ConstraintKind.LARK}
        syntax = plain.get("syntax", "ebnf")
        if syntax not in kinds:
            raise GrammarError(f"syntax = {syntax!r}: expected one of {', '.join(kinds)}", f"{at}/syntax")
        return Constraint(kinds[syntax], _text(plain, "grammar", at))

    def _sequence(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        elements = _list(plain, "elements", at)
        return sequence(*(self.part(each, f"{at}/elements/{i}", ends) for i, each in enumerate(elements)))

    def _or(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        elements = _list(plain, "elements", at)
        return any_of(*(self.part(each, f"{at}/elements/{i}", ends) for i, each in enumerate(elements)))

    def _content(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        return self.part(plain.get("content"), f"{at}/content", ends)

    def _repeat(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        low, high = plain.get("min"), plain.get("max")
        if not isinstance(low, int) or not isinstance(high, int) or low < 0 or not (high == -1 or high >= low):
            raise GrammarError(f"min = {low!r}, max = {high!r}: expected integers, max at least min or -1", at)
        return repeat(self._content(plain, at, ends), low, None if high == -1 else high)

    def _tag(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        begin, content, closing = self._tag_parts(plain, at)
        return sequence(begin, content, any_of(*closing))

    def _tag_parts(self, plain: Any, at: str) -> tuple[Mark, Constraint, list[Mark]]:
        """The beginning, the content and the possible ends of a tag."""
        if not isinstance(plain, Mapping):
            raise GrammarError("expected a tag: a map with begin, content and end", at)
        given = plain.get("end")
        closing = given if isinstance(given, list) else [given]
        if not closing:
            raise GrammarError("end = []: expected at least one text", f"{at}/end")
        marks = [_mark(each, f"{at}/end") for each in closing]
        texts = tuple(each for each in marks if isinstance(each, str) and each)
        tokens = tuple(each["token"] for each in closing if isinstance(each, Mapping))
        content = self._content(plain, at, _Ends(texts, tokens))
        return _mark(plain.get("begin"), f"{at}/begin"), content, marks

    def _tags(self, plain: Mapping[str, Any], at: str) -> list[tuple[Mark, Constraint, Mark]]:
        found = []
        for i, each in enumerate(_list(plain, "tags", at)):
            begin, content, closing = self._tag_parts(each, f"{at}/tags/{i}")
            if len(closing) == 1:
                found.append((begin, content, closing[0]))
            else:
                found.append((begin, sequence(content, any_of(*closing)), ""))
        return found

    def _triggered_tags(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        tags, triggers = self._tags(plain, at), _texts(plain, "triggers", at)
        is_single, is_needed = _flag(plain, "stop_after_first", at), _flag(plain, "at_least_one", at)
        excludes = _around(triggers, [*_texts(plain, "excludes", at), *ends.texts])
        if not is_needed:
            high = 1 if is_single else None
            return tagged(tags, triggers=triggers, excludes=excludes, high=high, text_behind=not is_single)
        first = any_of(*(sequence(begin, content, end) for begin, content, end in tags))
        return first if is_single else sequence(first, tagged(tags, triggers=triggers, excludes=excludes))

    def _tags_with_separator(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        one = any_of(*(sequence(begin, content, end) for begin, content, end in self._tags(plain, at)))
        separator = _text(plain, "separator", at)
        some = one if _flag(plain, "stop_after_first", at) else sequence(one, repeat(sequence(separator, one)))
        return some if _flag(plain, "at_least_one", at) else any_of("", some)

    def _dispatch(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        tags: list[tuple[Mark, Constraint, Mark]] = []
        for pattern, content in self._rules(plain, at, ends):
            if not isinstance(pattern, str) or not pattern:
                raise GrammarError(f"{pattern!r}: expected a text that is not empty", f"{at}/rules")
            tags.append((pattern, content, ""))
        excludes = _around([str(begin) for begin, _, _ in tags], [*_texts(plain, "excludes", at), *ends.texts])
        is_single = not _flag(plain, "loop", at, True)
        return tagged(tags, excludes=excludes, high=1 if is_single else None, text_behind=not is_single)

    def _exclude_token(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        return token_except([*_tokens(plain, "exclude_tokens", at), *ends.tokens])

    def _any_tokens(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        most = _bound(plain, "max_tokens", at)
        if most is not None and most > MAX_REPEATS:
            raise GrammarError(f"max_tokens = {most}: expected at most {MAX_REPEATS}, or none", f"{at}/max_tokens")
        return repeat(self._exclude_token(plain, at, ends), 0, most)

    def _token_triggered_tags(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        triggers = _tokens(plain, "trigger_tokens", at)
        parts = []
        for i, (begin, content, end) in enumerate(self._tags(plain, at)):
            given = plain["tags"][i].get("begin", {})
            if given not in [{"type": "token", "token": each} for each in triggers]:
                raise GrammarError(f"{given!r}: expected one of the trigger tokens {triggers}", f"{at}/tags/{i}/begin")
            parts.append(sequence(begin, content, end))
        text = token_except([*triggers, *_tokens(plain, "exclude_tokens", at), *ends.tokens])
        one = any_of(*parts)
        if _flag(plain, "stop_after_first", at):
            return one if _flag(plain, "at_least_one", at) else sequence(repeat(text), any_of("", one))
        more = repeat(any_of(text, one))
        return sequence(one, more) if _flag(plain, "at_least_one", at) else more

    def _token_dispatch(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Constraint:
        rules = [(_token(which, f"{at}/rules"), content) for which, content in self._rules(plain, at, ends)]
        excluded = _tokens(plain, "exclude_tokens", at)
        text = token_except([*(which for which, _ in rules), *excluded, *ends.tokens])
        one = any_of(*(sequence(token(which), content) for which, content in rules))
        if _flag(plain, "loop", at, True):
            return repeat(any_of(text, one))
        return sequence(repeat(text), any_of("", one))

    def _rules(self, plain: Mapping[str, Any], at: str, ends: _Ends) -> Iterator[tuple[Any, Constraint]]:
        """The patterns of a dispatch, each with the content after it."""
        for i, each in enumerate(_list(plain, "rules", at)):
            if not isinstance(each, list | tuple) or len(each) != 2:
                raise GrammarError(f"{each!r}: expected a list of a pattern and a format", f"{at}/rules/{i}")
            yield each[0], self.part(each[1], f"{at}/rules/{i}/1", ends)


def _common_style(plain: Any, style: JsonStyle) -> JsonStyle:
    """The style that obeys the options of all schemas in a format: values of one constraint are written in one style."""
    found = list(_schema_formats(plain, 0))
    counts = [each["max_whitespace_cnt"] for each in found if each.get("max_whitespace_cnt") is not None]
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise GrammarError(f"max_whitespace_cnt = {count!r}: expected an integer from 0", "#/format")
    if any(count < _MAX_BLANKS for count in counts):
        style = replace(style, whitespace=Whitespace.COMPACT)
    if found and all(each.get("any_order") is True for each in found):
        style = replace(style, order=PropertyOrder.ANY)
    return style


def _schema_formats(plain: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """The formats of schemas in a format."""
    if depth > 4 * _MANY:
        return  # refused where it is read
    if isinstance(plain, Mapping):
        if plain.get("type") in ("json_schema", "qwen_xml_parameter"):
            yield plain
            return
        for each in plain.values():
            yield from _schema_formats(each, depth + 1)
    elif isinstance(plain, list | tuple):
        for each in plain:
            yield from _schema_formats(each, depth + 1)


def _around(triggers: list[str], texts: list[str]) -> list[str]:
    """The excluded texts that matter beside triggers: a text with a trigger in it is not free text."""
    return _without_longer([text for text in texts if not any(trigger in text for trigger in triggers)])


def _without_longer(texts: list[str]) -> list[str]:
    """Texts without those that contain another one."""
    found = list(dict.fromkeys(texts))
    return [each for each in found if not any(other in each for other in found if other != each)]


def _mark(plain: Any, at: str) -> Mark:
    if isinstance(plain, Mapping) and plain.get("type") == "token":
        return token(_token(plain.get("token"), f"{at}/token"))
    if not isinstance(plain, str):
        raise GrammarError("expected a string or a token", at)
    return plain


def _token(plain: Any, at: str) -> TokenName:
    if isinstance(plain, bool) or not isinstance(plain, str | int) or plain == "":
        raise GrammarError(f"token = {plain!r}: expected a name or an id", at)
    return plain


def _tokens(plain: Mapping[str, Any], key: str, at: str) -> list[TokenName]:
    value = plain.get(key, [])
    if not isinstance(value, list | tuple):
        raise GrammarError(f"{key} = {value!r}: expected a list of names and ids of tokens", f"{at}/{key}")
    return [_token(each, f"{at}/{key}/{i}") for i, each in enumerate(value)]


def _bound(plain: Mapping[str, Any], key: str, at: str) -> int | None:
    value = plain.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise GrammarError(f"{key} = {value!r}: expected an integer from 0", f"{at}/{key}")
    return value


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


def _flag(plain: Mapping[str, Any], key: str, at: str, default: bool = False) -> bool:
    value = plain.get(key, default)
    if not isinstance(value, bool):
        raise GrammarError(f"{key} = {value!r}: expected true or false", f"{at}/{key}")
    return value


def _json(schema: Any, at: str) -> dict[str, Any] | bool:
    if not isinstance(schema, Mapping | bool):
        raise GrammarError("expected a JSON schema (a map or a boolean)", at)
    return schema if isinstance(schema, bool) else dict(schema)
