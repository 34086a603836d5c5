"""Constraints whose masks are expensive, each with valid texts, and a table of their times beside other engines.

The kinds: unions of many objects, many patterns of names, counted patterns, formats, Unicode classes, large enums and alternations. Every
engine compiles a constraint and follows its texts, in turn and in one process, on the CPU clock. The least of the repeats counts for the
time to the first mask; masks are those of the first time that a text is followed, when nothing is cached.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rtlang_grammars.spec.constraint import ANY_STYLE, Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.rivals import GrammarEngine

Case = tuple[Constraint, list[str]]
"""A constraint and texts that satisfy it."""

_WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "order",
    "price",
    "total",
    "user",
    "name",
    "city",
    "street",
    "item",
    "value",
    "count",
    "state",
    "index",
    "token",
]
_UPPER = "ÀÉÎÕÜĄĆĘŁŃÓŚŹŻΑΒΓΔΕΖАБВГДЕЖЗ"
_LETTERS = "abcxyzéèêñøßłžабвгдежзαβγδεζ漢字仮名交じり文한국어"


def _schema(schema: Any, values: Sequence[Any]) -> Case:
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema), ANY_STYLE), texts


def _pattern(pattern: str, texts: Sequence[str]) -> Case:
    return _schema(
        {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}, [{"x": t} for t in texts]
    )


def _format(name: str, texts: Sequence[str]) -> Case:
    return _schema({"type": "array", "items": {"type": "string", "format": name}}, [[t] for t in texts])


def _regex(pattern: str, texts: Sequence[str]) -> Case:
    return Constraint(ConstraintKind.REGEX, pattern), list(texts)


def _objects(keyword: str, count: int, tag: Callable[[int], dict[str, Any]], value: Callable[[int], Any]) -> Case:
    """A union of objects."""
    options = [
        {
            "type": "object",
            "properties": {**tag(i), f"size_{i % 7}": {"type": "integer"}, "note": {"type": "string"}},
            "required": [*tag(i)],
            "additionalProperties": False,
        }
        for i in range(count)
    ]
    values = [value(i) for i in (0, count // 2, count - 1)]
    return _schema({keyword: options}, values)


def _tagged(keyword: str, count: int) -> Case:
    return _objects(
        keyword,
        count,
        lambda i: {"type": {"const": f"kind_{i}"}, "id": {"type": "integer"}},
        lambda i: {"type": f"kind_{i}", "id": 5, f"size_{i % 7}": 12, "note": "short text"},
    )


def _named(count: int) -> Case:
    return _objects(
        "anyOf",
        count,
        lambda i: {f"field_{i}": {"type": "string"}, "id": {"type": "integer"}},
        lambda i: {"id": 7, "note": "short text", f"field_{i}": "some more text"},
    )


def _models(count: int) -> Case:
    """A discriminated union as pydantic writes it, nested in itself."""
    definitions: dict[str, Any] = {}
    for i in range(count):
        definitions[f"Model{i}"] = {
            "title": f"Model{i}",
            "type": "object",
            "properties": {
                "kind": {"const": f"model{i}", "title": "Kind", "type": "string"},
                "name": {"type": "string"},
                "child": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}], "default": None},
            },
            "required": ["kind", "name"],
        }
    references = [{"$ref": f"#/$defs/Model{i}"} for i in range(count)]
    mapping = {f"model{i}": f"#/$defs/Model{i}" for i in range(count)}
    definitions["Node"] = {"discriminator": {"mapping": mapping, "propertyName": "kind"}, "oneOf": references}
    value: Any = None
    for i in range(3):
        value = {"kind": f"model{(i * 17) % count}", "name": f"the {_WORDS[i]}", "child": value}
    return _schema({"$defs": definitions, "$ref": "#/$defs/Node"}, [value, {"name": "x", "kind": "model1"}])


def _overlapping(count: int) -> Case:
    options = [
        {"type": "object", "properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(count)
    ]
    return _schema({"oneOf": options}, [{"p3": 1, "other": "text"}, {"note": True, f"p{count - 1}": 77}])


def _ranges(count: int) -> Case:
    options = [{"type": "integer", "minimum": 10 * i, "maximum": 10 * i + 14} for i in range(count)]
    return _schema({"oneOf": options}, [5, 10 * count // 2 + 7, 10 * count - 3])


def _pattern_properties(count: int) -> Case:
    patterns = {f"^{_WORDS[i % len(_WORDS)][:3]}{i}_[a-z]+$": {"type": "integer"} for i in range(count)}
    values = [
        {f"{_WORDS[i % len(_WORDS)][:3]}{i}_{word}": i for i, word in enumerate(_WORDS) if i < count},
        {"free": "text"},
    ]
    return _schema({"type": "object", "patternProperties": patterns}, values)


def _suffix_properties(count: int) -> Case:
    patterns = {f"_{_WORDS[i % len(_WORDS)]}{i}$": {"type": "integer"} for i in range(count)}
    values = [{f"any_{_WORDS[i % len(_WORDS)]}{i}": i for i in range(min(count, 12))}, {"free name": "text"}]
    return _schema({"type": "object", "patternProperties": patterns}, values)


def _typed_additional() -> Case:
    names = {"propertyNames": {"pattern": "^[a-z][a-zA-Z0-9_]{0,62}$"}, "additionalProperties": {"type": "integer"}}
    return _schema({"type": "object", **names}, [{word + "Name_1": i for i, word in enumerate(_WORDS)}])


def _words(count: int, seed: int = 7) -> list[str]:
    rng = random.Random(seed)
    return sorted({"_".join(rng.choices(_WORDS, k=3)) + str(rng.randrange(100)) for _ in range(count)})


def _sentences(seed: int, length: int) -> str:
    rng = random.Random(seed)
    text = " ".join(rng.choices(_WORDS, k=length))
    return text[:length]


def _letters(length: int) -> str:
    rng = random.Random(length)
    return "".join(rng.choices(_LETTERS, k=length))


CASES: dict[str, Callable[[], Case]] = {
    "anyOf of 300 tagged objects": lambda: _tagged("anyOf", 300),
    "anyOf of 1,000 tagged objects": lambda: _tagged("anyOf", 1000),
    "anyOf of 300 objects of different names": lambda: _named(300),
    "oneOf of 100 tagged objects": lambda: _tagged("oneOf", 100),
    "oneOf of 100 overlapping objects": lambda: _overlapping(100),
    "oneOf of 100 overlapping ranges": lambda: _ranges(100),
    "discriminated union of 60 models": lambda: _models(60),
    "50 patternProperties": lambda: _pattern_properties(50),
    "200 patternProperties": lambda: _pattern_properties(200),
    "30 patternProperties by suffix": lambda: _suffix_properties(30),
    "propertyNames by pattern": _typed_additional,
    "pattern [a-z]{3,40}": lambda: _pattern("^[a-z]{3,40}$", ["abc", "internationalization", "orderpricetotal"]),
    "pattern [a-zA-Z ]{10,500}": lambda: _pattern("^[a-zA-Z ]{10,500}$", [_sentences(i, 90) for i in range(3)]),
    "pattern (ab|[a-z]{2,9}){3,60}": lambda: _pattern("^(ab|[a-z]{2,9}){3,60}$", ["internationalizationabab" * 3]),
    "pattern with maxLength 10,000": lambda: _schema(
        {"type": "string", "pattern": "^[A-Z][a-z]+( [a-z]+)*[.]$", "maxLength": 10_000},
        [_sentences(i, 120).capitalize().strip() + "." for i in range(3)],
    ),
    "pattern \\p{Lu}": lambda: _pattern("^\\p{Lu}+$", ["ORDER", _UPPER, "ÀÉTOTAL"]),
    "pattern \\p{L}{1,80}": lambda: _pattern("^\\p{L}{1,80}$", [_letters(60), _letters(20)]),
    "pattern \\p{Lu}\\p{Ll}*": lambda: _pattern(
        "^\\p{Lu}\\p{Ll}*( \\p{Lu}\\p{Ll}*)*$", ["Order Éclair Łódź Ωmega", "Иван Петров"]
    ),
    "pattern [^\\x00-\\x1f<>]{0,255}": lambda: _pattern(
        "^[^\\x00-\\x1f<>]{0,255}$", [_sentences(3, 150), _letters(70)]
    ),
    "format idn-email": lambda: _format("idn-email", ["anna.schmidt@bücher.example", "用户@例子.中国"]),
    "format email": lambda: _format("email", ["anna.schmidt@example.com", '"quoted name"@example.org']),
    "format idn-hostname": lambda: _format("idn-hostname", ["bücher.example", "例子.中国"]),
    "format hostname": lambda: _format("hostname", ["mail.example.com", "a-b-c.d-e.example"]),
    "format iri": lambda: _format("iri", ["https://例え.jp/道/ページ?q=検索#節", "http://example.com/path/to"]),
    "format uri": lambda: _format("uri", ["https://example.com:8080/a/b?c=d&e=f#g", "urn:isbn:0451450523"]),
    "format uri-template": lambda: _format("uri-template", ["https://example.com/{user}/items{?page,size}"]),
    "format ipv6": lambda: _format("ipv6", ["2001:db8:85a3::8a2e:370:7334", "::ffff:192.0.2.1"]),
    "format date-time": lambda: _format("date-time", ["2024-02-29T23:59:59.123Z", "1999-12-31T00:00:00+01:30"]),
    "format regex": lambda: _format("regex", ["^[a-z]{3,40}(foo|bar)*$", "\\d+(?=x)"]),
    "enum of 5,000 strings": lambda: _schema({"enum": _words(5000)}, _words(5000)[::1500]),
    "array of enum of 300 strings": lambda: _schema(
        {"type": "array", "items": {"enum": _words(300)}}, [_words(300)[::40]]
    ),
    "anyOf of enums and patterns": lambda: _schema(
        {
            "anyOf": [
                {"enum": _words(200)},
                {"type": "string", "pattern": "^x-[a-z]+$"},
                {"type": "string", "format": "uri"},
            ]
        },
        [_words(200)[50], "x-order", "https://example.com/a"],
    ),
    "allOf of 8 patterns": lambda: _schema(
        {"type": "string", "allOf": [{"pattern": word[:2]} for word in _WORDS[:8]]}, [" ".join(_WORDS[:8])]
    ),
    "not pattern": lambda: _schema({"type": "string", "not": {"pattern": "(foo|bar|password)"}}, [_sentences(5, 80)]),
    "regex [a-z]{3,40}": lambda: _regex("[a-z]{3,40}", ["internationalization", "orderpricetotal"]),
    "regex [a-zA-Z ]{100,5000}": lambda: _regex("[a-zA-Z ]{100,5000}", [_sentences(i, 200) for i in range(2)]),
    "regex .{1,2000}": lambda: _regex(".{1,2000}", [_sentences(4, 200), _letters(100)]),
    "regex (.{1,80}\\n){1,50}": lambda: _regex(
        "(.{1,80}\\n){1,50}", ["".join(_sentences(i, 60) + "\n" for i in range(4))]
    ),
    "regex (a|b|[a-z0-9]+)(-...){0,30}": lambda: _regex(
        "(a|b|[a-z0-9]+)(-[a-z0-9]+){0,30}", ["order-price-total-9-beta-a-b-42"]
    ),
    "regex of 1,000 words": lambda: _regex(
        "(" + "|".join(_words(1000)) + ")(, (" + "|".join(_words(1000)) + "))*", [", ".join(_words(1000)[::200])]
    ),
    "regex \\w+( \\w+)*": lambda: _regex("\\w+( \\w+)*", [_sentences(6, 100), _letters(30)]),
    "regex \\p{Lu}+": lambda: _regex("\\p{Lu}+", ["ORDER", _UPPER]),
    "regex (?i:...)": lambda: _regex(
        "(?i:select|insert|update) [\\p{L}\\d_]{1,64}(, [\\p{L}\\d_]{1,64})*",
        ["SELECT name, größe, value", "Insert Ωmega_1"],
    ),
    "regex ((a{1,20}b){1,20}c){1,20}": lambda: _regex(
        "((a{1,20}b){1,20}c){1,20}", [("a" * 9 + "b") * 5 + "c" + "ababc" * 4]
    ),
    "regex of markdown": lambda: _regex(
        "(# [^\\n]{1,100}\\n\\n)?((- |\\d+\\. )?[^\\n]{1,200}\\n)*",
        ["# " + _sentences(1, 40) + "\n\n" + "".join(f"- {_sentences(i, 50)}\n" for i in range(4))],
    ),
}
"""Cases by name, made on demand."""


def table(
    vocabulary: Vocabulary, tokenizer: Any, engines: dict[str, GrammarEngine], names: Sequence[str] = ()
) -> Iterator[str]:
    """The lines of the table, as they are measured."""
    columns = [f"{name}: {figure}" for name in engines for figure in ("first mask ms", "mask us mean, at most")]
    yield "| constraint | " + " | ".join(columns) + " |"
    yield "|---" * (1 + len(columns)) + "|"
    for name in names or list(CASES):
        constraint, texts = CASES[name]()
        encoded = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        cells = [cell for engine in engines.values() for cell in _measured(engine, constraint, encoded, vocabulary)]
        yield f"| {name.replace('|', '/')} | " + " | ".join(cells) + " |"


def _measured(
    engine: GrammarEngine,
    constraint: Constraint,
    encoded: Sequence[Sequence[int]],
    vocabulary: Vocabulary,
    repeats: int = 3,
) -> tuple[str, str]:
    """The time to the first mask, and the times of masks."""
    row = np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    first, rounds = [], []
    try:
        for _ in range(repeats):
            started = time.process_time_ns()
            grammar = engine.compile(constraint)
            grammar.matcher().fill_bitmask(row)
            first.append(time.process_time_ns() - started)
            if first[-1] > 1e9 and len(first) > 1:
                break
            times = []
            for tokens in encoded:
                matcher = grammar.matcher()
                for place, token in enumerate(tokens):
                    started = time.process_time_ns()
                    matcher.fill_bitmask(row)
                    times.append(time.process_time_ns() - started)
                    if not matcher.accept_token(token):
                        return f"{min(first) / 1e6:.1f}", f"rejects token {place}"
                if not matcher.is_accepting:
                    return f"{min(first) / 1e6:.1f}", "rejects the end"
            rounds.append(times)
    except GrammarError as error:
        return f"refused: {error}"[:40].replace("|", "/"), ""
    masks = np.array(rounds).min(axis=0) / 1e3
    return f"{min(first) / 1e6:.1f}", f"{masks.mean():.0f}, {masks.max():.0f}"
