"""Masks of programming languages: `python -m rtlang_grammars_bench.lexer_speed --tokenizer FILE`.

For each language in `languages`, a grammar and texts. Each engine compiles the grammar and follows 16 programs, which are the texts with
other names, numbers and strings, one after another, on the CPU clock of one thread. Engines: `longest` (the default lexer), `anywhere` (no
lexer) and, where installed, llguidance. The first program meets a grammar that nothing was cached for. Beside the time to the first mask
stands that of a process that finds the grammar on disk. Process settings are those of a serving runtime (`process_settings`).
"""

from __future__ import annotations

import argparse
import platform
import random
import re
import tempfile
import time
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage.grammar_store import GrammarStore
from rtlang_grammars_bench.process_settings import serving
from rtlang_grammars_bench.rivals import GrammarEngine, create_engine
from rtlang_grammars_bench.speed import read_vocabulary

LANGUAGES = ("sql", "c", "python", "typescript")
NUM_PROGRAMS = 16


@dataclass(slots=True)
class Run:
    """What one engine needed for one language. Times in microseconds of CPU.

    Attributes:
        compile_us, first_us: compile, and the first mask after it.
        masks: times of masks, by program.
        accepted: programs that were complete at their end.
    """

    compile_us: float
    first_us: float
    masks: list[list[float]]
    accepted: int


def grammar_of(language: str) -> str:
    """The grammar of a language."""
    return _file(f"{language}.lark")


def programs(language: str, count: int = NUM_PROGRAMS) -> list[str]:
    """Texts of a language: the first few as they are, the others with other names, numbers and strings."""
    texts = _file(f"{language}.txt").split("---\n")
    keywords = set(re.findall(r'"([A-Za-z]+)"', grammar_of(language)))
    return [
        text if number < len(texts) else _varied(text, keywords, random.Random(number))
        for number, text in ((number, texts[number % len(texts)]) for number in range(count))
    ]


def _varied(text: str, keywords: set[str], rng: random.Random) -> str:
    kept = {each.lower() for each in keywords}
    syllables = ("ta", "re", "mi", "lo", "ku", "an", "es")

    def other(found: re.Match[str]) -> str:
        word = found.group()
        if word[0].isdigit():
            return str(rng.randint(1, 999))
        if word.lower() in kept or word in ("f", "rb", "e2", "e3"):
            return word
        return "v" + "".join(rng.choice(syllables) for _ in range(rng.randint(1, 3)))

    return re.sub(r"(?<![\w.'\"\\%/])[A-Za-z_]\w*|(?<![\w.])\d+(?![\w.])", other, text)


def measure(backend: GrammarEngine, constraint: Constraint, vocabulary: Vocabulary, encoded: list[list[int]]) -> Run:
    """Compile and follow programs.

    Raises:
        GrammarError: the backend refuses the grammar.
    """
    row = np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    started = time.thread_time_ns()
    grammar = backend.compile(constraint)
    compiled = time.thread_time_ns()
    grammar.matcher().fill_bitmask(row)
    run = Run((compiled - started) / 1e3, (time.thread_time_ns() - compiled) / 1e3, [], 0)
    for tokens in encoded:
        matcher, times = grammar.matcher(), []
        for token_id in tokens:
            started = time.thread_time_ns()
            matcher.fill_bitmask(row)
            times.append((time.thread_time_ns() - started) / 1e3)
            if not matcher.accept_token(token_id):
                break
        else:
            run.accepted += matcher.is_accepting
        run.masks.append(times)
    return run


def table(vocabulary: Vocabulary, tokenizer: Any, num_programs: int = NUM_PROGRAMS) -> list[str]:
    """The report, in Markdown."""
    lines = [
        "| language | engine | first mask ms: cold / on disk | first program: mean / p50 / max us "
        "| from the third: mean / max us | accepted |",
        "|---|---|---|---|---|---|",
    ]
    engines = [("longest", "rtlang", Lexer.LONGEST), ("anywhere", "rtlang", Lexer.ANYWHERE)]
    if find_spec("llguidance") is not None:
        engines.append(("llguidance", "llguidance", Lexer.LONGEST))
    backends = {name: create_engine(name, vocabulary) for name in {each[1] for each in engines}}
    warm_up = Constraint(ConstraintKind.LARK, 'start: A "b"\nA: /a+/')
    for backend in backends.values():
        measure(backend, warm_up, vocabulary, [tokenizer.encode("aab").ids])
    for language in LANGUAGES:
        encoded = [tokenizer.encode(text).ids for text in programs(language, num_programs)]
        for name, backend_name, lexer in engines:
            constraint = Constraint(ConstraintKind.LARK, grammar_of(language), lexer=lexer)
            try:
                with serving():
                    run = measure(backends[backend_name], constraint, vocabulary, encoded)
            except GrammarError as error:
                lines.append(f"| {language} | {name} | refused: {error} | | | |")
                continue
            stored = f" / {_stored_us(vocabulary, constraint) / 1e3:.1f}" if name == "longest" else ""
            first, later = run.masks[0], [each for times in run.masks[2:] for each in times] or [0.0]
            lines.append(
                f"| {language} | {name} | {(run.compile_us + run.first_us) / 1e3:.1f}{stored} "
                f"| {np.mean(first):.0f} / {np.median(first):.0f} / {max(first):.0f} "
                f"| {np.mean(later):.0f} / {max(later):.0f} | {run.accepted} of {len(encoded)} |"
            )
    return lines


def _stored_us(vocabulary: Vocabulary, constraint: Constraint) -> float:
    """Time to the first mask of a grammar that is on disk."""
    with tempfile.TemporaryDirectory() as folder:
        store = GrammarStore(Path(folder))
        RtlangBackend.create(vocabulary, store=store).compile(constraint)
        store.flush()
        backend = RtlangBackend.create(vocabulary, store=GrammarStore(Path(folder)))
        with serving():
            run = measure(backend, constraint, vocabulary, [])
    return run.compile_us + run.first_us


def _file(name: str) -> str:
    return (resources.files("rtlang_grammars_bench") / "languages" / name).read_text(encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json of a byte-level tokenizer")
    parser.add_argument("--programs", type=int, default=NUM_PROGRAMS, help="programs of each language")
    options = parser.parse_args(arguments)
    vocabulary, tokenizer = read_vocabulary(options.tokenizer)
    print(f"{platform.processor() or platform.machine()}, {vocabulary.vocab_size} tokens\n")
    print("\n".join(table(vocabulary, tokenizer, options.programs)))


if __name__ == "__main__":
    main()
