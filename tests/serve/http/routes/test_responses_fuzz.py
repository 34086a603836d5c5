"""Random bodies, paths and queries of all routes of the Responses API: answered with 2xx or 4xx, and memory stays within its bounds."""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import time
from random import Random
from typing import Any

import pytest

from rtlang.serve import service as service_module
from rtlang.serve.http import background_responses
from rtlang.serve.responses.conversations import ConversationStore
from rtlang.serve.responses.state import ResponseState
from rtlang.serve.responses.store import ResponseStore
from tests.support.long_tests import sized
from tests.support.programs.fake_target import FakeTarget
from tests.support.programs.fake_text_service import FakeTextService
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving

MAX_BYTES = 400_000
_PLAIN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
_GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "a"+ B?\nB: /b/'}
TOOLS: list[Any] = [
    {"type": "function", "name": "look", "parameters": _PLAIN, "strict": True},
    {"type": "custom", "name": "say", "format": _GRAMMAR},
    {"type": "custom", "name": "tell", "format": {"type": "grammar", "syntax": "regex", "definition": "a|b"}},
    {"type": "namespace", "name": "crm", "description": "d", "tools": [{"type": "function", "name": "get"}]},
    {"type": "local_shell"},
    {"type": "shell", "environment": {"type": "local"}},
    {"type": "apply_patch"},
    {"type": "tool_search", "execution": "client"},
    {"type": "web_search", "external_web_access": False},
    {"type": "code_interpreter", "container": {"type": "auto"}},
]
ITEMS: list[Any] = [
    {"role": "user", "content": "hi"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
    {"role": "developer", "content": [{"type": "input_text", "text": "be"}]},
    {"type": "reasoning", "summary": [], "encrypted_content": "rts1_AAAA"},
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
    {"type": "function_call", "call_id": "1", "name": "look", "arguments": '{"a": "b"}'},
    {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "x"}]},
    {"type": "custom_tool_call", "call_id": "2", "name": "say", "input": "aab"},
    {"type": "custom_tool_call_output", "call_id": "2", "output": "done"},
    {"type": "shell_call", "call_id": "3", "action": {"commands": ["ls"]}},
    {
        "type": "shell_call_output",
        "call_id": "3",
        "output": [{"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}],
    },
    {
        "type": "apply_patch_call",
        "call_id": "4",
        "operation": {"type": "delete_file", "path": "a"},
        "status": "completed",
    },
    {"type": "apply_patch_call_output", "call_id": "4", "status": "completed"},
    {"type": "tool_search_output", "call_id": "5", "tools": TOOLS[:1]},
    {"type": "compaction", "encrypted_content": "rts1_AAAA"},
    {"type": "item_reference", "id": "msg_1"},
    {"type": "compaction_trigger"},
]
CHOICES: list[Any] = [
    "auto",
    "none",
    "required",
    {"type": "function", "name": "look"},
    {"type": "custom", "name": "say"},
]
CHOICES += [
    {"type": "shell"},
    {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]},
]
OPTIONS: dict[str, list[Any]] = {
    "instructions": ["be brief"],
    "tools": [TOOLS[:2], TOOLS[2:9], TOOLS],
    "tool_choice": CHOICES,
    "text": [{"verbosity": "low"}, {"format": {"type": "json_schema", "name": "p", "schema": _PLAIN, "strict": True}}],
    "include": [["reasoning.encrypted_content"], ["message.output_text.logprobs"]],
    "background": [True, False],
    "store": [True, False],
    "stream": [True, False],
    "truncation": ["auto", "disabled"],
    "max_output_tokens": [5],
    "max_tool_calls": [1],
    "metadata": [{"a": "b"}],
    "client_metadata": [{"a": {"b": 1}}],
    "reasoning": [{"effort": "low", "summary": "auto"}, {"context": "current_turn"}],
    "service_tier": ["flex"],
    "prompt_cache_key": ["k"],
}
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1 << 70,
    1.5,
    "",
    "x" * 300,
    "\ud800",
    [],
    {},
    [[]],
    {"": None},
    ["a", 1],
    {"type": []},
]
QUERIES = [
    "",
    "?stream=true",
    "?stream=true&starting_after=2",
    "?stream=maybe",
    "?starting_after=x",
    "?limit=2&order=asc",
]
QUERIES += ["?limit=x", "?after=msg_1", "?order=up", "?limit=100&after=%00"]


class TextTarget(FakeTarget):
    text_service = FakeTextService()
    tool_format = "hermes"


