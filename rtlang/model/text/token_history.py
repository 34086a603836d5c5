"""The tokens of earlier prompts and answers, found again by the text that a chat template writes for them.

A client sends an answer back as text, and encoding it again gives other tokens than the model generated: its cached keys and values are
lost, and the model sees a history that it has not written. So the texts of prompts, and of prompts with their answers, are remembered as
digests with their tokens. A conversation whose text begins with a known one takes its tokens, and only the rest is encoded, as text that
continues a sequence.

Texts are compared with the special tokens in them: a name that the template wrote is its token, a name that a message spells is text, and
the two differ. Where a template drops a thought or writes a call in another way the text differs too, and the known text ends before it.
Nothing is guessed: a known text ends where an answer begins, where it ends, before blanks at its end, or beside a special token in it.

Digests are keyed, so no client can make two texts with one digest. Each principal has its own texts, and each of its salts again.
"""

from __future__ import annotations

import hashlib
import heapq
import secrets
import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rtlang.contract.service.text_service import prompt_key
from rtlang.model.text import tracked_text
from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.tracked_text import TrackedText

MAX_BYTES = 128 << 20
"""Memory for all principals."""
MAX_PRINCIPAL_BYTES = 64 << 20
"""Memory for one principal: about 16 million tokens."""
_TEXT_BYTES, _TOKEN_BYTES = 1500, 4  # of a known text without its tokens, measured; of a token
_MAX_CONTINUED = 64
_MAX_BORDERS = 16
_DIGEST_BYTES, _KEY_BYTES = 20, 32
_MARK = b"\xff"  # no byte of UTF-8


class Spelling(Protocol):
    """A tokenizer."""

    special_token_ids: frozenset[int]

    def named_bytes(self, token_id: int) -> bytes: ...


class _Hash(Protocol):
    """A hash of `hashlib`."""

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...

    def copy(self) -> _Hash: ...


@dataclass(slots=True, eq=False)
class _Known:
    """A known text.

    Attributes:
        before: the known text that it continues; None for none.
        ids: its tokens after those of `before`.
        state: the hash of the text up to its end.
        num_chars: of the whole text.
        continued: characters of the known texts that continue it, after its own; the latest last.
        prompt: its place in `_Texts.by_prompt`, if it is a prompt.
        is_given: whether it came as a prompt. One that begins an answer may end within a word, which ends nothing in other texts.
    """

    before: _Known | None
    ids: array[int]
    state: _Hash
    digest: bytes
    num_chars: int
    continued: dict[int, None] = field(default_factory=dict)
    prompt: tuple[str, bytes] | None = None
    is_given: bool = False

    @property
    def num_bytes(self) -> int:
        return _TEXT_BYTES + _TOKEN_BYTES * len(self.ids)

    def path(self) -> Iterator[_Known]:
        """This text and all that it continues, the longest first."""
        at: _Known | None = self
        while at is not None:
            yield at
            at = at.before


@dataclass(slots=True)
class _Texts:
    """The known texts of one principal.

    Attributes:
        order: those that were used least recently first; a text stands before all that it continues.
    """

    by_digest: dict[bytes, _Known] = field(default_factory=dict)
    by_prompt: dict[tuple[str, bytes], _Known] = field(default_factory=dict)
    order: OrderedDict[_Known, None] = field(default_factory=OrderedDict)
    num_bytes: int = 0

    def add(self, known: _Known) -> None:
        self.by_digest[known.digest] = known
        if known.prompt is not None:
            self.by_prompt[known.prompt] = known
        self.order[known] = None
        self.num_bytes += known.num_bytes
        self.touch(known)

    def touch(self, known: _Known) -> None:
        for each in known.path():
            self.order.move_to_end(each)

    def pop(self) -> int:
        """Forget the text that was used least recently; returns its bytes. Nothing continues it."""
        known, _ = self.order.popitem(last=False)
        if self.by_digest.get(known.digest) is known:
            del self.by_digest[known.digest]
        if known.prompt is not None and self.by_prompt.get(known.prompt) is known:
            del self.by_prompt[known.prompt]
        self.num_bytes -= known.num_bytes
        return known.num_bytes


