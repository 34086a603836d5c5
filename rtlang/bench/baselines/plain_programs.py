"""The programs of a workload as a baseline runs them: which requests are due when, their prompts, and when their outputs came.

Imports the standard library only, since it also runs in the process of vLLM. A program is a list of nodes as JSON has them; each refers to
earlier ones, and all but tools continue the sequence of their `parent`:

    {"id": 0, "parent": None, "tokens": [1, 2]}                    tokens
    {"id": 1, "parent": 0, "parts": ["text ", 2]}                  text, with that of generations and tools by their ids
    {"id": 2, "parent": 1, "max_tokens": 16, "schema": None}       a generation; with a JSON schema, or of exactly `max_tokens`
    {"id": 3, "caller": 2, "delay_s": 0.1, "text": "found"}        a tool: its text is known so long after the generation that calls it
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

Node = dict[str, Any]
Key = tuple[int, int]
"""Index of the program, and the node id."""


class PlainPrograms:
    """The running programs of one workload. Times are in seconds since its start.

    Args:
        arrivals_s: by program, when it arrives; empty for all at once.
        encode, decode: tokens of a text that continues a sequence, and the text of tokens.
    Attributes:
        outputs: tokens of the generations that have ended.
        num_prompt_tokens: of the generations that were started.
    """

    def __init__(
        self,
        programs: Sequence[Sequence[Node]],
        arrivals_s: Sequence[float],
        encode: Callable[[str], list[int]],
        decode: Callable[[Sequence[int]], str],
    ) -> None:
        self._arrivals_s = list(arrivals_s) or [0.0] * len(programs)
        self._encode, self._decode = encode, decode
        self._nodes: dict[Key, Node] = {
            (index, node["id"]): node for index, nodes in enumerate(programs) for node in nodes
        }
        self._encoded: dict[Key, list[int]] = {}
        self.outputs: dict[Key, list[int]] = {}
        self.num_prompt_tokens = 0
        self._times_s: dict[Key, list[float]] = {}
        self._end_s = [0.0] * len(programs)
        self._waits: dict[Key, dict[Key, float]] = {}  # generations before one, and the time of tools behind each
        self._followers: dict[Key, list[Key]] = {}
        self._ready_s: dict[Key, float] = {}
        self._due: list[tuple[float, int, Key]] = []  # a heap
        self._num_due = 0
        for key, node in self._nodes.items():
            if "max_tokens" not in node:
                continue
            self._ready_s[key] = self._arrivals_s[key[0]]
            waits = self._waits[key] = self._generations_before(key)
            for before in waits:
                self._followers.setdefault(before, []).append(key)
            if not waits:
                self._put(key)

    @property
    def is_done(self) -> bool:
        """Whether all generations have ended."""
        return len(self.outputs) == len(self._ready_s)

    @property
    def next_s(self) -> float | None:
        """When the next generation is due; None if that depends on generations that have not ended."""
        return self._due[0][0] if self._due else None

    def take_due(self, now: float, at_most: int | None = None) -> list[Key]:
        """The generations that are due, the longest waiting first; each is returned once."""
        found: list[Key] = []
        while self._due and self._due[0][0] <= now and (at_most is None or len(found) < at_most):
            found.append(heapq.heappop(self._due)[-1])
        return found

    def node(self, key: Key) -> Node:
        """A node."""
        return self._nodes[key]

    def start(self, key: Key) -> list[int]:
        """The prompt of a generation that is sent now."""
        parts: list[list[int]] = []
        at = self._parent(key)
        while at is not None:
            parts.append(self._tokens(at))
            at = self._parent(at)
        prompt = [token_id for part in reversed(parts) for token_id in part]
        self.num_prompt_tokens += len(prompt)
        return prompt

    def note_output(self, key: Key, now: float) -> None:
        """A generation has more tokens."""
        self._times_s.setdefault(key, []).append(now)

    def finish(self, key: Key, token_ids: list[int], now: float) -> None:
        """A generation has ended; those behind it become due, some of them later."""
        self.outputs[key] = token_ids
        self._end_s[key[0]] = now
        for follower in self._followers.get(key, ()):
            delay_s = self._waits[follower].pop(key)
            self._ready_s[follower] = max(self._ready_s[follower], now + delay_s)
            if not self._waits[follower]:
                self._put(follower)

    def results(self, total_s: float) -> dict[str, Any]:
        """The times and outputs of the run as plain data."""
        return {
            "total_s": total_s,
            "latencies_s": [end - start for end, start in zip(self._end_s, self._arrivals_s, strict=True)],
            "times_s": [[*key, times] for key, times in self._times_s.items()],
            "outputs": [[*key, token_ids] for key, token_ids in self.outputs.items()],
            "num_prompt_tokens": self.num_prompt_tokens,
        }

    def _put(self, key: Key) -> None:
        self._num_due += 1
        heapq.heappush(self._due, (self._ready_s[key], self._num_due, key))

    def _parent(self, key: Key) -> Key | None:
        parent = self._nodes[key]["parent"]
        return None if parent is None else (key[0], parent)

    def _generations_before(self, key: Key) -> dict[Key, float]:
        found: dict[Key, float] = {}
        at = self._parent(key)
        while at is not None:
            node = self._nodes[at]
            if "max_tokens" in node:
                found.setdefault(at, 0.0)
                break
            for part in node.get("parts", ()):
                if isinstance(part, int):
                    other = self._nodes[key[0], part]
                    generation = key[0], other.get("caller", part)
                    found[generation] = max(found.get(generation, 0.0), other.get("delay_s", 0.0))
            at = self._parent(at)
        return found

    def _tokens(self, key: Key) -> list[int]:
        node = self._nodes[key]
        if "max_tokens" in node:
            return self.outputs[key]
        if "tokens" in node:
            found: list[int] = node["tokens"]
            return found
        if key not in self._encoded:
            self._encoded[key] = self._encode("".join(self._text(key[0], part) for part in node["parts"]))
        return self._encoded[key]

    def _text(self, index: int, part: str | int) -> str:
        if isinstance(part, str):
            return part
        node = self._nodes[index, part]
        return node["text"] if "caller" in node else self._decode(self.outputs[index, part])
