"""Incremental detokenization with stop strings and stop patterns.

Text is held back only while it could still become part of a stop, so no part of a stop string is ever streamed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from rtlang.contract.params import SamplingParams
from rtlang.engine.constraints.stop_search import Stop, StopPattern, StopSearch
from rtlang.model.text.tokenizer import Tokenizer


class IncrementalDetokenizer:
    """The output text of one request. Owned by the request.

    Args:
        skipped: text with which the tokens begin and which is not part of the output text; stops are not searched in it.
        shows_special: special tokens stand in the text under their names, as those that a constraint asks for.
        patterns: the compiled patterns of `stop_regex`; `search_for` gives them later.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        params: SamplingParams,
        *,
        shows_special: bool = False,
        skipped: str = "",
        patterns: Sequence[StopPattern] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self._decoder = tokenizer.decoder(shows_special=shows_special)
        self._bytes_of = tokenizer.named_bytes if shows_special else tokenizer.token_bytes
        self._strings, self._includes_stop = params.stop, params.include_stop_str_in_output
        self._search: StopSearch | None = None
        if params.stop or patterns:
            self._search = StopSearch(params.stop, patterns)
        self._skipped = skipped
        self._num_to_skip = len(skipped)
        self._text = ""
        self._num_shown = 0
        self._token_ids: list[int] = []

    def search_for(self, patterns: Sequence[StopPattern], may_begin: Callable[[int], bool] | None = None) -> None:
        """Search for these patterns as well. Call before the first token.

        Args:
            may_begin: whether a stop may begin at an offset of the text; None: anywhere.
        """
        assert not self._token_ids
        self._search = StopSearch(self._strings, patterns, may_begin) if self._strings or patterns else None

    @property
    def special_token_ids(self) -> Collection[int]:
        """The special tokens of the tokenizer, which have no text but their names."""
        return self._tokenizer.special_token_ids

    @property
    def text(self) -> str:
        """All text decoded so far; after a stop or `finish`, the final text."""
        return self._text

    @property
    def shown(self) -> str:
        """The part of `text` that no stop can take back: the streamed part."""
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
        search = self._search
        if search is None:
            return self._show(len(self._text)), None
        if not may_stop:
            search.skip(piece)
            return self._show(len(self._text)), None
        stop = search.push(piece) if piece else None
        if stop is None and is_whole:
            stop = search.finish()
        if stop is None:
            return self._show(len(self._text) if is_whole or self._includes_stop else search.open_from), None
        end = search.num_chars if self._includes_stop else stop.offset
        if end < len(self._text):
            self._text = self._text[:end]
            self._cut_tokens()
        return self._show(end), stop

    def _show(self, end: int) -> str:
        shown = self._text[self._num_shown : end]
        self._num_shown = max(self._num_shown, end)
        return shown

    def _cut_tokens(self) -> None:
        """Truncate the tokens to the cut text: whole tokens are kept, a partial one is re-encoded."""
        if not self._text:
            self._token_ids = []
            return
        text = self._skipped + self._text
        kept = longest_token_prefix(self._bytes_of, self._token_ids, text)
        prefix = _text_of(self._bytes_of, self._token_ids[:kept])
        rest = text[len(prefix) :]
        self._token_ids = self._token_ids[:kept]
        if rest:
            self._token_ids += self._tokenizer.encode(rest, is_start=False)


def longest_token_prefix(bytes_of: Callable[[int], bytes], token_ids: Sequence[int], text: str) -> int:
    """Number of leading tokens that decode to a prefix of `text` and end on a character boundary.

    Args:
        bytes_of: the bytes that a token adds to the text.
    """
    cut = text.encode()
    num_bytes, kept = 0, 0
    for index, token_id in enumerate(token_ids, 1):
        num_bytes += len(bytes_of(token_id))
        if num_bytes > len(cut):
            break
        if num_bytes == len(cut) or cut[num_bytes] & 0xC0 != 0x80:
            kept = index
    while kept and not text.startswith(_text_of(bytes_of, token_ids[:kept])):  # undecodable bytes distort the count
        kept -= 1
    return kept


def _text_of(bytes_of: Callable[[int], bytes], token_ids: Sequence[int]) -> str:
    return b"".join(map(bytes_of, token_ids)).decode("utf-8", "replace")
