"""Masks of tool calls whose strings are raw text: `python -m rtlang_grammars_bench.tool_speed --tokenizer FILE`.

Formats that write strings as raw text up to a closing tag are compared with one that writes JSON (hermes), in turn and in one process, on
the CPU clock of one thread. For each set of tools, the same calls are written in each format and followed token by token; the first call
meets a grammar that nothing was cached for. Each set is measured several times with new grammars. Process settings are those of a serving
runtime (`process_settings`).
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.description import ArgumentStyle
from rtlang_grammars.formats.parsing import ToolCall
from rtlang_grammars.formats.rendering import rendered_calls
from rtlang_grammars.formats.tool_grammar import tool_grammar
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.process_settings import serving
from rtlang_grammars_bench.speed import read_vocabulary

BASELINE = "hermes"
RAW_FORMATS = tuple(name for name, each in FORMATS.items() if each.arguments is ArgumentStyle.TAGGED)
NUM_CALLS, NUM_REPEATS = 6, 3

_CODE = (
    "def area(width: float, height: float) -> float:\n    if width < 0:\n        raise ValueError('no')\n    return width\n",
    '<ul class="menu">\n  <li><a href="/home">Home</a></li>\n  <li>Prices &lt; 10 €</li>\n</ul>\n',
    "for (let i = 0; i < rows.length; i++) {\n  total += rows[i] >> 1;\n}\n// </parameters> is no end\n",
    "SELECT name, COUNT(*) FROM orders WHERE total >= 10 AND note <> '' GROUP BY name;\n",
    "Größe: 10 µm → 東京タワー, naïve café 🙂\n\n- one\n- two\n",
)
_WORDS = ("report", "draft", "summary", "orders", "notes", "api", "main", "config", "weekly", "index")
_STRING: dict[str, Any] = {"type": "string"}
_PAIR, _KINDS = {"field": _STRING, "value": _STRING}, ("string", "integer")


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Tools, and calls of them.

    Attributes:
        tools: in the form of the OpenAI API.
        calls: name and arguments.
    """

    tools: list[dict[str, Any]]
    calls: list[ToolCall]


@dataclass(slots=True)
class Times:
    """Times of masks in microseconds of CPU, and calls by outcome."""

    masks: list[float] = field(default_factory=list)
    num_accepted: int = 0
    num_calls: int = 0


def tool_sets(seed: int = 0) -> dict[str, ToolSet]:
    """The sets by name."""
    rng = random.Random(seed)

    def words(count: int, joint: str = " ") -> str:
        return joint.join(rng.choice(_WORDS) for _ in range(count))

    def code(count: int = 2) -> str:
        return "".join(rng.choice(_CODE) for _ in range(count))

    long_text = {"type": "string", "minLength": 20, "maxLength": 4000}
    sets: dict[str, tuple[dict[str, dict[str, Any]], Any]] = {
        "raw strings": ({"path": _STRING, "content": _STRING}, lambda: {"path": words(2, "/") + ".py", "content": code(3)}),
        "lengths": (
            {"title": {"type": "string", "minLength": 1, "maxLength": 60}, "body": long_text, "tag": {"type": "string", "maxLength": 8}},
            lambda: {"title": words(3), "body": code(2), "tag": words(1)},
        ),
        "patterns": (
            {
                "day": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"},
                "name": {"type": "string", "pattern": "^[a-z_][a-z0-9_]*$"},
                "link": {"type": "string", "pattern": "^https?://"},
                "line": {"type": "string", "pattern": "^[^\\n]*$", "maxLength": 120},
            },
            lambda: {"day": f"20{rng.randint(10, 30)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}", "name": words(3, "_"),
                     "link": f"https://example.org/{words(4, '/')}?q=<{words(1)}>", "line": words(6)},
        ),
        "enums and formats": (
            {
                "unit": {"enum": ["celsius", "fahrenheit", "kelvin"]},
                "when": {"type": "string", "format": "date-time"},
                "mail": {"type": "string", "format": "email"},
                "id": {"type": "string", "format": "uuid"},
                "note": {"type": ["string", "null"]},
            },
            lambda: {"unit": rng.choice(["celsius", "kelvin"]), "when": f"2031-04-1{rng.randint(0, 9)}T10:00:00Z",
                     "mail": f"{words(2, '.')}@example.com", "id": "0b0e8f4e-3c1d-4c39-9a53-0c2f1a4b5d6e", "note": words(8)},
        ),
        "many parameters": (
            {f"{name}_{kind}": {"type": kind} for name in _WORDS for kind in _KINDS},
            lambda: {f"{name}_{kind}": words(5) if kind == "string" else rng.randint(0, 9999) for name in _WORDS for kind in _KINDS},
        ),
        "nested": (
            {"query": _STRING, "filters": {"type": "array", "items": {"type": "object", "properties": _PAIR}}},
            lambda: {"query": words(6), "filters": [{"field": words(1), "value": words(3)} for _ in range(3)]},
        ),
    }  # fmt: skip
    made = {
        name: _set([("run", properties)], lambda _, values=values: values())
        for name, (properties, values) in sets.items()
    }
    many = [
        (f"{word}_{other}", {"text": _STRING, other: _STRING, "count": {"type": "integer"}})
        for word in _WORDS
        for other in _WORDS[:4]
    ]
    made["many tools"] = _set(
        many, lambda properties: {name: 7 if name == "count" else words(6) for name in properties}, rng
    )
    return made


