"""Incremental detokenization with stop strings and stop regexes.

Text is held back only while it could still become part of a stop, so no part of a stop string is ever streamed. For regexes this uses
partial matching of the `regex` library, which also limits the time of a search.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import regex

from rtlang.contract.errors import ParameterError, RequestError
from rtlang.contract.params import SamplingParams
from rtlang.model.text.tokenizer import Tokenizer

SEARCH_TIMEOUT_S = 0.1
_LOOKS_AHEAD = re.compile(r"\$|\\[bBzZmM]|\(\?[=!>]|\(\?\(|[*+?}][+]")
"""Matches syntax whose result may depend on the text after a match (conservative)."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop that was found, and the end of the text in characters."""

    match: str
    offset: int


class IncrementalDetokenizer:
    """The output text of one request. Owned by the request.

    Args:
        skipped: text with which the tokens begin and which is not part of the output text; stops are not searched in it.
        shows_special: special tokens stand in the text under their names, as those that a constraint asks for.
    Raises:
        ParameterError: a stop regex does not compile (on creation).
    """

    def __init__(
        self, tokenizer: Tokenizer, params: SamplingParams, *, shows_special: bool = False, skipped: str = ""
    ) -> None:
        self._tokenizer = tokenizer
        self._decoder = tokenizer.decoder(shows_special=shows_special)
        self._stops = params.stop
        self._patterns: list[tuple[str, Any, int]] = []  # source, pattern, characters that must follow a match
        for pattern in params.stop_regex:
            try:
                self._patterns.append((pattern, regex.compile(pattern), _num_ahead(pattern)))
            except regex.error as error:
                raise ParameterError("stop_regex", pattern, f"expected a valid Python re pattern: {error}") from None
        self._max_stop = max((len(stop) for stop in self._stops), default=0)
        self._skipped = skipped
        self._num_to_skip = len(skipped)
        self._text = ""
        self._num_shown = 0
        self._token_ids: list[int] = []

    @property
    def text(self) -> str:
        """All text decoded so far; after a stop or `finish`, the final text."""
        return self._text

    @property
    def shown(self) -> str:
        """The part of `text` that no stop can take back: what was streamed."""
        return self._text[: self._num_shown]

    @property
    def token_ids(self) -> list[int]:
        """The tokens of `text`."""
        return self._token_ids

    def push(self, token_id: int, *, may_stop: bool) -> tuple[str, Stop | None]:
        """Add a token; returns new text to stream and the stop that ended the text, if any.

        After a stop the object is final. With may_stop False (before min_tokens) stops are ignored.
        """
        self._token_ids.append(token_id)
        return self._take(self._decoder.push((token_id,)), may_stop)

    def finish(self) -> tuple[str, Stop | None]:
        """Finish the text; returns the remaining text to stream and a stop found in it, if any."""
        return self._take(self._decoder.flush(), True, is_whole=True)

    def _take(self, piece: str, may_stop: bool, is_whole: bool = False) -> tuple[str, Stop | None]:
        if self._num_to_skip:
            skipped = min(self._num_to_skip, len(piece))
            self._num_to_skip, piece = self._num_to_skip - skipped, piece[skipped:]
        if not piece and not is_whole:
            return "", None
        self._text += piece
        if not may_stop or not (self._stops or self._patterns):
            return self._show(len(self._text)), None
        stop = self._find(is_whole)
        if stop is None:
            return self._show(len(self._text) - (0 if is_whole else self._num_held())), None
        self._text = self._text[: stop.offset]
        self._cut_tokens()
        return self._show(stop.offset), stop

    def _show(self, end: int) -> str:
        shown = self._text[self._num_shown : end]
        self._num_shown = max(self._num_shown, end)
        return shown

    def _find(self, is_whole: bool) -> Stop | None:
        """The earliest stop in the unstreamed text; None if more text may still invalidate the match."""
        found: list[Stop] = []
        open_at = len(self._text)
        for stop in self._stops:
            at = self._text.find(stop, self._num_shown)
            if at >= 0:
                found.append(Stop(stop, at))
        for source, pattern, num_ahead in self._patterns:
            match = self._search(pattern, partial=False)
            if match is None:
                continue
            if is_whole or match.end() + num_ahead <= len(self._text):
                found.append(Stop(source, match.start()))
            else:
                open_at = min(open_at, match.start())
        first = min(found, key=lambda stop: stop.offset, default=None)
        return None if first is None or open_at < first.offset else first

    def _num_held(self) -> int:
        """Number of trailing characters that could still become part of a stop."""
        length = len(self._text)
        keep = 0
        for size in range(min(self._max_stop - 1, length - self._num_shown), 0, -1):
            if any(stop.startswith(self._text[length - size :]) for stop in self._stops):
                keep = size
                break
        for _, pattern, _ in self._patterns:
            match = self._search(pattern, partial=True)
            if match is not None:
                keep = max(keep, length - match.start())
        return keep

    def _search(self, pattern: Any, *, partial: bool) -> Any:
        try:
            return pattern.search(self._text, pos=self._num_shown, partial=partial, timeout=SEARCH_TIMEOUT_S)
        except TimeoutError:
            raise RequestError(
                f"stop_regex = {pattern.pattern!r}: the search took more than {SEARCH_TIMEOUT_S:g} s"
            ) from None

    def _cut_tokens(self) -> None:
        """Truncate the tokens to the cut text: whole tokens are kept, a partial one is re-encoded."""
        if not self._text:
            self._token_ids = []
            return
        text = self._skipped + self._text
        kept = longest_token_prefix(self._tokenizer, self._token_ids, text)
        prefix = self._tokenizer.decode(self._token_ids[:kept])
        rest = text[len(prefix) :]
        self._token_ids = self._token_ids[:kept]
        if rest:
            self._token_ids += self._tokenizer.encode(rest, is_start=False)


def _num_ahead(pattern: str) -> int:
    """Number of characters that must follow a match before it counts.

    0 unless the pattern looks ahead: at the end of unfinished text, `\\bfor\\b` would match the start of "forest". A pattern is
    assumed to look ahead no farther than its own length.
    """
    return len(pattern) + 1 if _LOOKS_AHEAD.search(pattern) else 0


def longest_token_prefix(tokenizer: Tokenizer, token_ids: Sequence[int], text: str) -> int:
    """Number of leading tokens that decode to a prefix of `text` and end on a character boundary."""
    cut = text.encode()
    num_bytes, kept = 0, 0
    for index, token_id in enumerate(token_ids, 1):
        num_bytes += len(tokenizer.token_bytes(token_id))
        if num_bytes > len(cut):
            break
        if num_bytes == len(cut) or cut[num_bytes] & 0xC0 != 0x80:
            kept = index
    while kept and not text.startswith(tokenizer.decode(token_ids[:kept])):  # undecodable bytes distort the count
        kept -= 1
    return kept
