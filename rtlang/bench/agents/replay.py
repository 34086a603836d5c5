"""Replays traces of agents: as many conversations at once as there are sessions, each with its own client.

A client sends a turn, waits for as long as the tool takes, and sends the next one with the result. A returning token is one that an earlier
request of the same conversation, or of the parent that it was forked from, has had in its prompt or its output.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from rtlang.bench.agents.catalogue import DOORS
from rtlang.bench.agents.doors import Door, HttpConnection, Message, Reply, Request
from rtlang.bench.agents.traces import MIN_OUTPUT_TOKENS, Task, Turn


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """One turn.

    Attributes:
        door: through which it came.
        first_s: seconds from the request to the first text of the reply.
        num_prompt, num_cached, num_output: tokens, as the server counts them.
        num_returning: tokens of the prompt that an earlier turn had; 0 in the first turn of a task.
    """

    door: str
    first_s: float
    num_prompt: int
    num_cached: int
    num_output: int
    num_returning: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """All turns of a replay.

    Attributes:
        wall_s: from the first request to the last reply.
        num_checked: turns whose tokens were looked for in the last prompt of their conversation.
        num_different: of these, turns that the last prompt spells with other tokens than were generated.
    """

    turns: tuple[TurnFigures, ...]
    wall_s: float
    num_checked: int
    num_different: int


@dataclass(frozen=True, slots=True)
class Marks:
    """The tokens around each reply in the prompts of the served model: the last one before it, and the first one after it."""

    before: int
    after: int


@dataclass(slots=True)
class _Conversation:
    """One conversation so far.

    Attributes:
        known: tokens of the last prompt and output.
        places: where the outputs are in later prompts: first token, and number of tokens.
    """

    key: str
    messages: list[Message]
    known: int = 0
    places: list[tuple[int, int]] = field(default_factory=list)


def replay(
    url: str,
    tasks: Sequence[Task],
    num_sessions: int,
    marks: Marks,
    *,
    doors: Sequence[str] = tuple(DOORS),
    speed: float = 1.0,
    tell: Callable[[int], None] = lambda num_tasks: None,
) -> Replayed:
    """Run all tasks.

    Args:
        url: of the server, for HTTP.
        num_sessions: tasks that run at the same time; the next one begins when one ends.
        doors: names in `DOORS`; tasks use them in turns.
        speed: the delays of tools are divided by it.
        tell: called with the number of tasks that have ended.
    Raises:
        RtlangError: the server refuses a turn.
    """
    run = _Run(url, marks, speed)
    waiting: SimpleQueue[tuple[int, Task]] = SimpleQueue()
    for item in enumerate(tasks):
        waiting.put(item)
    ended = count(1)

    def work(worker: int) -> None:
        time.sleep(worker * _STAGGER_S / speed)
        while not run.has_failed.is_set():
            try:
                index, task = waiting.get_nowait()
            except Empty:
                return
            try:
                run.do_task(index, task, doors[index % len(doors)])
            except BaseException:
                run.has_failed.set()
                raise
            tell(next(ended))

    started = time.perf_counter()
    with ThreadPoolExecutor(num_sessions, thread_name_prefix="agent") as pool:
        for future in [pool.submit(work, worker) for worker in range(num_sessions)]:
            future.result()
    return Replayed(tuple(run.turns), time.perf_counter() - started, run.num_checked, run.num_different)


def warm_up(url: str, tasks: Sequence[Task], doors: Sequence[str]) -> None:
    """Let a server compile what the tasks need, with other texts than theirs."""
    kinds = {task.system: task for task in tasks}
    for task in kinds.values():
        for name in doors:
            door = DOORS[name](url)
            try:
                messages = [{"role": "system", "content": "Warm up."}, {"role": "user", "content": name}]
                for must_call in (True, False):
                    door.ask(Request(messages, task.tools, must_call, MIN_OUTPUT_TOKENS, "warm-up"))
            finally:
                door.close()


_STAGGER_S = 1.0
"""Between the first requests of two sessions, before they are sped up."""


class _Run:
    """The state that all sessions share."""

    def __init__(self, url: str, marks: Marks, speed: float) -> None:
        self._url, self._marks, self._speed = url, marks, speed
        self._lock = threading.Lock()
        self.turns: list[TurnFigures] = []
        self.num_checked = self.num_different = 0
        self.has_failed = threading.Event()

    def do_task(self, index: int, task: Task, door_name: str) -> None:
        start: list[Message] = [{"role": "system", "content": task.system}, {"role": "user", "content": task.text}]
        conversation = _Conversation(f"task-{index}", start)
        door = DOORS[door_name](self._url)
        try:
            self._do_turns(task, task.turns, conversation, door, door_name)
        finally:
            door.close()

    def _do_turns(
        self, task: Task, turns: Sequence[Turn], conversation: _Conversation, door: Door, door_name: str
    ) -> str:
        """Run the turns of a conversation, and its answer, which is returned."""
        for number, turn in enumerate(turns):
            message = self._ask(task, conversation, door, door_name, must_call=True).message
            call = message["tool_calls"][0]
            result = turn.result
            if turn.fork:
                forked = _Conversation(
                    f"{conversation.key}-{number}",
                    list(conversation.messages),
                    conversation.known,
                    list(conversation.places),
                )
                forked.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
                inner = DOORS[door_name](self._url)
                try:
                    result = self._do_turns(task, turn.fork, forked, inner, door_name)
                finally:
                    inner.close()
            else:
                time.sleep(turn.delay_s / self._speed)
            conversation.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        answer = self._ask(task, conversation, door, door_name, must_call=False)
        self._check(task, conversation)
        return answer.message["content"] or "nothing"

    def _ask(self, task: Task, conversation: _Conversation, door: Door, door_name: str, *, must_call: bool) -> Reply:
        request = Request(conversation.messages, task.tools, must_call, task.max_tokens, conversation.key)
        reply = door.ask(request)
        found = TurnFigures(
            door_name, reply.first_s, reply.num_prompt, reply.num_cached, reply.num_output, conversation.known
        )
        conversation.messages.append(reply.message)
        conversation.known = reply.num_prompt + reply.num_output
        conversation.places.append((reply.num_prompt, reply.num_output))
        with self._lock:
            self.turns.append(found)
        return reply

    def _check(self, task: Task, conversation: _Conversation) -> None:
        """Look for the calls of a conversation in the prompt that would follow its answer."""
        http = HttpConnection(self._url)
        try:
            body: Mapping[str, Any] = {
                "messages": [*conversation.messages, {"role": "user", "content": "Go on."}],
                "tools": list(task.tools),
            }
            token_ids = http.json("POST", "/tokenize", body)["tokens"]
        finally:
            http.close()
        different = [place for place in conversation.places[:-1] if not _is_at(token_ids, place, self._marks)]
        with self._lock:
            self.num_checked += len(conversation.places) - 1
            self.num_different += len(different)


def _is_at(token_ids: Sequence[int], place: tuple[int, int], marks: Marks) -> bool:
    """Whether an output of as many tokens stands there."""
    begin, num_tokens = place
    end = begin + num_tokens
    return end < len(token_ids) and token_ids[begin - 1] == marks.before and token_ids[end] == marks.after
