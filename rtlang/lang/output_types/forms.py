"""Output types beyond the options of `gen`: styled JSON, Lark, GBNF and EBNF grammars, and compositions.

Pass them to `gen` as a type: `gen("call", type=rt.tagged(...))`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.lang.output_types import form_values
from rtlang.lang.output_types.types import TEXT, OutputType, output_type
from rtlang_grammars import GrammarError, JsonLayout, JsonStyle, Lexer, Numbers, PropertyOrder, Whitespace
from rtlang_grammars import Indentation as _Indentation
from rtlang_grammars.spec import structures


@dataclass(frozen=True, slots=True)
class Indentation(_Indentation):
    __doc__ = _Indentation.__doc__

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ParameterError: a name is not text, or tab_len is not a number from 1 to 1000.
        """
        try:
            _Indentation.__post_init__(self)
        except GrammarError as error:
            field, value = ("tab_len", self.tab_len) if error.reason.startswith("tab_len") else ("indentation", self)
            raise ParameterError(field, value, error.reason.partition(": ")[2]) from None


def json_text(
    schema: Any,
    *,
    whitespace: Literal["free", "line", "compact"] = "free",
    order: Literal["any", "declared", "declared_then_others", "required_first"] = "declared_then_others",
    numbers: Literal["plain", "any"] = "plain",
    separators: tuple[str, str] | None = None,
    indent: int | str | None = None,
) -> OutputType:
    """JSON that matches a schema, in the given style.

    Args:
        schema: as for `gen`: a type or a JSON schema.
        whitespace: "free" allows one or two spaces, or a line break and up to 80 spaces, between tokens;
            "line" allows one space after commas and colons; "compact" allows none.
        order: "declared_then_others" allows properties in the order in which the schema declares them (optional ones may be omitted), then
            undeclared ones. "declared" allows undeclared ones anywhere, "required_first" puts the required ones before the optional ones
            and these before undeclared ones, "any" allows any order.
        numbers: "plain" allows integers as digits alone (3) and other numbers as programs write them (0.5, 1.5e-07), "any" every spelling
            of JSON (3, 3.0 and 3e0 are the same integer).
        separators, indent: as for `json.dumps`; with either of them, exactly the text of `json.dumps` with these arguments is allowed, and
            `whitespace` must be "free".
    Raises:
        ParameterError: the schema or a style is invalid; names it.
    """
    style = json_style(order, numbers, whitespace)
    found = output_type(schema=schema)
    if found.constraint is None or found.constraint.kind is not ConstraintKind.JSON_SCHEMA:
        raise ParameterError("schema", schema, "expected a type that is written as JSON")
    style = replace(style, layout=_layout(whitespace, separators, indent))
    return replace(found, constraint=replace(found.constraint, style=style))


def json_style(order: str, numbers: str, whitespace: str = "free") -> JsonStyle:
    """The style that options of these names describe.

    Raises:
        ParameterError: one is not allowed; names it.
    """
    options = (("whitespace", whitespace, Whitespace), ("order", order, PropertyOrder), ("numbers", numbers, Numbers))
    for field, value, allowed in options:
        if value not in list(allowed):
            raise ParameterError(field, value, f"expected one of {', '.join(allowed)}")
    return JsonStyle(Whitespace(whitespace), PropertyOrder(order), numbers=Numbers(numbers))


def _layout(whitespace: str, separators: object, indent: Any) -> JsonLayout | None:
    if separators is None and indent is None:
        return None
    if whitespace != "free":
        raise ParameterError("whitespace", whitespace, "expected free, as separators or indent say where blanks are")
    if separators is not None and (not isinstance(separators, tuple | list) or len(separators) != 2):
        raise ParameterError("separators", separators, "expected a pair: between items, and between names and values")
    item, key = separators if isinstance(separators, tuple | list) else (None, ": ")
    try:
        return JsonLayout(item, key, indent)
    except GrammarError as error:
        field = "indent" if error.location == "indent" else "separators"
        raise ParameterError(field, indent if field == "indent" else separators, error.reason) from None


