"""The text service of an engine in another process: its calls as messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rtlang.contract.graph.nodes import Part
from rtlang.contract.request_graph import Text, nodes_from_plain, nodes_to_plain
from rtlang.contract.service.text_service import HistoryEnd, TextService, TextServiceInfo

Ask = Callable[[str, Any], Any]
"""Calls a method in the other process with plain arguments; returns its plain value. Blocks."""


class RemoteTextService:
    """A `TextService` in another process."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._info: TextServiceInfo | None = None
        self._token_bytes: dict[int, bytes] = {}  # those that were asked for; at most the vocabulary

    @property
    def info(self) -> TextServiceInfo:
        """See `TextService.info`."""
        if self._info is None:
            plain = self._ask("info", None)
            lists = {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
            self._info = TextServiceInfo(**plain | lists)
        return self._info

    def encode(self, text: str, *, adds_start: bool = True, allow_special: bool = False) -> list[int]:
        """See `TextService.encode`."""
        return list(self._ask("encode", [text, adds_start, allow_special]))

    def encode_parts(self, parts: Sequence[Part]) -> list[int]:
        """See `TextService.encode_parts`."""
        return list(self._ask("encode_parts", parts_to_plain(parts)))

    def chat_prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: str | None,
        end: HistoryEnd,
        template_options: str | None = None,
    ) -> list[int]:
        """See `TextService.chat_prompt`."""
        return list(self._ask("chat_prompt", [[dict(each) for each in messages], tools, end, template_options]))

    def decode(self, token_ids: Sequence[int], *, shows_special: bool = False) -> str:
        """See `TextService.decode`."""
        return str(self._ask("decode", [list(token_ids), shows_special]))

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        """See `TextService.token_names`."""
        return list(self._ask("token_names", list(token_ids)))

    def token_bytes(self, token_ids: Sequence[int]) -> list[bytes]:
        """See `TextService.token_bytes`. Asks for each token once: a response with log-probabilities asks for thousands, one by one."""
        known = self._token_bytes
        missing = list(set(token_ids).difference(known))
        if missing:
            known.update(zip(missing, self._ask("token_bytes", missing), strict=True))
        return [known[token_id] for token_id in token_ids]


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
