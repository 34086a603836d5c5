"""Token sequences of graph nodes.

Text is encoded once, when it is added; generated tokens are never re-encoded. Chat messages are written by the tokenizer's chat template,
which also determines whether a conversation begins with a start token (`rtlang.model.text.conversation`). Message contents are plain text
and never become special tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from rtlang.contract.errors import ContextLengthError, ParameterError, RequestError
from rtlang.contract.request_graph import Arg, Part, Ref, RoleEnd, RoleStart, TokenIds
from rtlang.model.text import tracked_text
from rtlang.model.text.conversation import Conversation, common_prefix
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.texts.borders import MessageEnds


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """The tokens up to and including a node, and the chat messages started so far (the last one may be open).

    Attributes:
        own_ids: the tokens after `before`. Each node stores only its own tokens, so long chains stay small.
        base: the sequence before the text that the conversation says was written; None if that text cannot be replaced.
        own_ends: positions in the sequence at which messages end within `own_ids`, ascending; empty unless they were asked for.
        num_constant: tokens at the start that are the same in every run of the program, as far as that was asked for.
        is_constant: nothing was generated in it, and no input or generated value is in it.
    """

    own_ids: tuple[int, ...] = ()
    conversation: Conversation = field(default_factory=Conversation)
    before: TokenSequence | None = None
    num_before: int = 0
    base: TokenSequence | None = None
    own_ends: tuple[int, ...] = ()
    num_constant: int = 0
    is_constant: bool = True

    def __len__(self) -> int:
        return self.num_before + len(self.own_ids)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All tokens from the start; computed on each access."""
        return tuple(chain.from_iterable([piece.own_ids for piece in self.pieces()]))

    @property
    def ends(self) -> tuple[int, ...]:
        """The positions at which messages end, ascending, as far as they were asked for; computed on each access."""
        return tuple(chain.from_iterable([piece.own_ends for piece in self.pieces()]))

    def pieces(self) -> list[TokenSequence]:
        """The sequences that end with the own tokens of each part of this one, the shortest first."""
        found: list[TokenSequence] = []
        at: TokenSequence | None = self
        while at is not None:
            found.append(at)
            at = at.before
        return found[::-1]

    def without_last(self) -> TokenSequence:
        """This sequence without its last token, with the same messages."""
        own_ids, own_ends, before = self.own_ids, self.own_ends, self.before
        if not own_ids:
            own_ids, own_ends, before = self.token_ids, self.ends, None
        num_before = 0 if before is None else self.num_before
        length = len(self) - 1
        return replace(
            self,
            own_ids=own_ids[:-1],
            before=before,
            num_before=num_before,
            own_ends=tuple(end for end in own_ends if end <= length),
            num_constant=min(self.num_constant, length),
        )

    def followed_by(self, token_ids: Sequence[int], ends: Sequence[int] = ()) -> TokenSequence:
        """This sequence followed by more tokens, with the same messages; `ends`: the positions at which messages end among them."""
        return TokenSequence(  # `replace` takes 1.5 us more
            tuple(token_ids),
            self.conversation,
            self,
            len(self),
            self.base,
            tuple(ends),
            self.num_constant,
            self.is_constant,
        )

    def generated(self, token_ids: Sequence[int], text: str) -> TokenSequence:
        """This sequence followed by generated tokens and their text."""
        after = self.followed_by(token_ids)
        if not self.conversation.is_open:
            return replace(after, base=None, is_constant=False)
        return replace(after, conversation=self.conversation.grown(text), is_constant=False)


