"""Other libraries behind the few calls that the benchmarks make: llguidance, xgrammar and outlines-core, each with its defaults.

A library is imported when its engine is created. Blanks follow the style of the constraint where the library has an option for it.
"""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, PropertyOrder, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary

ENGINES = ("rtlang", "llguidance", "xgrammar", "outlines")
_NUM_BLANKS = 2


class Matcher(Protocol):
    """Follows one sequence."""

    @property
    def is_accepting(self) -> bool:
        """Whether the text is complete."""

    def accept_token(self, token_id: int) -> bool:
        """Advance by one token; returns False if it is not allowed."""

    def fill_bitmask(self, row: NDArray[np.int32]) -> None:
        """Write the allowed tokens, one bit per token."""


class Grammar(Protocol):
    """A compiled constraint."""

    def matcher(self) -> Matcher:
        """A new matcher at the start of the text."""


class GrammarEngine(Protocol):
    """Compiles constraints for one vocabulary."""

    def compile(self, constraint: Constraint) -> Grammar:
        """Compile a constraint.

        Raises:
            GrammarError: the library refuses it.
        """


def create_engine(name: str, vocabulary: Vocabulary) -> GrammarEngine:
    """Index a vocabulary.

    Raises:
        ValueError: unknown name.
        ImportError: the library is not installed.
    """
    match name:
        case "rtlang":
            return RtlangBackend.create(vocabulary)
        case "llguidance":
            return _LLGuidance(vocabulary)
        case "xgrammar":
            return _XGrammar(vocabulary)
        case "outlines":
            return _Outlines(vocabulary)
    raise ValueError(f"engine = {name!r}: expected one of {', '.join(ENGINES)}")