class TokenHistory:
    """The known texts of a model's conversations. Thread-safe.

    Args:
        tokenizer: of the model.
        max_bytes: for all principals; beyond it, the one with the most texts forgets first.
        max_principal_bytes: for each of them.
    """

    def __init__(
        self, tokenizer: Spelling, *, max_bytes: int = MAX_BYTES, max_principal_bytes: int = MAX_PRINCIPAL_BYTES
    ) -> None:
        self._tokenizer = tokenizer
        self._max_bytes, self._max_principal_bytes = max_bytes, max_principal_bytes
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._lock = threading.Lock()  # guards everything below; reading one entry of a map needs no lock
        self._texts: dict[str, _Texts] = {}
        self._num_bytes = 0

    @property
    def num_bytes(self) -> int:
        """Approximate memory of the known texts."""
        return self._num_bytes

    def owned(self, principal: str, namespace: str) -> OwnedHistory:
        """The texts of one namespace of a principal."""
        return OwnedHistory(self, principal, namespace)

    def encode(self, owner: OwnedHistory, chat: ChatTemplate, text: TrackedText, cuts: Sequence[int]) -> list[int]:
        """See `OwnedHistory.encode`."""
        begin = hashlib.blake2b(key=self._key, digest_size=_DIGEST_BYTES)
        begin.update(f"{len(owner.namespace)} {owner.namespace} {chat.template is None} ".encode())
        texts = self._texts.get(owner.principal) or _Texts()
        walk = _Walk(begin, text, chat.token_names(text))
        found = walk.longest(texts.by_digest, cuts)
        token_ids = array("I")
        for each in reversed(list(found.path()) if found is not None else []):
            token_ids += each.ids
        at, num_known = (0, 0) if found is None else (found.num_chars, len(token_ids))
        token_ids.extend(chat.encode(text, is_start=True, cuts=cuts, begin=at))
        prompt = owner.namespace, prompt_key(token_ids)
        if found is None or at < len(text):
            ids, state = token_ids[num_known:], walk.state
            known = _Known(found, ids, state, state.digest(), len(text), prompt=prompt, is_given=True)
            self._add(owner.principal, [known])
        else:
            self._use(owner.principal, found, prompt)
        return token_ids.tolist()

    def remember(self, owner: OwnedHistory, prompt: bytes, outputs: Sequence[Sequence[int]]) -> None:
        """See `OwnedHistory.remember`."""
        texts = self._texts.get(owner.principal)
        known = None if texts is None else texts.by_prompt.get((owner.namespace, prompt))
        if known is None:
            return
        for output in outputs:
            self._add(owner.principal, self._borders(known, output))

    def check(self) -> None:
        """Check the invariants: sizes add up, and every text stands before all that it continues.

        Raises:
            AssertionError: one does not hold.
        """
        with self._lock:
            assert self._num_bytes == sum(each.num_bytes for each in self._texts.values()) <= self._max_bytes
            for texts in self._texts.values():
                assert texts.order
                assert texts.num_bytes == sum(each.num_bytes for each in texts.order)
                places = {known: place for place, known in enumerate(texts.order)}
                assert all(known.before is None or places[known] < places[known.before] for known in texts.order)
                assert set(texts.by_digest.values()) | set(texts.by_prompt.values()) <= set(texts.order)

    def _borders(self, known: _Known, output: Sequence[int]) -> list[_Known]:
        """The texts that end within an answer or with it, each continuing the one before."""
        found: list[_Known] = []
        state = known.state.copy()
        pieces = list(self._pieces(output))
        while len(pieces) > _MAX_BORDERS:
            pieces[0] += pieces.pop(1)
        for piece in pieces:
            num_chars = known.num_chars
            for name, text in self._spelled(piece):
                num_chars += len(name or text)
                state.update(_marked(name) if name else _utf8(text))
            if num_chars > known.num_chars:
                known = _Known(known, array("I", piece), state.copy(), state.digest(), num_chars)
                found.append(known)
        return found

    def _pieces(self, output: Sequence[int]) -> Iterator[list[int]]:
        """The tokens between the places of an answer where a template may end it, or write something else."""
        special, spell = self._tokenizer.special_token_ids, self._tokenizer.named_bytes
        piece: list[int] = []
        for token_id in [*output, None]:
            if token_id is not None and token_id not in special:
                piece.append(token_id)
                continue
            blank = len(piece)
            while blank and not spell(piece[blank - 1]).strip():
                blank -= 1
            yield from filter(None, (piece[:blank], piece[blank:]))
            if token_id is not None:
                yield [token_id]
            piece = []

    def _spelled(self, piece: Sequence[int]) -> Iterator[tuple[str, str]]:
        """The names of special tokens, or the texts of others together."""
        special, spell = self._tokenizer.special_token_ids, self._tokenizer.named_bytes
        plain: list[bytes] = []
        for token_id in piece:
            if token_id not in special:
                plain.append(spell(token_id))
                continue
            yield "", b"".join(plain).decode("utf-8", "replace")
            yield spell(token_id).decode("utf-8", "replace"), ""
            plain = []
        yield "", b"".join(plain).decode("utf-8", "replace")

    def _add(self, principal: str, path: Sequence[_Known]) -> None:
        """Add texts of which each continues the one before, and forget others beyond the limits."""
        with self._lock:
            texts = self._texts.setdefault(principal, _Texts())
            before = texts.num_bytes
            for known in path:
                if known.before is not None:
                    if known.before not in texts.order:  # it was forgotten meanwhile
                        break
                    lengths = known.before.continued
                    lengths[known.num_chars - known.before.num_chars] = None
                    if len(lengths) > _MAX_CONTINUED:
                        del lengths[next(iter(lengths))]
                texts.add(known)
            while texts.num_bytes > self._max_principal_bytes:
                texts.pop()
            self._num_bytes += texts.num_bytes - before
            if not texts.order:
                del self._texts[principal]
            while self._num_bytes > self._max_bytes:
                name, most = max(self._texts.items(), key=lambda item: item[1].num_bytes)
                self._num_bytes -= most.pop()
                if not most.order:
                    del self._texts[name]

    def _use(self, principal: str, known: _Known, prompt: tuple[str, bytes]) -> None:
        """Mark a text as a prompt and as used."""
        with self._lock:
            texts = self._texts.get(principal)
            if texts is None or known not in texts.order:
                return
            texts.touch(known)
            known.prompt = prompt
            texts.by_prompt[prompt] = known


