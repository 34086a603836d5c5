"""Encodes text nodes, long ones beside the engine thread.

A text node of some thousand characters, with a long conversation before it or with tools, takes longer to encode than the engine thread may
be held. It is encoded by the same function on another thread, so its tokens are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rtlang.contract.graph.value_text import text_of_plain
from rtlang.contract.request_graph import Arg, Part, Ref, RoleEnd, RoleStart, Text
from rtlang.model.text.conversation import CHARS_OF_MESSAGE
from rtlang.runtime.executors.host import Encoded, Host
from rtlang.runtime.nodes.node_ends import NodeEnds, Stopped
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.work_slices import WorkSlices
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text

SHORT_CHARS = 4_000
"""Longest text in characters that the engine thread encodes, or conversation that a chat template writes there: about 2 ms."""


class TextNodes:
    """See `Executor`."""

    def __init__(self, table: NodeTable, ends: NodeEnds, slices: WorkSlices, host: Host) -> None:
        self._table, self._ends, self._slices, self._host = table, ends, slices, host

    def start(self, node: Text, before: TokenSequence) -> None:
        """See `Executor.start`."""
        host = self._host
        parts = with_texts(node.parts, self._table.text)
        self._slices.spend_on_text(num_chars(parts))
        encode = partial(append_text, before, parts, host.tokenizer, {}, text_of_plain, host.max_model_len)
        if host.offload is not None and is_long(parts, before):
            host.offload(num_chars(parts), encode, partial(self._end, node))
        else:
            self._ends.end(node, encode(is_constant=node.marks.is_constant))

    def _end(self, node: Text, encoded: Encoded) -> None:
        """A text was encoded on another thread."""

        def end() -> None:
            if isinstance(encoded, Exception):
                raise encoded
            self._ends.end(node, encoded)

        self._ends.guard(node, (), end)

    def stop(self, node: Text, *, is_cancelled: bool = False) -> Stopped:
        """See `Executor.stop`. Encoding on another thread goes on, and its result is ignored."""
        return Stopped()


def with_texts(parts: Sequence[Part], text_of: Callable[[Ref | Arg], str]) -> tuple[Part, ...]:
    """The parts with the texts of references and inputs in their place."""
    return tuple(text_of(part) if isinstance(part, Ref | Arg) else part for part in parts)


def num_chars(parts: Sequence[Part]) -> int:
    """The characters of parts without references."""
    return sum(len(part) for part in parts if isinstance(part, str))


def is_long(parts: Sequence[Part], before: TokenSequence) -> bool:
    """Whether parts without references are encoded beside the engine thread."""
    starts = [part for part in parts if isinstance(part, RoleStart)]
    size = num_chars(parts) + len(starts) * CHARS_OF_MESSAGE
    if starts or any(isinstance(part, RoleEnd) for part in parts):
        size += before.conversation.num_chars  # the template writes all messages again
    return size > SHORT_CHARS or any(part.tools is not None or part.template_options is not None for part in starts)