def _set(tools: Sequence[tuple[str, Mapping[str, Any]]], values: Any, rng: random.Random | None = None) -> ToolSet:
    listed: list[dict[str, Any]] = []
    for name, properties in tools:
        parameters = {"type": "object", "properties": dict(properties), "required": [*properties]}
        listed.append({"type": "function", "function": {"name": name, "parameters": parameters}})
    called = [tools[0] if rng is None else rng.choice(list(tools)) for _ in range(NUM_CALLS)]
    return ToolSet(listed, [ToolCall(name, values(properties)) for name, properties in called])


def measure(
    backend: RtlangBackend, format_name: str, tools: ToolSet, vocabulary: Vocabulary, tokenizer: Any, to: Times
) -> None:
    """Compile the tools for a format, follow the calls and add the times."""
    grammar = backend.compile(tool_grammar(format_name, tools.tools, tool_choice="required", reasoning="forbidden"))
    row = np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    for call in tools.calls:
        matcher = grammar.matcher()
        text = "".join(piece for piece, _ in rendered_calls(format_name, [call]))
        to.num_calls += 1
        for token_id in tokenizer.encode(text, add_special_tokens=False).ids:
            started = time.thread_time_ns()
            matcher.fill_bitmask(row)
            to.masks.append((time.thread_time_ns() - started) / 1e3)
            if not matcher.accept_token(token_id):
                break
        else:
            to.num_accepted += matcher.is_accepting


def table(vocabulary: Vocabulary, tokenizer: Any, num_repeats: int = NUM_REPEATS) -> list[str]:
    """The report, in Markdown."""
    names, sets = (BASELINE, *RAW_FORMATS), tool_sets()
    backend = RtlangBackend.create(vocabulary)
    found = {(each, name): Times() for each in sets for name in names}
    with serving():
        for name in names:
            measure(backend, name, sets["raw strings"], vocabulary, tokenizer, Times())  # compiles native code
        for _ in range(num_repeats):
            for each, tools in sets.items():
                for name in names:
                    measure(backend, name, tools, vocabulary, tokenizer, found[each, name])
    lines = [
        "| tools | format | mean | p50 | p99 | max us | p99 to hermes | masks | accepted |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        found["all", name] = Times(
            [time_us for each in sets for time_us in found[each, name].masks],
            sum(found[each, name].num_accepted for each in sets),
            sum(found[each, name].num_calls for each in sets),
        )
    for each in (*sets, "all"):
        baseline = float(np.percentile(found[each, BASELINE].masks, 99))
        for name in names:
            times = found[each, name]
            p50, p99 = np.percentile(times.masks, [50, 99])
            lines.append(
                f"| {each} | {name} | {np.mean(times.masks):.0f} | {p50:.0f} | {p99:.0f} | {max(times.masks):.0f} | {p99 / baseline:.1f} "
                f"| {len(times.masks)} | {times.num_accepted} of {times.num_calls} |"
            )
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json of a byte-level tokenizer")
    parser.add_argument(
        "--repeats", type=int, default=NUM_REPEATS, help="measurements of each set, each with new grammars"
    )
    options = parser.parse_args(arguments)
    vocabulary, tokenizer = read_vocabulary(options.tokenizer)
    print(f"{platform.processor() or platform.machine()}, {vocabulary.vocab_size} tokens\n")
    print("\n".join(table(vocabulary, tokenizer, options.repeats)))


if __name__ == "__main__":
    main()
