"""Token healing: a text that may end inside a token gives its last token back, and the next generated token begins with its bytes.

A prompt that ends with "http:" makes "//" unlikely, because the model has only seen the token "://" after "http". Without the last token
of the prompt, ":", the model may write "://" as one token.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from rtlang.contract.request_graph import Arg, Node, Ref, RoleEnd, RoleStart, Text, TokenIds
from rtlang.model.text.tokenizer import Tokenizer

_CACHE_SIZE = 64


@dataclass(frozen=True, slots=True)
class Healing:
    """What is taken back from a prompt.

    Attributes:
        text: the text of its last token, with which the generated tokens must begin; not part of the generated text.
        banned_token_ids: the tokens whose bytes do not begin with it.
    """

    text: str
    banned_token_ids: tuple[int, ...]


class _Extensions:
    """The tokens of a vocabulary by their first bytes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        size = tokenizer.vocab_size
        named = [(tokenizer.token_bytes(each), each) for each in range(size)]
        pairs = sorted(pair for pair in named if pair[0] and pair[1] not in tokenizer.special_token_ids)
        self._size = size
        self._spellings = [spelling for spelling, _ in pairs]
        self._ids = [token_id for _, token_id in pairs]
        self._known: OrderedDict[bytes, tuple[int, ...] | None] = OrderedDict()

    def banned(self, start: bytes) -> tuple[int, ...] | None:
        """The tokens that do not begin with `start`; None if no token is longer and begins with it."""
        if start in self._known:
            self._known.move_to_end(start)
            return self._known[start]
        low, high = bisect_left(self._spellings, start), bisect_right(self._spellings, start + b"\xff" * 256)
        found = None
        if any(len(spelling) > len(start) for spelling in self._spellings[low:high]):
            allowed = set(self._ids[low:high])
            found = tuple(each for each in range(self._size) if each not in allowed)
        self._known[start] = found
        if len(self._known) > _CACHE_SIZE:
            self._known.popitem(last=False)
        return found


_EXTENSIONS: WeakKeyDictionary[Tokenizer, _Extensions] = WeakKeyDictionary()


def healing_of(tokenizer: Tokenizer, token_ids: tuple[int, ...]) -> Healing | None:
    """What to take back from a prompt that ends with text; None if nothing.

    Nothing is taken from a prompt of one token, and no token that is special, that holds parts of characters, or with which no longer token
    begins.
    """
    if len(token_ids) < 2 or token_ids[-1] in tokenizer.special_token_ids:
        return None
    start = tokenizer.token_bytes(token_ids[-1])
    try:
        text = start.decode()
    except UnicodeDecodeError:
        return None
    if not text:
        return None
    extensions = _EXTENSIONS.get(tokenizer)
    if extensions is None:
        extensions = _EXTENSIONS[tokenizer] = _Extensions(tokenizer)
    banned = extensions.banned(start)
    return None if banned is None else Healing(text, banned)


def ends_with_text(node_id: int | None, nodes: Mapping[int, Node], value_of: Callable[[Ref | Arg], object]) -> bool:
    """Whether the last characters of a node's sequence are text that may be tokenized anew.

    Args:
        value_of: gives the value of what a text refers to.
    """
    while node_id is not None:
        node = nodes[node_id]
        if not isinstance(node, Text):
            return False
        for part in reversed(node.parts):
            if isinstance(part, (RoleStart, RoleEnd, TokenIds)):
                return False
            text = part if isinstance(part, str) else value_of(part)
            if text or not isinstance(text, str):  # the text of any other value has characters
                return True
        node_id = node.parent
    return False
