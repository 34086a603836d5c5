"""Token sequences of graph nodes.

Text is encoded once, when it is added; generated tokens are never re-encoded. Chat messages are framed by the tokenizer's template,
which also determines whether a conversation begins with a start token. Message contents are plain text and never become special tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from rtlang.contract.errors import ContextLengthError, ParameterError, RequestError
from rtlang.contract.graph import Arg, Part, Ref, RoleEnd, RoleStart, TokenIds
from rtlang.model.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """The tokens up to and including a node, and the chat messages started so far (the last one may be open).

    Attributes:
        own_ids: the tokens after `before`. Each node stores only its own tokens, so long chains stay small.
        tools: the tools of the conversation, given with its first message, as JSON text.
    """

    own_ids: tuple[int, ...] = ()
    roles: tuple[str, ...] = ()
    is_open: bool = False
    before: TokenSequence | None = None
    num_before: int = 0
    tools: str | None = None

    def __len__(self) -> int:
        return self.num_before + len(self.own_ids)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All tokens from the start; computed on each access."""
        pieces: list[tuple[int, ...]] = []
        at: TokenSequence | None = self
        while at is not None:
            pieces.append(at.own_ids)
            at = at.before
        return tuple(chain.from_iterable(reversed(pieces)))

    def without_last(self) -> TokenSequence:
        """This sequence without its last token, with the same messages."""
        own_ids, before = (self.own_ids, self.before) if self.own_ids else (self.token_ids, None)
        num_before = 0 if before is None else self.num_before
        return TokenSequence(own_ids[:-1], self.roles, self.is_open, before, num_before, self.tools)

    def followed_by(
        self,
        token_ids: Sequence[int],
        roles: tuple[str, ...] | None = None,
        is_open: bool | None = None,
        tools: str | None = None,
    ) -> TokenSequence:
        """This sequence followed by more tokens, with the same messages unless given."""
        return TokenSequence(
            tuple(token_ids),
            self.roles if roles is None else roles,
            self.is_open if is_open is None else is_open,
            self,
            len(self),
            self.tools if tools is None else tools,
        )


def append_text(
    before: TokenSequence,
    parts: Sequence[Part],
    tokenizer: Tokenizer,
    inputs: Mapping[str, str],
    text_of: Callable[[Ref], str],
    max_tokens: int,
    *,
    is_constant: bool = False,
) -> TokenSequence:
    """Append the text of `parts` to a sequence. Adjacent strings are encoded together.

    Args:
        max_tokens: maximum length of the whole sequence; checked before encoding where possible.
        is_constant: the text is part of a program, so that its tokens are worth remembering.
    Raises:
        ContextLengthError: the sequence exceeds max_tokens; the error gives the known count or a lower bound.
        RequestError: messages are nested, or tools are given with a later message.
        ParameterError: the chat template refuses a role, or a token id is not in the vocabulary.
    """
    token_ids: list[int] = []
    roles, is_open, tools = before.roles, before.is_open, before.tools
    chat = tokenizer.chat.with_tools(tools)
    buffer: list[str] = []
    num_chars = 0
    encode = tokenizer.constant_texts.encode if is_constant else tokenizer.encode

    def check(num_more: int = 0) -> None:
        num_tokens = len(before) + len(token_ids) + num_more
        if num_tokens > max_tokens:
            raise ContextLengthError(num_tokens, 0, max_tokens)

    def add(text: str) -> None:
        nonlocal num_chars
        buffer.append(text)
        num_chars += len(text)  # every character takes at least one byte
        check(num_chars // tokenizer.longest_token)

    def flush() -> None:
        nonlocal num_chars
        if text := "".join(buffer):
            is_start = not (len(before) or token_ids)
            if is_start:
                token_ids.extend(tokenizer.start_ids())
            token_ids.extend(encode(text, is_start=is_start))
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
                    raise RequestError(f"a {part.role} message starts inside a {roles[-1]} message")
                flush()
                if part.tools is not None:
                    if roles:
                        raise RequestError(
                            f"tools are given with the first message, not with a {part.role} message behind others"
                        )
                    tools, chat = part.tools, tokenizer.chat.with_tools(part.tools)
                token_ids.extend(chat.open(roles, part.role, is_start=not (len(before) or token_ids)))
                roles, is_open = (*roles, part.role), True
            case RoleEnd():
                if not is_open:
                    raise RequestError("a message is closed that was never opened")
                if len(roles) == 1 and chat.description_of_tools:
                    add(chat.description_of_tools)
                flush()
                token_ids.extend(chat.close(roles))
                is_open = False
            case TokenIds():
                flush()
                check(len(part.ids))
                if part.ids and max(part.ids) >= tokenizer.num_ids:
                    raise ParameterError("token_ids", max(part.ids), f"expected ids from 0 to {tokenizer.num_ids - 1}")
                token_ids.extend(part.ids)
    flush()
    return before.followed_by(token_ids, roles, is_open, tools)