def append_text(
    before: TokenSequence,
    parts: Sequence[Part],
    tokenizer: Tokenizer,
    inputs: Mapping[str, str],
    text_of: Callable[[Ref], str],
    max_tokens: int,
    *,
    is_constant: bool = False,
    message_ends: MessageEnds | None = None,
) -> TokenSequence:
    """Append the text of `parts` to a sequence. Adjacent strings are encoded together.

    Args:
        max_tokens: maximum length of the whole sequence; checked before encoding where possible.
        is_constant: the text is part of a program, so that its tokens are worth remembering.
        message_ends: finds where messages end; None does not look for it.
    Raises:
        ContextLengthError: the sequence exceeds max_tokens; the error gives the known count or a lower bound.
        RequestError: messages are nested, or tools are given with a later message.
        ParameterError: the chat template refuses the messages, or a token id is not in the vocabulary.
    """
    writer = _Writer(before, tokenizer, max_tokens, message_ends, is_constant=is_constant)
    texts = [_text_of(part, inputs, text_of) for part in parts]
    at = 0
    while at < len(parts):
        part, text = parts[at], texts[at]
        at += 1
        match part:
            case RoleStart():
                end = _end_of_message(parts, at)
                if end is None:
                    writer.open(part)
                else:
                    writer.add_message(part, "".join(text or "" for text in texts[at:end]))
                    at = end + 1
            case RoleEnd():
                writer.close()
            case TokenIds():
                writer.add_ids(part.ids)
            case _:
                writer.add(text or "")
    return writer.end()


def num_common(first: TokenSequence, second: TokenSequence) -> int:
    """The number of tokens with which both sequences begin."""
    if first is second:
        return len(first)
    a, b = first.token_ids, second.token_ids
    low, high = 0, min(len(a), len(b))
    while low < high:  # bisection on slices, which compare at C speed
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


def _text_of(part: Part, inputs: Mapping[str, str], text_of: Callable[[Ref], str]) -> str | None:
    match part:
        case str():
            return part
        case Ref():
            return text_of(part)
        case Arg():
            return inputs[part.name]
    return None


def _end_of_message(parts: Sequence[Part], start: int) -> int | None:
    """The place of the end of a message whose whole content is text; None if the message is longer, or has tokens."""
    for at in range(start, len(parts)):
        if isinstance(parts[at], RoleEnd):
            return at
        if isinstance(parts[at], RoleStart | TokenIds):
            return None
    return None


