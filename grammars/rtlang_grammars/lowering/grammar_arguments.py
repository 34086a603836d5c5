"""Arguments of a call that are one text held to a Lark grammar that is not regular.

A pattern of a schema is a regular language. Where a tool has one parameter with such a grammar, as a custom tool of the OpenAI API has, the
rules of the grammar are added to the rules of the call. In a JSON string, each terminal is spelled with the escapes of JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from rtlang_grammars.context_free.cfg import Cfg, prune
from rtlang_grammars.context_free.left_recursion import without_left_recursion
from rtlang_grammars.formats.description import ArgumentStyle, Blanks, ToolFormat
from rtlang_grammars.formats.tools import Tool
from rtlang_grammars.regular.language import Language
from rtlang_grammars.schema.reading.dialects import PATTERN_DIALECT
from rtlang_grammars.schema.value_checks import pattern_language
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_KEYWORDS = {"type", "description", "title", "pattern", PATTERN_DIALECT}


def grammar_argument(tool: Tool) -> tuple[str, str] | None:
    """The name of the only parameter of a tool and its Lark grammar, if that is not regular; None for any other tool."""
    properties = tool.properties
    if len(properties) != 1 or tool.required != properties.keys():
        return None
    ((name, schema),) = properties.items()
    if not (name.isascii() and name.isidentifier()):
        return None
    if not isinstance(schema, dict) or schema.get(PATTERN_DIALECT) != "lark" or schema.keys() - _KEYWORDS:
        return None
    source = schema.get("pattern")
    if schema.get("type") != "string" or not isinstance(source, str):
        return None
    try:
        pattern_language(source, "lark")
    except GrammarError:
        return name, source
    return None


@lru_cache(maxsize=512)
def grammar_fault(source: str) -> str | None:
    """Why a Lark grammar cannot constrain an argument; None if it can."""
    try:
        budget = Budget()
        prune(argument_grammar(source, budget, is_quoted=True, excludes=()), budget)
    except GrammarError as error:
        return str(error)
    return None


def around_argument(
    tool_format: ToolFormat, name: str, whitespace: Whitespace
) -> tuple[list[str | Constraint], list[str | Constraint], bool]:
    """The parts before and after the text, and whether it stands in a JSON string. `name` is plain letters."""
    blanks, gap = (
        Constraint(ConstraintKind.REGEX, each.pattern(whitespace)) for each in (Blanks(), Blanks(is_gap=True))
    )
    match tool_format.arguments:
        case ArgumentStyle.JSON:
            return [blanks, "{", blanks, f'"{name}"', blanks, ":", gap, '"'], ['"', blanks, "}"], True
        case ArgumentStyle.PYTHON:
            return [f'{name}="'], ['"'], True
    around = tool_format.tagged
    assert around is not None
    return [around.before_name, name, around.before_value], [around.behind_value], False


def argument_grammar(source: str, budget: Budget, *, is_quoted: bool, excludes: tuple[str, ...]) -> Cfg:
    """The grammar of the text.

    Args:
        is_quoted: the text stands in a JSON string.
        excludes: texts that a terminal must not contain.
    Raises:
        GrammarError: the grammar is malformed, or too large.
    """
    from rtlang_grammars.context_free.lark_reader import read_lark  # lark is imported where it is needed

    cfg = without_left_recursion(read_lark(source, budget=budget, splits=True), budget)
    spell: Callable[[Language], Language] = Language.in_json_string if is_quoted else _lacking(excludes)
    terminals = [each if each.tokens else replace(each, language=spell(each.language)) for each in cfg.terminals]
    return Cfg(tuple(terminals), cfg.rules, cfg.start)


def _lacking(excludes: tuple[str, ...]) -> Callable[[Language], Language]:
    around = Language.any_text()
    others = [around.concat(Language.literal(text), around).complement() for text in excludes]
    return lambda language: language.intersect(*others) if others else language
