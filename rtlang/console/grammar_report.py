"""`rtlang grammar check`: reports what a constraint in a file allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang.model.loader import load_tokenizer, model_directory
from rtlang.model.loading.model_config import ModelConfig
from rtlang_grammars import Constraint, ConstraintKind, GrammarError, JsonStyle, Vocabulary
from rtlang_grammars.api.inspection import check, inspect, read_constraint
from rtlang_grammars.schema.reading.report import KeywordStatus, Report

MAX_LINES = 40
"""Number of report lines shown by default."""
MAX_LETTERS = 2000
"""Number of characters shown of each sample."""


def check_grammar(
    file: Path,
    kind: ConstraintKind | None,
    style: JsonStyle,
    config: RuntimeConfig,
    *,
    num_samples: int,
    seed: int,
    shows_all: bool,
) -> Iterator[str]:
    """Describe the constraint in `file`, line by line, with the vocabulary of the model of `config`.

    Raises:
        CommandError: the file cannot be read or the constraint cannot be compiled; gives the location.
        RtlangError: the model's tokenizer cannot be loaded.
    """
    try:
        found = read_constraint(file, kind)
        constraint = Constraint(found.kind, found.source, style)
        check(constraint)  # report mistakes before loading the tokenizer, which takes seconds
        vocabulary = _vocabulary(config)
        seen = inspect(constraint, vocabulary, num_samples=num_samples, seed=seed)
    except GrammarError as error:
        place = f"{file}: " if not str(error).startswith(str(file)) else ""
        raise CommandError(f"{place}{error}") from None
    yield f"kind        {constraint.kind}, {len(constraint.source.encode())} bytes"
    yield f"compiled    in {seen.compile_ms:.1f} ms: {seen.num_states} states, {seen.num_rows} rows, {seen.size_bytes >> 10} KiB"
    if seen.report is not None:
        yield from _report_lines(seen.report, shows_all)
    yield "shortest    " + ("not found" if seen.shortest is None else _shown(seen.shortest))
    for text in seen.samples:
        yield f"sample      {_shown(text)}"
    if seen.masks is not None:
        masks = seen.masks
        least, median, most = masks.allowed
        yield f"masks       {masks.count} over {vocabulary.vocab_size} tokens: {least} to {most} allowed, median {median}"
        yield "            us a mask: mean {:.0f}, p50 {:.0f}, p99 {:.0f}, max {:.0f}".format(*masks.microseconds)
        if masks.num_bytes:
            yield f"forced      {100 * masks.num_forced_bytes / masks.num_bytes:.0f} % of the bytes of the samples"


def _report_lines(report: Report, shows_all: bool) -> Iterator[str]:
    entries = list(report.entries)
    counts = {each: sum(entry.status is each for entry in entries) for each in KeywordStatus}
    yield f"keywords    {report.dialect}: " + ", ".join(f"{count} {each}" for each, count in counts.items())
    entries.sort(
        key=lambda entry: entry.status is KeywordStatus.ENFORCED and not entry.reason
    )  # unenforced keywords first
    for entry in entries if shows_all else entries[:MAX_LINES]:
        reason = f": {entry.reason}" if entry.reason else ""
        yield f"  {entry.status:<9} {entry.pointer} {entry.keyword}{reason}"
    if len(entries) > MAX_LINES and not shows_all:
        yield f"  {len(entries) - MAX_LINES} more (use --all)"


def _shown(text: str) -> str:
    """The text on one line, truncated if it is long."""
    if len(text) > MAX_LETTERS:
        return f"{_shown(text[:MAX_LETTERS])}... ({len(text)} characters)"
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _vocabulary(config: RuntimeConfig) -> Vocabulary:
    directory = model_directory(config.model)
    vocab_size = ModelConfig.from_pretrained(directory).vocab_size
    return load_tokenizer(directory).vocabulary(vocab_size)
