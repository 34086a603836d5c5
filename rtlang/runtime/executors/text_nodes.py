"""Encodes text nodes, long ones beside the engine thread.

A text node of some thousand characters, with a long conversation before it or with tools, takes longer to encode than the engine thread may
be held. It is encoded by the same function on another thread, so its tokens are the same. Values within a text are formatted there as
well, each of them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from sys import getsizeof

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ApplyError, ContextLengthError, RtlangError
from rtlang.contract.graph.function_costs import text_price
from rtlang.contract.graph.pure_functions import shown_operands
from rtlang.contract.graph.value_size import Measured
from rtlang.contract.graph.value_text import bounded_text
from rtlang.contract.request_graph import Arg, Part, Ref, RoleEnd, RoleStart, Text, TokenIds
from rtlang.model.text.conversation import CHARS_OF_MESSAGE
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.executors.host import Host
from rtlang.runtime.nodes.node_ends import NodeEnds, Stopped
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.work_slices import CHAR_US, SMALL_WORK_US, WorkSlices
from rtlang.runtime.texts.borders import message_ends_of
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text, num_common

MANY_PARTS = 500
"""A text of more parts is put together beside the engine thread, whatever they are."""
TRUNCATED_LENGTHS = 16
"""A sequence of which generations see only the end may have as many times the tokens that the model takes."""
TOKEN_US = 0.05
"""Of a token that is given as such."""
_TOKEN_BYTES = 40  # an integer and its place in a tuple

KnownPart = str | Measured | RoleStart | RoleEnd | TokenIds
"""A part of a text whose value is known."""


class TextNodes:
    """See `Executor`."""

    def __init__(self, table: NodeTable, ends: NodeEnds, slices: WorkSlices, host: Host) -> None:
        self._table, self._ends, self._slices, self._host = table, ends, slices, host

    def start(self, node: Text, before: TokenSequence) -> None:
        """See `Executor.start`."""
        end = partial(self._end, node)
        if len(node.parts) > MANY_PARTS:
            work = partial(_encoded_many, node, before, self._table, self._host)
            self._slices.do(SMALL_WORK_US + len(node.parts), work, end, WorkKind.TOKENIZE)
            return
        parts = known_parts(node, self._table)
        work = partial(_encoded, node, before, parts, self._host, _longest(self._table, self._host))
        self._slices.do(price_of_text(parts, before), work, end, WorkKind.TOKENIZE)

    def _end(self, node: Text, encoded: TokenSequence | Exception) -> None:
        """A text was encoded."""

        def end() -> None:
            if isinstance(encoded, Exception):
                raise encoded
            self._ends.end(node, encoded)

        self._ends.guard(node, (), end)

    def stop(self, node: Text, *, is_cancelled: bool = False) -> Stopped:
        """See `Executor.stop`. Encoding on another thread goes on, and its result is ignored."""
        return Stopped()


def known_parts(node: Text, table: NodeTable) -> tuple[KnownPart, ...]:
    """The parts of a text whose slots are filled."""
    return tuple(table.measured(part) if isinstance(part, (Ref, Arg)) else part for part in node.parts)


def _encoded_many(node: Text, before: TokenSequence, table: NodeTable, host: Host) -> TokenSequence:
    """`_encoded` on another thread: what it reads of the table is there until the graph ends."""
    return _encoded(node, before, known_parts(node, table), host, _longest(table, host))


def _longest(table: NodeTable, host: Host) -> int:
    """The tokens that a sequence may have."""
    return host.max_model_len * (TRUNCATED_LENGTHS if table.truncates else 1)


def _encoded(
    node: Text, before: TokenSequence, parts: Sequence[KnownPart], host: Host, max_tokens: int
) -> TokenSequence:
    """Append a text to a sequence of at most `max_tokens` tokens; reserves the memory of what is new.

    Raises:
        RtlangError: as `append_text`; ContextLengthError for a value whose text alone is too long; ValueMemoryError.
    """
    texts = with_texts(parts, max_tokens * host.tokenizer.longest_token, max_tokens)
    tokenizer, is_constant = host.tokenizer, node.marks.is_constant
    ends = message_ends_of(tokenizer) if host.has_states else None
    after = append_text(before, texts, tokenizer, {}, str, max_tokens, is_constant=is_constant, message_ends=ends)
    if host.has_states and before.is_constant:
        after = _with_constant(node, texts, before, after, tokenizer, max_tokens)
    host.reserve(new_bytes(after))
    return after


def _with_constant(
    node: Text,
    texts: Sequence[Part],
    before: TokenSequence,
    after: TokenSequence,
    tokenizer: Tokenizer,
    max_tokens: int,
) -> TokenSequence:
    """A sequence that knows how many tokens at its start are the same whatever the inputs and generated values are.

    Args:
        before: is constant.
    """
    num_parts = next((at for at, part in enumerate(node.parts) if isinstance(part, (Ref, Arg))), None)
    if num_parts is None:
        return replace(after, num_constant=len(after))
    try:
        constant = append_text(before, texts[:num_parts], tokenizer, {}, str, max_tokens)
    except RtlangError:  # a template may take a message only as a whole
        constant = before
    return replace(after, num_constant=num_common(constant, after), is_constant=False)


def with_texts(parts: Sequence[KnownPart], max_chars: int, max_tokens: int) -> tuple[Part, ...]:
    """The parts with texts in the place of values. A value that occurs several times is formatted once.

    Raises:
        ContextLengthError: they have more than `max_chars` characters, and so more than `max_tokens` tokens.
    """
    texts: dict[int, str] = {}
    found: list[Part] = []
    num_chars = 0
    for part in parts:
        if isinstance(part, Measured):
            if id(part.value) not in texts:
                try:
                    texts[id(part.value)] = bounded_text(part)
                except ValueError as error:
                    raise ApplyError("str", shown_operands([part.value]), str(error)) from None
            part = texts[id(part.value)]
            num_chars += len(part)
            if num_chars > max_chars:
                raise ContextLengthError(max_tokens + 1, 0, max_tokens)
        found.append(part)
    return tuple(found)


def price_of_text(parts: Sequence[KnownPart], before: TokenSequence) -> float:
    """Estimated microseconds to encode parts after a sequence."""
    num_chars, num_messages, price_us = 0, 0, 0.0
    rewrites = False
    for part in parts:
        match part:
            case str():
                num_chars += len(part)
            case Measured():
                num_chars += part.size
                price_us += text_price(part)
            case RoleStart():
                num_messages, rewrites = num_messages + 1, True
                if part.tools is not None or part.template_options is not None:
                    price_us += SMALL_WORK_US + 1
            case RoleEnd():
                rewrites = True
            case TokenIds():
                price_us += TOKEN_US * len(part.ids)
    if rewrites:  # the template writes all messages again
        num_chars += before.conversation.num_chars
    return price_us + CHAR_US * (num_chars + num_messages * CHARS_OF_MESSAGE)


def new_bytes(sequence: TokenSequence) -> int:
    """Bytes of memory of a sequence besides the sequence before it, as an upper estimate."""
    conversation = sequence.conversation
    content = conversation.messages[-1][1] if conversation.messages and conversation.is_open else ""
    return _TOKEN_BYTES * len(sequence.own_ids) + getsizeof(content) + getsizeof(conversation.written)
