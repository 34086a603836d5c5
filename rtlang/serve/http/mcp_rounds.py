"""Responses whose tools the server calls itself: rounds of generation and calls of MCP tools, as one response.

Each round is a turn of its own, whose input ends with the calls before and their results. The events of all rounds are one stream: their
numbers and indices go on, and calls of MCP tools become items `mcp_call`, which are closed when their result is there. A round without
such a call, or with a call that only the client can make, is the last.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import McpError
from rtlang.contract.runs.principal import Principal
from rtlang.serve.http.errors import described_error
from rtlang.serve.http.response_turn import Lookup, ResponseTurn, WorkRunner, new_id, open_turn
from rtlang.serve.responses.input_items import Item, item_id
from rtlang.serve.responses.mcp_servers import CallOutcome
from rtlang.serve.responses.mcp_tools import as_namespace, call_item, chosen, listed_item, read_mcp_tools
from rtlang.serve.responses.output_events import Chunk
from rtlang.serve.responses.store import StoredResponse
from rtlang.serve.service import StreamService
from rtlang.work.prices import READ_S_PER_BYTE, REPLY_S_PER_CHAR

MAX_ROUNDS = 64
"""Rounds of one response."""
MAX_CALLS_AT_ONCE = 8
_BEGINNINGS = ("response.created", "response.in_progress", "response.queued")
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_ITEM_DONE = "response.output_item.done"
_ARGUMENTS = "response.function_call_arguments."


class McpRounds:
    """One response in rounds; made by `open_rounds`.

    Attributes:
        first: the turn of the first round.
    """

    def __init__(
        self,
        service: StreamService,
        principal: Principal,
        open_next: Callable[[Mapping[str, Any], Sequence[Item]], Any],
        body: Mapping[str, Any],
        listed: Sequence[Item],
        first: ResponseTurn,
        given: Mapping[str, Any],
        num_body_bytes: int,
    ) -> None:
        self._service, self._principal, self._open_next, self._body = service, principal, open_next, body
        self._listed, self.first, self._given = listed, first, given
        self._num_body_bytes = num_body_bytes
        self._labels = {item["server_label"] for item in listed}
        self._number = 0
        self._output: list[Item] = []  # of the response
        self._usage: dict[str, Any] | None = None
        self._num_calls = 0
        self._num_chars = sum(len(repr(item["tools"])) for item in listed)  # of the lists of tools and of the results
        self._last: ResponseTurn = first

    async def chunks(self) -> AsyncGenerator[list[Chunk], None]:
        """The events of the response in groups; as `ResponseTurn.chunks`."""
        turn, history = self.first, list[Item]()
        begun = False
        for number in range(MAX_ROUNDS):
            self._last = turn
            calls: dict[str, tuple[int, Item]] = {}  # of MCP tools, by the id of the item of the function call
            base, final = len(self._output), None
            async with contextlib.aclosing(turn.chunks(self._service, self._principal)) as groups:
                async for group in groups:
                    found: list[Chunk] = []
                    for chunk in group:
                        if chunk["type"] in _BEGINNINGS:
                            if not begun:
                                found.append(self._numbered(chunk | {"response": self._own(chunk["response"], [])}))
                            continue
                        if not begun:
                            begun = True
                            found += self._tools_listed()
                            base = len(self._output)
                        if chunk["type"] in _ENDS:
                            final = chunk
                        else:
                            found += self._mapped(chunk, base, calls)
                    if found:
                        yield found
            assert final is not None
            response = final["response"]
            self._add_usage(response["usage"])
            whole = [calls[item["id"]][1] if item["id"] in calls else item for item in response["output"]]
            self._output[base:] = whole
            if calls and response["status"] == "completed":
                outcomes = await self._called([item for _, item in calls.values()])
                self._num_chars += sum(len(text or "") for outcome in outcomes for text in outcome)
                ended = zip(calls.values(), outcomes, strict=True)
                yield [chunk for (at, item), outcome in ended for chunk in self._ended(at, item, outcome)]
            elif calls:
                yield [chunk for at, item in calls.values() for chunk in self._cut(at, item)]
            is_over = (
                not calls or response["status"] != "completed" or self._waits_for_client(response["output"], calls)
            )
            if is_over or number == MAX_ROUNDS - 1:
                end = partial(self._end, final["type"], response)
                yield [await self._service.encode(self._principal, (), end, more_s=self._whole_s)]
                return
            history += self._history(response["output"], calls)
            self._num_calls += len(calls)
            turn = await self._open_next(self._next_body(), history)

    @property
    def num_bytes(self) -> int:
        """Size of the response as JSON text, approximately."""
        return self.first.given.num_bytes + self._num_body_bytes + self._num_chars

    def price_of(self, group: Sequence[Chunk]) -> float:
        """Seconds of writing events, beyond those of a small one."""
        is_long = any(chunk["type"] == _ITEM_DONE or "response" in chunk for chunk in group)
        return self._whole_s if is_long else 0.0

    @property
    def _whole_s(self) -> float:
        return (self._num_body_bytes + self._num_chars) * REPLY_S_PER_CHAR

    def failure(self, error: BaseException) -> Chunk:
        """The last event of a response that fails."""
        chunk = self._last.writer.failure(described_error(error)[1])
        return self._numbered(chunk | {"response": self._own(chunk["response"], self._output)})

    def _next_body(self) -> Mapping[str, Any]:
        """The body of the next round: a tool that had to be called has been, and no more calls are made than the request allows."""
        limit = self._body.get("max_tool_calls")
        if isinstance(limit, int) and self._num_calls >= limit:
            return {**self._body, "tool_choice": "none"}
        choice = self._body.get("tool_choice")
        is_forced = choice == "required" or isinstance(choice, Mapping)
        return {**self._body, "tool_choice": "auto"} if is_forced else self._body

    def _waits_for_client(self, output: Sequence[Item], calls: Mapping[str, Any]) -> bool:
        return any(item["type"].endswith("_call") and item["id"] not in calls for item in output)

    def _mapped(self, chunk: Chunk, base: int, calls: dict[str, tuple[int, Item]]) -> list[Chunk]:
        """An event of a round as events of the response."""
        kind, at = chunk["type"], chunk.get("output_index", 0) + base
        moved = chunk | {"output_index": at} if "output_index" in chunk else chunk
        item = chunk.get("item", {})
        if kind == "response.output_item.added":
            if not self._is_ours(item):
                return [self._numbered(moved)]
            own = call_item(item_id("mcp_call", new_id), item, "in_progress")
            calls[item["id"]] = (at, own)
            begun = {"type": "response.mcp_call.in_progress", "item_id": own["id"], "output_index": at}
            return [self._numbered(moved | {"item": dict(own)}), self._numbered(begun)]
        inner = item.get("id") or chunk.get("item_id")
        if inner not in calls:
            return [self._numbered(moved)]
        own = calls[inner][1]
        if kind == "response.output_item.done":  # its own follows with the result
            own["arguments"] = item["arguments"]
            return []
        if kind.startswith(_ARGUMENTS):
            renamed = {name: value for name, value in moved.items() if name != "name"}
            renamed |= {"type": f"response.mcp_call_arguments.{kind.removeprefix(_ARGUMENTS)}", "item_id": own["id"]}
            return [self._numbered(renamed)]
        return [self._numbered(moved)]

    def _is_ours(self, item: Mapping[str, Any]) -> bool:
        return item.get("type") == "function_call" and item.get("namespace") in self._labels

    async def _called(self, items: Sequence[Item]) -> list[CallOutcome]:
        turns, limit = asyncio.Semaphore(MAX_CALLS_AT_ONCE), self._body.get("max_tool_calls")

        async def call(number: int, item: Item) -> CallOutcome:
            if limit is not None and number >= limit:
                return CallOutcome(None, f"not called: the request allows {limit} calls (max_tool_calls)")
            async with turns:
                try:
                    arguments = json.loads(item["arguments"] or "{}")
                except ValueError:
                    return CallOutcome(None, "the arguments are not JSON")
                return await self._service.mcp_servers.call(item["server_label"], item["name"], arguments)

        return await asyncio.gather(*map(call, range(self._num_calls, self._num_calls + len(items)), items))

    def _ended(self, at: int, item: Item, outcome: CallOutcome) -> list[Chunk]:
        """The last events of a call."""
        failed = outcome.error is not None
        item["status"], item["output"] = "failed" if failed else "completed", outcome.output
        if failed:
            item["error"] = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": outcome.error}]}
        kind = f"response.mcp_call.{item['status']}"
        return [
            self._numbered({"type": kind, "item_id": item["id"], "output_index": at}),
            self._numbered({"type": "response.output_item.done", "output_index": at, "item": dict(item)}),
        ]

    def _cut(self, at: int, item: Item) -> list[Chunk]:
        item["status"] = "incomplete"
        return [self._numbered({"type": "response.output_item.done", "output_index": at, "item": dict(item)})]

    def _tools_listed(self) -> list[Chunk]:
        found: list[Chunk] = []
        known = {item["server_label"] for item in self.first.given.items if item["type"] == "mcp_list_tools"}
        for item in self._listed:
            if item["server_label"] in known:
                continue
            at, begun = len(self._output), item | {"tools": [], "error": None}
            kind = "response.mcp_list_tools"
            end = "completed" if item["error"] is None else "failed"
            place = {"item_id": item["id"], "output_index": at}
            found += [
                self._numbered({"type": "response.output_item.added", "output_index": at, "item": begun}),
                self._numbered({"type": f"{kind}.in_progress"} | place),
                self._numbered({"type": f"{kind}.{end}"} | place),
                self._numbered({"type": "response.output_item.done", "output_index": at, "item": item}),
            ]
            self._output.append(item)
        return found

    def _history(self, output: Sequence[Item], calls: Mapping[str, tuple[int, Item]]) -> list[Item]:
        """A round as input of the next one."""
        results = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": _shown(calls[item["id"]][1])}
            for item in output
            if item["id"] in calls
        ]
        return [*output, *results]

    def _add_usage(self, usage: Mapping[str, Any] | None) -> None:
        if usage is not None:
            self._usage = dict(usage) if self._usage is None else _added(self._usage, usage)

    def _end(self, kind: str, response: Mapping[str, Any]) -> Chunk:
        whole = self._own(response, self._output) | {"usage": self._usage}
        self.first.keep(whole)
        return self._numbered({"type": kind, "response": whole})

    def _own(self, response: Mapping[str, Any], output: Sequence[Item]) -> dict[str, Any]:
        """A response of a round with the fields that all rounds share."""
        heading = self.first.writer.heading
        shared = {name: heading[name] for name in ("id", "created_at")}
        given = {"tools": list(self._given["tools"]), "tool_choice": self._given.get("tool_choice") or "auto"}
        return {**response, **shared, **given, "output": list(output)}

    def _numbered(self, chunk: Chunk) -> Chunk:
        self._number += 1
        return chunk | {"sequence_number": self._number - 1}


def _shown(item: Item) -> str:
    """The result of a call as the model sees it."""
    if item["error"] is None:
        return str(item["output"] or "")
    return "Error: " + "".join(str(part["text"]) for part in item["error"]["content"])


def _added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The sum of two usages, detail by detail."""
    return {
        name: _added(value, other[name]) if isinstance(value, Mapping) else value + other[name]
        for name, value in one.items()
    }


