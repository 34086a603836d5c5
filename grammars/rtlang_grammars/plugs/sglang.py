"""A grammar backend for `sglang`: JSON schemas, regular expressions, EBNF, structural tags, jump-forward, reasoning.

`sglang` calls `register` in every process by the entry point `sglang.srt.plugins`; `--grammar-backend rtlang` then chooses it. A program
that embeds an engine may call it itself. `sglang` does not wrap backends of its registry for reasoning models, so `create` does.

Masks are made without scores, so a text that `max_new_tokens` cuts off may be incomplete. A place without an allowed token raises
`EmptyMaskError`. Value checks need a retry, which `sglang` does not offer: schemas that need one are refused.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
    register_grammar_backend,
    register_vocab_mask_buffer,
)
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.runtime_context import get_serving

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.formats.structural_tag import read_structural_tag
from rtlang_grammars.machine.batch import fill_batch
from rtlang_grammars.schema.json_options import style_of
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle
from rtlang_grammars.spec.errors import EmptyMaskError, GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary

_NAME = "rtlang"
_ANY_JSON = "$$ANY$$"
"""The schema that `sglang` writes for a request of any JSON."""


class RtlangGrammarObject(BaseGrammarObject):  # type: ignore[misc]
    """Follows one request. Owned by it.

    Attributes:
        report: status of every keyword of the schemas; None without a schema.
    """

    def __init__(
        self, grammar: RtlangGrammar, vocabulary: Vocabulary, key_string: str, stats: GrammarStats | None = None
    ) -> None:
        super().__init__()
        self.report, self.grammar_stats = grammar.report, stats
        self._grammar, self._vocabulary, self._key_string = grammar, vocabulary, key_string
        self._matcher = grammar.matcher()
        self._accepted: list[int] = []

    def accept_token(self, token: int) -> None:
        """Advance by one token; tokens after the end are ignored.

        Raises:
            ValueError: the token is not allowed here.
        """
        if self.is_terminated():
            return
        self.current_token = token
        if not self._matcher.accept_token(token):
            raise ValueError(f"token {token} is not allowed after {self._accepted[-8:]} by {self._key_string[:200]}")
        self._accepted.append(token)

    def rollback(self, k: int) -> None:
        """Take back the last `k` tokens; an end token counts as one."""
        self._matcher.rollback(k)
        del self._accepted[len(self._accepted) - k :]
        if k:
            self._finished = False

    def is_terminated(self) -> bool:
        """Whether an end token was accepted."""
        return self._matcher.is_terminated and not self._matcher.is_accepting

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Rows of int32 words, [batch_size, ceil(vocab_size / 32)], that allow every token."""
        return _new_mask(self._vocabulary, batch_size)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the allowed tokens into one row.

        Raises:
            EmptyMaskError: no token is allowed, and the text is not complete.
        """
        row = vocab_mask[idx].numpy()
        try:
            self._matcher.fill_bitmask(row)
        except EmptyMaskError as error:
            raise error.after(self._text(), self._key_string) from None
        self._allow_end(row)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Write the rows of some requests at once; raises as `fill_vocab_mask`."""
        if not all(isinstance(entry.grammar, RtlangGrammarObject) for entry in entries):
            BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)
            return
        rows = np.empty((len(entries), vocab_mask.shape[1]), dtype=np.int32)
        try:
            fill_batch([entry.grammar._matcher for entry in entries], rows)
        except EmptyMaskError:
            for entry in entries:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
            raise
        for entry, row in zip(entries, rows, strict=True):
            entry.grammar._allow_end(row)
        vocab_mask[[entry.row for entry in entries]] = torch.from_numpy(rows)

    def _allow_end(self, row: NDArray[np.int32]) -> None:
        """After the end of a text, allow end tokens."""
        if row.any():
            return
        for token_id in self._vocabulary.eos_token_ids:
            row.view(np.uint32)[token_id >> 5] |= np.uint32(1 << (token_id & 31))

    def _text(self) -> bytes:
        return b"".join(self._vocabulary.token_bytes[token_id] for token_id in self._accepted)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow every token."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The mask on a device."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set the logits, [num_rows, width], of tokens that are not allowed to minus infinity, in place."""
        apply_mask(logits, vocab_mask)

    def copy(self) -> RtlangGrammarObject:
        """The same constraint at the start of a text, for another request."""
        stats = self.grammar_stats
        if stats is not None:
            stats = dataclasses.replace(stats, is_cache_hit=True, tree_traversal_time=[])
        return RtlangGrammarObject(self._grammar, self._vocabulary, self._key_string, stats)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that must come next; None if there is a choice."""
        text = self._matcher.forced_bytes().decode("utf-8", "ignore")  # without the beginning of a character
        return ([], text) if text and "\ufffd" not in text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of `try_jump_forward`; there is no numbered state."""
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Go on after other tokens of a text that was spelled anew.

        Raises:
            ValueError: a token is not allowed.
        """
        pairs = zip(old_output_ids, new_output_ids, strict=False)
        same = next(
            (i for i, (old, new) in enumerate(pairs) if old != new), min(len(old_output_ids), len(new_output_ids))
        )
        self.rollback(len(old_output_ids) - same)
        for token_id in new_output_ids[same:]:
            self.accept_token(token_id)


