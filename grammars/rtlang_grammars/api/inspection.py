"""Inspects a constraint: its keywords, the size of its tables, sample texts and the cost of masks."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.completion.token_budget import TokenBudget
from rtlang_grammars.lowering.compilation import check_constraint
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Limits
from rtlang_grammars.spec.vocabulary import Vocabulary

KINDS_BY_SUFFIX = {
    ".json": ConstraintKind.JSON_SCHEMA,
    ".schema": ConstraintKind.JSON_SCHEMA,
    ".lark": ConstraintKind.LARK,
    ".gbnf": ConstraintKind.GBNF,
    ".ebnf": ConstraintKind.EBNF,
    ".regex": ConstraintKind.REGEX,
    ".re": ConstraintKind.REGEX,
    ".choices": ConstraintKind.CHOICE,
    ".structure": ConstraintKind.STRUCTURE,
}

_MAX_TOKENS = 60
_MAX_LONGEST = 1 << 14
"""Maximum length, in tokens, of a completion that is searched for."""
_LIKED = frozenset(b" abcdefghijklmnopqrstuvwxyz0123456789")


@dataclass(frozen=True, slots=True)
class MaskFigures:
    """Statistics of the masks filled while sampling.

    Attributes:
        count: number of masks filled.
        allowed: number of allowed tokens per mask: minimum, median, maximum.
        microseconds: time to fill one mask: mean, median, 99th percentile, maximum.
        num_forced_bytes, num_bytes: number of forced bytes, and of all bytes, in the samples.
    """

    count: int
    allowed: tuple[int, int, int]
    microseconds: tuple[float, float, float, float]
    num_forced_bytes: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of an inspection.

    Attributes:
        compile_ms: time from the source to tables.
        num_states, num_rows, size_bytes: size of the tables after sampling.
        report: status of every keyword; None for constraints without schemas.
        shortest: a short text, not necessarily the shortest, with special tokens under their names; None if none was found.
        samples: further texts.
        masks: None if no mask was filled.
    """

    compile_ms: float
    num_states: int
    num_rows: int
    size_bytes: int
    report: Report | None
    shortest: str | None
    samples: tuple[str, ...]
    masks: MaskFigures | None


def read_constraint(path: Path, kind: ConstraintKind | None = None) -> Constraint:
    """Read a constraint from a file; without `kind`, the suffix of the file decides.

    Raises:
        GrammarError: the file cannot be read, or its suffix is unknown.
    """
    kind = kind or KINDS_BY_SUFFIX.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(KINDS_BY_SUFFIX)
        raise GrammarError(
            f"{path}: unknown suffix; specify the kind ({', '.join(ConstraintKind)}) or use one of {known}"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise GrammarError(f"{path} cannot be read: {reason}") from None
    return Constraint(kind, text.rstrip("\r\n") if kind is ConstraintKind.REGEX else text)


def check(constraint: Constraint) -> None:
    """Check that a constraint can be compiled, without a vocabulary.

    Raises:
        GrammarError: it cannot be compiled.
    """
    check_constraint(constraint, Limits(max_seconds=60.0))  # leaves time to compile native code that is not cached


def inspect(constraint: Constraint, vocabulary: Vocabulary, *, num_samples: int = 5, seed: int = 0) -> Inspection:
    """Compile a constraint and sample texts from it.

    Raises:
        GrammarError: it cannot be compiled.
    """
    backend, search = RtlangBackend.create(vocabulary, allow_checked=True), CompletionSearch(vocabulary)
    started = time.perf_counter()
    grammar = backend.compile(constraint)
    compile_ms = (time.perf_counter() - started) * 1e3
    shortest = grammar.matcher().closing_bytes()
    walk = _Walk(grammar, vocabulary, search, random.Random(seed))
    samples = tuple(dict.fromkeys(walk.sample() for _ in range(num_samples)))
    tables = grammar.machine.tables
    return Inspection(
        compile_ms=compile_ms,
        num_states=tables.num_states,
        num_rows=tables.num_rows,
        size_bytes=grammar.size_bytes,
        report=grammar.report,
        shortest=None if shortest is None else vocabulary.readable(shortest),
        samples=samples,
        masks=walk.figures(),
    )


class _Walk:
    """Samples texts and times the masks. Owned by one call of `inspect`."""

    def __init__(
        self, grammar: RtlangGrammar, vocabulary: Vocabulary, search: CompletionSearch, rng: random.Random
    ) -> None:
        self._grammar, self._vocabulary, self._search, self._rng = grammar, vocabulary, search, rng
        self._nanoseconds: list[int] = []
        self._allowed: list[int] = []
        self._num_forced = self._num_bytes = 0
        self._liked = np.array([bool(text) and _LIKED.issuperset(text) for text in vocabulary.token_bytes])

    def sample(self) -> str:
        """Sample a text of at most `_MAX_TOKENS` tokens, or as few as possible if that is more; empty if no completion was found."""
        matcher = self._grammar.matcher()
        path = self._search.find(matcher, _MAX_LONGEST)
        if path is None:
            return ""
        most = max(_MAX_TOKENS, path.cost())
        budget = TokenBudget(self._search, path)
        tokens: list[int] = []
        while len(tokens) < most:
            sampled = self._sampled_token(matcher)
            if sampled is None:
                break
            token_id = budget.advance(matcher, sampled, most - len(tokens))
            if token_id is None:
                break
            tokens.append(token_id)
        text = self._vocabulary.shown(tokens)
        self._num_bytes += len(text)
        return text.decode("utf-8", "replace")

    def _sampled_token(self, matcher: MachineMatcher) -> int | None:
        """Sample an allowed token, preferring plain letters; None to end the text here."""
        row = np.zeros(self._vocabulary.num_mask_words, dtype=np.int32)
        started = time.perf_counter_ns()
        matcher.fill_bitmask(row)
        self._nanoseconds.append(time.perf_counter_ns() - started)
        forced = matcher.forced_bytes()
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(self._vocabulary.token_bytes)].astype(bool)
        self._allowed.append(int(bits.sum()))
        bits[[each for each in self._vocabulary.eos_token_ids if not matcher.takes(each)]] = False
        if not bits.any() or (matcher.is_accepting and self._rng.random() < 0.3):
            return None
        if self._rng.random() < 0.5 and (path := matcher.shortest_completion(_MAX_LONGEST)):
            sampled = path[0]
        else:
            liked = np.flatnonzero(bits & self._liked)
            every = np.flatnonzero(bits)
            sampled = int(self._rng.choice(liked if len(liked) and self._rng.random() < 0.9 else every))
        self._num_forced += min(len(forced), len(self._vocabulary.token_bytes[sampled]))
        return sampled

    def figures(self) -> MaskFigures | None:
        """Statistics of all masks so far."""
        if not self._nanoseconds:
            return None
        times = np.array(self._nanoseconds) / 1e3
        allowed = np.array(self._allowed)
        return MaskFigures(
            count=len(times),
            allowed=(int(allowed.min()), int(np.median(allowed)), int(allowed.max())),
            microseconds=(
                float(times.mean()),
                float(np.median(times)),
                float(np.percentile(times, 99)),
                float(times.max()),
            ),
            num_forced_bytes=self._num_forced,
            num_bytes=self._num_bytes,
        )