def ebnf(source: str, *, notation: Literal["gbnf", "w3c"] = "gbnf") -> OutputType:
    """Text that matches a grammar written in llama.cpp's GBNF (start rule `root`) or in the W3C's EBNF (the first rule is the start rule).

    Raises:
        ParameterError: the source is not text, or the notation is unknown.
    """
    if not isinstance(source, str) or not source.strip():
        raise ParameterError("source", source, "expected grammar source as a non-empty string")
    if notation not in ("gbnf", "w3c"):
        raise ParameterError("notation", notation, "expected gbnf or w3c")
    kind = ConstraintKind.GBNF if notation == "gbnf" else ConstraintKind.EBNF
    return OutputType(Constraint(kind, source), str, is_text=True)


def lark(
    source: str,
    *,
    lexer: Literal["longest", "lark", "anywhere"] = "longest",
    indentation: Indentation | None = None,
) -> OutputType:
    """Text that matches a Lark grammar (start rule `start`).

    Args:
        lexer: how text is divided into terminals. "longest": the longest match wins. "lark": as lark's contextual lexer, to the letter.
            "anywhere": a terminal may end wherever it matches.
        indentation: the terminals that the indentation of lines becomes, for grammars that declare them; not with lexer="anywhere".
    Raises:
        ParameterError: the source is not text, the lexer is unknown, or indentation is none or has no lexer.
    """
    if not isinstance(source, str) or not source.strip():
        raise ParameterError("source", source, "expected grammar source as a non-empty string")
    if lexer not in list(Lexer):
        raise ParameterError("lexer", lexer, f"expected one of {', '.join(Lexer)}")
    if indentation is not None and (not isinstance(indentation, Indentation) or lexer == "anywhere"):
        raise ParameterError(
            "indentation", indentation, "expected an rt.Indentation, with a lexer that is not 'anywhere'"
        )
    spec = (
        None
        if indentation is None
        else _Indentation(*(getattr(indentation, each.name) for each in fields(indentation)))
    )
    constraint = Constraint(ConstraintKind.LARK, source, lexer=Lexer(lexer), indentation=spec)
    return OutputType(constraint, str, is_text=True)


def sequence(*parts: Any) -> OutputType:
    """A concatenation of parts. A part is a literal string, a compiled regex, a type, a JSON schema as a mapping, or an output type.

    The value is a tuple with one value per part; the value of a literal string is the string itself.

    Raises:
        ParameterError: a part is of another kind, or parts with schemas have different styles.
    """
    given, readers = _parts(parts)
    return _structure(lambda: structures.sequence(*given), form_values.SequenceForm(readers), parts=parts)


def either(*parts: Any) -> OutputType:
    """A choice between parts; see `sequence`. The value is the value of the chosen part; if several parts match, of the first.

    Raises:
        ParameterError: there are no parts, or a part is invalid.
    """
    given, readers = _parts(parts)
    return _structure(lambda: structures.any_of(*given), form_values.Either(readers), parts=parts)


def repeated(part: Any, low: int = 0, high: int | None = None) -> OutputType:
    """A part repeated `low` to `high` times; see `sequence`. The value is a list.

    Raises:
        ParameterError: the part is invalid, or `low` is greater than `high`.
    """
    given, reader = _part(part)
    return _structure(
        lambda: structures.repeat(given, low, high), form_values.Repeated(reader, high), part=part, low=low, high=high
    )


def token(which: str | int) -> OutputType:
    """One token of the model, by name (`"<|im_start|>"`) or id; `"<[1,10-20]>"` is one of several, `"<[^5]>"` any other.

    As a part of `sequence` and the other forms, and as the opening or closing of a tag. In their strings, the name of a special token
    stands for that token where the model has it, so that `token` is only needed for ids, or to refuse models without the token.

    Raises:
        ParameterError: the name is empty, or the ids are malformed.
    """
    name = (
        form_values.Fixed(which) if isinstance(which, str) and not _is_set(which) else form_values.LeafForm(None, str)
    )
    return _structure(lambda: structures.token(which), name, which=which)


