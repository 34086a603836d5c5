"""Finds the ends of chat messages in token sequences, where other conversations are expected to leave them.

A template closes each message with a special token, and contents never become special tokens. So the ends of messages are found in tokens,
whoever made them: this runtime, a client that sends tokens, or a server that has written a whole conversation. Which special tokens close
messages is read from conversations that the template writes. A template that closes messages with plain text has no borders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from weakref import WeakKeyDictionary

from rtlang.contract.errors import ParameterError
from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.conversation import MARK, end_of, start_of
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.model.text.tracked_text import TextSource

NUM_LAST = 2
"""Ends of the last messages that matter: the next turn, another answer, and another question follow them."""
_ROLES = (
    ("system", "user", "assistant", "user"),
    ("user", "assistant", "user"),
    ("user", "assistant"),
    ("user",),
)
"""Roles of conversations that show how messages are closed; a template may refuse a system message, or begin no answer."""


class MessageEnds:
    """The special tokens with which the chat template of a tokenizer closes messages.

    Attributes:
        closing_ids: ids of the tokens; empty if messages end with other text.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.closing_ids = frozenset(_closing_ids(tokenizer))

    def find(self, token_ids: Sequence[int], start: int = 0) -> tuple[int, ...]:
        """The positions after the messages that end in these tokens, ascending.

        Args:
            start: position of the first of the tokens.
        """
        closing_ids = self.closing_ids
        if closing_ids.isdisjoint(token_ids):
            return ()
        return tuple([at for at, token_id in enumerate(token_ids, start + 1) if token_id in closing_ids])


_KNOWN: WeakKeyDictionary[Tokenizer, MessageEnds] = WeakKeyDictionary()


def message_ends_of(tokenizer: Tokenizer) -> MessageEnds:
    """The ends of messages of a tokenizer, found on first use, which renders a few short conversations. Thread-safe."""
    found = _KNOWN.get(tokenizer)
    if found is None:
        found = _KNOWN[tokenizer] = MessageEnds(tokenizer)
    return found


def chosen_ends(ends: Sequence[int]) -> set[int]:
    """The ends of messages of a sequence that matter at its end: the first, which closes the system message, and the last ones."""
    return {*ends[:1], *ends[-NUM_LAST:]}


def _closing_ids(tokenizer: Tokenizer) -> Iterator[int]:
    """The first special token after each message of some conversations, before the content of the next one."""
    special_ids = tokenizer.special_token_ids
    for text in _texts_after_messages(tokenizer.chat):
        token_ids = tokenizer.encode(text, is_start=False, allow_special=True)
        closing = next((each for each in token_ids if each in special_ids), None)
        if closing is not None:
            yield closing


def _texts_after_messages(chat: ChatTemplate) -> Iterator[str]:
    for roles in _ROLES:
        messages = [{"role": role, "content": MARK} for role in roles]
        try:
            text = chat.render(messages, adds_prompt=roles[-1] == "user")
        except ParameterError:
            continue
        sources = [TextSource(index, "content") for index in range(len(roles))]
        for source, following in pairwise(sources):
            end, start = end_of(text, source), start_of(text, following)
            if end is not None and start is not None and end < start:
                yield text[end:start]
        end = end_of(text, sources[-1])
        if end is not None:
            yield text[end:]
