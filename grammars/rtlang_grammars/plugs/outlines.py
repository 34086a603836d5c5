"""A backend for `outlines` that makes its logits processors from grammars of this library.

`Generator(model, output_type, backend="rtlang")` works after `register()`. Without it, a processor of `RtlangOutlinesBackend` is handed to
`Generator(model, processor=...)`.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import outlines.backends
from outlines.backends.base import BaseBackend
from outlines.models import LlamaCpp, SteerableModel, Transformers
from outlines.processors.base_logits_processor import OutlinesLogitsProcessor

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.plugs.token_histories import TokenHistories
from rtlang_grammars.schema.json_options import style_of
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.protocols import CompiledGrammar
from rtlang_grammars.spec.vocabulary import Vocabulary

_NAME = "rtlang"


class RtlangLogitsProcessor(OutlinesLogitsProcessor):  # type: ignore[misc]
    """Constrains generations to one grammar."""

    def __init__(
        self, grammar: CompiledGrammar, vocabulary: Vocabulary, tensor_library_name: str, max_new_tokens: int | None
    ) -> None:
        super().__init__(tensor_library_name)
        self._histories = TokenHistories([grammar], vocabulary, max_new_tokens)

    @property
    def report(self) -> Report | None:
        """The report of the grammar; None without a schema."""
        return self._histories.reports[0]

    def reset(self) -> None:
        """Begin a new generation; `outlines` calls it before each."""
        self._histories.reset()

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """Set the logits, [num_rows, vocab_size], of tokens that may not follow `input_ids`, [num_rows, length], to minus infinity."""
        adapter = self.tensor_adapter
        history = np.array([adapter.to_list(row) for row in input_ids], dtype=np.int64)
        allowed = self._histories.allowed(history, lambda row: np.array(adapter.to_list(logits[row]), dtype=np.float32))
        excluded = adapter.boolean_ones_like(logits)
        width = min(allowed.shape[1], adapter.shape(logits)[1])
        for row, mask in enumerate(allowed):
            excluded[row, np.flatnonzero(mask[:width])] = False
        return adapter.apply_mask(logits, excluded, float("-inf"))


class RtlangOutlinesBackend(BaseBackend):  # type: ignore[misc]
    """Makes logits processors for one model of `outlines`."""

    def __init__(self, model: SteerableModel, max_new_tokens: int | None = None) -> None:
        """Index the vocabulary of a model.

        Args:
            model: one made with `from_transformers` or `from_llamacpp`.
            max_new_tokens: the same as for the generation (`max_tokens` with llama.cpp); texts are then complete by its end. None: a text
                may be cut off.
        Raises:
            ValueError: another kind of model.
        """
        self._vocabulary = _vocabulary_of(model)
        self._backend = RtlangBackend.create(self._vocabulary)
        self._tensor_library_name, self._max_new_tokens = model.tensor_library_name, max_new_tokens

    def get_json_schema_logits_processor(
        self, json_schema: str, whitespace_pattern: str | None = None
    ) -> RtlangLogitsProcessor:
        """A processor for the JSON text of a schema; for `whitespace_pattern` see `json_options.style_of`.

        Raises:
            GrammarError: the schema has a keyword that masks cannot enforce; names its JSON pointer. Or the pattern is not supported.
        """
        return self.processor(Constraint(ConstraintKind.JSON_SCHEMA, json_schema, style_of(whitespace_pattern)))

    def get_regex_logits_processor(self, regex: str) -> RtlangLogitsProcessor:
        """A processor for texts that a regular expression matches as a whole."""
        return self.processor(Constraint(ConstraintKind.REGEX, regex))

    def get_cfg_logits_processor(self, grammar: str) -> RtlangLogitsProcessor:
        """A processor for the texts of a grammar in Lark's notation."""
        return self.processor(Constraint(ConstraintKind.LARK, grammar))

    def processor(self, constraint: Constraint) -> RtlangLogitsProcessor:
        """A processor for any constraint of this library.

        Raises:
            GrammarError: it cannot be compiled, or no completion within `max_new_tokens` was found.
        """
        grammar = self._backend.compile(constraint)
        return RtlangLogitsProcessor(grammar, self._vocabulary, self._tensor_library_name, self._max_new_tokens)


def _vocabulary_of(model: SteerableModel) -> Vocabulary:
    if isinstance(model, Transformers):
        return Vocabulary.from_tokenizer(model.hf_tokenizer, vocab_size=model.model.config.get_text_config().vocab_size)
    if isinstance(model, LlamaCpp):
        from rtlang_grammars.plugs.llama_cpp import vocabulary_of

        return vocabulary_of(model.model)
    raise ValueError(f"model = {type(model).__name__}: expected a model of transformers or llama.cpp")


def register(max_new_tokens: int | None = None) -> None:
    """Make `backend="rtlang"` a choice of `outlines.Generator`, beside its own.

    `outlines` has no registry of backends; this wraps the function that looks one up by its name.

    Args:
        max_new_tokens: as for `RtlangOutlinesBackend`, for all generators that are made until the next call.
    """
    own_lookup = getattr(outlines.backends._get_backend, "wrapped_by_rtlang", outlines.backends._get_backend)
    made: WeakKeyDictionary[SteerableModel, RtlangOutlinesBackend] = WeakKeyDictionary()

    def lookup(backend_name: str, model: SteerableModel) -> BaseBackend:
        if backend_name != _NAME:
            return own_lookup(backend_name, model)
        if model not in made:
            made[model] = RtlangOutlinesBackend(model, max_new_tokens)
        return made[model]

    lookup.wrapped_by_rtlang = own_lookup  # type: ignore[attr-defined]
    outlines.backends._get_backend = lookup