def tagged(
    tags: Mapping[Any, tuple[Any, Any]] | Iterable[tuple[Any, Any, Any]],
    *,
    triggers: Iterable[Any] = (),
    low: int = 0,
    high: int | None = None,
    text_behind: bool = True,
) -> OutputType:
    """Free text with tagged sections of constrained text, such as tool calls, thoughts or code.

    The value is a list of the free texts, as strings, and of the tags, as `Tag` with `begin`, `value` and `end`.

    Args:
        tags: maps the opening of each tag, a string or a `token`, to its content, a part (see `sequence`), and its closing.
        triggers: strings and tokens that start a tag and may not occur otherwise; by default, the openings of the tags.
        low, high: minimum and maximum number of tags.
        text_behind: whether free text may follow the last of `high` tags.
    Raises:
        ParameterError: a part is invalid, a tag does not start with exactly one trigger, or a bound is invalid.
    """
    allowed = "expected a mapping from opening to (part, closing), strings or tokens, such as {'<a>': (int, '</a>')}"
    found: Any = tags
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ParameterError("tags", found, allowed)
    given = found.items() if isinstance(found, Mapping) else [_split_tag(each) for each in found]
    listed = []
    for begin, rest in given:
        if not (isinstance(rest, tuple) and len(rest) == 2 and _is_mark(begin) and _is_mark(rest[1])):
            raise ParameterError("tags", {begin: rest}, allowed)
        listed.append((_part(begin), _part(rest[0]), _part(rest[1])))
    given_triggers = [_part(each)[0] for each in triggers]
    tags_given = [(begin[0], part[0], end[0]) for begin, part, end in listed]
    return _structure(
        lambda: structures.tagged(tags_given, triggers=given_triggers, low=low, high=high, text_behind=text_behind),
        form_values.Tagged(tuple((begin[1], part[1], end[1]) for begin, part, end in listed)),
        tags=tags,
        low=low,
        high=high,
    )


def _is_mark(given: Any) -> bool:
    return isinstance(given, str) or (
        isinstance(given, OutputType) and given.constraint is not None and structures.is_token(given.constraint)
    )


def _is_set(name: str) -> bool:
    """Whether the name of a token stands for ids."""
    return re.fullmatch(r"<\[.*\]>", name) is not None


def _split_tag(given: Any) -> tuple[Any, Any]:
    return (given[0], tuple(given[1:])) if isinstance(given, tuple | list) and given else (given, None)


_OPTIONS = {"min": "low", "max": "high", "token": "which", "any_of": "parts"}
"""The names of options by the names of the structures."""


def _structure(make: Callable[[], Constraint], reader: form_values.Part, **options: Any) -> OutputType:
    """The output type of a structure. Errors name one of the options that it is made from."""
    try:
        constraint = make()
        structures.read_structure(constraint.source)
    except GrammarError as error:
        said = re.fullmatch(r"(\w+) = .+?: (.+)", error.reason, re.DOTALL)
        name = _OPTIONS.get(said[1]) if said is not None else None
        if said is not None and name in options:
            raise ParameterError(name, options[name], re.sub(r"\bmin\b", "low", said[2])) from error
        name = next(iter(options))
        raise ParameterError(name, options[name], error.reason) from error
    return OutputType(constraint, form_values.FormReader(reader))


def _parts(given: Iterable[Any]) -> tuple[list[str | Constraint], tuple[form_values.Part, ...]]:
    found = [_part(part) for part in given]
    return [part for part, _ in found], tuple(reader for _, reader in found)


def _part(given: Any) -> tuple[str | Constraint, form_values.Part]:
    """A part as a constraint, and the reader of its value."""
    if isinstance(given, str):
        return given, form_values.Fixed(given)
    if isinstance(given, Constraint):
        return given, form_values.LeafForm(given, str)
    if isinstance(given, re.Pattern):
        found = output_type(regex=given)
    elif isinstance(given, Mapping):
        found = output_type(schema=given)
    else:
        found = output_type(type=given)
    if found is TEXT or found.constraint is None:
        raise ParameterError("parts", given, "expected a constrained part, not free text")
    if isinstance(found.parse, form_values.FormReader):
        return found.constraint, found.parse.part
    return found.constraint, form_values.LeafForm(found.constraint, found.parse)
