"""The text service of an engine in another process: its calls as messages."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rtlang.contract.graph.nodes import Part
from rtlang.contract.request_graph import Text, nodes_from_plain, nodes_to_plain
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.service.text_service import HistoryEnd, TextService, TextServiceInfo, prompt_key
from rtlang.work.prices import DETOKENIZE_S_PER_TOKEN, TOKENIZE_S_PER_CHAR, num_chars_in

_FIRST_MESSAGES = 2
_MAX_PLACES = 1 << 14


class Ask(Protocol):
    """Calls a method in the other process with plain arguments; returns its plain value. Blocks.

    The other process works for `principal` in turns with others; `price` is an estimate of the seconds that it takes there.
    """

    def __call__(self, method: str, args: Any, /, *, principal: Principal = LOCAL, price: float = 0.0) -> Any: ...


class AskNear(Protocol):
    """`Ask` for one of several processes: calls with the same `near` go to the same one while it is there."""

    def __call__(
        self, method: str, args: Any, /, *, principal: Principal = LOCAL, price: float = 0.0, near: bytes | None = None
    ) -> Any: ...


@dataclass(slots=True)
class _Known:
    """The facts about its tokenizer that the other process has sent."""

    info: TextServiceInfo | None = None
    token_bytes: dict[int, bytes] = field(default_factory=dict)  # those that were asked for; at most the vocabulary
    places: OrderedDict[bytes, bytes] = field(
        default_factory=OrderedDict
    )  # by the key of a prompt: near what it was written


class RemoteTextService:
    """A `TextService` in another process.

    Args:
        principal: whose work the calls are.
    """

    def __init__(self, ask: AskNear, principal: Principal = LOCAL) -> None:
        self._ask, self._principal = ask, principal
        self._known = _Known()

    def for_principal(self, principal: Principal) -> RemoteTextService:
        """This service for the work of a principal."""
        service = RemoteTextService(self._ask, principal)
        service._known = self._known
        return service

    @property
    def info(self) -> TextServiceInfo:
        """See `TextService.info`."""
        if self._known.info is None:
            plain = self._call("info", None, 0.0)
            lists = {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
            self._known.info = TextServiceInfo(**plain | lists)
        return self._known.info

    def encode(self, text: str, *, adds_start: bool = True, allow_special: bool = False) -> list[int]:
        """See `TextService.encode`."""
        return list(self._call("encode", [text, adds_start, allow_special], len(text) * TOKENIZE_S_PER_CHAR))

    def encode_parts(self, parts: Sequence[Part]) -> list[int]:
        """See `TextService.encode_parts`."""
        num_chars = sum(len(part) for part in parts if isinstance(part, str))
        return list(self._call("encode_parts", parts_to_plain(parts), num_chars * TOKENIZE_S_PER_CHAR))

    def chat_prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: str | None,
        end: HistoryEnd,
        template_options: str | None = None,
        max_tokens: int | None = None,
    ) -> list[int]:
        """See `TextService.chat_prompt`."""
        plain = [dict(each) for each in messages]
        args = [plain, tools, end, template_options, max_tokens]
        # The process that wrote the beginning of a conversation knows its tokens.
        begin = json.dumps([self._principal.client_id[0], tools, plain[:_FIRST_MESSAGES]]).encode()
        near = hashlib.blake2b(begin, digest_size=8).digest()
        found = list(self._call("chat_prompt", args, num_chars_in(args) * TOKENIZE_S_PER_CHAR, near))
        places = self._known.places
        places[prompt_key(found)] = near
        while len(places) > _MAX_PLACES:
            places.popitem(last=False)
        return found

    def remember(self, prompt: bytes, outputs: Sequence[Sequence[int]]) -> None:
        """See `TextService.remember`."""
        near = self._known.places.get(prompt)
        if near is not None:
            price = sum(map(len, outputs)) * DETOKENIZE_S_PER_TOKEN
            self._call("remember", [prompt, [list(each) for each in outputs]], price, near)

    def decode(self, token_ids: Sequence[int], *, shows_special: bool = False) -> str:
        """See `TextService.decode`."""
        return str(self._call("decode", [list(token_ids), shows_special], len(token_ids) * DETOKENIZE_S_PER_TOKEN))

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        """See `TextService.token_names`."""
        return list(self._call("token_names", list(token_ids), len(token_ids) * DETOKENIZE_S_PER_TOKEN))

    def token_bytes(self, token_ids: Sequence[int]) -> list[bytes]:
        """See `TextService.token_bytes`. Asks for each token once: a response with log-probabilities asks for thousands, one by one."""
        known = self._known.token_bytes
        missing = list(set(token_ids).difference(known))
        if missing:
            found = self._call("token_bytes", missing, len(missing) * DETOKENIZE_S_PER_TOKEN)
            known.update(zip(missing, found, strict=True))
        return [known[token_id] for token_id in token_ids]

    def _call(self, method: str, args: Any, price: float, near: bytes | None = None) -> Any:
        return self._ask(method, args, principal=self._principal, price=price, near=near)


def answer_text_call(service: TextService, method: str, args: Any) -> Any:
    """Carry out a call of `RemoteTextService`."""
    match method:
        case "info":
            info = service.info
            return {name: getattr(info, name) for name in TextServiceInfo.__slots__}
        case "encode":
            text, adds_start, allow_special = args
            return service.encode(text, adds_start=adds_start, allow_special=allow_special)
        case "encode_parts":
            return service.encode_parts(tuple(parts_from_plain(args)))
        case "chat_prompt":
            return service.chat_prompt(*args)
        case "remember":
            return service.remember(*args)
        case "decode":
            return service.decode(args[0], shows_special=args[1])
        case "token_names":
            return service.token_names(args)
        case "token_bytes":
            return service.token_bytes(args)
    raise ValueError(f"unknown method {method}")


def parts_to_plain(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Parts of a text node as plain data."""
    return nodes_to_plain([Text(0, None, tuple(parts))])


def parts_from_plain(plain: list[dict[str, Any]]) -> list[Part]:
    """The parts of data made by `parts_to_plain`."""
    (node,) = nodes_from_plain(plain)
    assert isinstance(node, Text)
    return list(node.parts)