class _Writer:
    """Appends parts to a sequence."""

    def __init__(
        self,
        before: TokenSequence,
        tokenizer: Tokenizer,
        max_tokens: int,
        message_ends: MessageEnds | None,
        *,
        is_constant: bool,
    ) -> None:
        self._message_ends = message_ends
        self._sequence, self._tokenizer, self._max_tokens = before, tokenizer, max_tokens
        self._encode = tokenizer.constant_texts.encode if is_constant else tokenizer.encode
        self._token_ids: list[int] = []
        self._buffer: list[str] = []
        self._num_chars = 0
        self._given: list[tuple[str, str]] = []  # closed messages that the template has not written yet
        self._is_behind = False

    @property
    def _conversation(self) -> Conversation:
        return self._sequence.conversation

    @_conversation.setter
    def _conversation(self, conversation: Conversation) -> None:
        self._sequence = replace(self._sequence, conversation=conversation)

    def _begin(self, part: RoleStart) -> None:
        conversation = self._conversation
        if conversation.is_open:
            raise RequestError(f"a {part.role} message starts inside a {conversation.messages[-1][0]} message")
        self._flush()
        has_settings = part.tools is not None or part.template_options is not None
        if not conversation.messages and not self._given:
            self._sequence = replace(self._settled(), base=self._settled())
            if has_settings:
                self._conversation = conversation.with_settings(part.tools, part.template_options)
        elif has_settings:
            raise RequestError("tools and template options are allowed on the first message only")

    def open(self, part: RoleStart) -> None:
        """Open a message that is not closed in these parts, or has tokens."""
        self._begin(part)
        self._conversation = self._all_messages().opened(part.role)
        self._write()

    def add_message(self, part: RoleStart, content: str) -> None:
        """Add a message all of whose text is known."""
        self._begin(part)
        self._count(content)
        self._check(len(self._given) + 1)  # a message has at least one token
        self._given.append((part.role, content))
        self._is_behind = True

    def close(self) -> None:
        """Close the open message, some of whose tokens are in the sequence."""
        if not self._conversation.is_open:
            raise RequestError("a message is closed that was never opened")
        self._flush()
        self._conversation = self._conversation.closed()
        self._sequence = replace(self._settled(), base=self._settled())
        self._is_behind = True

    def add(self, text: str) -> None:
        """Add text, to the open message if there is one."""
        if not text:
            return
        if self._conversation.is_open:
            self._conversation = self._conversation.grown(text)
        else:
            self._catch_up()
            self._sequence = replace(self._sequence, base=None)
        self._buffer.append(text)
        self._count(text)

    def add_ids(self, token_ids: Sequence[int]) -> None:
        """Add tokens as they are."""
        num_ids = self._tokenizer.num_ids
        if token_ids and max(token_ids) >= num_ids:
            raise ParameterError("token_ids", max(token_ids), f"expected ids from 0 to {num_ids - 1}")
        self._flush()
        if self._conversation.is_open:
            self._conversation = self._conversation.grown(self._tokenizer.decode(token_ids))
        else:
            self._catch_up()
            self._sequence = replace(self._sequence, base=None)
        self._token_ids.extend(token_ids)
        self._check()

    def end(self) -> TokenSequence:
        """The sequence with all parts."""
        self._flush()
        self._catch_up()
        return self._settled()

    def _settled(self) -> TokenSequence:
        """The sequence with all tokens so far."""
        if self._token_ids:
            finder = self._message_ends
            ends = () if finder is None else finder.find(self._token_ids, len(self._sequence))
            self._sequence = self._sequence.followed_by(self._token_ids, ends)
            self._token_ids = []
        return self._sequence

    def _all_messages(self) -> Conversation:
        conversation = self._conversation.with_messages(self._given)
        self._given = []
        return conversation

    def _catch_up(self) -> None:
        """Let the template write the closed messages. One that it refuses may be accepted together with the next one."""
        if self._is_behind:
            self._conversation = self._all_messages()
            try:
                self._write()
            except ParameterError as error:
                self._conversation = replace(self._conversation, refusal=error)
            self._is_behind = False

    def _write(self) -> None:
        """Append what the template writes for the messages and is not written yet."""
        conversation, sequence = self._conversation, self._sequence
        chat = self._tokenizer.chat.with_settings(conversation.tools, conversation.template_options)
        text = conversation.text(chat)
        base = sequence.base
        if conversation.anchor is None and base is not None and len(base):
            text = text.removeprefix(self._tokenizer.bos_name)
        done = conversation.written
        if text.startswith(done):
            text = text[len(done) :]
        elif base is not None:
            self._token_ids, self._sequence = [], replace(base, conversation=conversation, base=base)
            done = ""
        else:
            num_common = common_prefix(text, done)
            text, done = text[num_common:], tracked_text.plain(text)[:num_common]
        self._num_chars = 0
        self._count(text)
        is_start = not (len(self._sequence) or self._token_ids)
        messages = conversation.plain_messages[: -1 if conversation.is_open else None]
        cuts = chat.cuts(text, messages, ends_with_prompt=conversation.is_open)
        self._token_ids += chat.encode(text, is_start=is_start, cuts=cuts, encode=self._encode)
        self._conversation = replace(conversation, written=done + tracked_text.plain(text), refusal=None)
        self._is_behind = False
        self._num_chars = 0
        self._check()

    def _count(self, text: str) -> None:
        """Check the length of the sequence before encoding: every character takes at least one byte."""
        self._num_chars += len(text)
        self._check(self._num_chars // self._tokenizer.longest_token)

    def _flush(self) -> None:
        """Encode the text that was added."""
        if self._buffer:
            is_start = not (len(self._sequence) or self._token_ids)
            if is_start:
                self._token_ids += self._tokenizer.start_ids()
            self._token_ids += self._encode("".join(self._buffer), is_start=is_start)
            self._buffer.clear()
        self._num_chars = 0
        self._check()

    def _check(self, num_more: int = 0) -> None:
        num_tokens = len(self._sequence) + len(self._token_ids) + num_more
        if num_tokens > self._max_tokens:
            raise ContextLengthError(num_tokens, 0, self._max_tokens)
