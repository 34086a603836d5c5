"""Messages of the cases on a WebSocket."""

from __future__ import annotations

from random import Random

from rtlang_bench.worst_cases.draws import Draws
from rtlang_bench.worst_cases.frame_cases import FRAMES, frames

TYPES = {"open", "extend", "close", "cancel", "resolve", "input", "reject", "credit", "attach", "ping", "bye"}


def test_every_type_of_message_is_sent() -> None:
    sent = [frames(Draws(Random(f"{name}/{seed}")), name) for name in FRAMES for seed in range(12)]
    types = {message.get("t") for each in sent for message in each.messages if isinstance(message, dict)}
    assert types >= TYPES
    assert {each.subprotocol for each in sent} == {"rtlang.v1.json", "rtlang.v1.msgpack"}
    assert {message.get("kind") for each in sent for message in each.messages if isinstance(message, dict)} >= {
        "program",
        "generate",
        "chat",
    }
