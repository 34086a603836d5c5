"""Structures: sequences, alternatives and repeats of constraints, and free text with tagged parts such as tool calls.

The source of a constraint of kind STRUCTURE is the JSON text of a part. A part is a string (that text), a map with kind and source
(a constraint), or a map with one of these shapes:

- `{"sequence": [part, ...]}`: one after the other;
- `{"any_of": [part, ...]}`: one of several;
- `{"repeat": part, "min": 0, "max": null}`: again and again;
- `{"members": [{"part": part, "required": true}, ...], "separator": "", "order": "any"}`: each part at most once, in any order or, with the
  order `declared`, in that of the list;
- `{"text": schema, "excludes": ["</p>"]}`: a string of a JSON schema, written without quotes, that contains none of some texts;
- `{"tags": [{"begin": "<call>", "part": part, "end": "</call>"}, ...], "triggers": ["<call"], "excludes": [], "min": 0, "max": null,
  "text_behind": true}`: free text in which a trigger only occurs at the beginning of a tag. Without `triggers`, the beginnings of the tags
  are the triggers.

`sequence`, `any_of`, `repeat`, `members`, `raw_text` and `tagged` build such constraints from texts and other constraints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.json_source import parsed

MAX_NESTING = 32
"""Maximum nesting of parts."""
MAX_REPEATS = 10_000
"""Maximum bound of a repeat."""
MAX_COUNTED_TAGS = 64
"""Maximum bound on the number of tags."""
MAX_UNORDERED = 8
"""Maximum number of members in any order: the set of those that were written is part of the state."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A fixed text."""

    text: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """A constraint of another kind. It has the style of the whole structure."""

    constraint: Constraint
    pointer: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts that follow one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of several parts."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, `low` to `high` times; `high` None is unbounded."""

    part: Part
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Members:
    """Parts, each at most once, with a text between them.

    Attributes:
        parts: each with whether it is required.
        order: whether they follow in any order or in that of `parts`.
    """

    parts: tuple[tuple[Part, bool], ...]
    separator: str
    order: PropertyOrder