async def open_rounds(
    service: StreamService,
    body: Mapping[str, Any],
    principal: Principal,
    run: WorkRunner,
    num_body_bytes: int,
    *,
    lookup: Lookup | None = None,
    on_done: Callable[[StoredResponse], None] | None = None,
) -> McpRounds:
    """Read the body of a request with tools of type `mcp`; arguments and errors as for `open_turn`.

    Raises:
        ParameterError: also for a server that is not listed.
    """
    servers = service.mcp_servers
    reading = partial(read_mcp_tools, body["tools"], servers.labels)
    requests = await run(num_body_bytes * READ_S_PER_BYTE, reading, kind=WorkKind.READ, may_wait=True)
    listed: list[Item] = []
    tools = [each for each in body["tools"] if not (isinstance(each, Mapping) and each.get("type") == "mcp")]
    for request in requests:
        error: str | None = None
        found: list[Any] = []
        try:
            found = request.allowed(await servers.tools(request.label))
        except McpError as failed:
            error = failed.reason
        listed.append(listed_item(item_id("mcp_list_tools", new_id), request.label, found, error))
        if found:
            tools.append(as_namespace(request.label, found))
    inner = {**body, "tools": tools, "tool_choice": chosen(body.get("tool_choice"))}

    async def open_next(next_body: Mapping[str, Any], more: Sequence[Item]) -> ResponseTurn:
        return await open_turn(
            service, next_body, principal, run, num_body_bytes, lookup=lookup, more_input=more, is_round=True
        )

    first = await open_turn(
        service, inner, principal, run, num_body_bytes, lookup=lookup, on_done=on_done, is_round=True
    )
    return McpRounds(service, principal, open_next, inner, listed, first, body, num_body_bytes)
