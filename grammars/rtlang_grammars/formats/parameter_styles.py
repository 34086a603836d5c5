"""The styles of xgrammar's structural tags in which the arguments of a call are written one by one.

The texts around names and values are those of xgrammar 0.2.9 (`JSONSchemaFormat.style`). Blanks are free where xgrammar has them free, but
bounded as between JSON values. A schema that says nothing about its properties allows any, as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtlang_grammars.formats.arguments.argument_grammar import call_arguments
from rtlang_grammars.formats.arguments.cohere_grammar import nested_arguments
from rtlang_grammars.formats.arguments.literal_grammar import literal_value, unenforced_keyword
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.description import JSON_BLANKS, ArgumentStyle, TaggedArguments, ToolFormat
from rtlang_grammars.formats.excluded_texts import without_texts
from rtlang_grammars.formats.schemas import types_of
from rtlang_grammars.formats.tools import Tool
from rtlang_grammars.spec.constraint import Constraint, JsonStyle
from rtlang_grammars.spec.errors import GrammarError


def _tagged(before_name: str, before_value: str, behind_value: str, item: str = "") -> ToolFormat:
    excluded = behind_value if not item else before_name[:-1]
    around = TaggedArguments(before_name, before_value, behind_value, (excluded,), item, JSON_BLANKS)
    return ToolFormat("structural tag", (), arguments=ArgumentStyle.TAGGED, tagged=around)


_MINIMAX = "]<]minimax[>["
STYLES = {
    "qwen_xml": _tagged("<parameter=", ">", "</parameter>"),
    "minimax_xml": _tagged('<parameter name="', '">', "</parameter>"),
    "minimax_m3_xml": _tagged(f"{_MINIMAX}<", ">", f"{_MINIMAX}</{{name}}>", "item"),
    "deepseek_xml": _tagged('<｜DSML｜parameter name="', '" string="{is_string}">', "</｜DSML｜parameter>"),
    "deepseek_v4_1_xml": _tagged('<｜DSML｜ parameter name="', '" string="{is_string}">', "</｜DSML｜ parameter>"),
    "glm_xml": _tagged("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>"),
    "kimi_k3_xml": _tagged('<|open|>argument key="', '" type="{type}"<|sep|>', "<|close|>argument<|sep|>"),
    "cohere_xml": ToolFormat("structural tag", ()),
    "gemma": FORMATS["gemma-4"],
}
"""The formats of the styles by their names; of them only the way in which arguments are written matters."""


def written_arguments(
    style: str, schema: dict[str, Any] | bool, excludes: Sequence[str], json_style: JsonStyle
) -> Constraint:
    """The arguments that a schema of an object allows, in one of `STYLES`.

    Args:
        excludes: texts that no string and no name contains.
    Raises:
        GrammarError: the schema is not one of objects; without a location.
    """
    found = STYLES[style]
    parameters: dict[str, Any] = {"type": "object"} if isinstance(schema, bool) else {**schema}
    if schema is False or parameters.setdefault("type", "object") != "object":
        raise GrammarError(f"style = {style!r}: expected the schema of an object")
    if style == "cohere_xml":
        return nested_arguments(parameters, excludes, json_style)
    if found.tagged is None:
        if (keyword := unenforced_keyword(parameters, found.literals)) is not None:
            raise GrammarError(f"{keyword} cannot be enforced in the style {style}")
        return literal_value(parameters, json_style, found.literals, excludes)
    if not parameters.get("properties") and "patternProperties" not in parameters and not found.tagged.item:
        parameters.setdefault("additionalProperties", True)
    if excludes:
        parameters = _without(parameters, excludes)
    around = replace(found.tagged, excludes=(*found.tagged.excludes, *excludes))
    return call_arguments(replace(found, tagged=around), Tool("parameters", parameters), json_style, is_forced=True)


def _without(parameters: dict[str, Any], excludes: Sequence[str]) -> dict[str, Any]:
    """A schema without parameters that have an excluded text in a nested string; their own text excludes it by itself."""
    listed = parameters.get("properties", {})
    is_text = {name: types_of(each, parameters) == {"string"} for name, each in listed.items()}
    inner = {name: each for name, each in listed.items() if not is_text[name]}
    cleaned = without_texts({**parameters, "properties": inner}, excludes)
    assert isinstance(cleaned, dict)
    kept = {name: each if is_text[name] else cleaned["properties"][name] for name, each in listed.items()}
    additional = parameters.get("additionalProperties", False)
    values = {"properties": kept, "$defs": cleaned["$defs"]}
    return {**parameters, **values, "additionalProperties": additional and cleaned["additionalProperties"]}
