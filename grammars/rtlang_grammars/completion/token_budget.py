"""Ends a constrained text within its token budget.

A generation that must end within a number of tokens is safe as long as some completion path fits in the remaining tokens. `TokenBudget`
keeps one such path. Most tokens follow it or leave it valid, which costs one comparison or one check. A token that opens something new
needs a search, and a token after which no path would fit is replaced by the next token of the current path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rtlang_grammars.completion.completion_path import CompletionPath
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.protocols import GrammarMatcher
from rtlang_grammars.spec.tokens import TOKEN_LEAD, spelling
from rtlang_grammars.spec.work_limit import WorkLimit, WorkLimitError

_BLANKS = b" \t\n\r"
_BYTES_A_UNIT = 32  # of a path that is followed, see WorkLimit


class TokenBudget:
    """Keeps a completion path of one generation that fits in its remaining tokens. Owned by one generation.

    Invariant: if a path within the first budget was known at the start, then after every `advance` a path within the remaining tokens is
    known, so a text that uses up its budget is complete.
    """

    __slots__ = ("_offset", "_path", "_rest", "_search")

    def __init__(self, search: CompletionSearch, path: CompletionPath) -> None:
        self._search, self._path, self._offset = search, path, 0
        self._rest: tuple[CompletionPath, int, bytes | None] | None = None  # see `_plain_rest`

    @property
    def num_tokens_needed(self) -> int:
        """Tokens of the current path."""
        return self._path.cost(self._offset)

    def next_token(self) -> int | None:
        """The next token of the current path; None if the text is complete."""
        return None if self._offset == len(self._path.data) else self._path.token_ids(self._offset)[0]

    def shown(self, token_id: int) -> bytes:
        """The text of a token; for a special token its name."""
        return self._search.vocabulary.shown((token_id,))

    def after(self, matcher: GrammarMatcher, token_id: int, remaining: int) -> TokenBudget | None:
        """The budget after a token, to choose among several; changes neither this budget nor the matcher.

        Args:
            matcher: in the state before the token.
            token_id, remaining: as in `advance`.
        Returns:
            None if no completion would fit after the token.
        Raises:
            GrammarError: `token_id` is not allowed.
        """
        budget = TokenBudget(self._search, self._path)
        budget._offset = self._offset
        if not matcher.accept_token(token_id):
            raise GrammarError(f"token_id = {token_id}: not allowed by the constraint")
        fits = budget._fits_after(matcher, token_id, remaining - 1, None)
        matcher.rollback(1)
        return budget if fits else None

    def advance_known(self, accept: Callable[[int, bytes], bool], token_id: int, remaining: int) -> bool:
        """Accept a token as `advance` does, if the matcher remembers that the current path stays valid. Does no work and never waits.

        Args:
            accept: `MachineMatcher.accept_known` of the matcher.
            token_id, remaining: as in `advance`.
        Returns:
            False: nothing has changed, and `advance` has to do it.
        """
        rest = self._plain_rest()
        if rest is None or len(rest) >= remaining:
            return False
        if rest and rest[0] in self._search.vocabulary.spelled(token_id):  # it may stand for the beginning of the path
            return False
        return accept(token_id, rest)

    def _plain_rest(self) -> bytes | None:
        """The rest of the path, if it fits wherever it has as many bytes as there are tokens left; None if that has to be found out.

        Only tokens with the first byte of the rest may then shorten it: `_fits_after` looks at all of the rest first for any other token.
        """
        path, offset, known = self._path, self._offset, self._rest
        if known is not None and known[0] is path and known[1] == offset:
            return known[2]
        rest: bytes | None = path.data[offset:]
        if path.data and (not rest or rest[0] == TOKEN_LEAD or not self._search.table.has_every_byte):
            rest = None
        self._rest = path, offset, rest
        return rest

    def advance(
        self, matcher: GrammarMatcher, token_id: int, remaining: int, work: WorkLimit | None = None
    ) -> int | None:
        """Accept a token, or replace it if no completion would fit after it.

        Args:
            matcher: in the state before the token; advanced by the returned one.
            token_id: an allowed token that does not end the text.
            remaining: tokens that may still be generated, this one included; at least 1.
            work: the work that may be done; None for no limit.
        Returns:
            `token_id`, or the first token of the current path. None if the text was complete and the token would have begun something
            that cannot be completed in time: the text ends here, and the matcher is unchanged.
        Raises:
            GrammarError: `token_id` is not allowed.
            WorkLimitError: more than `work` is needed; nothing was changed.
        """
        if not matcher.accept_token(token_id):
            raise GrammarError(f"token_id = {token_id}: not allowed by the constraint")
        try:
            if self._fits_after(matcher, token_id, remaining - 1, work):
                return token_id
        except WorkLimitError:
            matcher.rollback(1)
            raise
        path, offset = self._path, self._offset
        matcher.rollback(1)
        if offset == len(path.data):
            return None
        steered = path.head(offset, 1)[0]
        if not matcher.accept_token(steered):
            raise GrammarError("the matcher does not accept the completion path")
        self._offset = offset + path.num_first_bytes(offset)
        return steered

    def _fits_after(self, matcher: GrammarMatcher, token_id: int, left: int, work: WorkLimit | None) -> bool:
        """Keep a path of at most `left` tokens for the text after `token_id`. Returns False, and changes nothing, if none is found."""
        path, offset = self._path, self._offset
        data = path.data
        if not data and matcher.is_accepting:
            return True
        text = self._search.vocabulary.spelled(token_id)
        is_open = offset < len(data)
        if is_open and data[offset] == TOKEN_LEAD and data.startswith(as_itself := spelling(token_id), offset):
            text = as_itself
        if data.startswith(text, offset):
            if path.fits(left, offset + len(text), work):
                self._offset = offset + len(text)
                return True
            return matcher.is_accepting and self._hold_nothing()
        if is_open:
            # The token may have been inserted before the path, or may stand for its beginning: in part, with blanks in between, or byte for
            # byte as in a fixed form.
            past = min(offset + len(text), len(data))
            places: Iterable[int] = (offset, past)
            if data[offset] == text[0] or text[0] in _BLANKS:
                common = offset + _common_length(data, offset, text)
                places = dict.fromkeys((_end_with_blanks(data, offset, text), offset, common, past))
            is_known, fits_by_bytes = False, self._search.table.has_every_byte
            for at in places:
                num_bytes = len(data) - at
                if work is not None and num_bytes >= _BYTES_A_UNIT:
                    work.spend(num_bytes // _BYTES_A_UNIT)
                if matcher.completes_bytes(data[at:]):
                    if (fits_by_bytes and num_bytes <= left) or path.fits(left, at, work):
                        self._offset = at
                        return True
                    is_known = True
            if is_known:  # the token only made the text longer, as inside a string: the path still completes it
                return matcher.is_accepting and self._hold_nothing()
        if matcher.is_accepting:
            return self._hold_nothing()
        found = self._search.find(matcher, left, path, work) if left else None
        if found is None:
            return False
        self._path, self._offset = found, 0
        return True

    def _hold_nothing(self) -> bool:
        """Keep the empty path, since the text is complete as it is."""
        if self._path.data:
            self._path = CompletionPath(b"", self._search.table)
        self._offset = 0
        return True


def _common_length(data: bytes, offset: int, text: bytes) -> int:
    length = 0
    while length < len(text) and offset + length < len(data) and data[offset + length] == text[length]:
        length += 1
    return length


def _end_with_blanks(data: bytes, offset: int, text: bytes) -> int:
    """Where the part of `text` found at `offset` ends, ignoring blanks that are not in `data`."""
    for byte in text:
        if offset < len(data) and data[offset] == byte:
            offset += 1
        elif byte not in _BLANKS:
            break
    return offset
