"""The tokens of a sequence as a graph grows it.

Text is encoded once, where it enters, after the text that it follows; what was generated is continued by its own token ids. Chat
messages are framed by the tokenizer's template, which also says whether a conversation begins with a start token; their contents are
always plain text and never become special tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rtlang.errors import RequestError
from rtlang.lang.graph import Arg, Part, Ref, RoleEnd, RoleStart
from rtlang.model.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """The tokens up to and including a node, and the chat messages begun so far (the last one still open or not)."""

    token_ids: tuple[int, ...]
    roles: tuple[str, ...] = ()
    is_open: bool = False


def append_text(
    before: TokenSequence,
    parts: Sequence[Part],
    tokenizer: Tokenizer,
    inputs: Mapping[str, str],
    text_of: Callable[[Ref], str],
) -> TokenSequence:
    """The sequence with the text of `parts` after it. Neighbouring pieces of text are encoded as one.

    Raises:
        RequestError: messages do not nest. Whatever the chat template refuses.
    """
    token_ids = list(before.token_ids)
    roles, is_open = before.roles, before.is_open
    buffer: list[str] = []

    def flush() -> None:
        if text := "".join(buffer):
            is_start = not token_ids
            if is_start:
                token_ids.extend(tokenizer.start_ids())
            token_ids.extend(tokenizer.encode(text, is_start=is_start))
        buffer.clear()

    for part in parts:
        match part:
            case str():
                buffer.append(part)
            case Ref():
                buffer.append(text_of(part))
            case Arg():
                buffer.append(inputs[part.name])
            case RoleStart():
                if is_open:
                    raise RequestError(f"a {part.role} message begins inside a {roles[-1]} message")
                flush()
                token_ids.extend(tokenizer.chat.open(roles, part.role, is_start=not token_ids))
                roles, is_open = (*roles, part.role), True
            case RoleEnd():
                if not is_open:
                    raise RequestError("a message ends that was not begun")
                flush()
                token_ids.extend(tokenizer.chat.close(roles))
                is_open = False
    flush()
    return TokenSequence(tuple(token_ids), roles, is_open)
