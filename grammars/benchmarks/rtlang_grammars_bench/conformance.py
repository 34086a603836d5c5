"""Measures how exactly schemas are enforced: `python -m rtlang_grammars_bench.conformance --schemas FILE --suite FILE`.

Every schema is compiled and every instance followed byte by byte. A valid instance must be accepted in every style that the options allow
(property order, spellings of numbers, blanks, escapes), an invalid one in none. Instances of keywords that are checked after generation are
judged as in a runtime: the mask may accept, then the finished value is validated. Files are JSON lines (gzip or not) of objects with
`schema` and `tests`, each test with `data` and `valid`; those of a suite name their draft in `set` and their keyword in `keyword`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import KeywordStatus
from rtlang_grammars.schema.value_checks import ValueCheck
from rtlang_grammars.spec.constraint import ANY_STYLE, Constraint, ConstraintKind, JsonStyle
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.keyword_table import keyword_table

_DIALECTS = {
    "draft4": "draft-04",
    "draft6": "draft-06",
    "draft7": "draft-07",
    "draft2019-09": "2019-09",
    "draft2020-12": "2020-12",
}
_END = 256


def _shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(name, _shuffled(item, rng)) for name, item in value.items()]
        rng.shuffle(items)
        return dict(items)
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


STYLES: dict[str, Callable[[Any], str]] = {
    "plain": lambda value: json.dumps(value, ensure_ascii=False),
    "compact": lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    "ascii": lambda value: json.dumps(value),
    "indented": lambda value: json.dumps(value, ensure_ascii=False, indent=2),
    "any order": lambda value: json.dumps(_shuffled(value, random.Random(0)), ensure_ascii=False),
}
"""Styles of one value, all of which must be judged alike."""


@dataclass(slots=True)
class Tally:
    """Results for a file.

    Attributes:
        counts: schemas and instances by outcome.
        refusals: reasons of refused schemas.
        checked: places checked after generation, by keyword.
        narrowed: places where valid values are left out, by keyword and reason.
        wrong: every instance that was judged wrongly.
        seconds: CPU time of each compile.
    """

    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    narrowed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


class Judge:
    """Compiles schemas and follows instances; one byte is one token."""

    def __init__(self, style: JsonStyle = ANY_STYLE) -> None:
        """`style`: how values are written; by default in every way."""
        self._style = style
        texts = (*(bytes([byte]) for byte in range(256)), b"<end>")
        vocabulary = Vocabulary(texts, frozenset({_END}), frozenset({_END}), len(texts))
        RtlangBackend.create(vocabulary)  # so that no compile waits for native code
        self._engine = VocabularyIndex(vocabulary)
        self._backends: dict[SchemaOptions, RtlangBackend] = {}

    def compile(self, schema: Any, options: SchemaOptions) -> RtlangGrammar:
        """Compile a schema.

        Raises:
            GrammarError: it is refused.
        """
        backend = self._backends.get(options)
        if backend is None:
            backend = self._backends[options] = RtlangBackend(self._engine, schema_options=options, allow_checked=True)
        return backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema), self._style))


def accepts(grammar: RtlangGrammar, text: str) -> bool:
    """Whether the masks accept a whole text."""
    return grammar.matcher().accepts([*text.encode("utf-8", "surrogatepass"), _END])


def options_of(entry: dict[str, Any]) -> SchemaOptions:
    """Options to read an entry in its draft; in the suite's keyword `format` formats are annotations."""
    return SchemaOptions(
        default_dialect=_DIALECTS.get(str(entry.get("set"))), assert_formats=entry.get("keyword") != "format"
    )


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    yield from (json.loads(line) for line in text.split("\n") if line.strip())


def judge_entry(judge: Judge, entry: dict[str, Any], tally: Tally) -> None:
    """Compile one schema and judge its instances."""
    options, name = options_of(entry), str(entry.get("id", ""))
    tally.counts["schemas"] += 1
    started = time.process_time()
    grammar: RtlangGrammar | None = None
    try:
        grammar = judge.compile(entry["schema"], options)
    except GrammarError as error:
        if not error.reason.startswith("nothing satisfies"):  # a valid outcome: no instance is valid
            tally.counts["refused"] += 1
            tally.refusals[error.reason[:90]] += 1
            return
    finally:
        tally.seconds.append(time.process_time() - started)
    tally.counts["compiled"] += 1
    if grammar is not None and grammar.report is not None:
        tally.checked.update(each.keyword for each in grammar.report.with_status(KeywordStatus.CHECKED))
        tally.narrowed.update(
            f"{each.keyword}: {each.reason}"
            for each in grammar.report.with_status(KeywordStatus.ENFORCED)
            if each.reason
        )
    check = None if grammar is None else grammar.value_check
    assert check is None or isinstance(check, ValueCheck)
    tally.counts["exact"] += check is None
    is_right = True
    for test in entry["tests"]:
        is_right &= _judge_instance(grammar, check, test, name, tally)
    tally.counts["fully right"] += is_right