@dataclass(frozen=True, slots=True)
class RawText:
    """A string of a schema, written without quotes.

    Attributes:
        schema: JSON text of a schema that allows only strings.
        excludes: texts that do not occur in it.
    """

    schema: str
    excludes: tuple[str, ...]
    pointer: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A part between two texts. The part and `end` are not both empty."""

    begin: str
    part: Part
    end: str


@dataclass(frozen=True, slots=True)
class Tags:
    """Free text with tags in it.

    Attributes:
        triggers: texts that begin a tag wherever they occur; every tag begins with exactly one of them, and none contains another.
        excludes: texts that do not occur in the free text; none contains another or a trigger.
        low, high: bounds on the number of tags; `high` None is unbounded.
        text_behind: text may follow the last of `high` tags.
    """

    tags: tuple[Tag, ...]
    triggers: tuple[str, ...]
    excludes: tuple[str, ...]
    low: int
    high: int | None
    text_behind: bool


Part: TypeAlias = Literal | Leaf | Sequence | AnyOf | Repeat | Members | RawText | Tags


def sequence(*parts: str | Constraint) -> Constraint:
    """One part after the other; a string is that text.

    Raises:
        GrammarError: parts with schemas have different styles; all functions here raise this.
    """
    return _constraint({"sequence": [_plain(part) for part in parts]}, parts)


def any_of(*parts: str | Constraint) -> Constraint:
    """One of several parts."""
    return _constraint({"any_of": [_plain(part) for part in parts]}, parts)


def repeat(part: str | Constraint, low: int = 0, high: int | None = None) -> Constraint:
    """A part `low` to `high` times."""
    return _constraint({"repeat": _plain(part), "min": low, "max": high}, [part])


def members(
    parts: Iterable[tuple[str | Constraint, bool]], separator: str = "", order: PropertyOrder = PropertyOrder.ANY
) -> Constraint:
    """Parts, each at most once, each given with whether it is required; `separator` stands between two of them.

    Args:
        order: ANY takes at most `MAX_UNORDERED` parts.
    """
    listed = list(parts)
    plain = [{"part": _plain(part), "required": is_required} for part, is_required in listed]
    return _constraint({"members": plain, "separator": separator, "order": str(order)}, [part for part, _ in listed])


def raw_text(schema: dict[str, Any] | bool = True, *, excludes: Iterable[str] = ()) -> Constraint:
    """A string of a JSON schema, written without quotes, in which none of some texts occurs; by default any text."""
    return _constraint({"text": schema, "excludes": list(excludes)}, ())


def tagged(
    tags: Iterable[tuple[str, str | Constraint, str]],
    *,
    triggers: Iterable[str] = (),
    excludes: Iterable[str] = (),
    low: int = 0,
    high: int | None = None,
    text_behind: bool = True,
) -> Constraint:
    """Free text with tags, each given as its beginning, its content and its end.

    Args:
        triggers: texts that only occur at the beginning of a tag; by default the beginnings of the tags.
        excludes: texts that do not occur outside of tags.
        low, high: bounds on the number of tags.
        text_behind: False: the text ends with the last of `high` tags.
    """
    listed = list(tags)
    plain: dict[str, Any] = {
        "tags": [{"begin": begin, "part": _plain(part), "end": end} for begin, part, end in listed],
        "min": low,
        "max": high,
        "text_behind": text_behind,
    }
    if given := list(triggers):
        plain["triggers"] = given
    if without := list(excludes):
        plain["excludes"] = without
    return _constraint(plain, [part for _, part, _ in listed])


def read_structure(source: str) -> Part:
    """Read the source of a structure.

    Raises:
        GrammarError: the source is malformed; the location is a JSON pointer.
    """
    return _part(parsed(source), "#", 0)


def _constraint(plain: Any, parts: Iterable[str | Constraint]) -> Constraint:
    source = json.dumps(plain, ensure_ascii=False)
    styles = {part.style for part in parts if isinstance(part, Constraint) and _has_schema(part)}
    if len(styles) > 1:
        raise GrammarError("parts with schemas have different styles; use one style for all of them")
    return Constraint(ConstraintKind.STRUCTURE, source, styles.pop() if styles else JsonStyle())


def _has_schema(constraint: Constraint) -> bool:
    if constraint.kind is not ConstraintKind.STRUCTURE:
        return constraint.kind is ConstraintKind.JSON_SCHEMA
    return f'"kind": "{ConstraintKind.JSON_SCHEMA}"' in constraint.source


def _plain(part: str | Constraint) -> Any:
    if isinstance(part, str):
        return part
    if part.kind is ConstraintKind.STRUCTURE:
        return json.loads(part.source)
    return {"kind": str(part.kind), "source": part.source}


_KEYS = {
    "kind": {"source"},
    "sequence": set[str](),
    "any_of": set[str](),
    "repeat": {"min", "max"},
    "members": {"separator", "order"},
    "text": {"excludes"},
    "tags": {"triggers", "excludes", "min", "max", "text_behind"},
}


def _part(plain: Any, pointer: str, depth: int) -> Part:
    if depth > MAX_NESTING:
        raise GrammarError(f"nested too deeply: more than {MAX_NESTING} levels of parts", pointer)
    if isinstance(plain, str):
        return Literal(plain)
    shapes = [key for key in _KEYS if isinstance(plain, dict) and key in plain]
    if len(shapes) != 1:
        raise GrammarError(f"expected a string or a map with exactly one of {', '.join(_KEYS)}", pointer)
    shape = shapes[0]
    unknown = plain.keys() - _KEYS[shape] - {shape}
    if unknown:
        raise GrammarError(f"unknown key {min(unknown, key=str)!r} next to {shape}", pointer)
    match shape:
        case "kind":
            return _leaf(plain, pointer)
        case "repeat":
            low, high = _bounds(plain, pointer, MAX_REPEATS)
            return Repeat(_part(plain["repeat"], f"{pointer}/repeat", depth + 1), low, high)
        case "members":
            return _members(plain, pointer, depth)
        case "text":
            if not isinstance(plain["text"], dict | bool):
                raise GrammarError("text: expected a JSON schema (an object or a boolean)", pointer)
            return RawText(json.dumps(plain["text"], ensure_ascii=False), _texts(plain, "excludes", pointer), pointer)
        case "tags":
            return _tags(plain, pointer, depth)
    parts = _list(plain[shape], f"{pointer}/{shape}")
    if shape == "any_of" and not parts:
        raise GrammarError("any_of = []: expected at least one part", pointer)
    read = tuple(_part(each, f"{pointer}/{shape}/{i}", depth + 1) for i, each in enumerate(parts))
    return Sequence(read) if shape == "sequence" else AnyOf(read)


def _leaf(plain: dict[str, Any], pointer: str) -> Leaf:
    kinds = [kind for kind in ConstraintKind if kind is not ConstraintKind.STRUCTURE]
    if plain["kind"] not in kinds or not isinstance(plain.get("source"), str):
        raise GrammarError(f"expected a constraint with a kind ({', '.join(kinds)}) and a source (a string)", pointer)
    return Leaf(Constraint(ConstraintKind(plain["kind"]), plain["source"]), pointer)


def _members(plain: dict[str, Any], pointer: str, depth: int) -> Members:
    parts = []
    for i, each in enumerate(_list(plain["members"], f"{pointer}/members")):
        here = f"{pointer}/members/{i}"
        if not isinstance(each, dict) or each.keys() != {"part", "required"} or not isinstance(each["required"], bool):
            raise GrammarError("expected a map with part and required (true or false)", here)
        parts.append((_part(each["part"], f"{here}/part", depth + 1), each["required"]))
    order = plain.get("order", PropertyOrder.ANY)
    if order not in list(PropertyOrder):
        raise GrammarError(f"order = {order!r}: expected one of {', '.join(PropertyOrder)}", f"{pointer}/order")
    if order == PropertyOrder.ANY and len(parts) > MAX_UNORDERED:
        raise GrammarError(f"{len(parts)} members in any order: expected at most {MAX_UNORDERED}", f"{pointer}/members")
    return Members(tuple(parts), _text(plain.get("separator", ""), f"{pointer}/separator"), PropertyOrder(order))


def _texts(plain: dict[str, Any], key: str, pointer: str) -> tuple[str, ...]:
    found = tuple(_text(each, f"{pointer}/{key}") for each in _list(plain.get(key, []), f"{pointer}/{key}"))
    if not all(found):
        raise GrammarError("expected non-empty strings", f"{pointer}/{key}")
    return found


def _tags(plain: dict[str, Any], pointer: str, depth: int) -> Tags:
    tags: list[Tag] = []
    for i, each in enumerate(_list(plain["tags"], f"{pointer}/tags")):
        here = f"{pointer}/tags/{i}"
        if not isinstance(each, dict) or each.keys() != {"begin", "part", "end"}:
            raise GrammarError("expected a map with begin, part and end", here)
        part = _part(each["part"], f"{here}/part", depth + 1)
        tags.append(Tag(_text(each["begin"], f"{here}/begin"), part, _text(each["end"], f"{here}/end")))
    if not tags:
        raise GrammarError("expected at least one tag", pointer)
    given = plain.get("triggers")
    triggers = list(dict.fromkeys(tag.begin for tag in tags))
    if given is not None:
        triggers = [_text(each, f"{pointer}/triggers") for each in _list(given, f"{pointer}/triggers")]
    excludes = _texts(plain, "excludes", pointer)
    marks = [*triggers, *excludes]
    for i, mark in enumerate(marks):
        if not mark or any(mark in other for j, other in enumerate(marks) if j != i):
            kind = "trigger" if i < len(triggers) else "excluded text"
            raise GrammarError(
                f"the {kind} {mark!r} is empty or contained in another trigger or excluded text", pointer
            )
    for i, tag in enumerate(tags):
        num = sum(tag.begin.startswith(trigger) for trigger in triggers)
        if num != 1:
            raise GrammarError(
                f"{tag.begin!r} begins with {num} of the triggers; expected exactly one", f"{pointer}/tags/{i}"
            )
    low, high = _bounds(plain, pointer, MAX_COUNTED_TAGS)
    text_behind = plain.get("text_behind", True)
    if not isinstance(text_behind, bool):
        raise GrammarError(f"text_behind = {text_behind!r}: expected true or false", pointer)
    return Tags(tuple(tags), tuple(triggers), excludes, low, high, text_behind)


def _bounds(plain: dict[str, Any], pointer: str, most: int) -> tuple[int, int | None]:
    low, high = plain.get("min", 0), plain.get("max")
    for value in (low, low if high is None else high):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise GrammarError(f"min and max: expected integers from 0 to {most}", pointer)
    if high is not None and high < low:
        raise GrammarError(f"max = {high}: expected at least min = {low}", pointer)
    return low, high


def _list(value: Any, pointer: str) -> list[Any]:
    if not isinstance(value, list):
        raise GrammarError("expected a list", pointer)
    return value


def _text(value: Any, pointer: str) -> str:
    if not isinstance(value, str):
        raise GrammarError("expected a string", pointer)
    return value
