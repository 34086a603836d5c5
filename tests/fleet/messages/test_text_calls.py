"""A text service through messages is the service itself."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from rtlang.contract.request_graph import RoleEnd, RoleStart
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.service.text_service import TextServiceInfo, prompt_key, text_service_of
from rtlang.fleet.messages.text_calls import RemoteTextService, answer_text_call

remembered: list[tuple[bytes, Any]] = []


class Service:
    """Answers with what it was asked."""

    info = TextServiceInfo(50, None, 1, (2, 3), (1, 2, 3), True)

    def encode(self, text: str, *, adds_start: bool = True, allow_special: bool = False) -> list[int]:
        return [len(text), adds_start, allow_special]

    def encode_parts(self, parts: Any) -> list[int]:
        assert parts == (RoleStart("user"), "hello", RoleEnd())
        return [7]

    def chat_prompt(
        self,
        messages: Any,
        tools: str | None,
        end: str,
        template_options: str | None = None,
        max_tokens: int | None = None,
    ) -> list[int]:
        return list(map(ord, f"{messages[0]['role']} {tools} {end} {template_options} {max_tokens}"))

    def remember(self, prompt: bytes, outputs: Any) -> None:
        remembered.append((prompt, outputs))

    def decode(self, token_ids: Any, *, shows_special: bool = False) -> str:
        return f"{token_ids} {shows_special}"

    def token_names(self, token_ids: Any) -> list[str]:
        return [str(each) for each in token_ids]

    def token_bytes(self, token_ids: Any) -> list[bytes]:
        return [bytes([each]) for each in token_ids]


def ask(
    method: str, args: Any, /, *, principal: Principal = LOCAL, price: float = 0.0, near: bytes | None = None
) -> Any:
    sent = msgpack.unpackb(msgpack.packb([method, args]))
    return msgpack.unpackb(msgpack.packb(answer_text_call(Service(), *sent)))


def test_calls_and_their_values_cross_as_they_are() -> None:
    remote = RemoteTextService(ask)
    assert remote.info == Service.info
    assert remote.encode("four", allow_special=True) == [4, True, True]
    assert remote.encode_parts([RoleStart("user"), "hello", RoleEnd()]) == [7]
    history = [{"role": "user", "content": "Hi"}]
    assert remote.chat_prompt(history, "[]", "prompt", "{}", 7) == list(map(ord, "user [] prompt {} 7"))
    assert remote.chat_prompt(history, None, "open") == list(map(ord, "user None open None None"))
    assert remote.decode((1, 2), shows_special=True) == "[1, 2] True"
    assert remote.token_names([255]) == ["255"]
    assert remote.token_bytes([255]) == [b"\xff"]
    with pytest.raises(ValueError, match="unknown"):
        ask("close", None)


def test_the_bytes_of_a_token_are_asked_for_once() -> None:
    asked: list[Any] = []

    def counted(
        method: str, args: Any, /, *, principal: Principal = LOCAL, price: float = 0.0, near: bytes | None = None
    ) -> Any:
        asked.append(args)
        return ask(method, args)

    remote = RemoteTextService(counted)
    assert remote.token_bytes([3, 4, 3]) == [b"\x03", b"\x04", b"\x03"]
    assert remote.token_bytes([4, 5]) == [b"\x04", b"\x05"]
    assert remote.token_bytes([5, 3]) == [b"\x05", b"\x03"]
    assert [sorted(each) for each in asked] == [[3, 4], [5]]


def test_calls_are_work_of_a_principal_with_a_price_by_their_sizes() -> None:
    asked: list[tuple[str, str, float]] = []

    def noted(
        method: str, args: Any, /, *, principal: Principal = LOCAL, price: float = 0.0, near: bytes | None = None
    ) -> Any:
        asked.append((method, principal.name, price))
        return ask(method, args)

    class Target:
        text_service = RemoteTextService(noted)

    service = text_service_of(Target(), Principal("ana"))
    assert service is not None
    for size in (1, 1000):
        service.encode("x" * size)
        service.decode([7] * size)
        service.chat_prompt([{"role": "user", "content": "x" * size}], None, "open")
    assert {name for _, name, _ in asked} == {"ana"}
    for method in ("encode", "decode", "chat_prompt"):
        small, large = (price for name, _, price in asked if name == method)
        assert large > 10 * small > 0
    assert service.info == Service.info
    asked.clear()
    assert Target.text_service.info == Service.info
    assert asked == [], "what was told to one principal is known to all"


def test_a_conversation_goes_to_one_process_and_its_answers_too() -> None:
    asked: list[tuple[str, bytes | None]] = []

    def noted(
        method: str, args: Any, /, *, principal: Principal = LOCAL, price: float = 0.0, near: bytes | None = None
    ) -> Any:
        asked.append((method, near))
        return ask(method, args)

    ana, bob = (RemoteTextService(noted).for_principal(Principal(name)) for name in ("ana", "bob"))
    first = [{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}]
    later = [*first, {"role": "assistant", "content": "ho"}, {"role": "user", "content": "he"}]
    for service, messages in ((ana, first), (ana, later), (ana, later[1:]), (bob, first)):
        prompt = service.chat_prompt(messages, None, "prompt")
        remembered.clear()
        service.remember(prompt_key(prompt), [(1, 2), (3,)])
        assert remembered == [(prompt_key(prompt), [[1, 2], [3]])]
    places = [near for _, near in asked]
    assert places[::2] == places[1::2]
    assert len({*places[:4]}) == 1
    assert len({*places}) == 3
    asked.clear()
    ana.remember(prompt_key([5]), [[1]])  # no process has written such a prompt
    assert asked == []