@dataclass(frozen=True, slots=True)
class OwnedHistory:
    """The known texts of one namespace of a principal."""

    history: TokenHistory
    principal: str
    namespace: str

    def encode(self, chat: ChatTemplate, text: TrackedText, cuts: Sequence[int]) -> list[int]:
        """The tokens of the text of a conversation; see `ChatTemplate.encode`. The text is known from now on."""
        return self.history.encode(self, chat, text, cuts)

    def remember(self, prompt: bytes, outputs: Sequence[Sequence[int]]) -> None:
        """Add the answers to a prompt.

        Args:
            prompt: the `prompt_key` of tokens that `encode` returned; other ones are ignored.
            outputs: tokens that were generated after it, of each choice.
        """
        self.history.remember(self, prompt, outputs)


class _Walk:
    """Hashes a text from its start, with the names of special tokens marked.

    Args:
        state: the hash at the start.
        names: where the names of special tokens begin and end.
    """

    def __init__(self, state: _Hash, text: TrackedText, names: Sequence[tuple[int, int]]) -> None:
        self.state, self._names = state, names
        self._text = tracked_text.plain(text)
        self._at = self._num_names = 0
        self._cuts: set[int] = set()

    def longest(self, known: dict[bytes, _Known], cuts: Sequence[int]) -> _Known | None:
        """The longest known text at the beginning of this one that ends at a cut or continues another text. Hashes the whole text."""
        length = len(self._text)
        self._cuts = {*cuts, length}
        waiting = [cut for cut in cuts if 0 < cut < length]
        heapq.heapify(waiting)
        found: _Known | None = None
        while waiting:
            place = heapq.heappop(waiting)
            if place > self._at and self._advance(place):
                found = self._look_up(known, found, waiting)
        self._advance(length)
        return self._look_up(known, found, waiting)

    def _look_up(self, known: dict[bytes, _Known], found: _Known | None, waiting: list[int]) -> _Known | None:
        here = known.get(self.state.digest())
        if here is None:
            return found
        for num_chars in list(here.continued):
            if self._at + num_chars < len(self._text):
                heapq.heappush(waiting, self._at + num_chars)
        return found if here.is_given and self._is_within_word() else here

    def _is_within_word(self) -> bool:
        at, text = self._at, self._text
        return at not in self._cuts and 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()

    def _advance(self, place: int) -> bool:
        """Hash the text up to a place. False if the place is within a name."""
        names, text = self._names, self._text
        while self._num_names < len(names) and names[self._num_names][1] <= place:
            begin, end = names[self._num_names]
            self.state.update(_utf8(text[self._at : begin]) + _marked(text[begin:end]))
            self._at, self._num_names = end, self._num_names + 1
        if self._num_names < len(names) and names[self._num_names][0] < place:
            return False
        self.state.update(_utf8(text[self._at : place]))
        self._at = place
        return True


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _marked(name: str) -> bytes:
    return _MARK + _utf8(name) + _MARK
