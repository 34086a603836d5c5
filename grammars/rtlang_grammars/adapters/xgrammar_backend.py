"""Adapter for xgrammar, an optional library.

xgrammar silently ignores the parts of a schema that it does not support, so its masks may allow invalid values.
"""

from __future__ import annotations

import json
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.adapters.peer_matcher import Binding, PeerMatcher
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, PropertyOrder, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary

_MAX_BLANKS = 2


class XGrammarBackend:
    """Compiles constraints with xgrammar. Safe to use from several threads."""

    def __init__(self, compiler: Any, matcher_class: Any, binding: Binding) -> None:
        self._compiler, self._matcher_class, self._binding = compiler, matcher_class, binding

    @classmethod
    def create(cls, vocabulary: Vocabulary, search: CompletionSearch | None = None) -> XGrammarBackend:
        """Index the vocabulary.

        Raises:
            ImportError: the library is not installed.
        """
        import xgrammar

        silent = vocabulary.silent_ids
        texts = [b"" if i in silent else text for i, text in enumerate(vocabulary.token_bytes)]
        texts += [b""] * (vocabulary.vocab_size - len(texts))
        info = xgrammar.TokenizerInfo(
            texts, vocab_size=vocabulary.vocab_size, stop_token_ids=sorted(vocabulary.eos_token_ids)
        )
        compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        return cls(compiler, xgrammar.GrammarMatcher, Binding(vocabulary, search))

    def compile(self, constraint: Constraint, is_unwanted: Event | None = None) -> XGrammarGrammar:
        """See `GrammarBackend.compile`. The library cannot be stopped."""
        compiler, source, style = self._compiler, constraint.source, constraint.style
        try:
            match constraint.kind:
                case ConstraintKind.JSON_SCHEMA:
                    if constraint.style.layout is not None:
                        raise GrammarError(
                            "the backend xgrammar does not support separators and an indent of JSON text"
                        )
                    is_compact = style.whitespace is Whitespace.COMPACT
                    found = compiler.compile_json_schema(
                        source,
                        any_whitespace=not is_compact,
                        separators=(",", ":") if is_compact else None,
                        strict_mode=False,
                        max_whitespace_cnt=None if is_compact else _MAX_BLANKS,
                        any_order=style.order is PropertyOrder.ANY,
                    )
                case ConstraintKind.REGEX:
                    found = compiler.compile_regex(source)
                case ConstraintKind.CHOICE:
                    found = compiler.compile_grammar(_choices(source))
                case ConstraintKind.GBNF:
                    found = compiler.compile_grammar(source)
                case _:
                    raise GrammarError(f"the backend xgrammar does not support constraints of kind {constraint.kind}")
        except (RuntimeError, ValueError) as error:
            if isinstance(error, GrammarError):
                raise
            raise GrammarError(" ".join(str(error).split())[:500] or "refused") from error
        return XGrammarGrammar(found, self._matcher_class, self._binding)


class XGrammarGrammar:
    """A compiled constraint; see `CompiledGrammar`."""

    def __init__(self, compiled: Any, matcher_class: Any, binding: Binding) -> None:
        self._compiled, self._matcher_class, self._binding = compiled, matcher_class, binding

    @property
    def size_bytes(self) -> int:
        """The size that the library reports."""
        return int(self._compiled.memory_size_bytes)

    def matcher(self) -> PeerMatcher:
        """A fresh matcher at the start of the text."""
        return PeerMatcher(_State(self._matcher_class(self._compiled)), self._binding)


class _State:
    """See `PeerState`."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    @property
    def is_complete(self) -> bool:
        return bool(self._matcher.is_completed())

    def step(self, token_id: int) -> bool:
        return bool(self._matcher.accept_token(token_id))

    def back(self, num_tokens: int) -> None:
        self._matcher.rollback(num_tokens)

    def fill(self, row: NDArray[np.int32]) -> None:
        if not self._matcher.fill_next_token_bitmask(row.reshape(1, -1)):
            row.fill(-1)  # everything is allowed: the library may leave the row unwritten

    def copy(self) -> _State:
        return _State(self._matcher.fork())


def _choices(source: str) -> str:
    """A JSON array of strings as a grammar."""
    try:
        choices = json.loads(source)
    except ValueError as error:
        raise GrammarError(f"not JSON: {error}") from error
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, str) for choice in choices):
        raise GrammarError("choices: expected a JSON array of at least one string")
    quoted = ("".join(f"\\U{ord(letter):08x}" for letter in choice) for choice in choices)
    return "root ::= " + " | ".join(f'"{text}"' for text in quoted)
