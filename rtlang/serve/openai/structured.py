"""Structured output: the ways in which requests of the OpenAI API and of other servers ask for a constraint.

`response_format` (json_object, json_schema, json, regex, structural_tag), `structured_outputs` with one of json, regex, choice, grammar,
json_object and structural_tag, the older `guided_*` fields, and `regex`, `ebnf` and `json_schema` at the top level. A request has at most
one of them.
`json_style` says how the JSON of a request is written, including the arguments of its tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.serve.openai.fields import check_inner, read_bool, read_text
from rtlang_grammars import GrammarError, JsonStyle, Numbers, PropertyOrder, Whitespace
from rtlang_grammars.formats.strict_schema import closed_schema
from rtlang_grammars.formats.structural_tag import read_structural_tag

TOP_LEVEL = ("regex", "ebnf", "json_schema")
GUIDED = ("guided_json", "guided_regex", "guided_choice", "guided_grammar", "guided_json_object")
STYLE = "json_style"
FIELDS = frozenset(("response_format", "structured_outputs", *TOP_LEVEL, *GUIDED, STYLE))
"""The fields that `read_structured` reads."""
_STYLES = {"whitespace": Whitespace, "order": PropertyOrder, "numbers": Numbers}
REFUSED = {
    "guided_whitespace_pattern": "not supported: JSON is written with free blanks of bounded number",
    "structural_tag": 'not supported here; use response_format = {"type": "structural_tag", ...}',
}
_RULE_OF_GBNF = re.compile(r"(?m)^\s*[\w.-]+\s*::=")
_ROOT_OF_GBNF = re.compile(r"(?m)^\s*root\s*::=")
_OPTIONS_OFF = ("disable_fallback", "disable_any_whitespace", "disable_additional_properties")


@dataclass(frozen=True, slots=True)
class Structured:
    """A constraint and the field that asked for it.

    Attributes:
        is_json: whether the text is JSON.
    """

    constraint: Constraint
    field: str
    is_json: bool = False


def read_structured(given: Mapping[str, Any]) -> Structured | None:
    """The constraint of a request; None if it asks for none.

    Raises:
        ParameterError: a field is malformed, or there are several; names it.
    """
    style = read_style(given)
    found = [
        structured
        for name in sorted(_READERS.keys() & given.keys())
        if (structured := _READERS[name](name, given[name], style)) is not None
    ]
    if len(found) > 1:
        raise ParameterError(found[1].field, given[found[1].field.split(".")[0]], f"not together with {found[0].field}")
    return found[0] if found else None


def read_style(given: Mapping[str, Any]) -> JsonStyle:
    """How the JSON of a request is written: `json_style`, an object with `whitespace`, `order` and `numbers`.

    Raises:
        ParameterError: it is malformed; names the field.
    """
    if STYLE not in given:
        return JsonStyle()
    inner = check_inner(STYLE, given[STYLE], tuple(_STYLES))
    for name, value in inner.items():
        if value not in list(_STYLES[name]):
            raise ParameterError(f"{STYLE}.{name}", value, f"expected one of {', '.join(_STYLES[name])}")
    fields: dict[str, Any] = {name: _STYLES[name](value) for name, value in inner.items()}
    return JsonStyle(**fields)


def grammar_constraint(source: str) -> Constraint:
    """The constraint of a grammar whose notation is detected: GBNF or W3C EBNF if it has rules with `::=`, else Lark."""
    if not _RULE_OF_GBNF.search(source):
        return Constraint(ConstraintKind.LARK, source)
    kind = ConstraintKind.GBNF if _ROOT_OF_GBNF.search(source) else ConstraintKind.EBNF
    return Constraint(kind, source)


def schema_constraint(schema: Any, where: str, style: JsonStyle, *, is_strict: bool = False) -> Constraint:
    """The constraint of a JSON schema, given as a map, a boolean, or JSON text of one; `is_strict`: closed, see `strict_schema`."""
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise ParameterError(where, schema, f"expected a JSON schema: {error}") from None
    if not isinstance(schema, Mapping | bool):
        raise ParameterError(where, schema, "expected a JSON schema (an object)")
    if is_strict:
        schema = strict_schema(schema, where)
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema, ensure_ascii=False), style)


def strict_schema(schema: Any, where: str) -> Any:
    """A schema as `strict: true` means it: closed, with all properties required; see `rtlang_grammars.formats.strict_schema`.

    Raises:
        ParameterError: it cannot be closed; names the place in the schema.
    """
    try:
        return closed_schema(schema)
    except GrammarError as error:
        raise ParameterError(
            where, schema, f"strict is true, but {error.location} stays open: {error.reason}"
        ) from None


def _response_format(name: str, value: Any, style: JsonStyle) -> Structured | None:
    if not isinstance(value, Mapping):
        raise ParameterError(name, value, "expected an object with a type")
    match value.get("type"):
        case "text":
            check_inner(name, value, ("type",))
            return None
        case "json_object" | "json" as kind:
            # `schema` is that of llama.cpp's server; `value`, and the types json and regex, those of huggingface_hub
            inner = check_inner(name, value, ("type", "schema", "value"))
            if "schema" in inner and "value" in inner:
                raise ParameterError(f"{name}.value", inner["value"], f"not together with {name}.schema")
            where = "value" if "value" in inner or kind == "json" else "schema"
            schema = inner.get(where)
            if schema is None and kind == "json":
                raise ParameterError(f"{name}.value", None, "expected a JSON schema (an object)")
            return _json(f"{name}.{where}", {"type": "object"} if schema is None else schema, style, name)
        case "regex":
            return _regex(f"{name}.value", check_inner(name, value, ("type", "value")).get("value"), style)
        case "json_schema":
            check_inner(name, value, ("type", "json_schema"))
            where = f"{name}.json_schema"
            inner = check_inner(where, value.get("json_schema"), ("name", "schema", "strict"), ("description",))
            is_strict = read_bool(inner, "strict", where=f"{where}.")
            return _json(f"{where}.schema", inner.get("schema", {"type": "object"}), style, name, is_strict=is_strict)
        case "structural_tag":
            return _tag(name, value, style)
    raise ParameterError(
        f"{name}.type", value.get("type"), "expected one of text, json_object, json_schema, json, regex, structural_tag"
    )


def _structured_outputs(name: str, value: Any, style: JsonStyle) -> Structured | None:
    kinds = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
    inner = check_inner(name, value, (*kinds, *_OPTIONS_OFF))
    for option in _OPTIONS_OFF:
        if inner.pop(option, False) is not False:
            raise ParameterError(f"{name}.{option}", True, "only false is supported")
    if inner.get("json_object") is False:
        del inner["json_object"]
    if len(inner) != 1:
        raise ParameterError(name, sorted(inner), f"expected exactly one of {', '.join(kinds)}")
    ((kind, given),) = inner.items()
    return _KINDS[kind](f"{name}.{kind}", given, style)


def _json(
    where: str, schema: Any, style: JsonStyle, field: str | None = None, *, is_strict: bool = False
) -> Structured:
    return Structured(schema_constraint(schema, where, style, is_strict=is_strict), field or where, is_json=True)


def _json_object(where: str, value: Any, style: JsonStyle) -> Structured | None:
    if not isinstance(value, bool):
        raise ParameterError(where, value, "expected true or false")
    return _json(where, {"type": "object"}, style) if value else None


def _regex(where: str, value: Any, style: JsonStyle) -> Structured:
    return Structured(Constraint(ConstraintKind.REGEX, read_text({where: value}, where)), where)


def _choice(where: str, value: Any, style: JsonStyle) -> Structured:
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise ParameterError(where, value, "expected a list of strings that is not empty")
    return Structured(Constraint(ConstraintKind.CHOICE, json.dumps(value, ensure_ascii=False)), where)


def _grammar(where: str, value: Any, style: JsonStyle) -> Structured:
    return Structured(grammar_constraint(read_text({where: value}, where)), where)


def _tag(where: str, value: Any, style: JsonStyle) -> Structured:
    try:
        return Structured(read_structural_tag(value, style=style), where)
    except GrammarError as error:
        raise ParameterError(where, value, str(error)) from None


_Reader = Callable[[str, Any, JsonStyle], Structured | None]
_KINDS: dict[str, _Reader] = {
    "json": _json,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
    "json_object": _json_object,
    "structural_tag": _tag,
}
_READERS: dict[str, _Reader] = {
    "response_format": _response_format,
    "structured_outputs": _structured_outputs,
    "guided_json": _json,
    "guided_regex": _regex,
    "guided_choice": _choice,
    "guided_grammar": _grammar,
    "guided_json_object": _json_object,
    "json_schema": _json,
    "regex": _regex,
    "ebnf": _grammar,
}