class _TokenSource:
    """A vocabulary in the form that llguidance reads."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        import tokenizers

        silent = vocabulary.silent_ids
        padding = [b""] * (vocabulary.vocab_size - len(vocabulary.token_bytes))
        self.tokens = [b"" if i in silent else text for i, text in enumerate(vocabulary.token_bytes)] + padding
        self.special_token_ids = sorted(silent)
        self.eos_token_id = min(vocabulary.eos_token_ids)
        self._ids = vocabulary.ids_by_bytes()
        self._encoder: Any = None
        if vocabulary.tokenizer_json is not None:
            self._encoder = tokenizers.Tokenizer.from_str(vocabulary.tokenizer_json)

    def __call__(self, text: str | bytes) -> list[int]:
        data = text.encode() if isinstance(text, str) else bytes(text)
        if self._encoder is not None:
            ids: list[int] = self._encoder.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids
            return ids
        return [self._ids[bytes([byte])] for byte in data if bytes([byte]) in self._ids]


class _LLGuidance:
    def __init__(self, vocabulary: Vocabulary) -> None:
        import llguidance

        source = _TokenSource(vocabulary)
        self._class = llguidance.LLMatcher
        self._tokenizer = llguidance.LLTokenizer(source, eos_token=sorted(vocabulary.eos_token_ids))
        self._ends = vocabulary.eos_token_ids

    def compile(self, constraint: Constraint) -> Grammar:
        source = constraint.source
        try:
            match constraint.kind:
                case ConstraintKind.JSON_SCHEMA:
                    flexible = constraint.style.whitespace is Whitespace.FREE
                    grammar = self._class.grammar_from_json_schema(source, overrides={"whitespace_flexible": flexible})
                case ConstraintKind.LARK:
                    grammar = self._class.grammar_from_lark(source)
                case ConstraintKind.GBNF:
                    from llguidance.gbnf_to_lark import gbnf_to_lark

                    grammar = self._class.grammar_from_lark(gbnf_to_lark(source))
                case ConstraintKind.REGEX:
                    grammar = self._class.grammar_from_regex(source)
                case _:
                    raise GrammarError(f"llguidance: constraints of kind {constraint.kind} are not measured")
            found = self._class(self._tokenizer, grammar, log_level=0)
        except ValueError as error:
            raise _refusal(error) from error
        if found.is_error():
            raise _refusal(found.get_error())
        return _LLGuidanceGrammar(found)


class _LLGuidanceGrammar:
    def __init__(self, start: Any) -> None:
        self._start = start

    def matcher(self) -> Matcher:
        return _LLGuidanceMatcher(self._start.deep_copy())


class _LLGuidanceMatcher:
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    @property
    def is_accepting(self) -> bool:
        return bool(self._matcher.is_accepting())

    def accept_token(self, token_id: int) -> bool:
        return bool(self._matcher.try_consume_tokens([token_id]) == 1)

    def fill_bitmask(self, row: NDArray[np.int32]) -> None:
        self._matcher.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)

    def forced_bytes(self) -> bytes:
        """Bytes that must come next."""
        return bytes(self._matcher.compute_ff_bytes())


class _XGrammar:
    def __init__(self, vocabulary: Vocabulary) -> None:
        import xgrammar

        silent = vocabulary.silent_ids
        texts = [b"" if i in silent else text for i, text in enumerate(vocabulary.token_bytes)]
        texts += [b""] * (vocabulary.vocab_size - len(texts))
        info = xgrammar.TokenizerInfo(
            texts, vocab_size=vocabulary.vocab_size, stop_token_ids=sorted(vocabulary.eos_token_ids)
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._class = xgrammar.GrammarMatcher

    def compile(self, constraint: Constraint) -> Grammar:
        is_compact = constraint.style.whitespace is Whitespace.COMPACT
        try:
            match constraint.kind:
                case ConstraintKind.JSON_SCHEMA:
                    found = self._compiler.compile_json_schema(
                        constraint.source,
                        any_whitespace=not is_compact,
                        separators=(",", ":") if is_compact else None,
                        strict_mode=False,
                        max_whitespace_cnt=None if is_compact else _NUM_BLANKS,
                        any_order=constraint.style.order is PropertyOrder.ANY,
                    )
                case ConstraintKind.REGEX:
                    found = self._compiler.compile_regex(constraint.source)
                case ConstraintKind.GBNF:
                    found = self._compiler.compile_grammar(constraint.source)
                case _:
                    raise GrammarError(f"xgrammar: constraints of kind {constraint.kind} are not measured")
        except (RuntimeError, ValueError) as error:
            raise _refusal(error) from error
        return _XGrammarGrammar(self._class, found)


class _XGrammarGrammar:
    def __init__(self, matcher_class: Any, compiled: Any) -> None:
        self._class, self._compiled = matcher_class, compiled

    def matcher(self) -> Matcher:
        return _XGrammarMatcher(self._class(self._compiled))


class _XGrammarMatcher:
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    @property
    def is_accepting(self) -> bool:
        return bool(self._matcher.is_completed())

    def accept_token(self, token_id: int) -> bool:
        return bool(self._matcher.accept_token(token_id))

    def fill_bitmask(self, row: NDArray[np.int32]) -> None:
        if not self._matcher.fill_next_token_bitmask(row.reshape(1, -1)):
            row.fill(-1)  # everything is allowed: the library may leave the row unwritten


class _Outlines:
    def __init__(self, vocabulary: Vocabulary) -> None:
        import outlines_core

        by_text: dict[bytes, list[int]] = {}
        for token_id, text in enumerate(vocabulary.token_bytes):
            if text and token_id not in vocabulary.silent_ids:
                by_text.setdefault(text, []).append(token_id)
        self._library = outlines_core
        self._tokens = outlines_core.Vocabulary(min(vocabulary.eos_token_ids), by_text)

    def compile(self, constraint: Constraint) -> Grammar:
        source = constraint.source
        try:
            match constraint.kind:
                case ConstraintKind.JSON_SCHEMA:
                    blanks = "" if constraint.style.whitespace is Whitespace.COMPACT else f"[ ]{{0,{_NUM_BLANKS}}}"
                    source = self._library.json_schema.build_regex_from_schema(source, blanks)
                case ConstraintKind.CHOICE:
                    source = "|".join(map(re.escape, json.loads(source)))
                case ConstraintKind.REGEX:
                    pass
                case _:
                    raise GrammarError(f"outlines: constraints of kind {constraint.kind} are not measured")
            return _OutlinesGrammar(self._library.Index(source, self._tokens))
        except GrammarError:
            raise
        except BaseException as error:  # a panic of the library is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            raise _refusal(error) from error


class _OutlinesGrammar:
    def __init__(self, index: Any) -> None:
        self._index = index

    def matcher(self) -> Matcher:
        return _OutlinesMatcher(self._index)


class _OutlinesMatcher:
    def __init__(self, index: Any) -> None:
        self._index, self._state = index, index.get_initial_state()

    @property
    def is_accepting(self) -> bool:
        return bool(self._index.is_final_state(self._state))

    def accept_token(self, token_id: int) -> bool:
        following = self._index.get_next_state(self._state, token_id)
        if following is None:
            return False
        self._state = following
        return True

    def fill_bitmask(self, row: NDArray[np.int32]) -> None:
        row.fill(0)
        ids = np.array(self._index.get_allowed_tokens(self._state) or (), dtype=np.int64)
        np.bitwise_or.at(row.view(np.uint32), ids >> 5, np.uint32(1) << (ids & 31).astype(np.uint32))


def _refusal(error: object) -> GrammarError:
    return GrammarError(" ".join(str(error).split())[:500] or "refused")
