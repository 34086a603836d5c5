"""The style of the arguments of one rendered call, and the texts around them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from rtlang_grammars.formats.arguments.argument_reading import read_arguments
from rtlang_grammars.formats.arguments.value_reading import Incomplete, Malformed
from rtlang_grammars.formats.description import ArgumentStyle, Literals, TaggedArguments, ToolFormat

STRING, OTHER, NUMBER = "zqvalue", "zqother", 71077
ARGUMENTS: dict[str, Any] = {
    "zqfirst": STRING,
    "zqsecond": OTHER,
    "zqnumber": NUMBER,
    "zqtruth": True,
    "zqobject": {"zqinner": "zqdeep"},
    "zqlist": ["zqitem", "zqlast"],
    "zqend": "zqtail",
}
"""The arguments of the measured call: two strings side by side, a value of each type, and a string at the end."""


_PYTHON = Literals()


@dataclass(frozen=True, slots=True)
class MeasuredArguments:
    """Arguments in a text: their style, and where they begin and end.

    Attributes:
        moved: line breaks at the end of the text before the arguments that end each value, too.
    """

    style: ArgumentStyle
    begin: int
    end: int
    tagged: TaggedArguments | None = None
    literals: Literals = _PYTHON
    moved: str = ""


def measured_arguments(text: str, at: int) -> MeasuredArguments | str:
    """The arguments `ARGUMENTS` in a text after the name of their call, which ends at `at`; or why none were found."""
    for read in (_json, _python, _marked, _tagged):
        found = read(text, at)
        if found is not None:
            return found
    return f"no style of arguments fits {text[at : at + 200]!r}"


def _json(text: str, at: int) -> MeasuredArguments | None:
    decoder = json.JSONDecoder()
    for begin in _places(text, "{", at):
        try:
            value, end = decoder.raw_decode(text, begin)
        except ValueError:
            continue
        if value == ARGUMENTS:
            return MeasuredArguments(ArgumentStyle.JSON, begin, end)
    return None


def _places(text: str, mark: str, at: int) -> list[int]:
    return [at + each.start() for each in re.finditer(re.escape(mark), text[at:])]


def _python(text: str, at: int) -> MeasuredArguments | None:
    found = re.compile(r"\(\s*(?=zqfirst=['\"])").search(text, at)
    if found is None:
        return None
    constants = ("true", "false", "null") if "zqtruth=true" in text else ("True", "False", "None")
    literals = Literals(constants=constants)
    return _read(text, found.end(), ArgumentStyle.PYTHON, literals)


def _marked(text: str, at: int) -> MeasuredArguments | None:
    assigned = re.compile(r"zqnumber(\W{1,3})71077").search(text, at)
    string = re.compile(r"zqfirst(\W{1,40})zqvalue(\W{1,40}?)\b").search(text, at)
    found = re.compile(r"\{(?=\s*(?:zq[a-z]+)\W)").search(text, at)
    if assigned is None or string is None or found is None or not string[1].startswith(assigned[1]):
        return None
    quote = string[1][len(assigned[1]) :]
    separator = re.compile(rf"zqdeep{re.escape(quote)}\}}(\W{{1,3}})zq").search(text, at)
    if not quote or quote in "'\"" or separator is None:
        return None
    constants = ("true", "false", "null") if f"zqtruth{assigned[1]}true" in text else ("True", "False", "None")
    literals = Literals(assigned[1], separator[1], assigned[1], constants, quote)
    return _read(text, found.end(), ArgumentStyle.MARKED, literals)


def _read(text: str, begin: int, style: ArgumentStyle, literals: Literals) -> MeasuredArguments | None:
    tool_format = ToolFormat("measured", (), arguments=style, literals=literals)
    try:
        value, end = read_arguments(tool_format, None, text, begin)
    except (Incomplete, Malformed):
        return None
    return MeasuredArguments(style, begin, end, literals=literals) if value == ARGUMENTS else None


def _tagged(text: str, at: int) -> MeasuredArguments | None:
    """Text around each name and value: NAME before [before_name] zqfirst [before_value] zqvalue [behind_value] ..."""
    first, value = text.find("zqfirst", at), text.find(STRING, at)
    second, other = text.find("zqsecond", value), text.find(OTHER, value)
    last = text.find("zqend", other)
    tail = text.find("zqtail", last)
    if not at <= first < value < second < other < last < tail:
        return None
    lead, before_value = text[at:first], text[first + len("zqfirst") : value]
    inner = text[value + len(STRING) : second]
    is_named = "zqfirst" in inner
    inner = inner.replace("zqfirst", "{name}")
    rest = text[tail + len("zqtail") :].replace("zqend", "{name}", 1 if is_named else 0)
    before_name = common_end(lead, inner)
    behind_value = inner[: len(inner) - len(before_name)]
    if not before_name.strip() or not rest.startswith(behind_value):
        behind_value = common_start(inner, rest)
        before_name = inner[len(behind_value) :]
    moved = before_name[: len(before_name) - len(before_name.lstrip("\n"))]
    before_name, end = before_name.lstrip("\n"), tail + len("zqtail") + len(behind_value.replace("{name}", "zqend"))
    if not before_name.strip() or not before_value.strip() or not behind_value.strip():
        return None
    if moved and text.startswith(moved, end):
        end += len(moved)
    behind_value += moved
    begin = text.rindex(before_name, at, first)
    typed = _with_types(text, before_value, at)
    if typed is None:
        return None
    item = ""
    if before_name + "zqinner" in text[at:]:
        found = re.compile(re.escape(before_name) + r"(\w+)" + re.escape(before_value) + "zqitem").search(text, at)
        if found is None:
            return None
        item = found[1]
    marks = (before_name, behind_value.replace("{name}", ""), before_value)
    excludes = _excluded(marks, text[end : end + 100], is_named=is_named)
    tagged = TaggedArguments(before_name, typed, behind_value, excludes, item)
    return MeasuredArguments(ArgumentStyle.TAGGED, begin, end, tagged, moved=moved)


def _with_types(text: str, before_value: str, at: int) -> str | None:
    """`before_value` with the place of the type, if values of other types have another text there; None if it is not understood."""
    found = re.compile(r"zqnumber(.{1,80}?)71077", re.DOTALL).search(text, at)
    truth = re.compile(r"zqtruth(.{1,80}?)[Tt]rue\b(?=[^\"])", re.DOTALL).search(text, at)
    if found is None or truth is None:
        return None
    if found[1] == before_value == truth[1]:
        return before_value
    for kind, number, boolean, place in (
        ("true", "false", "false", "{is_string}"),
        ("string", "number", "boolean", "{type}"),
    ):
        typed = before_value.replace(f'"{kind}"', f'"{place}"', 1)
        if typed.replace(place, number) == found[1] and typed.replace(place, boolean) == truth[1]:
            return typed
    return None


def _excluded(marks: tuple[str, ...], behind: str, *, is_named: bool) -> tuple[str, ...]:
    """The texts that a value must not contain: the marks around it, and the one that follows the arguments."""
    found = [mark.strip() for mark in marks if mark.strip() and len(mark.strip()) > 1]
    if is_named:  # the end of a value is known by what precedes its name
        common = common_start(found[0], found[1]) if len(found) > 1 else found[0]
        return (common.rstrip("</"),) if common.rstrip("</") else (found[0],)
    following = re.match(r"\s*(<[^<>\s]+>)", behind)
    return tuple(dict.fromkeys([found[0], found[1], *([following[1]] if following else [])]))


_UNIT = re.compile(r"</?[^<>\s]*>?|\[/?[A-Za-z_]+\]|◁[^▷\s]*▷|\w+|\s|[^\w\s]")
_BOUND = re.compile(r"<[|｜][^<>\s]*[|｜]>")
"""A mark that belongs to a word beside it, as in `<|open|>tools<|sep|>`."""


def common_start(first: str, second: str) -> str:
    """The common beginning of two texts, which cuts no mark and no word."""
    units, others = _UNIT.findall(first), _UNIT.findall(second)
    count = next(
        (i for i, (a, b) in enumerate(zip(units, others, strict=False)) if a != b), min(len(units), len(others))
    )
    while (
        count
        and _BOUND.fullmatch(units[count - 1])
        and any(count < len(each) and each[count][0].isalnum() for each in (units, others))
    ):
        count -= 1
    return "".join(units[:count])


def common_end(first: str, second: str) -> str:
    """The common end of two texts, which cuts no mark and no word."""
    units, others = _UNIT.findall(first)[::-1], _UNIT.findall(second)[::-1]
    count = next(
        (i for i, (a, b) in enumerate(zip(units, others, strict=False)) if a != b), min(len(units), len(others))
    )
    while (
        count
        and _BOUND.fullmatch(units[count - 1])
        and any(count < len(each) and each[count][-1].isalnum() for each in (units, others))
    ):
        count -= 1
    return "".join(units[:count][::-1])
