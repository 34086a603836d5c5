"""Masks of grammars: `python -m rtlang_grammars_bench.lexer_speed --tokenizer FILE [--gbnf FOLDER] [--texts FOLDER]`.

Measured are the languages in `languages` with and without a lexer, the library grammars, and the GBNF files of a folder (llama.cpp's, for
example). Each engine compiles a grammar and follows new texts, one after another, on the CPU clock of one thread; masks of a text count up
to the first token that the engine refuses. The texts of `languages` have other names, numbers and strings in each; others come from
`grammar_texts`. The first text meets a grammar that nothing was cached for. Beside the time to the first mask stands that of a process that
finds the grammar on disk. Process settings are those of a serving runtime (`process_settings`).
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import random
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.context_free.lark_library import LIBRARY, library_constraint
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage.grammar_store import GrammarStore
from rtlang_grammars_bench.grammar_texts import random_walks, texts_of
from rtlang_grammars_bench.process_settings import serving
from rtlang_grammars_bench.rivals import GrammarEngine, create_engine
from rtlang_grammars_bench.speed import read_vocabulary

LANGUAGES = ("sql", "c", "python", "typescript")
NUM_TEXTS = 16


@dataclass(frozen=True, slots=True)
class Case:
    """A grammar to be measured.

    Attributes:
        name: for the report.
        constraint: the grammar.
        texts: to be followed; without any, `num_walks` are sampled.
        num_walks: see `texts`.
    """

    name: str
    constraint: Constraint
    texts: list[str]
    num_walks: int


@dataclass(slots=True)
class Run:
    """What one engine needed for one grammar. Times in microseconds of CPU.

    Attributes:
        compile_us, first_us: compile, and the first mask after it.
        masks: times of masks, by text.
        accepted: texts that were complete at their end.
    """

    compile_us: float
    first_us: float
    masks: list[list[float]]
    accepted: int


def grammar_of(language: str) -> str:
    """The grammar of a language."""
    return _file(f"{language}.lark")


def programs(language: str, count: int = NUM_TEXTS) -> list[str]:
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
    """Compile and follow texts.

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


def table(vocabulary: Vocabulary, tokenizer: Any, cases: Iterable[Case], rivals: Sequence[str] = ()) -> list[str]:
    """The report, in Markdown. Cases without texts are measured with random walks."""
    backends = {name: create_engine(name, vocabulary) for name in ("rtlang", *rivals)}
    for kind, source in ((ConstraintKind.LARK, 'start: A "b"\nA: /a+/'), (ConstraintKind.GBNF, 'root ::= "a"+ "b"')):
        for backend in backends.values():
            with contextlib.suppress(GrammarError):
                measure(backend, Constraint(kind, source), vocabulary, [tokenizer.encode("aab").ids])
    lines = [
        "| grammar | engine | compile ms | first mask ms: cold / on disk | first text: mean / max us "
        "| from the third text: mean / max us | all: p50 / p99 / max us | masks | accepted |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        texts = case.texts or random_walks(RtlangBackend.create(vocabulary).compile(case.constraint), case.num_walks)
        encoded = [tokenizer.encode(text).ids for text in texts]
        for name, backend in backends.items():
            title = f"| {case.name}{'' if case.texts else ' (walks)'} | {name}"
            try:
                with serving():
                    run = measure(backend, case.constraint, vocabulary, encoded)
                    stored = _stored_us(vocabulary, case.constraint) if name == "rtlang" else None
            except GrammarError as error:
                lines.append(f"{title} | refused: {str(error)[:90]} | | | | | | |")
                continue
            lines.append(f"{title} | {_figures(run, stored)} | {run.accepted} of {len(encoded)} |")
    return lines


def _figures(run: Run, stored_us: float | None) -> str:
    masks = np.array([each for times in run.masks for each in times] or [0.0])
    first = run.masks[0] if run.masks and run.masks[0] else [0.0]
    later = [each for times in run.masks[2:] for each in times] or [0.0]
    on_disk = "" if stored_us is None else f" / {stored_us / 1e3:.1f}"
    return (
        f"{run.compile_us / 1e3:.1f} | {run.first_us / 1e3:.1f}{on_disk} | {np.mean(first):.0f} / {max(first):.0f} "
        f"| {np.mean(later):.0f} / {max(later):.0f} "
        f"| {np.median(masks):.0f} / {np.quantile(masks, 0.99):.0f} / {masks.max():.0f} | {len(masks)}"
    )


def _stored_us(vocabulary: Vocabulary, constraint: Constraint) -> float:
    """Time to the first mask of a grammar that is on disk."""
    with tempfile.TemporaryDirectory() as folder:
        store = GrammarStore(Path(folder))
        RtlangBackend.create(vocabulary, store=store).compile(constraint)
        store.flush()
        backend = RtlangBackend.create(vocabulary, store=GrammarStore(Path(folder)))
        run = measure(backend, constraint, vocabulary, [])
    return run.compile_us + run.first_us


def _file(name: str) -> str:
    return (resources.files("rtlang_grammars_bench") / "languages" / name).read_text(encoding="utf-8")


def cases_of(num_texts: int = NUM_TEXTS, gbnf: Path | None = None, texts: Path | None = None) -> Iterator[Case]:
    """The languages, the library grammars, and the GBNF files of a folder.

    Args:
        texts: see `grammar_texts.texts_of`.
    """
    for name in LANGUAGES:
        for lexer in (Lexer.LONGEST, Lexer.ANYWHERE):
            constraint = Constraint(ConstraintKind.LARK, grammar_of(name), lexer=lexer)
            yield Case(f"{name} ({lexer})", constraint, programs(name, num_texts), num_texts)
    for name in LIBRARY:
        yield Case(f"library {name}", library_constraint(name), texts_of(name, num_texts, texts), num_texts)
    for path in sorted(gbnf.glob("*.gbnf")) if gbnf is not None else ():
        constraint = Constraint(ConstraintKind.GBNF, path.read_text(encoding="utf-8"))
        yield Case(path.name, constraint, texts_of(path.stem, num_texts, texts), num_texts)


def main(arguments: list[str] | None = None) -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json of a byte-level tokenizer")
    parser.add_argument("--texts", type=Path, help="folder with texts, in a folder for each grammar")
    parser.add_argument("--gbnf", type=Path, help="folder of GBNF files to be measured, too")
    parser.add_argument("--num-texts", type=int, default=NUM_TEXTS, help="texts of each grammar")
    parser.add_argument("--only", default="", help="measure grammars whose names match this regular expression")
    parser.add_argument(
        "--engines", nargs="*", help="rivals; by default those of llguidance and xgrammar that are installed"
    )
    options = parser.parse_args(arguments)
    rivals = (
        [name for name in ("llguidance", "xgrammar") if find_spec(name)] if options.engines is None else options.engines
    )
    vocabulary, tokenizer = read_vocabulary(options.tokenizer)
    print(f"{platform.processor() or platform.machine()}, {vocabulary.vocab_size} tokens\n")
    cases = cases_of(options.num_texts, options.gbnf, options.texts)
    chosen = [case for case in cases if re.search(options.only, case.name)]
    print("\n".join(table(vocabulary, tokenizer, chosen, rivals)))


if __name__ == "__main__":
    main()
