"""Messages of WebSocket mode for fuzzing: valid ones of every kind, most of them changed in structure or in their bytes."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from websockets.frames import Opcode

from tests.support.servers.fuzz import mutated, shuffled_bytes

TURN_ENDS = ("response.completed", "response.incomplete", "response.failed", "error", "response.steer.failed")
"""Types of frames that end a response, and of answers to other messages."""
_ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
_CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
_OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "done"}
_FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
_GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "a"+'}
_CUSTOM = {"type": "custom", "name": "g", "description": "x", "format": _GRAMMAR}
_LIMITS = {"max_output_tokens": 3, "store": False}
_CREATE: list[dict[str, Any]] = [
    {"input": "hi"},
    {"input": [_ITEM], "instructions": "be brief", "stream": True},
    {"input": "hi", "generate": False},
    {"input": [_ITEM, _CALL, _OUTPUT], "tools": [_FUNCTION, _CUSTOM], "tool_choice": "auto"},
    {"input": "hi", "previous_response_id": "resp_1"},
    {"input": "hi", "store": True, "metadata": {"a": "b"}, "client_metadata": {"turn_id": "1"}},
    {"input": "hi", "reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"]},
    {"input": "hi", "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "integer"}}}},
]
_OTHERS: list[dict[str, Any]] = [
    {"type": "response.steer", "previous_response_id": "resp_1", "input": "x"},
    {"type": "response.processed", "response_id": "resp_1"},
    {"type": "response.append", "input": [_ITEM]},
]
_LANES = (None, None, None, "a", "b", "c")


def turn_message(rng: Random) -> tuple[Opcode, bytes]:
    """One message of a client, and the opcode of its frame."""
    if rng.random() < 0.1:
        message = rng.choice(_OTHERS)
    else:
        message = {"type": "response.create", "model": "default"} | _LIMITS | rng.choice(_CREATE)
        if (lane := rng.choice(_LANES)) is not None:
            message["stream_id"] = lane
    data = json.dumps(mutated(message, rng, rng.choice((0, 0, 1, 1, 2, 4)))).encode()
    if rng.random() < 0.03:
        data = shuffled_bytes(data, rng)
    return Opcode.BINARY if rng.random() < 0.02 else Opcode.TEXT, data
