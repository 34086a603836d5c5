"""The tokens of a sequence as a graph grows it.

Text is encoded once, where it enters, after the text that it follows; what was generated is continued by its own token ids. Chat
messages are framed by the tokenizer's template, which also says whether a conversation begins with a start token; their contents are
always plain text and never become special tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from rtlang.contract.errors import ContextLengthError, RequestError
from rtlang.contract.graph import Arg, Part, Ref, RoleEnd, RoleStart
from rtlang.model.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """The tokens up to and including a node, and the chat messages begun so far (the last one still open or not).

    Attributes:
        own_ids: the tokens that come after `before`. Each node holds its own only, so a long chain of nodes stays small.
    """

    own_ids: tuple[int, ...] = ()
    roles: tuple[str, ...] = ()
    is_open: bool = False
    before: TokenSequence | None = None
    num_before: int = 0

    def __len__(self) -> int:
        return self.num_before + len(self.own_ids)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All tokens from the start; put together anew each time."""
        pieces: list[tuple[int, ...]] = []
        at: TokenSequence | None = self
        while at is not None:
            pieces.append(at.own_ids)
            at = at.before
        return tuple(chain.from_iterable(reversed(pieces)))

    def followed_by(
        self, token_ids: Sequence[int], roles: tuple[str, ...] | None = None, is_open: bool | None = None
    ) -> TokenSequence:
        """This sequence with more tokens; with the same messages unless others are given."""
        return TokenSequence(
            tuple(token_ids),
            self.roles if roles is None else roles,
            self.is_open if is_open is None else is_open,
            self,
            len(self),
        )


def append_text(
    before: TokenSequence,
    parts: Sequence[Part],
    tokenizer: Tokenizer,
    inputs: Mapping[str, str],
    text_of: Callable[[Ref], str],
    max_tokens: int,
) -> TokenSequence:
    """The sequence with the text of `parts` after it. Neighbouring pieces of text are encoded as one.

    Args:
        max_tokens: of the whole sequence. What has to be longer is refused before it is put together and encoded.
    Raises:
        ContextLengthError: more than max_tokens tokens; the error counts those known so far, or the fewest that the text can have.
        RequestError: messages do not nest. Whatever the chat template refuses.
    """
    token_ids: list[int] = []
    roles, is_open = before.roles, before.is_open
    buffer: list[str] = []
    num_chars = 0

    def check(num_more: int = 0) -> None:
        num_tokens = len(before) + len(token_ids) + num_more
        if num_tokens > max_tokens:
            raise ContextLengthError(num_tokens, 0, max_tokens)

    def add(text: str) -> None:
        nonlocal num_chars
        buffer.append(text)
        num_chars += len(text)  # no character is less than a byte
        check(num_chars // tokenizer.longest_token)

    def flush() -> None:
        nonlocal num_chars
        if text := "".join(buffer):
            is_start = not (len(before) or token_ids)
            if is_start:
                token_ids.extend(tokenizer.start_ids())
            token_ids.extend(tokenizer.encode(text, is_start=is_start))
        buffer.clear()
        num_chars = 0
        check()

    for part in parts:
        match part:
            case str():
                add(part)
            case Ref():
                add(text_of(part))
            case Arg():
                add(inputs[part.name])
            case RoleStart():
                if is_open:
                    raise RequestError(f"a {part.role} message begins inside a {roles[-1]} message")
                flush()
                token_ids.extend(tokenizer.chat.open(roles, part.role, is_start=not (len(before) or token_ids)))
                roles, is_open = (*roles, part.role), True
            case RoleEnd():
                if not is_open:
                    raise RequestError("a message ends that was not begun")
                flush()
                token_ids.extend(tokenizer.chat.close(roles))
                is_open = False
    flush()
    return before.followed_by(token_ids, roles, is_open)