class Caller:
    """Makes requests and sends them over one connection.

    Attributes:
        ids: of responses, conversations and items that were answered.
    """

    def __init__(self, url: str, seed: int) -> None:
        self.random, self.ids = Random(seed), ["resp_0", "conv_0", "%2e%2e"]
        self.connection = http.client.HTTPConnection(HttpClient(url).address, timeout=30)
        self.counts: dict[int, int] = {}

    def call(self) -> None:
        method, path, body = self.request()
        data = None if body is None else json.dumps(body).encode()
        self.connection.request(method, path, data, {"content-type": "application/json"})
        response = self.connection.getresponse()
        answer = response.read()
        status = response.status
        self.counts[status] = self.counts.get(status, 0) + 1
        assert 200 <= status < 300 or 400 <= status < 500, (method, path, body, answer)
        if status >= 400:
            error = json.loads(answer)["error"]
            assert isinstance(error["message"], str)
            assert error["message"]
            assert {"message", "type", "param", "code"} <= error.keys()
            return
        if answer.startswith(b"{"):
            self.note(json.loads(answer))

    def note(self, made: dict[str, Any]) -> None:
        """Keep ids for later requests."""
        found = [made["id"]] if isinstance(made.get("id"), str) else []
        found += [item["id"] for item in made.get("output", made.get("data", [])) if isinstance(item.get("id"), str)]
        self.ids = [*self.ids, *found][-60:]

    def request(self) -> tuple[str, str, Any]:
        random = self.random
        one = random.choice(self.ids)
        kind = random.randrange(12)
        if kind < 6:
            return "POST", "/v1/responses", self.changed(self.body())
        if kind == 6:
            route = random.choice(["input_tokens", "compact"])
            names = ("instructions", "tools", "text") if route == "input_tokens" else ("instructions",)
            body = {"model": "default", "input": self.input()} | {
                name: random.choice(OPTIONS[name]) for name in names if random.random() < 0.3
            }
            return "POST", f"/v1/responses/{route}", self.changed(body)
        if kind == 7:
            where = random.choice(["/v1/conversations", f"/v1/conversations/{one}", f"/v1/conversations/{one}/items"])
            body = {"items": self.items(), "metadata": {"a": "b"}}
            for name in ("items", "metadata"):
                if random.random() < 0.4:
                    del body[name]
            return "POST", where, self.changed(body)
        prefix = random.choice(["responses", "conversations"])
        rest = random.choice(["", "", "/cancel", "/input_items", "/items", f"/items/{random.choice(self.ids)}"])
        method = random.choices(["GET", "DELETE", "POST"], (6, 1, 2))[0]
        query = random.choice(QUERIES) if method == "GET" else ""
        return method, f"/v1/{prefix}/{one}{rest}{query}", {} if method == "POST" else None

    def body(self) -> dict[str, Any]:
        random = self.random
        found = {"model": "default", "input": self.input()}
        for name, values in OPTIONS.items():
            if random.random() < 0.12:
                found[name] = random.choice(values)
        if random.random() < 0.25:
            found[random.choice(["previous_response_id", "conversation"])] = random.choice(self.ids)
        return found

    def input(self) -> Any:
        return "hi" if self.random.random() < 0.4 else self.items()

    def items(self) -> list[Any]:
        found = self.random.choices(ITEMS, k=self.random.randrange(1, 5))
        reference = {"type": "item_reference", "id": self.random.choice(self.ids)}
        return [reference if item.get("type") == "item_reference" else item for item in found]

    def changed(self, body: Any) -> Any:
        """The body, or one that differs in some places."""
        random = self.random
        if random.random() < 0.45:
            return body
        body = copy.deepcopy(body)
        for _ in range(random.choice([1, 1, 2])):
            at: Any = body
            while isinstance(at, (dict, list)) and at:
                key = random.choice(list(at) if isinstance(at, dict) else range(len(at)))
                if isinstance(at[key], (dict, list)) and at[key] and random.random() < 0.7:
                    at = at[key]
                    continue
                change = random.randrange(4)
                if change == 0 and isinstance(at, dict):
                    del at[key]
                elif change == 1 and isinstance(at, dict):
                    at[random.choice(["speed", "type", "id", "name"])] = copy.deepcopy(random.choice(ODD))
                elif change == 2 and isinstance(at, list):
                    at += at[:2]
                else:
                    at[key] = copy.deepcopy(random.choice(ODD))
                break
        return body


@pytest.mark.parametrize("seed", range(1, 1 + sized(10, usual=1)))
def test_any_body_is_answered_and_memory_is_bounded(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[ResponseState] = []

    class Small(ResponseState):
        def __init__(self) -> None:
            super().__init__()
            self.store, self.conversations = ResponseStore(MAX_BYTES), ConversationStore(MAX_BYTES)
            states.append(self)

    monkeypatch.setattr(service_module, "ResponseState", Small)
    monkeypatch.setattr(background_responses, "MAX_RUNS", 20)
    replies = [
        "plain",
        '<tool_call>\n{"name": "say", "arguments": {"input": "aa"}}\n</tool_call>',
        "<think>\nhm\n</think>\n\nyes",
    ]
    with TextTarget(lambda call: replies[call.graph_id % 3]) as target, serving(target) as server:  # type: ignore[arg-type]
        caller = Caller(server.url, seed)
        with contextlib.closing(caller.connection):
            for i in range(sized(10_000, usual=300)):
                caller.call()
                if i % 50 == 0:
                    (state,) = states
                    assert 0 <= state.store.num_bytes <= MAX_BYTES
                    assert 0 <= state.conversations.num_bytes <= MAX_BYTES
        assert caller.counts[200] > sum(caller.counts.values()) // 6, caller.counts
        answer = HttpClient(server.url).post("/v1/responses", {"model": "default", "input": "hi"})
        assert answer.status == 200
        for _ in range(1000):
            if not target._active:
                break
            time.sleep(0.01)
        assert not target._active
