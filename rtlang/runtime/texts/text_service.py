"""The text service of a runtime: its tokenizer behind the interface of `rtlang.contract.service.text_service`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

from rtlang.contract.errors import ContextLengthError, ParameterError
from rtlang.contract.request_graph import Part
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.text_service import HistoryEnd, TextServiceInfo
from rtlang.model.text.history import chat_prompt
from rtlang.model.text.token_history import OwnedHistory, TokenHistory
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text

_ANY_LENGTH = 1 << 40
"""More tokens than a text has: the length of a prompt is checked when it runs, not when it is encoded."""


class TokenizerTextService:
    """See `TextService`.

    Args:
        max_model_len: longest sequence of the model, in tokens.
    """

    def __init__(self, tokenizer: Tokenizer, max_model_len: int | None = None) -> None:
        self._tokenizer = tokenizer
        self._history = TokenHistory(tokenizer)
        self._known: OwnedHistory | None = None
        self._info = TextServiceInfo(
            tokenizer.vocab_size,
            max_model_len,
            tokenizer.bos_token_id,
            tuple(sorted(tokenizer.eos_token_ids)),
            tuple(sorted(tokenizer.special_token_ids)),
            tokenizer.chat.template,
        )

    def for_principal(self, principal: Principal) -> Self:
        """This service for the work of a principal, whose earlier conversations it knows."""
        found = copy.copy(self)
        found._known = self._history.owned(principal.name, principal.namespace)
        return found

    @property
    def info(self) -> TextServiceInfo:
        """See `TextService.info`."""
        return self._info

    def encode(self, text: str, *, adds_start: bool = True, allow_special: bool = False) -> list[int]:
        """See `TextService.encode`."""
        start = self._tokenizer.start_ids() if adds_start else []
        return start + self._tokenizer.encode(text, is_start=True, allow_special=allow_special)

    def encode_parts(self, parts: Sequence[Part], *, max_tokens: int | None = None) -> list[int]:
        """See `TextService.encode_parts`.

        Raises:
            ContextLengthError: there are more than `max_tokens` tokens.
        """
        limit = _ANY_LENGTH if max_tokens is None else max_tokens
        sequence = append_text(TokenSequence(), parts, self._tokenizer, {}, lambda ref: "", limit)
        return list(sequence.token_ids)

    def chat_prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: str | None,
        end: HistoryEnd,
        template_options: str | None = None,
        max_tokens: int | None = None,
    ) -> list[int]:
        """See `TextService.chat_prompt`."""
        chat, longest = self._tokenizer.chat.with_settings(tools, template_options), self._tokenizer.longest_token

        def check_length(num_chars: int) -> None:
            if max_tokens is not None and num_chars // longest > max_tokens:
                raise ContextLengthError(num_chars // longest, 0, max_tokens)

        return chat_prompt(chat, messages, end, check_length, self._known)

    def remember(self, prompt: bytes, outputs: Sequence[Sequence[int]]) -> None:
        """See `TextService.remember`."""
        if self._known is not None:
            self._known.remember(prompt, outputs)

    def decode(self, token_ids: Sequence[int], *, shows_special: bool = False) -> str:
        """See `TextService.decode`."""
        self._check(token_ids)
        decoder = self._tokenizer.decoder(shows_special=shows_special)
        return decoder.push(token_ids) + decoder.flush()

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        """See `TextService.token_names`."""
        self._check(token_ids)
        names = {token_id: self._tokenizer.token_name(token_id) for token_id in set(token_ids)}
        return [names[token_id] for token_id in token_ids]

    def token_bytes(self, token_ids: Sequence[int]) -> list[bytes]:
        """See `TextService.token_bytes`."""
        self._check(token_ids)
        return [
            self._tokenizer.token_bytes(token_id) or self._tokenizer.token_name(token_id).encode()
            for token_id in token_ids
        ]

    def _check(self, token_ids: Sequence[int]) -> None:
        last = self._tokenizer.num_ids - 1
        for token_id in token_ids:
            if not 0 <= token_id <= last:
                raise ParameterError("tokens", token_id, f"expected ids from 0 to {last}")
