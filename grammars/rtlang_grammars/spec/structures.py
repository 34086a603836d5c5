"""Structures: sequences, alternatives and repeats of constraints, and free text with tagged parts such as tool calls.

The source of a constraint of kind STRUCTURE is the JSON text of a part. A part is a string (that text), a map with kind and source
(a constraint), or a map with one of these shapes:

- `{"sequence": [part, ...]}`: one after the other;
- `{"any_of": [part, ...]}`: one of several;
- `{"repeat": part, "min": 0, "max": null}`: again and again;
- `{"members": [{"part": part, "required": true}, ...], "separator": "", "order": "any"}`: each part at most once, in any order or, with the
  order `declared`, in the order of the list;
- `{"text": schema, "excludes": ["</p>"], "max_tokens": null}`: a string of a JSON schema, written without quotes, that contains none of
  some texts and takes a number of tokens at most;
- `{"arguments": tool, "written": notation}`: the arguments of a call of a tool, as a format writes them; see `Arguments`;
- `{"define": {"name": part, ...}, "in": part}` and, in the latter, `{"defined": "name"}`: a part that occurs several times;
- `{"token": "<|im_start|>"}`, `{"token": 151657}`: a token by name or id; one of several as `{"token": "<[1,10-20]>"}`, any but some as
  `{"token": "<[^5]>"}` or `{"token": {"except": ["<|im_end|>", 5]}}`;
- `{"tags": [{"begin": "<call>", "part": part, "end": "</call>"}, ...], "triggers": ["<call"], "excludes": [], "min": 0, "max": null,
  "text_behind": true}`: free text in which a trigger only occurs at the beginning of a tag. Without `triggers`, the beginnings of the tags
  are the triggers. `begin`, `end` and triggers are strings or tokens. A trigger that names a special token is excluded as text.

In a string, the name of a special token of the vocabulary stands for that token, so that one structure serves models that have the token
and models that spell it. `excludes` are texts. The functions `sequence`, `any_of`, `repeat`, `members`, `raw_text`, `arguments`, `define`,
`defined`, `token` and `tagged` build such constraints from texts and other constraints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeAlias

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.json_source import parsed
from rtlang_grammars.spec.structure_parts import (
    AnyOf,
    Arguments,
    Defined,
    Leaf,
    Literal,
    Mark,
    Members,
    Notation,
    Part,
    RawText,
    Repeat,
    Sequence,
    Tag,
    Tags,
    Token,
)
from rtlang_grammars.spec.tokens import token_set

MAX_NESTING = 32
"""Maximum nesting of parts."""
MAX_REPEATS = 10_000
"""Maximum bound of a repeat."""
MAX_COUNTED_TAGS = 64
"""Maximum bound on the number of tags."""
MAX_TEXT_TOKENS = 2_147_483_647
"""Maximum bound on the tokens of a raw text, as in xgrammar."""
MAX_UNORDERED = 8
"""Maximum number of members in any order: the set of those that were written is part of the state."""
STYLES = ("json", "python", "marked", "tagged")
"""The styles of a `Notation`."""
_LATER_FIELDS = frozenset(("item", "literals", "blanks", "cdata"))
_NUM_LITERALS = 7


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


def raw_text(
    schema: dict[str, Any] | bool = True, *, excludes: Iterable[str] = (), max_tokens: int | None = None
) -> Constraint:
    """A string of a JSON schema, written without quotes, in which none of some texts occurs; by default any text.

    Args:
        max_tokens: see `RawText`. Texts given as bytes have no tokens, so that they are not counted.
    """
    plain: dict[str, Any] = {"text": schema, "excludes": list(excludes)}
    if max_tokens is not None:
        plain["max_tokens"] = max_tokens
    return _constraint(plain, ())


def arguments(
    name: str,
    parameters: Mapping[str, Any] | None,
    notation: Notation,
    style: JsonStyle,
    *,
    is_forced: bool = False,
) -> Constraint:
    """The arguments of a call of a tool; see `Arguments`. JSON values in them have `style`."""
    schema = None if parameters is None else json.dumps(dict(parameters), ensure_ascii=False)
    plain = {
        # Servers of version 0.1.0 read `strict`.
        "arguments": {"name": name, "parameters": schema, "strict": True, "forced": is_forced},
        "written": _written(notation),
    }
    return Constraint(ConstraintKind.STRUCTURE, json.dumps(plain, ensure_ascii=False), style)


def _written(notation: Notation) -> dict[str, Any]:
    """The map of a notation; without the fields that servers of version 0.1.0 do not know, where they are empty."""
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(notation).items()}
    return {key: value for key, value in plain.items() if value or key not in _LATER_FIELDS}


def define(parts: Mapping[str, str | Constraint], inner: Constraint) -> Constraint:
    """A constraint with parts that are written once; `defined` refers to them, in the constraint and in later parts."""
    plain = {"define": {name: _plain(part) for name, part in parts.items()}, "in": _plain(inner)}
    return _constraint(plain, [*parts.values(), inner])


def defined(name: str) -> Constraint:
    """A part of an enclosing `define`."""
    return _constraint({"defined": name}, ())


def token(which: str | int) -> Constraint:
    """A token by name or id; `<[1,10-20]>` is one of several, `<[^5]>` any other.

    Raises:
        GrammarError: the ids are malformed.
    """
    plain = {"token": which}
    _token(plain, "#")
    return _constraint(plain, [])


def token_except(which: Iterable[str | int] = ()) -> Constraint:
    """Any token but some, given by names and ids, and but the end tokens; raises as `token`."""
    plain = {"token": {"except": list(which)}}
    _token(plain, "#")
    return _constraint(plain, [])


def is_token(constraint: Constraint) -> bool:
    """Whether a constraint is a token alone, as `token` makes it."""
    return constraint.kind is ConstraintKind.STRUCTURE and constraint.source.startswith('{"token":')


def tagged(
    tags: Iterable[tuple[str | Constraint, str | Constraint, str | Constraint]],
    *,
    triggers: Iterable[str | Constraint] = (),
    excludes: Iterable[str] = (),
    low: int = 0,
    high: int | None = None,
    text_behind: bool = True,
) -> Constraint:
    """Free text with tags, each given as its beginning (a text or a `token`), its content and its end.

    Args:
        triggers: texts and tokens that only occur at the beginning of a tag; by default the beginnings of the tags.
        excludes: texts that do not occur outside of tags.
        low, high: bounds on the number of tags.
        text_behind: False: the text ends with the last of `high` tags.
    """
    listed = list(tags)
    plain: dict[str, Any] = {
        "tags": [{"begin": _plain(begin), "part": _plain(part), "end": _plain(end)} for begin, part, end in listed],
        "min": low,
        "max": high,
        "text_behind": text_behind,
    }
    if given := list(triggers):
        plain["triggers"] = [_plain(each) for each in given]
    if without := list(excludes):
        plain["excludes"] = without
    return _constraint(plain, [part for _, part, _ in listed])


def read_structure(source: str) -> Part:
    """Read the source of a structure.

    Raises:
        GrammarError: the source is malformed; the location is a JSON pointer.
    """
    return _part(parsed(source), "#", 0, {})


def _constraint(plain: Any, parts: Iterable[str | Constraint]) -> Constraint:
    source = json.dumps(plain, ensure_ascii=False)
    styles = {part.style for part in parts if isinstance(part, Constraint) and _has_schema(part)}
    if len(styles) > 1:
        raise GrammarError("parts with schemas have different styles; use one style for all of them")
    return Constraint(ConstraintKind.STRUCTURE, source, styles.pop() if styles else JsonStyle())


def _has_schema(constraint: Constraint) -> bool:
    if constraint.kind is not ConstraintKind.STRUCTURE:
        return constraint.kind is ConstraintKind.JSON_SCHEMA
    return any(each in constraint.source for each in (f'"kind": "{ConstraintKind.JSON_SCHEMA}"', '{"arguments": {'))


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
    "text": {"excludes", "max_tokens"},
    "arguments": {"written"},
    "define": {"in"},
    "defined": set[str](),
    "token": set[str](),
    "tags": {"triggers", "excludes", "min", "max", "text_behind"},
}


_Known: TypeAlias = Mapping[str, Defined]


def _part(plain: Any, pointer: str, depth: int, known: _Known) -> Part:
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
        case "token":
            return _token(plain, pointer)
        case "repeat":
            low, high = _bounds(plain, pointer, MAX_REPEATS)
            return Repeat(_part(plain["repeat"], f"{pointer}/repeat", depth + 1, known), low, high)
        case "members":
            return _members(plain, pointer, depth, known)
        case "text":
            return _raw_text(plain, pointer)
        case "arguments":
            return _arguments(plain, pointer)
        case "define":
            return _define(plain, pointer, depth, known)
        case "defined":
            if plain["defined"] not in known:
                raise GrammarError(
                    f"defined = {plain['defined']!r}: expected one of {', '.join(known) or 'none'}", pointer
                )
            return known[plain["defined"]]
        case "tags":
            return _tags(plain, pointer, depth, known)
    parts = _list(plain[shape], f"{pointer}/{shape}")
    if shape == "any_of" and not parts:
        raise GrammarError("any_of = []: expected at least one part", pointer)
    read = tuple(_part(each, f"{pointer}/{shape}/{i}", depth + 1, known) for i, each in enumerate(parts))
    return Sequence(read) if shape == "sequence" else AnyOf(read)


def _raw_text(plain: dict[str, Any], pointer: str) -> RawText:
    schema, most = plain["text"], plain.get("max_tokens")
    if not isinstance(schema, dict | bool):
        raise GrammarError("text: expected a JSON schema (an object or a boolean)", pointer)
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= MAX_TEXT_TOKENS):
        raise GrammarError(f"max_tokens = {most!r}: expected an integer from 0 to {MAX_TEXT_TOKENS}", pointer)
    return RawText(json.dumps(schema, ensure_ascii=False), _texts(plain, "excludes", pointer), pointer, most)


def _token(plain: dict[str, Any], pointer: str) -> Token:
    try:
        return Token(token_set(plain["token"]), pointer)
    except GrammarError as error:
        raise GrammarError(error.reason, pointer) from None


def _leaf(plain: dict[str, Any], pointer: str) -> Leaf:
    kinds = [kind for kind in ConstraintKind if kind is not ConstraintKind.STRUCTURE]
    if plain["kind"] not in kinds or not isinstance(plain.get("source"), str):
        raise GrammarError(f"expected a constraint with a kind ({', '.join(kinds)}) and a source (a string)", pointer)
    return Leaf(Constraint(ConstraintKind(plain["kind"]), plain["source"]), pointer)


def _arguments(plain: dict[str, Any], pointer: str) -> Arguments:
    tool, written = plain["arguments"], plain.get("written")
    names = [each.name for each in fields(Notation)]
    match tool:
        case {"name": str(name), "parameters": str() | None as schema, "forced": bool(forced)}:
            if (
                isinstance(written, dict)
                and set(names) - _LATER_FIELDS <= written.keys() <= set(names)
                and written["style"] in STYLES
                and isinstance(written.get("literals", []), list)
                and len(written.get("literals", [])) in (0, _NUM_LITERALS)
            ):
                texts = {
                    key: _text(value, f"{pointer}/written/{key}")
                    for key, value in written.items()
                    if key not in ("excludes", "literals")
                }
                literals = tuple(_text(each, f"{pointer}/written/literals") for each in written.get("literals", []))
                excludes = _texts(written, "excludes", f"{pointer}/written")
                notation = Notation(**texts, excludes=excludes, literals=literals)
                return Arguments(name, schema, notation, forced, pointer)
            raise GrammarError(
                f"written: expected a map of {', '.join(names)}; style is one of {', '.join(STYLES)}", pointer
            )
    raise GrammarError("arguments: expected a map of name, parameters (a string or null) and forced", pointer)


def _define(plain: dict[str, Any], pointer: str, depth: int, known: _Known) -> Part:
    parts = plain["define"]
    if not isinstance(parts, dict) or "in" not in plain:
        raise GrammarError("expected a map of parts, and in", pointer)
    inner = dict(known)
    for name, each in parts.items():
        inner[name] = Defined(name, _part(each, f"{pointer}/define/{name}", depth + 1, inner))
    return _part(plain["in"], f"{pointer}/in", depth + 1, inner)


def _members(plain: dict[str, Any], pointer: str, depth: int, known: _Known) -> Members:
    parts = []
    for i, each in enumerate(_list(plain["members"], f"{pointer}/members")):
        here = f"{pointer}/members/{i}"
        if not isinstance(each, dict) or each.keys() != {"part", "required"} or not isinstance(each["required"], bool):
            raise GrammarError("expected a map with part and required (true or false)", here)
        parts.append((_part(each["part"], f"{here}/part", depth + 1, known), each["required"]))
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


def _tags(plain: dict[str, Any], pointer: str, depth: int, known: _Known) -> Tags:
    tags: list[Tag] = []
    for i, each in enumerate(_list(plain["tags"], f"{pointer}/tags")):
        here = f"{pointer}/tags/{i}"
        if not isinstance(each, dict) or each.keys() != {"begin", "part", "end"}:
            raise GrammarError("expected a map with begin, part and end", here)
        part = _part(each["part"], f"{here}/part", depth + 1, known)
        tags.append(Tag(_mark(each["begin"], f"{here}/begin"), part, _mark(each["end"], f"{here}/end")))
    if not tags:
        raise GrammarError("expected at least one tag", pointer)
    given = plain.get("triggers")
    triggers = [tag.begin for tag in tags]
    if given is not None:
        listed = _list(given, f"{pointer}/triggers")
        triggers = [_mark(each, f"{pointer}/triggers/{i}") for i, each in enumerate(listed)]
    triggers = list({_key(trigger): trigger for trigger in triggers}.values())
    texts = [trigger.text for trigger in triggers if isinstance(trigger, Literal)]
    excludes = _texts(plain, "excludes", pointer)
    marks = [*texts, *excludes]
    for at, text in enumerate(marks):
        if not text or any(text in other for i, other in enumerate(marks) if i != at):
            kind = "trigger" if at < len(texts) else "excluded text"
            raise GrammarError(f"the {kind} {text!r} is empty or contained in another one", pointer)
    for i, tag in enumerate(tags):
        if isinstance(tag.begin, Literal) and len(texts) == len(triggers):  # others depend on the vocabulary
            check_triggers(repr(tag.begin.text), sum(map(tag.begin.text.startswith, texts)), f"{pointer}/tags/{i}")
    low, high = _bounds(plain, pointer, MAX_COUNTED_TAGS)
    text_behind = plain.get("text_behind", True)
    if not isinstance(text_behind, bool):
        raise GrammarError(f"text_behind = {text_behind!r}: expected true or false", pointer)
    return Tags(tuple(tags), tuple(triggers), excludes, low, high, text_behind, pointer)


def check_triggers(begin: str, num: int, pointer: str) -> None:
    """Refuse a tag that does not begin with exactly one of the triggers.

    Raises:
        GrammarError: it does not.
    """
    if num != 1:
        raise GrammarError(f"{begin} begins with {num} of the triggers; expected exactly one", pointer)


def _key(mark: Mark) -> object:
    return mark.text if isinstance(mark, Literal) else mark.tokens


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


def _mark(value: Any, pointer: str) -> Mark:
    if isinstance(value, dict) and value.keys() == {"token"}:
        return _token(value, pointer)
    if not isinstance(value, str):
        raise GrammarError("expected a string or a token", pointer)
    return Literal(value)
