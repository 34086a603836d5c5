"""Adapter for outlines-core, an optional library: one automaton over tokens, built ahead of time.

It translates a schema to a pattern and a pattern to an index of all tokens in all states, which takes long for large vocabularies.
Recursion in a schema is cut off after a few levels, and continuations of several tokens after a complete text can be lost (`1(ab)?` with
tokens of one letter gives only `1` in 0.2.14).
"""

from __future__ import annotations

import json
import re
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.adapters.peer_matcher import Binding, PeerMatcher
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary

_BLANKS = "[ ]{0,2}"
_BYTES_PER_TRANSITION = 16


class OutlinesBackend:
    """Compiles constraints with outlines-core. Safe to use from several threads."""

    def __init__(self, library: Any, tokens: Any, binding: Binding) -> None:
        self._library, self._tokens, self._binding = library, tokens, binding

    @classmethod
    def create(cls, vocabulary: Vocabulary, search: CompletionSearch | None = None) -> OutlinesBackend:
        """Index the vocabulary.

        Raises:
            ImportError: the library is not installed.
        """
        import outlines_core

        silent = vocabulary.silent_ids
        by_text: dict[bytes, list[int]] = {}
        for token_id, text in enumerate(vocabulary.token_bytes):
            if text and token_id not in silent:
                by_text.setdefault(text, []).append(token_id)
        end = min(vocabulary.eos_token_ids, default=vocabulary.vocab_size)
        return cls(outlines_core, outlines_core.Vocabulary(end, by_text), Binding(vocabulary, search))

    def compile(self, constraint: Constraint, is_unwanted: Event | None = None) -> OutlinesGrammar:
        """See `GrammarBackend.compile`. The library cannot be stopped."""
        source = constraint.source
        try:
            match constraint.kind:
                case ConstraintKind.JSON_SCHEMA:
                    if constraint.style.layout is not None:
                        raise GrammarError(
                            "the backend outlines does not support separators and an indent of JSON text"
                        )
                    blanks = "" if constraint.style.whitespace is Whitespace.COMPACT else _BLANKS
                    pattern = self._library.json_schema.build_regex_from_schema(source, blanks)
                case ConstraintKind.REGEX:
                    pattern = source
                case ConstraintKind.CHOICE:
                    pattern = "|".join(map(re.escape, _choices(source)))
                case _:
                    raise GrammarError(
                        f"the backend outlines does not support constraints of kind {constraint.kind}; the backend rtlang does"
                    )
            index = self._library.Index(pattern, self._tokens)
        except GrammarError:
            raise
        except BaseException as error:  # a panic of the library is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            raise GrammarError(" ".join(str(error).split())[:500] or "refused") from error
        return OutlinesGrammar(index, self._binding)


class OutlinesGrammar:
    """A compiled constraint; see `CompiledGrammar`."""

    def __init__(self, index: Any, binding: Binding) -> None:
        self._index, self._binding = index, binding
        transitions = index.get_transitions()
        self._size_bytes = _BYTES_PER_TRANSITION * sum(map(len, transitions.values()))

    @property
    def size_bytes(self) -> int:
        """An estimate from the number of transitions."""
        return self._size_bytes

    def matcher(self) -> PeerMatcher:
        """A fresh matcher at the start of the text."""
        return PeerMatcher(_State(self._index, [self._index.get_initial_state()]), self._binding)


class _State:
    """See `PeerState`: the states of the index after each token."""

    def __init__(self, index: Any, path: list[int]) -> None:
        self._index, self._path = index, path

    @property
    def is_complete(self) -> bool:
        return bool(self._index.is_final_state(self._path[-1]))

    def step(self, token_id: int) -> bool:
        following = self._index.get_next_state(self._path[-1], token_id)
        if following is None:
            return False
        self._path.append(following)
        return True

    def back(self, num_tokens: int) -> None:
        del self._path[-num_tokens:]

    def fill(self, row: NDArray[np.int32]) -> None:
        ids = np.array(self._index.get_allowed_tokens(self._path[-1]) or (), dtype=np.int64)
        ids = ids[ids < 32 * row.size]
        np.bitwise_or.at(row.view(np.uint32), ids >> 5, np.uint32(1) << (ids & 31).astype(np.uint32))

    def copy(self) -> _State:
        return _State(self._index, self._path.copy())


def _choices(source: str) -> list[str]:
    try:
        choices = json.loads(source)
    except ValueError as error:
        raise GrammarError(f"not JSON: {error}") from error
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, str) for choice in choices):
        raise GrammarError("choices: expected a JSON array of at least one string")
    return choices
