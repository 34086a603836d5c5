"""Translates constraints to llguidance grammars, and its messages to `GrammarError`s.

Every possible mistake of a caller is checked before the library sees the source: sizes, nesting, JSON, and the parts of its Lark dialect
that reach outside of text (special tokens, token ids, token counts), which constraints may not use.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rtlang_grammars.adapters.llguidance_limits import MAX_PATTERNS, check_limits
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Whitespace
from rtlang_grammars.spec.errors import GrammarError

MAX_SOURCE_CHARS = 2 << 20
MAX_REGEX_CHARS = 64 << 10
MAX_LARK_CHARS = 256 << 10
MAX_DEPTH = 100
MAX_CHOICES = 50_000

_JSON_STYLE = {
    "item_separator": ", ",
    "key_separator": ": ",
    "whitespace_flexible": False,
    "coerce_one_of": False,
    "lenient": False,
}
"""JSON as `json.dumps` writes it, the form that models saw most, with properties in the order of the schema: a subset of the default style.
Nothing is ignored or approximated.
"""

_LARK_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\\n])+/|//[^\n]*|\#[^\n]*')
_LARK_DEFINITION = re.compile(r"^[ \t]*[?!]?(\w+)[ \t]*(?:\.-?\d+)?[ \t]*(?:\[[^\]]*\])?[ \t]*:", re.MULTILINE)
_PLACE = re.compile(r"^(?:at )?(\d+)\((\d+)\): ?")
_REGEX_CARET = re.compile(r"\n    ([^\n]*)\n    ( *)\^")


def library_source(constraint: Constraint, matcher_class: Any) -> str:
    """The constraint as a grammar for `matcher_class` (llguidance's LLMatcher).

    Raises:
        GrammarError: malformed, too large, or using unsupported features.
    """
    source = constraint.source
    if not isinstance(source, str):
        raise GrammarError("source: a string is required")
    if len(source) > MAX_SOURCE_CHARS:
        raise GrammarError(f"source: {len(source)} characters; at most {MAX_SOURCE_CHARS} are allowed")
    try:
        source.encode()
    except UnicodeEncodeError:
        raise GrammarError("the source contains a lone surrogate") from None
    match constraint.kind:
        case ConstraintKind.JSON_SCHEMA:
            return _schema_source(constraint, matcher_class)
        case ConstraintKind.REGEX:
            return _regex_source(source, matcher_class)
        case ConstraintKind.CHOICE:
            return _choice_source(source, matcher_class)
        case ConstraintKind.LARK:
            if len(source) > MAX_LARK_CHARS:
                raise GrammarError(f"the grammar has {len(source)} characters; at most {MAX_LARK_CHARS} are allowed")
            if constraint.indentation is not None:
                raise GrammarError("the backend llguidance does not support indentation; the backend rtlang does")
            _check_lark(source)
            return str(matcher_class.grammar_from_lark(source))
    raise GrammarError(
        f"the backend llguidance does not support constraints of kind {constraint.kind}; the backend rtlang does"
    )


def read_error(constraint: Constraint, message: str) -> GrammarError:
    """The library's message, with the location that it names or that can be found for it."""
    if "panic:" in message:  # an internal assertion about sizes; its text is meant for the library's authors
        return GrammarError("the constraint is too large or too complex for the grammar library")
    match constraint.kind:
        case ConstraintKind.REGEX:
            reason = re.findall(r"error: (.*)", message) or re.findall(r"\(in regex\): ([^;\n]*)", message)
            caret = _REGEX_CARET.search(message)
            at = len(caret[2]) if caret and caret[1] and constraint.source.startswith(caret[1]) else None
            return GrammarError(
                f"regular expression: {reason[0] if reason else message.splitlines()[0]}",
                None if at is None else f"1:{at + 1}",
            )
        case ConstraintKind.LARK:
            place = _PLACE.match(message)
            lines = [line for line in message[place.end() if place else 0 :].splitlines() if line.strip()]
            reason_lines = [line for line in lines if "|" not in line and line.strip() != "^"]
            reason_text = " ".join(line.strip() for line in reason_lines[:4]) or "malformed grammar"
            return GrammarError(f"Lark grammar: {reason_text}", f"{place[1]}:{place[2]}" if place else None)
        case ConstraintKind.JSON_SCHEMA:
            return GrammarError(f"JSON schema: {' '.join(message.split())}", _find_pointer(constraint.source, message))
        case _:
            return GrammarError(" ".join(message.split()))


def _schema_source(constraint: Constraint, matcher_class: Any) -> str:
    schema = _read_json(constraint.source, "JSON schema")
    form = _JSON_STYLE
    if constraint.style.whitespace is Whitespace.COMPACT:
        form = {**_JSON_STYLE, "item_separator": ",", "key_separator": ":"}
    if schema is True:
        schema = {}
    if schema is False:
        raise GrammarError("JSON schema: false allows no value", "")
    if not isinstance(schema, dict):
        raise GrammarError("JSON schema: expected an object or true", "")
    check_limits(schema)
    try:
        return str(matcher_class.grammar_from_json_schema(json.dumps(schema, ensure_ascii=False), overrides=form))
    except ValueError as error:
        raise GrammarError(f"JSON schema: {error}") from None


def _regex_source(source: str, matcher_class: Any) -> str:
    if len(source) > MAX_REGEX_CHARS:
        raise GrammarError(f"the pattern has {len(source)} characters; at most {MAX_REGEX_CHARS} are allowed")
    # The whole text has to match, so anchors at either end are redundant.
    pattern = source.removeprefix("^") if source.startswith("^") else source.removeprefix(r"\A")
    for anchor in ("$", r"\Z", r"\z"):
        kept = pattern.removesuffix(anchor)
        if kept != pattern and (len(kept) - len(kept.rstrip("\\"))) % 2 == 0:
            pattern = kept
            break
    return str(matcher_class.grammar_from_regex(pattern))


def _choice_source(source: str, matcher_class: Any) -> str:
    choices = _read_json(source, "choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, str) for choice in choices):
        raise GrammarError("choices: expected a JSON array of at least one string", "")
    if len(choices) > MAX_CHOICES:
        raise GrammarError(f"{len(choices)} choices are given; at most {MAX_CHOICES} are allowed")
    pattern = "|".join(re.sub(r"[^\w\s]|\s", _escape, choice) for choice in dict.fromkeys(choices))
    return str(matcher_class.grammar_from_regex(f"(?:{pattern})"))


def _escape(match: re.Match[str]) -> str:
    return f"\\x{{{ord(match[0]):X}}}"


def _check_lark(source: str) -> None:
    plain = _LARK_TEXT.sub(lambda match: " " * len(match[0]), source)
    for pattern, what in (
        (r"<[^>\n]*>?", "special tokens and token ids are not allowed in a constraint"),
        (r"\[[^\]\n]*\b(?:max_tokens|temperature|stop|suffix|stop_capture|lazy)\b", "rule attributes are not allowed"),
    ):
        found = re.search(pattern, plain)
        if found is not None:
            raise GrammarError(f"Lark grammar: {what}", _line_and_column(source, found.start()))
    _check_intersections(source, plain)
    for embedded in re.finditer(r"%json\b\s*", plain):
        try:
            schema, _ = json.JSONDecoder().raw_decode(source, embedded.end())
        except (ValueError, RecursionError):
            continue  # the library reports the error
        try:
            check_limits(schema)
        except GrammarError as error:
            raise GrammarError(f"Lark grammar: {error}", _line_and_column(source, embedded.start())) from None


def _check_intersections(source: str, plain: str) -> None:
    """Refuse terminals that join too many patterns by `&`; see `llguidance_limits`. The terminals that they use count too."""
    if plain.count("&") < MAX_PATTERNS:
        return
    starts = list(_LARK_DEFINITION.finditer(plain))
    ends = [*(start.start() for start in starts[1:]), len(plain)]
    bodies = {start[1]: plain[start.end() : end] for start, end in zip(starts, ends, strict=False)}
    counts = {name: body.count("&") for name, body in bodies.items()}
    users: dict[str, list[str]] = {}
    for name, body in bodies.items():
        for used in re.findall(r"\b[A-Z_]\w*", body):
            users.setdefault(used, []).append(name)
    changed = [name for name, count in counts.items() if count]
    added = dict(counts)
    while changed:  # each terminal adds to its users; exceeding the limit ends the count
        name = changed.pop()
        amount, added[name] = added[name], 0
        if counts[name] >= MAX_PATTERNS:
            place = next(start for start in starts if start[1] == name)
            raise GrammarError(
                f"Lark grammar: {name} joins more than {MAX_PATTERNS} patterns by &, with the terminals that it uses; "
                f"at most {MAX_PATTERNS} are allowed",
                _line_and_column(source, place.start(1)),
            )
        for user in users.get(name, ()) if amount else ():
            if user.isupper() or user.startswith("_"):
                counts[user] += amount
                added[user] += amount
                changed.append(user)


def _line_and_column(source: str, at: int) -> str:
    return f"{source.count(chr(10), 0, at) + 1}:{at - source.rfind(chr(10), 0, at)}"


def _read_json(source: str, what: str) -> Any:
    depth = 0
    deepest = 0
    for letter in re.sub(r'"(?:\\.|[^"\\])*"', "", source):
        depth += (letter in "[{") - (letter in "]}")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise GrammarError(f"{what}: nested {deepest} deep; at most {MAX_DEPTH} is allowed")
    try:
        return json.loads(source, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise GrammarError(f"{what}: not valid JSON: {error.msg}", f"{error.lineno}:{error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"{what}: not valid JSON: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _find_pointer(source: str, message: str) -> str | None:
    """The JSON pointer of the first keyword, value or target of a reference that the message quotes."""
    quoted = re.findall(r"[\"'`]([^\"'`]+)[\"'`]", message)
    quoted += re.findall(r"^(?:Invalid type|Unknown format): (\S+)", message)
    known = re.match(
        r"(?:Unsatisfiable schema: )?(oneOf|anyOf|allOf|minItems|maxItems|minimum|maximum|minLength|pattern)\b", message
    )
    if known is not None:
        quoted.append(known[1])
    for name in quoted:
        pointer = _pointer_to(json.loads(source), name, "")
        if pointer is not None:
            return pointer
    return None


def _pointer_to(value: Any, name: str, pointer: str) -> str | None:
    if isinstance(value, dict):
        for key, item in value.items():
            here = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if key == name or item == name:
                return here
            found = _pointer_to(item, name, here)
            if found is not None:
                return found
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found = _pointer_to(item, name, f"{pointer}/{index}")
            if found is not None:
                return found
    return None