class RtlangGrammarBackend(BaseGrammarBackend):  # type: ignore[misc]
    """Compiles the requests of one server."""

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Iterable[int] | None = None,
        *,
        disable_any_whitespace: bool = False,
        whitespace_pattern: str | None = None,
        max_whitespace_cnt: int | None = None,
    ) -> None:
        """Index the vocabulary.

        Args:
            eos_token_ids: of the model, in place of those of the tokenizer.
            disable_any_whitespace, whitespace_pattern, max_whitespace_cnt: the options of the server for JSON.
        Raises:
            GrammarError: `whitespace_pattern` is not supported; names it.
            UnsupportedTokenizerError: the tokens do not spell texts byte for byte.
        """
        super().__init__()
        found = Vocabulary.from_tokenizer(tokenizer, vocab_size=vocab_size)
        if eos_token_ids:
            ends = frozenset(token_id for token_id in eos_token_ids if 0 <= token_id < vocab_size)
            found = dataclasses.replace(found, eos_token_ids=ends)
        self.vocabulary = found
        self._style = json_style(disable_any_whitespace, whitespace_pattern, max_whitespace_cnt)
        self._backend = RtlangBackend.create(found)

    def initialize_vocab_mask_buffer(self, name: str, vocab_size: int, max_rows: int, device: Any) -> torch.Tensor:
        """A mask of `max_rows` rows that the server uses again for every batch."""
        buffer: torch.Tensor = register_vocab_mask_buffer(name, _new_mask(self.vocabulary, max_rows), max_rows)
        return buffer

    @property
    def is_support_token_filter(self) -> bool:
        """Strict thinking may allow and forbid single tokens."""
        return True

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Rows that allow every token, for requests that only filter tokens."""
        return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32)

    move_vocab_mask = staticmethod(RtlangGrammarObject.move_vocab_mask)
    apply_vocab_mask = staticmethod(RtlangGrammarObject.apply_vocab_mask)

    def set_token_filter(
        self,
        vocab_mask: torch.Tensor,
        token_ids: Sequence[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or forbid some tokens in one row; with `reset_vocab_mask`, all others are forbidden or allowed."""
        row = vocab_mask[batch_idx]
        if reset_vocab_mask:
            row.fill_(0 if is_allowed else -1)
        words = row.cpu().numpy().view(np.uint32).copy()
        ids = np.asarray(list(token_ids), dtype=np.int64)
        bits = np.uint32(1) << (ids & 31).astype(np.uint32)
        if is_allowed:
            np.bitwise_or.at(words, ids >> 5, bits)
        else:
            np.bitwise_and.at(words, ids >> 5, ~bits)
        row.copy_(torch.from_numpy(words.view(np.int32)))

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """A JSON schema, or any JSON."""
        source = "true" if key_string == _ANY_JSON else key_string
        return self._compiled("json", key_string, lambda: Constraint(ConstraintKind.JSON_SCHEMA, source, self._style))

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """A regular expression that the whole text matches."""
        return self._compiled("regex", key_string, lambda: Constraint(ConstraintKind.REGEX, key_string))

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """A grammar in the notation of xgrammar and llama.cpp."""
        return self._compiled("ebnf", key_string, lambda: Constraint(ConstraintKind.GBNF, key_string))

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """A structural tag in either form; `at_least_one` of the older form and schemas that are null are read as `sglang` reads them."""
        return self._compiled("structural_tag", key_string, lambda: read_tag(key_string, self._style))

    def _compiled(self, kind: str, key_string: str, constraint: Any) -> BaseGrammarObject:
        try:
            grammar = self._backend.compile(constraint())
        except GrammarError as error:
            return InvalidGrammarObject(str(error))
        return RtlangGrammarObject(grammar, self.vocabulary, key_string, GrammarStats(dispatch_type=kind))


