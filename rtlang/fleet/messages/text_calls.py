"""The text service of an engine in another process: its calls as messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rtlang.contract.graph.nodes import Part
from rtlang.contract.request_graph import Text, nodes_from_plain, nodes_to_plain
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.service.text_service import HistoryEnd, TextService, TextServiceInfo
from rtlang.work.prices import DETOKENIZE_S_PER_TOKEN, TOKENIZE_S_PER_CHAR, num_chars_in


class Ask(Protocol):
    """Calls a method in the other process with plain arguments; returns its plain value. Blocks.

    The other process works for `principal` in turns with others; `price` is an estimate of the seconds that it takes there.
    """

    def __call__(self, method: str, args: Any, /, *, principal: Principal = LOCAL, price: float = 0.0) -> Any: ...


@dataclass(slots=True)
class _Known:
    """The facts about its tokenizer that the other process has sent."""

    info: TextServiceInfo | None = None
    token_bytes: dict[int, bytes] = field(default_factory=dict)  # those that were asked for; at most the vocabulary


class RemoteTextService:
    """A `TextService` in another process.

    Args:
        principal: whose work the calls are.
    """

    def __init__(self, ask: Ask, principal: Principal = LOCAL) -> None:
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
        args = [[dict(each) for each in messages], tools, end, template_options, max_tokens]
        return list(self._call("chat_prompt", args, num_chars_in(args) * TOKENIZE_S_PER_CHAR))

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

    def _call(self, method: str, args: Any, price: float) -> Any:
        return self._ask(method, args, principal=self._principal, price=price)


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