def _judge_instance(
    grammar: RtlangGrammar | None, check: ValueCheck | None, test: dict[str, Any], name: str, tally: Tally
) -> bool:
    value, valid = test["data"], bool(test["valid"])
    verb = "valid" if valid else "invalid"
    tally.counts[verb] += 1
    by_mask = {style: grammar is not None and accepts(grammar, write(value)) for style, write in STYLES.items()}
    passes = {style: accepted and (check is None or check.error(value) is None) for style, accepted in by_mask.items()}
    if not valid and any(by_mask.values()) and not any(passes.values()):
        tally.counts["invalid found by the check"] += 1
    wrong = [style for style, passed in passes.items() if passed is not valid]
    if wrong:
        tally.counts[f"{verb} {'rejected' if valid else 'accepted'}"] += 1
        text = json.dumps(value, ensure_ascii=False)[:100]
        tally.wrong.append(f"{verb} decided wrongly ({', '.join(wrong)}) {name} {test.get('what', '')}: {text}")
    return not wrong


def judge_file(path: Path, judge: Judge | None = None) -> Tally:
    """Results for all entries of one file."""
    judge, tally = judge or Judge(), Tally()
    for entry in entries(path):
        judge_entry(judge, entry, tally)
    return tally


_ROWS = (
    ("schemas", "schemas"),
    ("compiled", "compiled"),
    ("refused", "refused"),
    ("exact", "compiled, with nothing left to be checked"),
    ("fully right", "fully right: every instance decided rightly"),
    ("valid", "valid instances"),
    ("valid rejected", "of these rejected, in any style"),
    ("invalid", "invalid instances"),
    ("invalid found by the check", "of these found only by the check of the finished value"),
    ("invalid accepted", "of these accepted"),
)


def markdown(tallies: dict[str, Tally]) -> str:
    """The results as a table with a column for each file."""
    lines = ["| | " + " | ".join(tallies) + " |", "|---|" + "---|" * len(tallies)]
    for key, label in _ROWS:
        lines.append(f"| {label} | " + " | ".join(str(tally.counts[key]) for tally in tallies.values()) + " |")
    return "\n".join(lines)


def details(name: str, tally: Tally) -> str:
    """Details that the table omits."""
    times = sorted(tally.seconds) or [0.0]
    p50, p99 = (1000 * times[int(len(times) * share)] for share in (0.5, 0.99))
    lines = [f"{name}: compile ms p50 {p50:.2f} p99 {p99:.1f} max {1000 * times[-1]:.1f} (CPU, byte vocabulary)"]
    lines += [f"  refused {count}: {reason}" for reason, count in tally.refusals.most_common()]
    lines += [f"  to be checked {count}: {keyword}" for keyword, count in tally.checked.most_common()]
    lines += [f"  narrower {count}: {what}" for what, count in tally.narrowed.most_common()]
    return "\n".join([*lines, *(f"  {each}" for each in tally.wrong)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 where an instance was judged wrongly."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--schemas", type=Path, nargs="*", default=[], help="files of schemas with instances")
    parser.add_argument("--suite", type=Path, nargs="*", default=[], help="files of the JSON Schema Test Suite")
    parser.add_argument("--markdown", action="store_true", help="only tables, with that of the keywords")
    given = parser.parse_args(arguments)
    missing = [str(path) for path in (*given.schemas, *given.suite) if not path.is_file()]
    if missing:
        parser.error(f"there is no file {', '.join(missing)}")
    judge = Judge()
    tallies = {path.parent.name or path.name: judge_file(path, judge) for path in (*given.schemas, *given.suite)}
    parts = [markdown(tallies)] if tallies else []
    parts.append(keyword_table()) if given.markdown else parts.extend(details(*each) for each in tallies.items())
    sys.stdout.write("\n\n".join(parts) + "\n")
    return 1 if any(tally.wrong for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