def read_tag(source: str, style: JsonStyle) -> Constraint:
    """The constraint of a structural tag of `sglang`.

    Raises:
        GrammarError: it is malformed; the location is a JSON pointer.
    """
    try:
        plain = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"expected JSON: {error}", "#") from None
    if isinstance(plain, dict) and isinstance(plain.get("structures"), list):
        contents = [
            {**each, "type": "tag", "content": {"type": "json_schema", "json_schema": each.get("schema")}}
            for each in plain["structures"]
            if isinstance(each, dict)
        ]
        inner = {"type": "triggered_tags", "triggers": plain.get("triggers"), "tags": contents}
        plain = {"format": {**inner, "at_least_one": plain.get("at_least_one", False)}}
    return read_structural_tag(_described(plain), style=style)


def _described(plain: Any) -> Any:
    """A tag in which schemas that are missing or null allow any value."""
    if isinstance(plain, list):
        return [_described(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    found = {key: each if key == "json_schema" else _described(each) for key, each in plain.items()}
    if found.get("type") in ("json_schema", "qwen_xml_parameter") and found.get("json_schema") is None:
        found["json_schema"] = {}
    return found


def json_style(disable: bool, pattern: str | None, max_count: int | None) -> JsonStyle:
    """The style that obeys the options of a server; a bound on blanks below those of the default style means none."""
    return style_of(pattern, disable_any_whitespace=disable or (max_count is not None and max_count <= 80))


def _new_mask(vocabulary: Vocabulary, num_rows: int) -> torch.Tensor:
    shape = (num_rows, vocabulary.num_mask_words)
    return torch.full(shape, -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())


def apply_mask(logits: torch.Tensor, mask: torch.Tensor) -> None:
    """Set the logits, [num_rows, width], whose bits in `mask`, [num_rows, words] int32, are 0 to minus infinity, in place."""
    width = min(logits.shape[-1], 32 * mask.shape[-1])
    shifts = torch.arange(32, dtype=torch.int32, device=mask.device)
    allowed = (mask.unsqueeze(-1) >> shifts & 1).bool().flatten(1)[:, :width].to(logits.device)
    logits[..., :width].masked_fill_(~allowed, float("-inf"))
    logits[..., width:] = float("-inf")


def report_of(grammar: BaseGrammarObject) -> Report | None:
    """The status of every keyword of a request's schemas; None without a schema, and for other backends."""
    return getattr(getattr(grammar, "grammar", grammar), "report", None)


def create(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None
) -> BaseGrammarBackend:
    """The backend of a server, as `sglang` asks its registry for it; wrapped for reasoning if the server parses reasoning."""
    serving = get_serving()
    backend = RtlangGrammarBackend(
        tokenizer,
        vocab_size,
        eos_token_ids,
        disable_any_whitespace=serving.constrained_json_disable_any_whitespace,
        whitespace_pattern=serving.constrained_json_whitespace_pattern,
        max_whitespace_cnt=serving.constrained_json_max_whitespace_cnt,
    )
    if not serving.reasoning_parser:
        return backend
    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    return ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking)


def register() -> None:
    """Make `rtlang` a choice of `--grammar-backend`. Harmless if called again."""
    register_grammar_backend(_NAME, create)
    if _NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([_NAME])
